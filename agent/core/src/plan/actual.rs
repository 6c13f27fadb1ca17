//! From a dump to what is known of VPP.
//!
//! Ours are: every route of our FIB source; tunnels that carry our tag; and tunnels from one of our addresses without
//! any tag that are still down, because that is what a start interrupted between two requests leaves behind.
//! Everything else is left alone, unless it is exactly what is wanted: then it is adopted. Where another agent is to be
//! taken over from, tunnels from one of our addresses without a tag are ours though they are up, and so are its routes.
//!
//! Routes are put into a tunnel only when it has its tag. So a route of ours into an interface that is gone, or into a
//! tunnel without a tag, was put there when the index meant another interface: it is dead.

mod ike;
mod nat;
mod srv6;
mod wireguard;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use super::operation::{TUNNEL_TAG, own_address};
use bgp_core::Family;

use crate::desired::{Actual, ObjectEntry, ObjectKey, Path, SetId, Spec, State, Store, Target, Tunnel};
use crate::event::{Dump, DumpedTunnel, FibPath, FibPathKind, Interface, SwIfIndex};
use crate::model::{RouteKey, TableId};

/// Forgets everything known of VPP: the connection is gone, or is about to be read anew.
pub(super) fn forget(store: &mut Store) {
    let mut held = Vec::new();
    for table in store.routes.values_mut() {
        table.retain(|_, entry| {
            held.push(entry.actual);
            if entry.state == State::InFlight {
                held.push(entry.target);
            }
            entry.actual = SetId::NONE;
            entry.state = State::Idle;
            entry.attempts = 0;
            entry.adopted = false;
            entry.desired != SetId::NONE
        });
    }
    store.routes.retain(|_, table| !table.is_empty());
    for id in held {
        store.unhold(id);
    }
    store.sets.forget_resolved();
    store.forget_objects();
    store.touched.clear();
}

/// Takes in what VPP holds. The store must have been told to [`forget`] before.
pub(super) fn merge(store: &mut Store, dump: &Dump) {
    store.strangers.clear();
    find_uplink(store, &dump.interfaces);
    if let Some(id) = dump.fib_source {
        store.objects.entry(ObjectKey::FibSource).or_default().actual = Actual::Source(id);
    }
    for (table, family) in &dump.tables {
        let entry = store.objects.entry(ObjectKey::Table(*table, *family)).or_default();
        entry.actual = Actual::Present;
        // A network's is ours by its number; all others belong to VPP's manager.
        entry.adopted = table.network().is_some() && !entry.wanted();
    }
    nat::merge(store, dump);
    let interfaces: BTreeMap<SwIfIndex, &Interface> = dump.interfaces.iter().map(|i| (i.index, i)).collect();
    let tunnels = merge_tunnels(store, dump, &interfaces);
    srv6::merge(store, &dump.srv6);
    wireguard::merge(store, dump, &tunnels);
    ike::merge(store, dump, &interfaces);
    for (key, paths) in &dump.routes {
        let id = if paths.iter().any(|path| is_dead(&interfaces, &tunnels, path)) {
            SetId::DEAD
        } else {
            desired_form(store, &tunnels, paths)
        };
        let entry = store.found_route(*key);
        entry.actual = id;
        entry.adopted = entry.desired == SetId::NONE;
        store.hold(id);
    }
    if store.adopts {
        for (key, paths) in &dump.others {
            merge_other(store, &tunnels, *key, paths);
        }
    }
}

/// A route of another agent leads into a tunnel that is ours by now, to a gateway looked up in the main table, or nowhere. The manager
/// of VPP writes no such routes, except a default one, maybe.
fn merge_other(store: &mut Store, tunnels: &BTreeMap<SwIfIndex, Tunnel>, key: RouteKey, paths: &[FibPath]) {
    let into = paths.iter().find_map(|path| match path.kind {
        FibPathKind::Attached(index) | FibPathKind::Via(_, index) => tunnels.get(&index).copied(),
        FibPathKind::Recursive(..) | FibPathKind::Drop | FibPathKind::Other => None,
    });
    let spec = match into {
        Some(tunnel) if store.present(&ObjectKey::Tunnel(tunnel)) => Some(Spec::Leads(tunnel)),
        Some(_) => return,
        None => flat(&key, paths),
    };
    if let Some(spec) = spec {
        let key = ObjectKey::OtherRoute(key);
        let entry = store.objects.entry(key).or_default();
        entry.actual = Actual::Present;
        entry.adopted = true;
        store.set_held(&key, Some(spec));
    }
}

/// What is known of a route that leads into no interface; `None` where it can't be an agent's.
fn flat(key: &RouteKey, paths: &[FibPath]) -> Option<Spec> {
    if key.prefix.prefix_len() == 0 || paths.is_empty() {
        return None;
    }
    let mut gateways = Vec::new();
    for path in paths {
        match path.kind {
            FibPathKind::Recursive(gateway, TableId::MAIN) => gateways.push(gateway),
            FibPathKind::Drop => {}
            FibPathKind::Attached(_)
            | FibPathKind::Via(..)
            | FibPathKind::Recursive(..)
            | FibPathKind::Other => return None,
        }
    }
    Some(Spec::Through(gateways.into()))
}

/// Looks for the uplink among VPP's interfaces. True where it is another one than before.
pub(super) fn find_uplink(store: &mut Store, interfaces: &[Interface]) -> bool {
    let found = store.uplink.as_ref().and_then(|uplink| {
        interfaces.iter().find(|interface| match &uplink.name {
            Some(name) => interface.name == *name,
            None => interface.addresses.iter().any(|net| uplink.addresses.contains(&net.addr())),
        })
    });
    let actual = found.map_or(Actual::Absent, |interface| Actual::Interface(interface.index));
    let mtu = found.map(|interface| interface.mtu).filter(|mtu| *mtu > 0);
    let resized = std::mem::replace(&mut store.uplink_mtu, mtu) != mtu;
    let entry = store.objects.entry(ObjectKey::Uplink).or_default();
    std::mem::replace(&mut entry.actual, actual) != actual || resized
}

