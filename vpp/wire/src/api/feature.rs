//! `feature`: packet processing switched on per interface.
//!
//! `feature_enable_disable` counts its calls: what was switched on twice is still on after being switched off once. So it is
//! only made of VPP's answer to the question whether the feature is on.

use crate::head::RequestHead;
use crate::message::Refused;
use crate::retval::Retval;
use crate::types::{Bool, FixedString, SwIfIndex};

include!(concat!(env!("OUT_DIR"), "/feature.rs"));

messages! {
    MESSAGES;
    /// Asks whether a feature is on.
    request FeatureIsEnabled "feature_is_enabled" 0x55db_09e2 => FeatureIsEnabledReply {
        /// The arc, for example `ip4-output`.
        pub arc_name: FixedString<64>,
        /// The feature, for example `gso-ip4`.
        pub feature_name: FixedString<64>,
        /// The interface.
        pub sw_if_index: SwIfIndex,
    }
    /// The answer.
    echo_reply FeatureIsEnabledReply "feature_is_enabled_reply" 0x03f2_84b5 {
        /// An unknown arc or feature is an error.
        pub retval: Retval,
        /// Whether it is on.
        pub is_enabled: Bool,
    }
}

impl FeatureIsEnabled {
    /// Asks for one feature on one interface.
    ///
    /// # Errors
    /// [`Refused::Text`] for a name above 63 bytes.
    pub fn new(sw_if_index: SwIfIndex, arc_name: &str, feature_name: &str) -> Result<Self, Refused> {
        Ok(Self {
            head: RequestHead::BLANK,
            arc_name: FixedString::new(arc_name)?,
            feature_name: FixedString::new(feature_name)?,
            sw_if_index,
        })
    }
}

impl FeatureEnableDisable {
    /// Switches what `question` asked about, unless `answer` says that it is so already or that there is no such thing.
    #[must_use]
    pub fn change(question: &FeatureIsEnabled, answer: &FeatureIsEnabledReply, on: bool) -> Option<Self> {
        (answer.retval == Retval::OK && answer.is_enabled.is_true() != on).then(|| Self {
            head: RequestHead::BLANK,
            sw_if_index: question.sw_if_index,
            enable: on.into(),
            arc_name: question.arc_name,
            feature_name: question.feature_name,
        })
    }
}
