//! `gso`: segmentation of large packets on an interface.

use crate::head::RequestHead;
use crate::retval::Retval;
use crate::types::{Bool, SwIfIndex};

include!(concat!(env!("OUT_DIR"), "/gso.rs"));

messages! {
    MESSAGES;
    /// Switches segmentation for what leaves through an interface. Repeating it is harmless.
    request FeatureGsoEnableDisable "feature_gso_enable_disable" 0x5501_adee => FeatureGsoEnableDisableReply {
        /// The interface.
        pub sw_if_index: SwIfIndex,
        /// On or off.
        pub enable_disable: Bool,
    }
    /// How it went.
    reply FeatureGsoEnableDisableReply "feature_gso_enable_disable_reply" 0xe8d4_e804 {
        /// How it went.
        pub retval: Retval,
    }
}

impl FeatureGsoEnableDisable {
    /// Switches it on or off.
    #[must_use]
    pub fn new(sw_if_index: SwIfIndex, enable: bool) -> Self {
        Self { head: RequestHead::BLANK, sw_if_index, enable_disable: enable.into() }
    }
}
