//! How a destination is reached once its next hop and its kind of encapsulation are known: pure functions from facts
//! to objects.
//!
//! - `select`: which of the providers it is
//! - `flat`: no encapsulation, a recursive route
//! - `ipip`: an IP-in-IP tunnel to the next hop's node
//! - `ipsec`: such tunnels, protected by IKEv2
//! - `vxlan`: a VXLAN tunnel to the next hop's node
//! - `wireguard`: an encrypted way to the next hop's node
//! - `srv6`: an SR policy to the next hop's node; `sr_policies`: which of those that are known
//!
//! *Absent on purpose:* memory, order, deletion, repair. What a provider no longer lists goes by itself.

mod facts;
mod flat;
mod ipip;
mod ipsec;
mod select;
mod sr_policies;
mod srv6;
mod vxlan;
mod wireguard;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use bgp_core::Family;

use crate::desired::{ObjectKey, Path, Spec, Target, Tunnel, Wishes};
use crate::model::{Hop, RouteKey, TableId, Vni, family_of};

pub(crate) use facts::{Facts, NodesChanged, WireguardReach};
pub(crate) use select::{Carriage, Choice, Kind, select};
pub(crate) use sr_policies::{Slot, SrPolicies, Taken};
pub(crate) use wireguard::interface as wireguard_interface;

/// What must exist so that next hops can be used, and the paths that use them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DesiredSet {
    /// Objects, with their values where they have any.
    pub(crate) objects: BTreeMap<ObjectKey, Option<Spec>>,
    /// Routes that go with them, each with its paths.
    pub(crate) routes: BTreeMap<RouteKey, BTreeSet<Path>>,
    /// The paths of the destination itself.
    pub(crate) paths: BTreeSet<Path>,
    /// Or the binding SID of the policy that it is steered into: it has no route then.
    pub(crate) steer: Option<Ipv6Addr>,
}

impl DesiredSet {
    /// Wants objects that have no value.
    pub(crate) fn want(&mut self, keys: impl IntoIterator<Item = ObjectKey>) {
        self.objects.extend(keys.into_iter().map(|key| (key, None)));
    }

    /// Wants an object with this value.
    pub(crate) fn define(&mut self, key: ObjectKey, spec: Spec) {
        self.objects.insert(key, Some(spec));
    }

    /// Wants a tunnel with what every tunnel of the default network carries; that it is up is for others to say.
    pub(crate) fn tunnel(&mut self, tunnel: Tunnel, facts: &Facts) {
        self.bare_tunnel(tunnel, facts);
        self.want([ObjectKey::Unnumbered(tunnel)]);
    }

    /// Wants a tunnel without addresses.
    fn bare_tunnel(&mut self, tunnel: Tunnel, facts: &Facts) {
        self.want([
            ObjectKey::FibSource,
            ObjectKey::Tunnel(tunnel),
            ObjectKey::Tag(tunnel),
            ObjectKey::Gso(tunnel),
            ObjectKey::Cnat(tunnel),
        ]);
        self.define(ObjectKey::Mtu(tunnel), Spec::MtuRule(facts.mtu(&tunnel)));
    }

    /// Wants a tunnel that is up, and traffic for `hop` in it: the destination's, by its share, and, from the pods' table, that
    /// for the remote node itself. The host's own traffic, in the main table, doesn't take it.
    pub(crate) fn carry(&mut self, tunnel: Tunnel, to: Target, hop: Hop, facts: &Facts) {
        self.tunnel(tunnel, facts);
        self.want([ObjectKey::AdminUp(tunnel), ObjectKey::Table(TableId::PODS, family_of(hop.address))]);
        let host = RouteKey { table: TableId::PODS, prefix: hop.address.into() };
        self.route(host, Path { to, weight: 1 });
        self.paths.insert(Path { to, weight: hop.weight });
    }

    /// Wants a tunnel of a network that is up: what comes out of it is looked up in the network's tables.
    pub(crate) fn carry_network(&mut self, tunnel: Tunnel, to: Target, hop: Hop, vni: Vni, facts: &Facts) {
        self.bare_tunnel(tunnel, facts);
        let table = TableId::of_network(vni);
        self.want([ObjectKey::AdminUp(tunnel)]);
        for family in Family::UNICAST {
            self.want([ObjectKey::Table(table, family), ObjectKey::Address(tunnel, family)]);
            self.define(ObjectKey::Vrf(tunnel, family), Spec::Table(table, family));
        }
        self.paths.insert(Path { to, weight: hop.weight });
    }

    /// Wants a route, besides the destination's own, with this path among others.
    pub(crate) fn route(&mut self, key: RouteKey, path: Path) {
        self.routes.entry(key).or_default().insert(path);
    }

    /// What is wanted besides the destination's own route.
    pub(crate) fn wishes(self) -> Wishes {
        let routes = self.routes.into_iter().map(|(key, paths)| (key, paths.into_iter().collect()));
        Wishes { routes: routes.collect(), objects: self.objects }
    }
}

/// Why a next hop cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// Our node has no address of the next hop's IP version.
    NoLocalAddress(IpAddr),
    /// Our node has no key for the next hop's IP version.
    NoLocalKey(IpAddr),
    /// Our node has no IPv4 address, which IPsec tunnels need.
    NoLocalIpv4(IpAddr),
    /// No node with an IPv4 address, which IPsec tunnels need, has the next hop's.
    NoRemoteIpv4(IpAddr),
    /// IPsec is on and there is no key that nodes share.
    NoPreSharedKey,
    /// No SR policy that can be used leads to the next hop.
    PolicyMissing(IpAddr),
}

/// A way of carrying traffic to a next hop.
pub(crate) trait Provider {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Lists everything that must exist for `hop`, and the destination's path through it.
    fn desired(
        &self,
        hop: Hop,
        carriage: Carriage,
        facts: &Facts,
        out: &mut DesiredSet,
    ) -> Result<(), Unserved>;
}

/// The provider of a kind; `None` where this release has none.
pub(crate) const fn provider(kind: Kind) -> Option<&'static dyn Provider> {
    match kind {
        Kind::Flat => Some(&flat::Flat),
        Kind::Ipip => Some(&ipip::Ipip),
        Kind::Drop => Some(&Dropped),
        Kind::Ipsec => Some(&ipsec::Ipsec),
        Kind::Vxlan => Some(&vxlan::Vxlan),
        Kind::Wireguard => Some(&wireguard::Wireguard),
        Kind::Srv6 => Some(&srv6::Srv6),
    }
}

/// No way at all: the destination's packets are dropped, rather than taken elsewhere by a wider route.
#[derive(Copy, Clone, Debug)]
struct Dropped;

impl Provider for Dropped {
    fn name(&self) -> &'static str {
        "drop"
    }

    fn desired(&self, _: Hop, _: Carriage, _: &Facts, out: &mut DesiredSet) -> Result<(), Unserved> {
        out.want([ObjectKey::FibSource]);
        out.paths.insert(Path { to: Target::Drop, weight: 1 });
        Ok(())
    }
}