fn merge_tunnels(
    store: &mut Store,
    dump: &Dump,
    interfaces: &BTreeMap<SwIfIndex, &Interface>,
) -> BTreeMap<SwIfIndex, Tunnel> {
    let mut tunnels = BTreeMap::new();
    for tunnel in &dump.tunnels {
        let key = ObjectKey::Tunnel(tunnel.tunnel);
        tunnels.insert(tunnel.index, tunnel.tunnel);
        let Some(interface) = interfaces.get(&tunnel.index) else { continue };
        let wanted = store.objects.get(&key).is_some_and(ObjectEntry::wanted);
        if !wanted && !is_ours(dump, tunnel, interface, store.adopts) {
            store.strangers.insert(key, tunnel.index);
            continue;
        }
        let entry = store.objects.entry(key).or_default();
        // VPP makes a second WireGuard interface just like the first if it is asked to: the one with our tag counts.
        if matches!(entry.actual, Actual::Interface(_)) && !interface.tag.starts_with(TUNNEL_TAG) {
            continue;
        }
        entry.actual = Actual::Interface(tunnel.index);
        entry.adopted = !wanted && entry.lingers.is_none();
        let mut setting = |key: ObjectKey, spec: Option<Spec>| {
            store.objects.entry(key).or_default().actual = Actual::Present;
            store.set_held(&key, spec);
        };
        if interface.tag.starts_with(TUNNEL_TAG) {
            setting(ObjectKey::Tag(tunnel.tunnel), None);
        }
        if interface.admin_up {
            setting(ObjectKey::AdminUp(tunnel.tunnel), None);
        }
        for family in Family::UNICAST {
            if interface.addresses.contains(&own_address(tunnel.index, family)) {
                setting(ObjectKey::Address(tunnel.tunnel, family), None);
            }
        }
        if let Some(lender) = interface.unnumbered {
            setting(ObjectKey::Unnumbered(tunnel.tunnel), Some(Spec::Lender(lender)));
        }
        if interface.mtu > 0 {
            setting(ObjectKey::Mtu(tunnel.tunnel), Some(Spec::Mtu(interface.mtu)));
        }
        // VPP doesn't show whether GSO and CNAT are on; asking twice does no harm.
    }
    for (index, family, table) in &dump.vrfs {
        let Some(key) = tunnels.get(index).map(|tunnel| ObjectKey::Vrf(*tunnel, *family)) else { continue };
        // Only a tunnel of ours has settings that matter.
        if tunnels.get(index).is_some_and(|tunnel| store.present(&ObjectKey::Tunnel(*tunnel))) {
            store.objects.entry(key).or_default().actual = Actual::Present;
            store.set_held(&key, Some(Spec::Table(*table, *family)));
        }
    }
    tunnels
}

fn is_ours(dump: &Dump, tunnel: &DumpedTunnel, interface: &Interface, adopts: bool) -> bool {
    let ours =
        |address: IpAddr| dump.interfaces.iter().any(|i| i.addresses.iter().any(|net| net.addr() == address));
    let unfinished =
        || interface.tag.is_empty() && (adopts || !interface.admin_up) && ours(tunnel.tunnel.local());
    interface.tag.starts_with(TUNNEL_TAG) || unfinished()
}

/// See the module's text.
fn is_dead(
    interfaces: &BTreeMap<SwIfIndex, &Interface>,
    tunnels: &BTreeMap<SwIfIndex, Tunnel>,
    path: &FibPath,
) -> bool {
    match path.kind {
        FibPathKind::Attached(index) | FibPathKind::Via(_, index) => interfaces
            .get(&index)
            .is_none_or(|found| tunnels.contains_key(&index) && !found.tag.starts_with(TUNNEL_TAG)),
        FibPathKind::Recursive(..) | FibPathKind::Drop | FibPathKind::Other => false,
    }
}

/// The number of the set of paths that VPP shows, if it is one that could be wanted.
fn desired_form(store: &mut Store, tunnels: &BTreeMap<SwIfIndex, Tunnel>, paths: &[FibPath]) -> SetId {
    let form: Option<Vec<Path>> = paths
        .iter()
        .map(|path| {
            let to = match path.kind {
                FibPathKind::Attached(index) => Target::Tunnel(*tunnels.get(&index)?),
                FibPathKind::Via(gateway, index) => match *tunnels.get(&index)? {
                    // It has one other end, so a gateway says nothing: VPP shows a route to one host that was put straight
                    // into the tunnel with the host itself as its gateway.
                    tunnel @ Tunnel::Ipip(_) => Target::Tunnel(tunnel),
                    tunnel @ (Tunnel::Vxlan(_) | Tunnel::Wireguard(_)) => Target::TunnelVia(tunnel, gateway),
                },
                FibPathKind::Recursive(address, TableId::MAIN) => Target::Gateway(address),
                FibPathKind::Drop => Target::Drop,
                FibPathKind::Recursive(..) | FibPathKind::Other => return None,
            };
            Some(Path { to, weight: path.weight.max(1) })
        })
        .collect();
    match form {
        Some(mut form) if !form.is_empty() => {
            form.sort_unstable();
            store.sets.intern(&Arc::from(form))
        }
        Some(_) | None => SetId::FOREIGN,
    }
}
