//! Ranks and dependencies: objects come into being upward and go downward.
//!
//! VPP carries out one client's requests in order, so a rank orders emission and is no barrier. An operation waits for
//! an answer only where it needs the index that comes with it, or where going on after a failure would do harm.

use std::time::Duration;

use bgp_core::Family;
use ipnet::IpNet;

use crate::desired::{ObjectKey, Path, Spec, Tunnel, VppKey};
use crate::model::{RouteKey, TableId, family_of};
use crate::plan::speaker::BgpRank;

/// Place of an operation in the order of emission.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// What others stand on: the uplink, our FIB source, tables. Dead routes go here, too.
    Base,
    /// Interfaces coming.
    Interface,
    /// Settings and peers of interfaces.
    Setting,
    /// Local SIDs and SR policies.
    Policy,
    /// Routes and steering, coming, changing and going.
    Route,
    /// Source NAT: addresses, exclusions, interfaces.
    Nat,
    /// The policy of source NAT, which is to find all exclusions.
    NatPolicy,
    /// Local SIDs and SR policies going: after what led into them. So do routes of another agent, after ours came.
    PolicyRemoval,
    /// Peers and the like going.
    SettingRemoval,
    /// Interfaces going.
    InterfaceRemoval,
    /// Tables of networks going.
    TableRemoval,
}

impl Rank {
    /// How many there are.
    pub(super) const COUNT: usize = Self::TableRemoval as usize + 1;

    /// The rank of an object that comes or changes (`wanted`), or goes.
    pub(super) const fn of(key: &VppKey, wanted: bool) -> Self {
        match key {
            VppKey::Route(_) => Self::Route,
            VppKey::Object(object) => {
                let rules = Rules::of(object);
                if wanted { rules.comes } else { rules.goes }
            }
        }
    }
}

/// What becomes of an object that nobody wants any more.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing: it belongs to somebody else, or does no harm.
    Stays,
    /// It goes with the interface that it is a setting of.
    WithTunnel,
    /// It is deleted.
    Deleted,
}

/// How VPP comes to have another value of an object.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Changing {
    /// The request that makes it replaces it.
    InPlace,
    /// It is deleted and made again.
    Anew,
}

/// How the plan treats a kind of object.
#[derive(Copy, Clone, Debug)]
pub(super) struct Rules {
    /// When it comes and changes.
    pub(super) comes: Rank,
    /// When it goes.
    pub(super) goes: Rank,
    /// What becomes of it when nobody wants it.
    pub(super) end: End,
    /// How long it stays then, in case somebody wants it again in a moment.
    pub(super) linger: Duration,
    /// How it gets another value.
    pub(super) changing: Changing,
    /// Whether a dump says that VPP has it. What no dump shows is asked for again when VPP has been read, so that must do no harm.
    pub(super) shown: bool,
    /// Traffic gets through without it, if less well: a VPP that has no message for it is as good as it can be.
    pub(super) optional: bool,
}

impl Rules {
    const BASE: Self = Self {
        comes: Rank::Base,
        goes: Rank::Base,
        end: End::Stays,
        linger: Duration::ZERO,
        changing: Changing::InPlace,
        shown: true,
        optional: false,
    };
    const INTERFACE: Self = Self {
        comes: Rank::Interface,
        goes: Rank::InterfaceRemoval,
        end: End::Deleted,
        linger: Duration::from_secs(5),
        changing: Changing::Anew,
        ..Self::BASE
    };
    const SETTING: Self =
        Self { comes: Rank::Setting, goes: Rank::Setting, end: End::WithTunnel, ..Self::BASE };

    const POLICY: Self =
        Self { comes: Rank::Policy, goes: Rank::PolicyRemoval, end: End::Deleted, ..Self::BASE };

