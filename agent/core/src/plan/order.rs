//! Ranks and dependencies: objects come into being upward and go downward.
//!
//! VPP carries out one client's requests in order, so a rank orders emission and is no barrier. An operation waits for
//! an answer only where it needs the index that comes with it, or where going on after a failure would do harm.

use crate::desired::{ObjectKey, Path, Target, VppKey};
use crate::model::{RouteKey, TableId};
use crate::plan::speaker::BgpRank;
use bgp_core::Family;
use ipnet::IpNet;

/// Place of an operation in the order of emission.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// What others stand on: the uplink, our FIB source, tables.
    Base,
    /// Tunnels coming.
    Interface,
    /// Settings of interfaces.
    Setting,
    /// Routes, coming, changing and going.
    Route,
    /// Tunnels going: after the routes that led into them.
    Removal,
}

impl Rank {
    /// All ranks, in order.
    pub(super) const ALL: [Self; 5] =
        [Self::Base, Self::Interface, Self::Setting, Self::Route, Self::Removal];

    /// The rank of an object that comes or changes (`wanted`), or goes.
    pub(super) const fn of(key: &VppKey, wanted: bool) -> Self {
        match key {
            VppKey::Route(_) => Self::Route,
            VppKey::Object(object) => match object {
                ObjectKey::Uplink | ObjectKey::FibSource | ObjectKey::Table(..) => Self::Base,
                ObjectKey::Ipip(_) if wanted => Self::Interface,
                ObjectKey::Ipip(_) => Self::Removal,
                ObjectKey::Tag(_) | ObjectKey::Unnumbered(_) | ObjectKey::Gso(_) | ObjectKey::AdminUp(_) => {
                    Self::Setting
                }
            },
        }
    }
}

/// Something that an object needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It must be there: its index, or its existence, goes into the request.
    Present(ObjectKey),
    /// It must be there or on its way: the request is good without it, the result is not.
    Underway(ObjectKey),
}

impl Need {
    pub(super) const fn key(&self) -> ObjectKey {
        match self {
            Self::Present(key) | Self::Underway(key) => *key,
        }
    }
}

/// Calls `each` with everything an object needs, until it says stop.
pub(super) fn needs_of_object(key: &ObjectKey, mut each: impl FnMut(Need) -> bool) {
    match key {
        ObjectKey::Uplink | ObjectKey::FibSource | ObjectKey::Table(..) | ObjectKey::Ipip(_) => {}
        ObjectKey::Tag(tunnel) | ObjectKey::Gso(tunnel) => {
            each(Need::Present(ObjectKey::Ipip(*tunnel)));
        }
        ObjectKey::Unnumbered(tunnel) => {
            let _ = each(Need::Present(ObjectKey::Ipip(*tunnel))) && each(Need::Present(ObjectKey::Uplink));
        }
        // The tag must be there first: a tunnel that has none and is down is known as an unfinished one of ours, one
        // that is up would not be.
        ObjectKey::AdminUp(tunnel) => {
            let _ = each(Need::Present(ObjectKey::Ipip(*tunnel)))
                && each(Need::Present(ObjectKey::Tag(*tunnel)))
                && each(Need::Underway(ObjectKey::Unnumbered(*tunnel)));
        }
    }
}

/// Calls `each` with everything a route with these paths needs, until it says stop.
pub(super) fn needs_of_route(key: &RouteKey, paths: &[Path], mut each: impl FnMut(Need) -> bool) {
    if !each(Need::Present(ObjectKey::FibSource)) {
        return;
    }
    if key.table != TableId::MAIN && !each(Need::Present(ObjectKey::Table(key.table, family(&key.prefix)))) {
        return;
    }
    for path in paths {
        if let Target::Ipip(tunnel) = path.to
            && !(each(Need::Present(ObjectKey::Ipip(tunnel)))
                && each(Need::Underway(ObjectKey::Unnumbered(tunnel)))
                && each(Need::Underway(ObjectKey::AdminUp(tunnel))))
        {
            return;
        }
    }
}

/// The family of a prefix.
pub(crate) const fn family(prefix: &IpNet) -> Family {
    match prefix {
        IpNet::V4(_) => Family::Ipv4Unicast,
        IpNet::V6(_) => Family::Ipv6Unicast,
    }
}

/// The rank of an object of the speaker: a first burst of UPDATEs is complete, and never unfiltered.
pub(super) const fn bgp_rank(key: &crate::desired::BgpKey) -> BgpRank {
    use crate::desired::BgpKey;
    match key {
        BgpKey::Identity | BgpKey::Cluster => BgpRank::Identity,
        BgpKey::PrefixSet(_) => BgpRank::Set,
        BgpKey::Policy(_) => BgpRank::Policy,
        BgpKey::Origination(_) => BgpRank::Origination,
        BgpKey::Loaded => BgpRank::Loaded,
        BgpKey::Peer(_) => BgpRank::Peer,
    }
}
