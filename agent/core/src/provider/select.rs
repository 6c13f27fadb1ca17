//! Which provider carries the traffic to a next hop: the first rule that applies, as Calico/VPP's agents choose, with
//! three differences. Where a rule needs to know our own subnet and there is none, the route is carried as it is, rather
//! than lost. Under SRv6 so is what has an IPv4 next hop. And WireGuard can be told to carry all traffic of pods, and to
//! have nothing leave in the clear.

use std::net::IpAddr;

use super::{Facts, Slot, WireguardReach};
use crate::config::Encrypted;
use crate::model::{Encapsulation, Pool, SrBehavior, Vni, family_of};

/// What is known of a destination that decides how its traffic is carried.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Carriage {
    /// It is in no pool.
    Outside,
    /// Its pool wants no encapsulation.
    Plain,
    /// Its pool wants IPIP.
    Ipip(Reach),
    /// Its pool wants VXLAN.
    Vxlan(Reach),
    /// SRv6 is on.
    Steered {
        /// What has to become of its packets at the other end.
        behavior: SrBehavior,
        /// It is in a pool: what is not encapsulated would not get there.
        pooled: bool,
    },
    /// It is in the pool of local SIDs, where encapsulated packets go.
    Localsids,
    /// It is in the pool of binding SIDs, where nothing goes.
    BindingSids,
    /// It belongs to a network other than the default one.
    Network(Vni),
    /// It belongs to a network that there is no object of.
    Unknown(Vni),
    /// It is an address of a service: not to be installed at all.
    Withheld,
}

/// Which next hops a pool's encapsulation is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// All.
    All,
    /// Those outside our node's own subnet.
    OtherSubnets,
}

impl Carriage {
    /// What a pool says of its destinations.
    pub(crate) const fn of(pool: &Pool) -> Self {
        match (pool.ipip, pool.vxlan) {
            (Encapsulation::Always, _) => Self::Ipip(Reach::All),
            (Encapsulation::CrossSubnet, _) => Self::Ipip(Reach::OtherSubnets),
            (Encapsulation::Never, Encapsulation::Always) => Self::Vxlan(Reach::All),
            (Encapsulation::Never, Encapsulation::CrossSubnet) => Self::Vxlan(Reach::OtherSubnets),
            (Encapsulation::Never, Encapsulation::Never) => Self::Plain,
        }
    }
}

/// The providers, and dropping.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Flat,
    Ipip,
    Vxlan,
    Wireguard,
    Ipsec,
    Srv6,
    /// Nothing may carry it.
    Drop,
}

/// A provider, and why it is that one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The provider.
    pub(crate) kind: Kind,
    /// Why, for people.
    pub(crate) why: &'static str,
    /// Why WireGuard, which is on, can't have it; [`WireguardReach::Off`] where it need not.
    pub(crate) unencrypted: WireguardReach,
}

/// Chooses; `Err` says why the destination is not to be installed.
pub(crate) fn select(carriage: Carriage, hop: IpAddr, facts: &Facts) -> Result<Choice, &'static str> {
    let choice = |kind, why| Ok(Choice { kind, why, unencrypted: WireguardReach::Off });
    match carriage {
        Carriage::Withheld => return Err("addresses of services are announced, never installed"),
        Carriage::Unknown(_) => {
            return Err("there is no Network object that can be used with the number of its network");
        }
        Carriage::Network(_) => {
            return choice(Kind::Vxlan, "it belongs to a network other than the default one");
        }
        Carriage::Steered { behavior, pooled } => {
            let IpAddr::V6(endpoint) = hop else {
                return choice(Kind::Flat, "SRv6 is on, which has no way to an IPv4 next hop");
            };
            return match facts.policies.active(Slot { endpoint, behavior }) {
                // Reported as something that is missing where there is none.
                Some(_) => choice(Kind::Srv6, "SRv6 is on, and an SR policy leads to the next hop"),
                None if pooled => choice(Kind::Srv6, "SRv6 is on"),
                None => choice(Kind::Flat, "in no pool, and no SR policy leads to the next hop"),
            };
        }
        Carriage::Localsids => {
            return choice(Kind::Flat, "it is in the pool of local SIDs, where encapsulated packets go");
        }
        Carriage::BindingSids => return Err("it is in the pool of binding SIDs, where nothing is sent"),
        Carriage::Outside | Carriage::Plain | Carriage::Ipip(_) | Carriage::Vxlan(_) => {}
    }
    let (kind, why) = match carriage {
        Carriage::Ipip(reach) => encapsulated(Kind::Ipip, reach, hop, facts),
        Carriage::Vxlan(reach) => encapsulated(Kind::Vxlan, reach, hop, facts),
        Carriage::Plain => (Kind::Flat, "no encapsulation"),
        Carriage::Outside
        | Carriage::Steered { .. }
        | Carriage::Localsids
        | Carriage::BindingSids
        | Carriage::Network(_)
        | Carriage::Unknown(_)
        | Carriage::Withheld => {
            return choice(Kind::Flat, "in no pool: routed as it is");
        }
    };
    if kind == Kind::Ipip && facts.ipsec.is_some() {
        return choice(Kind::Ipsec, "IPsec is on, and the pool would use IPIP");
    }
    if kind == Kind::Flat && facts.encryption.what == Encrypted::Encapsulated {
        return choice(kind, why);
    }
    let reach = facts.wireguard(hop);
    let lacking = match reach {
        WireguardReach::Off => return choice(kind, why),
        WireguardReach::Usable(_) => {
            return choice(Kind::Wireguard, "WireGuard is on, and the next hop's node has a key");
        }
        WireguardReach::Keyless => {
            "WireGuard is on, this node has no key, and nothing may leave in the clear"
        }
        WireguardReach::NoKey => {
            "WireGuard is on, the next hop's node has no key, and nothing may leave in the clear"
        }
        WireguardReach::SharedKey => {
            "WireGuard is on, the next hop's node has the key of another one, and nothing may leave in the clear"
        }
        WireguardReach::Stranger => {
            "WireGuard is on, no node has the next hop's address, and nothing may leave in the clear"
        }
    };
    let (kind, why) = if facts.encryption.or_drop { (Kind::Drop, lacking) } else { (kind, why) };
    Ok(Choice { kind, why, unencrypted: reach })
}

/// What a pool's encapsulation comes to for a next hop.
fn encapsulated(kind: Kind, reach: Reach, hop: IpAddr, facts: &Facts) -> (Kind, &'static str) {
    let is_ipip = kind == Kind::Ipip;
    let say = |ipip, vxlan| if is_ipip { ipip } else { vxlan };
    if reach == Reach::All {
        return (kind, say("ipipMode is Always", "vxlanMode is Always"));
    }
    match facts.own().and_then(|node| node.subnet(family_of(hop))) {
        Some(subnet) if !subnet.contains(&hop) => {
            let why = say(
                "ipipMode is CrossSubnet and the next hop is outside this node's subnet",
                "vxlanMode is CrossSubnet and the next hop is outside this node's subnet",
            );
            (kind, why)
        }
        Some(_) => {
            let why = say(
                "ipipMode is CrossSubnet and the next hop is in this node's subnet",
                "vxlanMode is CrossSubnet and the next hop is in this node's subnet",
            );
            (Kind::Flat, why)
        }
        // The route is good all the same.
        None => {
            let why = say(
                "ipipMode is CrossSubnet and this node has no subnet of the IP version to cross",
                "vxlanMode is CrossSubnet and this node has no subnet of the IP version to cross",
            );
            (Kind::Flat, why)
        }
    }
}

#[cfg(test)]
mod tests;
