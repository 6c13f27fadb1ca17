//! Values of IKEv2.

use super::IpipKey;
use crate::event::SwIfIndex;
use crate::model::Psk;

/// What a profile shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IkeProfile {
    /// The key that both ends share.
    pub psk: Psk,
    /// This end begins.
    pub initiates: bool,
}

/// A profile as VPP has it, or is to be told it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IkeHeld {
    /// The ends, from which all names and identities follow.
    pub ends: IpipKey,
    /// The interface that it protects.
    pub index: SwIfIndex,
    /// The key that both ends share.
    pub psk: Option<Psk>,
    /// The interface through which this end begins; none where the other one does.
    pub begins: Option<SwIfIndex>,
    /// Everything else is as we tell it.
    pub whole: bool,
}
