//! What both ends of a session agreed on: everything that parsing and writing its messages, and keeping its
//! routes over a restart, depends on.
//!
//! Made from the two OPENs and nothing else. Whether the peer may say what it says is the session's question.

use crate::{
    asn::Asn,
    capability::{AddPath, Capability, GracefulRestart, LongLivedFamily, Role},
    family::{Family, FamilySet},
    frame::{EXTENDED_MAX_LEN, MAX_LEN},
    open::Open,
    router_id::RouterId,
};

/// What both ends of a session agreed on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Families that both ends speak; IPv4 unicast where an end names none (RFC 4760 section 8).
    pub families: FamilySet,
    /// AS numbers have four octets in AS_PATH and AGGREGATOR (RFC 6793).
    pub four_octet: bool,
    /// The peer answers ROUTE-REFRESH, and so do we.
    pub route_refresh: bool,
    /// ROUTE-REFRESH has begin and end (RFC 7313).
    pub enhanced_refresh: bool,
    /// Families in which received prefixes have path identifiers (RFC 7911).
    pub add_path_receive: FamilySet,
    /// Families in which sent prefixes have path identifiers.
    pub add_path_send: FamilySet,
    /// Families of IPv4 prefixes that may come, and be sent, with an IPv6 next hop (RFC 8950).
    pub extended_next_hop: FamilySet,
    /// What we are to the peer, where our OPEN says so (RFC 9234); the peer then has the opposite role, or
    /// named none.
    pub role: Option<Role>,
    /// Graceful restart (RFC 4724), where both ends can at least help.
    pub restart: Option<AgreedRestart>,
    /// Long-lived graceful restart (RFC 9494), where both ends named it and graceful restart.
    pub long_lived: Option<AgreedLongLived>,
    /// The peer is in another AS.
    pub ebgp: bool,
    /// Hold time in seconds, the smaller of the two; 0 means no hold and no keepalive timer.
    pub hold_time: u16,
    /// Time between KEEPALIVEs in seconds: a third of the hold time, at least 1; 0 where that is 0 (RFC 4271
    /// section 4.4).
    pub keepalive: u16,
    /// Our AS number.
    pub local_asn: Asn,
    /// The peer's AS number.
    pub remote_asn: Asn,
    /// The peer's identifier.
    pub remote_router_id: RouterId,
    /// The longest message that we may send, in octets, header included: 4096, or 65535 where both ends have said
    /// that they take it (RFC 8654).
    pub max_message: u16,
    /// The longest message that we take: 65535 where our OPEN says so, whatever theirs says (RFC 8654 section 4).
    pub max_received: u16,
}

/// Graceful restart as two OPENs have it (RFC 4724 section 3). Families are agreed ones only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct AgreedRestart {
    /// The peer has restarted (R): it must not be waited for, and its End-of-RIB says when it is done.
    pub restarting: bool,
    /// A NOTIFICATION that is no Hard Reset, and an expired hold timer, keep the routes too: both ends set N
    /// (RFC 8538).
    pub notification: bool,
    /// How long we keep the peer's routes once its session is gone, in seconds.
    pub time: u16,
    /// Families whose routes we keep for the peer: those that it named.
    pub families: FamilySet,
    /// Those of them whose forwarding state the peer has kept over its restart (F). Stale routes of the
    /// others go at once when the session is back (RFC 4724 section 4.2).
    pub forwarding: FamilySet,
    /// Families whose routes the peer keeps for us: those that we named.
    pub own_families: FamilySet,
}

/// Long-lived graceful restart as two OPENs have it (RFC 9494 section 3.1). Families are agreed ones only.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct AgreedLongLived {
    /// Families whose routes we keep for long: those that the peer named.
    pub families: FamilySet,
    /// Those of them whose state the peer has kept over its restart (F).
    pub forwarding: FamilySet,
    /// Families whose routes the peer keeps for long: those that we named.
    pub own_families: FamilySet,
    stale_time: [u32; Family::COUNT],
}

impl AgreedLongLived {
    /// How long the peer asks us to keep its stale routes of a family beyond the restart time, in seconds; 0
    /// for a family that it did not name.
    #[must_use]
    pub const fn stale_time(&self, family: Family) -> u32 {
        self.stale_time[family.index()]
    }
}

impl Default for Negotiated {
    /// What holds before OPENs are exchanged: nothing optional.
    fn default() -> Self {
        Self {
            families: FamilySet::EMPTY,
            four_octet: false,
            route_refresh: false,
            enhanced_refresh: false,
            add_path_receive: FamilySet::EMPTY,
            add_path_send: FamilySet::EMPTY,
            extended_next_hop: FamilySet::EMPTY,
            role: None,
            restart: None,
            long_lived: None,
            ebgp: false,
            hold_time: 0,
            keepalive: 0,
            local_asn: Asn::ZERO,
            remote_asn: Asn::ZERO,
            remote_router_id: RouterId(0),
            max_message: MAX_LEN as u16,
            max_received: MAX_LEN as u16,
        }
    }
}

