//! The state as JSON: all of it, or only what it means.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use super::State;
use super::cnat::Snat;
use super::fib::{Contribution, Listed, Table};
use super::ikev2::Profile;
use super::interface::{Interface, Kind};
use super::key::{Af, Shown, ip};
use super::path::{self, Path, Shape};
use super::sources::{API, BUILT_IN_COUNT, CLI, SourceId};
use super::sr::Sr;
use super::wireguard::{ESTABLISHED, Peer};

/// How much of the state is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything, with the indices that VPP gave out.
    Full,
    /// What clients put there, with names instead of indices, in an order that does not depend on history.
    Meaning,
}

const FAMILIES: [(Af, &str); 2] = [(Af::Ip4, "ip4"), (Af::Ip6, "ip6")];

/// The state as JSON.
pub(crate) fn json(state: &State, detail: Detail) -> Value {
    let full = detail == Detail::Full;
    let dump = Dump { state, full };
    let mut interfaces: Vec<Value> =
        state.interfaces.iter().map(|(at, interface)| dump.interface(at, interface)).collect();
    if !full {
        interfaces.sort_by_key(|interface| interface["interface"].to_string());
    }
    let mut tables = Vec::new();
    for (af, family) in FAMILIES {
        let mut of_family: Vec<&Table> = state.fib.tables(af).collect();
        if !full {
            of_family.sort_by_key(|table| table.id);
        }
        tables.extend(of_family.into_iter().map(|table| dump.table(af, family, table)));
    }
    let sources: Vec<Value> = (0..=u8::MAX)
        .filter(|id| full || usize::from(*id) >= BUILT_IN_COUNT)
        .map_while(|id| Some((id, state.fib.sources.get(id)?)))
        .map(|(id, source)| {
            let mut value = json!({ "name": text(&source.name), "priority": source.priority });
            if full {
                value["id"] = id.into();
            }
            value
        })
        .collect();
    let mut value = json!({ "interfaces": interfaces, "tables": tables, "fib_sources": sources });
    if let Some(snat) = &state.cnat.snat {
        value["snat"] = dump.snat(snat);
    }
    let crypto = &state.crypto;
    if crypto.asynchronous || crypto.workers.iter().any(|on| !on) {
        value["crypto"] = json!({ "async": crypto.asynchronous, "workers": crypto.workers });
    }
    let mut profiles: Vec<Value> =
        state.ikev2.profiles.iter().map(|(_, profile)| dump.profile(profile)).collect();
    let mut peers: Vec<Value> =
        state.wireguard.peers.iter().map(|(at, peer)| dump.wireguard_peer(at, peer)).collect();
    if !peers.is_empty() {
        if !full {
            peers.sort_by_key(Value::to_string);
        }
        value["wireguard_peers"] = peers.into();
    }
    if !profiles.is_empty() {
        profiles.sort_by_key(|profile| profile["profile"].to_string());
        value["ikev2"] = profiles.into();
    }
    if !state.sr.is_untouched() {
        value["sr"] = sr(&state.sr, full);
    }
    value
}

fn sr(sr: &Sr, full: bool) -> Value {
    let v6 = |addr: [u8; 16]| ip(Af::Ip6, addr).to_string();
    let localsids = sr.localsids().map(|sid| {
        json!({ "sid": v6(sid.sid), "behavior": sid.behavior, "table_id": sid.table, "target": sid.target })
    });
    let policies = sr.policies().map(|policy| {
        let lists = sr.lists(policy).map(|(index, list)| {
            let sids: Vec<String> = list.sids.iter().copied().map(v6).collect();
            let mut value = json!({ "weight": list.weight, "sids": sids });
            if full {
                value["sl_index"] = index.into();
            }
            value
        });
        let mut lists: Vec<Value> = lists.collect();
        if !full {
            lists.sort_by_key(Value::to_string);
        }
        json!({
            "bsid": v6(policy.bsid), "encap": policy.encap, "encap_src": v6(policy.encap_src), "table_id": policy.table,
            "lists": lists,
        })
    });
    let steered = sr.steerings().map(|(steering, bsid)| {
        let (addr, len) = steering.prefix;
        json!({
            "prefix": Shown(steering.af, addr, len).to_string(), "table_id": steering.table, "bsid": v6(bsid),
        })
    });
    let sorted = |all: Vec<Value>| {
        let mut all = all;
        if !full {
            all.sort_by_key(Value::to_string);
        }
        all
    };
    json!({
        "encap_source": v6(sr.encap_source),
        "localsids": sorted(localsids.collect()),
        "policies": sorted(policies.collect()),
        "steering": sorted(steered.collect()),
    })
}

