//! What executors are asked to do about IKEv2. Each action is several requests; where one of them fails, all of it counts
//! as failed, and is done again from its beginning.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::desired::IpipKey;
use crate::event::SwIfIndex;
use crate::model::Psk;

/// What to do about IKEv2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IkeAction {
    /// Make a profile, in place of one of the same name. The tunnel goes down first: nothing is to go through it in the
    /// clear.
    PutProfile(Box<IkeRequest>),
    /// Delete a profile with its association, for which VPP takes the tunnel down. [`VppFailure::Absent`](super::VppFailure::Absent) if there is none.
    DeleteProfile {
        /// The ends, from which its name follows.
        ends: IpipKey,
    },
    /// Begin to negotiate. Success says only that VPP has begun.
    Initiate {
        /// The profile.
        profile: Box<IkeRequest>,
        /// It was begun before: the profile is made anew, as VPP would go on with every attempt for ever.
        renew: bool,
    },
    /// Have workers do nothing but encrypt.
    AsyncCrypto {
        /// So many of them.
        threads: u32,
    },
}

/// A profile. The identities are the two addresses; all traffic is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IkeRequest {
    /// Our address.
    pub local: Ipv4Addr,
    /// The other node's.
    pub remote: Ipv4Addr,
    /// The interface to protect.
    pub index: SwIfIndex,
    /// The key that both ends share.
    pub psk: Psk,
    /// The interface through which this end begins; none where the other one does.
    pub begins: Option<SwIfIndex>,
}

impl IkeRequest {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> Arc<str> {
        profile_name(&IpipKey { local: self.local.into(), remote: self.remote.into() })
    }
}

/// The name of the profile of a tunnel, as today's agents name it: `pr_192_0_2_1_to_192_0_2_2`. Of two IPv4 addresses it
/// has at most 37 octets; VPP has room for 63.
#[must_use]
pub fn profile_name(ends: &IpipKey) -> Arc<str> {
    format!("pr_{}_to_{}", ends.local, ends.remote).replace(['.', ':'], "_").into()
}

/// The tunnel that a profile of this name belongs to; `None` where the name is no such one.
#[must_use]
pub fn profile_ends(name: &str) -> Option<IpipKey> {
    let (local, remote) = name.strip_prefix("pr_")?.split_once("_to_")?;
    let address = |text: &str| text.replace('_', ".").parse::<Ipv4Addr>().ok().map(IpAddr::V4);
    Some(IpipKey { local: address(local)?, remote: address(remote)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_follows_from_the_ends_and_leads_back_to_them() {
        let key = |local: &str, remote: &str| IpipKey {
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
        };
        for (local, remote, name) in [
            ("192.0.2.1", "192.0.2.2", "pr_192_0_2_1_to_192_0_2_2"),
            ("255.255.255.255", "255.255.255.254", "pr_255_255_255_255_to_255_255_255_254"),
        ] {
            let key = key(local, remote);
            assert_eq!(&*profile_name(&key), name);
            assert!(name.len() < 64);
            assert_eq!(profile_ends(name), Some(key));
        }
        for other in ["", "pr_", "pr_a_to_b", "pr_192_0_2_1", "192_0_2_1_to_192_0_2_2", "pr_1_2_3_to_1_2_3_4"]
        {
            assert_eq!(profile_ends(other), None, "{other}");
        }
    }
}
