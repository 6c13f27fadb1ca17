//! `fib`: sources of routes. A source of our own keeps our routes apart from everybody else's.

use crate::head::RequestHead;
use crate::message::Refused;
use crate::retval::Retval;
use crate::types::{FibSourceId, FixedString};

/// VPP's priority of the source `API`; a lower number wins.
pub const API_PRIORITY: u8 = 128;

wire_struct! {
    /// A source of routes.
    pub struct FibSource {
        /// Of two sources with the same prefix the lower number forwards.
        pub priority: u8,
        /// VPP's number of it.
        pub id: FibSourceId,
        /// Its name; VPP takes the same one twice and makes two sources.
        pub name: FixedString<64>,
    }
}

include!(concat!(env!("OUT_DIR"), "/fib.rs"));

messages! {
    MESSAGES;
    /// Makes a source. VPP makes another one each time, and has only 255: look into the dump first.
    request FibSourceAdd "fib_source_add" 0xb3ac_2aec => FibSourceAddReply {
        src: FibSource,
    }
    /// The new source.
    reply FibSourceAddReply "fib_source_add_reply" 0x604f_d6f1 {
        /// How it went.
        pub retval: Retval,
        /// VPP's number of the source.
        pub id: FibSourceId,
    }
    /// Asks for all sources.
    dump FibSourceDump "fib_source_dump" 0x5107_7d14 => FibSourceDetails { }
    /// One source.
    details FibSourceDetails "fib_source_details" 0x8668_acdb {
        /// The source.
        pub src: FibSource,
    }
}

impl FibSourceAdd {
    /// A source that loses against VPP's API source: what others put there stays in force.
    ///
    /// # Errors
    /// [`Refused::SourcePriority`] for a priority up to 128, or 255 (VPP's invalid one); [`Refused::NoName`],
    /// [`Refused::Text`].
    pub fn below_api(name: &str, priority: u8) -> Result<Self, Refused> {
        if priority <= API_PRIORITY || priority == u8::MAX {
            return Err(Refused::SourcePriority(priority));
        }
        if name.is_empty() {
            return Err(Refused::NoName);
        }
        let src = FibSource { priority, id: FibSourceId::API, name: FixedString::new(name)? };
        Ok(Self { head: RequestHead::BLANK, src })
    }

    /// What is asked for.
    #[must_use]
    pub const fn src(&self) -> &FibSource {
        &self.src
    }
}

impl Default for FibSourceDump {
    fn default() -> Self {
        Self { head: RequestHead::BLANK }
    }
}