struct Dump<'a> {
    state: &'a State,
    full: bool,
}

impl Dump<'_> {
    fn interface(&self, at: u32, interface: &Interface) -> Value {
        let mut addresses: Vec<String> = Vec::new();
        let mut tables = Map::new();
        for (af, family) in FAMILIES {
            addresses.extend(
                interface.addresses[af.index()].iter().map(|(addr, len)| Shown(af, *addr, *len).to_string()),
            );
            tables.insert(family.to_owned(), interface.tables[af.index()].into());
        }
        if !self.full {
            addresses.sort();
        }
        let mut value = json!({
            "interface": self.name(at),
            "up": interface.up,
            "tag": text(&interface.tag),
            "mtu": interface.mtu,
            "tables": tables,
            "addresses": addresses,
            "unnumbered": interface.lender.map(|lender| self.name(lender)),
            "gso": interface.gso,
            "cnat": interface.cnat,
        });
        if self.full {
            value["sw_if_index"] = at.into();
            value["device"] = interface.device.into();
            value["rx_mode"] = interface.rx_mode.into();
            if let Kind::Ipip(tunnel) = &interface.kind {
                value["tunnel"] = json!({
                    "instance": tunnel.instance,
                    "src": ip(tunnel.af, tunnel.src),
                    "dst": ip(tunnel.af, tunnel.dst),
                    "table_id": tunnel.table,
                });
            }
            if let Kind::Wireguard(wg) = &interface.kind {
                value["wireguard"] = json!({
                    "instance": wg.instance,
                    "src": ip(wg.src.0, wg.src.1),
                    "port": wg.port,
                    "public_key": key(&wg.public()),
                });
            }
            if let Kind::Vxlan(tunnel) = &interface.kind {
                value["tunnel"] = json!({
                    "instance": tunnel.instance,
                    "src": ip(tunnel.af, tunnel.src),
                    "dst": ip(tunnel.af, tunnel.dst),
                    "ports": [tunnel.src_port, tunnel.dst_port],
                    "vni": tunnel.vni,
                    "table_id": tunnel.table,
                    "l3": tunnel.l3,
                    "decap_next": tunnel.decap_next,
                });
            }
        }
        value
    }

    fn snat(&self, snat: &Snat) -> Value {
        let [ip4, ip6, pod, host] = snat.interfaces.each_ref().map(|of| {
            let mut names: Vec<String> = of.iter().map(|at| self.name(*at)).collect();
            names.sort();
            names
        });
        json!({
            "ip4": Ipv4Addr::from(snat.ip4),
            "ip6": Ipv6Addr::from(snat.ip6),
            "policy": snat.policy,
            "excluded": snat.excluded.iter().map(|(af, addr, len)| Shown(*af, *addr, *len).to_string()).collect::<Vec<_>>(),
            "interfaces": { "include_v4": ip4, "include_v6": ip6, "pod": pod, "host": host },
        })
    }

    /// Without a key known to both.
    fn wireguard_peer(&self, at: u32, peer: &Peer) -> Value {
        let mut allowed: Vec<String> =
            peer.allowed.iter().map(|(af, addr, len)| Shown(*af, *addr, *len).to_string()).collect();
        if !self.full {
            allowed.sort();
        }
        let mut value = json!({
            "interface": self.name(peer.interface),
            "public_key": key(&peer.public),
            "endpoint": ip(peer.endpoint.0, peer.endpoint.1),
            "port": peer.port,
            "keepalive": peer.keepalive,
            "table_id": peer.table,
            "allowed": allowed,
        });
        if self.full {
            value["peer_index"] = at.into();
            value["established"] = (peer.flags & ESTABLISHED != 0).into();
        }
        value
    }

    /// Without the shared key.
    fn profile(&self, profile: &Profile) -> Value {
        let mut value = json!({
            "profile": text(&profile.name),
            "tunnel": profile.tunnel.map(|at| self.name(at)),
            "auth": profile.auth.0,
            "initiates": profile.responder.is_some(),
            "up": profile.is_up(),
        });
        if self.full {
            value["pending"] = profile.pending.into();
            value["state"] = profile.sa.map(|sa| sa.state).into();
        }
        value
    }

    /// VPP's name of an interface; what does not depend on history calls a tunnel by its ends.
    fn name(&self, at: u32) -> String {
        let Some(interface) = self.state.interfaces.get(at) else { return format!("#{at}") };
        match &interface.kind {
            Kind::Ipip(tunnel) if !self.full => format!(
                "ipip {} -> {} in table {}",
                ip(tunnel.af, tunnel.src),
                ip(tunnel.af, tunnel.dst),
                tunnel.table
            ),
            Kind::Wireguard(wg) if !self.full => {
                format!("wireguard {} port {} as {}", ip(wg.src.0, wg.src.1), wg.port, key(&wg.public()))
            }
            Kind::Vxlan(tunnel) if !self.full => format!(
                "vxlan {} -> {} vni {} ports {} {} in table {}",
                ip(tunnel.af, tunnel.src),
                ip(tunnel.af, tunnel.dst),
                tunnel.vni,
                tunnel.src_port,
                tunnel.dst_port,
                tunnel.table
            ),
            Kind::Ipip(_)
            | Kind::Vxlan(_)
            | Kind::Wireguard(_)
            | Kind::Local
            | Kind::Loopback(_)
            | Kind::Uplink => text(&interface.name),
        }
    }

    fn table(&self, af: Af, family: &str, table: &Table) -> Value {
        let routes: Vec<Value> =
            self.state.fib.list(af, table, None).filter_map(|route| self.route(af, table, &route)).collect();
        json!({ "table_id": table.id, "family": family, "name": text(&table.name), "routes": routes })
    }

    fn route(&self, af: Af, table: &Table, route: &Listed<'_>) -> Option<Value> {
        let shadowed = self.state.fib.shadowed(table, route.key);
        let clients =
            |source: SourceId| source == API || source == CLI || usize::from(source) >= BUILT_IN_COUNT;
        if !self.full && !clients(route.source) && !shadowed.iter().any(|lost| clients(lost.source)) {
            return None;
        }
        let mut value = json!({
            "prefix": Shown(af, route.given, route.key.len).to_string(),
            "source": self.state.fib.sources.name(route.source),
            "paths": self.paths(&route.paths, route.dead),
        });
        if route.dead {
            // it looks right in VPP's own dumps, and drops
            value["dead"] = true.into();
        }
        if !shadowed.is_empty() {
            value["shadowed"] = shadowed.iter().map(|lost| self.lost(*lost)).collect();
        }
        if self.full {
            value["stats_index"] = route.stats_index.into();
        }
        Some(value)
    }

    fn lost(&self, lost: Contribution) -> Value {
        let dead = self.state.fib.is_dead(lost);
        let mut value = json!({
            "source": self.state.fib.sources.name(lost.source),
            "paths": self.paths(self.state.fib.paths_of(lost), dead),
        });
        if dead {
            value["dead"] = true.into();
        }
        value
    }

    fn paths(&self, paths: &[Path], dead: bool) -> Vec<Value> {
        paths.iter().map(|path| self.path(path, dead)).collect()
    }

    fn path(&self, path: &Path, dead: bool) -> Value {
        let shape = path::shape(path);
        let mut value = Map::new();
        let kind = match (shape, path.kind.get()) {
            (Shape::Neighbour, _) => "via",
            (Shape::Attached, _) => "attached",
            (Shape::Recursive, _) => "recursive",
            (Shape::Lookup, _) => "lookup",
            (Shape::Receive, _) => "local",
            (Shape::Special, path::DROP) => "drop",
            (Shape::Special, path::ICMP_UNREACH) => "unreachable",
            (Shape::Special, path::ICMP_PROHIBIT) => "prohibited",
            (Shape::Special, _) => "other",
        };
        let mut put = |name: &str, field: Value| {
            value.insert(name.to_owned(), field);
        };
        put("kind", kind.into());
        if kind == "other" {
            put("type", path.kind.get().into());
        }
        let at = path.sw_if_index.get();
        if at != path::NO_INTERFACE {
            // the index may name another interface by now
            put("interface", if dead { format!("#{at}").into() } else { self.name(at).into() });
            if self.full {
                put("sw_if_index", at.into());
            }
        }
        if matches!(shape, Shape::Recursive | Shape::Lookup) {
            put("table_id", path.table_id.get().into());
        }
        if path.address != [0; 16] {
            put("next_hop", ip(Af::of_flag(path.proto.get() == 1), path.address).to_string().into());
        }
        if path.weight != 1 {
            put("weight", path.weight.into());
        }
        if path.preference != 0 {
            put("preference", path.preference.into());
        }
        if path.n_labels != 0 {
            let labels = path.labels.iter().take(usize::from(path.n_labels)).map(|label| label.label.get());
            put("labels", labels.collect());
        }
        Value::Object(value)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A public key, in hexadecimal digits.
fn key(key: &[u8; 32]) -> String {
    key.iter().map(|octet| format!("{octet:02x}")).collect()
}