    /// The rules of an object's kind.
    pub(super) const fn of(key: &ObjectKey) -> Self {
        match key {
            ObjectKey::Table(table, _) if table.network().is_some() => {
                Self { goes: Rank::TableRemoval, end: End::Deleted, ..Self::BASE }
            }
            ObjectKey::Uplink | ObjectKey::FibSource | ObjectKey::Table(..) => Self::BASE,
            ObjectKey::DecapNext(_) => Self { shown: false, ..Self::BASE },
            ObjectKey::OtherRoute(_) => Self { goes: Rank::PolicyRemoval, end: End::Deleted, ..Self::BASE },
            ObjectKey::Tunnel(_) => Self::INTERFACE,
            ObjectKey::Tag(_)
            | ObjectKey::Vrf(..)
            | ObjectKey::Address(..)
            | ObjectKey::Unnumbered(_)
            | ObjectKey::AdminUp(_) => Self::SETTING,
            ObjectKey::EncapSource => Self { comes: Rank::Setting, shown: false, ..Self::BASE },
            ObjectKey::Localsid(_) => Self { changing: Changing::Anew, ..Self::POLICY },
            ObjectKey::SrPolicy(_) => Self::POLICY,
            ObjectKey::SrSteering(_) => Self { comes: Rank::Route, goes: Rank::Route, ..Self::POLICY },
            ObjectKey::Mtu(_) => Self { optional: true, ..Self::SETTING },
            ObjectKey::WireguardPeer(..) => Self {
                comes: Rank::Setting,
                goes: Rank::SettingRemoval,
                linger: Self::INTERFACE.linger,
                end: End::Deleted,
                changing: Changing::Anew,
                ..Self::BASE
            },
            // It goes before its tunnel, to which its value refers; so it stays as long.
            ObjectKey::IkeProfile(_) => Self {
                comes: Rank::Setting,
                goes: Rank::SettingRemoval,
                end: End::Deleted,
                linger: Self::INTERFACE.linger,
                ..Self::BASE
            },
            ObjectKey::IkeSession(_) => Self::SETTING,
            ObjectKey::AsyncCrypto => Self { shown: false, optional: true, ..Self::BASE },
            // Addresses that are taken back take everything else along, that of others too.
            ObjectKey::SnatAddresses => {
                Self { comes: Rank::Nat, goes: Rank::Nat, optional: true, ..Self::BASE }
            }
            ObjectKey::SnatExclusion(_) | ObjectKey::SnatInterface(..) => Self {
                comes: Rank::Nat,
                goes: Rank::SettingRemoval,
                end: End::Deleted,
                shown: false,
                optional: true,
                ..Self::BASE
            },
            ObjectKey::SnatPolicy => Self {
                comes: Rank::NatPolicy,
                goes: Rank::NatPolicy,
                shown: false,
                optional: true,
                ..Self::BASE
            },
            ObjectKey::Gso(_) | ObjectKey::Cnat(_) => Self { shown: false, optional: true, ..Self::SETTING },
        }
    }
}

/// Something that an object needs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// It must be there: its index, or its existence, goes into the request.
    Present(ObjectKey),
    /// Where it is wanted at all, it must be there or on its way: the request is good without it, the result is not.
    After(ObjectKey),
    /// Where it is wanted at all, it must be there: VPP would refuse it afterwards.
    First(ObjectKey),
    /// It must not be there any more.
    Gone(ObjectKey),
}

impl Need {
    pub(super) const fn key(&self) -> ObjectKey {
        match self {
            Self::Present(key) | Self::After(key) | Self::First(key) | Self::Gone(key) => *key,
        }
    }
}