impl Negotiated {
    /// What follows from the OPEN that we sent and the one that we received.
    #[must_use]
    pub fn agree(ours: &Open, theirs: &Open) -> Self {
        let both = |capability: &Capability| {
            ours.capabilities.contains(capability) && theirs.capabilities.contains(capability)
        };
        let families = families(ours).intersect(families(theirs));
        let (local_asn, remote_asn) = (ours.asn(), theirs.asn());
        let hold_time = ours.hold_time.min(theirs.hold_time);
        let restart = agree_restart(families, ours, theirs);
        Self {
            families,
            four_octet: ours.has_four_octet() && theirs.has_four_octet(),
            route_refresh: both(&Capability::RouteRefresh),
            enhanced_refresh: both(&Capability::EnhancedRouteRefresh),
            add_path_receive: families
                .intersect(add_path(ours, |family| family.receive))
                .intersect(add_path(theirs, |family| family.send)),
            add_path_send: families
                .intersect(add_path(ours, |family| family.send))
                .intersect(add_path(theirs, |family| family.receive)),
            extended_next_hop: families
                .intersect(extended_next_hop(ours))
                .intersect(extended_next_hop(theirs)),
            role: ours.role(),
            restart,
            long_lived: restart.and_then(|_| agree_long_lived(families, ours, theirs)),
            ebgp: local_asn != remote_asn,
            hold_time,
            keepalive: if hold_time == 0 { 0 } else { (hold_time / 3).max(1) },
            local_asn,
            remote_asn,
            remote_router_id: theirs.router_id,
            max_message: longest(both(&Capability::ExtendedMessage)),
            max_received: longest(ours.capabilities.contains(&Capability::ExtendedMessage)),
        }
    }
}

const fn longest(extended: bool) -> u16 {
    if extended { EXTENDED_MAX_LEN as u16 } else { MAX_LEN as u16 }
}

fn families(open: &Open) -> FamilySet {
    let mut named = false;
    let mut set = FamilySet::EMPTY;
    for capability in &open.capabilities {
        if let Capability::Multiprotocol(afi, safi) = capability {
            named = true;
            set.extend(Family::from_afi_safi(*afi, *safi));
        }
    }
    if named { set } else { FamilySet::only(Family::Ipv4Unicast) }
}

/// The last one of several capabilities of a kind: the only one that counts where it is a list of families
/// (RFC 4724 section 3, RFC 7911 section 4; RFC 5492 section 4 leaves it to each).
fn last<'a, T>(open: &'a Open, wanted: impl Fn(&'a Capability) -> Option<T>) -> Option<T> {
    open.capabilities.iter().rev().find_map(wanted)
}

fn add_path(open: &Open, wanted: impl Fn(&AddPath) -> bool) -> FamilySet {
    let families =
        last(
            open,
            |capability| if let Capability::AddPath(families) = capability { Some(families) } else { None },
        );
    families
        .into_iter()
        .flatten()
        .filter(|family| wanted(family))
        .filter_map(|family| Family::from_afi_safi(family.afi, family.safi))
        .collect()
}

/// The families of IPv4 prefixes that an end takes with IPv6 next hops. Other combinations mean nothing (RFC
/// 8950 section 4).
fn extended_next_hop(open: &Open) -> FamilySet {
    const IPV4: u16 = 1;
    const IPV6: u16 = 2;
    let mut set = FamilySet::EMPTY;
    for capability in &open.capabilities {
        if let Capability::ExtendedNextHop(triples) = capability {
            set.extend(
                triples
                    .iter()
                    .filter(|triple| (triple.afi, triple.next_hop_afi) == (IPV4, IPV6))
                    .filter_map(|triple| Family::from_afi_safi(triple.afi, u8::try_from(triple.safi).ok()?)),
            );
        }
    }
    set
}

fn graceful_restart(open: &Open) -> Option<&GracefulRestart> {
    last(
        open,
        |capability| if let Capability::GracefulRestart(restart) = capability { Some(restart) } else { None },
    )
}

fn agree_restart(families: FamilySet, ours: &Open, theirs: &Open) -> Option<AgreedRestart> {
    let (ours, theirs) = (graceful_restart(ours)?, graceful_restart(theirs)?);
    let named = |restart: &GracefulRestart, all: bool| {
        let families = restart.families.iter().filter(|family| all || family.forwarding);
        families.filter_map(|family| Family::from_afi_safi(family.afi, family.safi)).collect::<FamilySet>()
    };
    Some(AgreedRestart {
        restarting: theirs.restarting,
        notification: ours.notification && theirs.notification,
        time: theirs.time,
        families: families.intersect(named(theirs, true)),
        forwarding: families.intersect(named(theirs, false)),
        own_families: families.intersect(named(ours, true)),
    })
}

fn agree_long_lived(families: FamilySet, ours: &Open, theirs: &Open) -> Option<AgreedLongLived> {
    let named = |open| {
        last(open, |capability| {
            if let Capability::LongLivedGracefulRestart(families) = capability {
                Some(families)
            } else {
                None
            }
        })
    };
    let agreed = |family: &LongLivedFamily| {
        Family::from_afi_safi(family.afi, family.safi).filter(|family| families.contains(*family))
    };
    let (ours, theirs) = (named(ours)?, named(theirs)?);
    let mut long_lived = AgreedLongLived {
        own_families: ours.iter().filter_map(agreed).collect(),
        ..AgreedLongLived::default()
    };
    for named in theirs {
        if let Some(family) = agreed(named) {
            long_lived.families.insert(family);
            long_lived.stale_time[family.index()] = named.stale_time;
            if named.forwarding {
                long_lived.forwarding.insert(family);
            }
        }
    }
    Some(long_lived)
}

#[cfg(test)]
mod tests;
