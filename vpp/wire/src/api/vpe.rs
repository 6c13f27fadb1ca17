//! `vpe`: what VPP this is.

use crate::head::RequestHead;
use crate::retval::Retval;
use crate::types::FixedString;

include!(concat!(env!("OUT_DIR"), "/vpe.rs"));

messages! {
    MESSAGES;
    /// Asks for the release.
    request ShowVersion "show_version" 0x5107_7d14 => ShowVersionReply { }
    /// The release.
    reply ShowVersionReply "show_version_reply" 0xc919_bde1 {
        /// 0.
        pub retval: Retval,
        /// `vpe`
        pub program: FixedString<32>,
        /// For example `26.06-release`.
        pub version: FixedString<32>,
        /// When it was built.
        pub build_date: FixedString<32>,
        /// Where it was built.
        pub build_directory: FixedString<256>,
    }
}

impl Default for ShowVersion {
    fn default() -> Self {
        Self { head: RequestHead::BLANK }
    }
}