/// Calls `each` with everything that an object with this value needs, until it says stop.
pub(super) fn needs_of_object(key: &ObjectKey, spec: Option<&Spec>, mut each: impl FnMut(Need) -> bool) {
    let present = |tunnel: &Tunnel| Need::Present(ObjectKey::Tunnel(*tunnel));
    match key {
        ObjectKey::Uplink
        | ObjectKey::FibSource
        | ObjectKey::Table(..)
        | ObjectKey::OtherRoute(_)
        | ObjectKey::DecapNext(_)
        | ObjectKey::Tunnel(Tunnel::Ipip(_) | Tunnel::Wireguard(_))
        | ObjectKey::AsyncCrypto
        | ObjectKey::SnatAddresses
        | ObjectKey::EncapSource
        | ObjectKey::Localsid(_) => {}
        ObjectKey::IkeProfile(ends) => {
            let tunnel = Tunnel::Ipip(*ends);
            let _ = each(present(&tunnel))
                && each(Need::Present(ObjectKey::Tag(tunnel)))
                && each(Need::After(ObjectKey::Unnumbered(tunnel)));
        }
        ObjectKey::IkeSession(ends) => {
            each(Need::Present(ObjectKey::IkeProfile(*ends)));
        }
        // Some releases of VPP die of these before they have addresses.
        ObjectKey::SnatExclusion(_) | ObjectKey::SnatInterface(..) | ObjectKey::SnatPolicy => {
            each(Need::Present(ObjectKey::SnatAddresses));
        }
        ObjectKey::SrPolicy(_) => {
            each(Need::After(ObjectKey::EncapSource));
        }
        // VPP dies of a table that isn't there.
        ObjectKey::SrSteering(key) => {
            let table = || Need::Present(ObjectKey::Table(key.table, family(&key.prefix)));
            let _ = (key.table == TableId::MAIN || each(table()))
                && spec.and_then(Spec::refers).is_none_or(|policy| each(Need::Present(policy)));
        }
        ObjectKey::Tunnel(Tunnel::Vxlan(key)) => {
            let family = family_of(key.local);
            let _ = (key.table == TableId::MAIN || each(Need::Present(ObjectKey::Table(key.table, family))))
                && each(Need::Present(ObjectKey::DecapNext(family)));
        }
        ObjectKey::Tag(tunnel) | ObjectKey::Gso(tunnel) | ObjectKey::Cnat(tunnel) => {
            each(present(tunnel));
        }
        ObjectKey::Vrf(tunnel, family) => {
            let _ = each(present(tunnel))
                && match spec {
                    Some(Spec::Table(table, _)) => each(Need::Present(ObjectKey::Table(*table, *family))),
                    _ => true,
                };
        }
        ObjectKey::WireguardPeer(interface, _) => {
            each(present(&Tunnel::Wireguard(*interface)));
        }
        ObjectKey::Mtu(tunnel) => {
            let _ = each(present(tunnel)) && each(Need::Present(ObjectKey::Uplink));
        }
        ObjectKey::Unnumbered(tunnel) => {
            let _ = each(present(tunnel)) && each(Need::Present(ObjectKey::Uplink));
        }
        // VPP refuses another table while an interface has addresses.
        ObjectKey::Address(tunnel, family) => {
            let _ = each(present(tunnel)) && each(Need::First(ObjectKey::Vrf(*tunnel, *family)));
        }
        // The tag must be there first: a tunnel that has none and is down is known as an unfinished one of ours, one
        // that is up would not be.
        ObjectKey::AdminUp(tunnel) => {
            let _ = each(present(tunnel))
                && each(Need::Present(ObjectKey::Tag(*tunnel)))
                && each(Need::After(ObjectKey::Unnumbered(*tunnel)))
                && each(Need::After(ObjectKey::Address(*tunnel, Family::Ipv4Unicast)))
                && each(Need::After(ObjectKey::Address(*tunnel, Family::Ipv6Unicast)))
                && profile_of(tunnel).is_none_or(|profile| each(Need::Gone(profile)));
        }
    }
}

/// What protects a tunnel, where anything could. While it is there, VPP decides whether the tunnel is up.
const fn profile_of(tunnel: &Tunnel) -> Option<ObjectKey> {
    match tunnel {
        Tunnel::Ipip(ends) => Some(ObjectKey::IkeProfile(*ends)),
        Tunnel::Vxlan(_) | Tunnel::Wireguard(_) => None,
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
    for tunnel in paths.iter().filter_map(|path| path.to.tunnel()) {
        let settled = each(Need::Present(ObjectKey::Tunnel(tunnel)))
            && each(Need::After(ObjectKey::Unnumbered(tunnel)))
            && each(Need::After(ObjectKey::AdminUp(tunnel)))
            && profile_of(&tunnel).is_none_or(|profile| each(Need::After(profile)));
        if !settled {
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
        BgpKey::Origination(_) | BgpKey::SrPolicy(_) => BgpRank::Origination,
        BgpKey::Loaded => BgpRank::Loaded,
        BgpKey::Peer(_) => BgpRank::Peer,
    }
}
