//! What VPP is found to hold of IKEv2.

use std::sync::Arc;

use super::SwIfIndex;
use crate::model::Psk;

/// A profile found in VPP, whoever made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedProfile {
    /// Its name.
    pub name: Arc<str>,
    /// The interface that it protects; it may be gone.
    pub index: SwIfIndex,
    /// The key that both ends share; none where there is none, or nodes are believed by other means.
    pub psk: Option<Psk>,
    /// The interface through which this end begins.
    pub begins: Option<SwIfIndex>,
    /// Everything else is as we would have told it to VPP for a profile of this name.
    pub whole: bool,
}
