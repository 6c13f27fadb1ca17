//! What VPP holds of ours, read from VPP itself and written as lines of text: the same for a simulated and a real one.
//!
//! Indices that VPP gives out are replaced by what they stand for, so equal states are equal text. Whatever is there
//! besides the uplink is told: what should not be there shows as well as what is missing.

mod srv6;

use std::collections::{BTreeMap, BTreeSet};

use vpp_client::wire::api::feature::FeatureIsEnabled;
use vpp_client::wire::api::fib::FibSourceDump;
use vpp_client::wire::api::interface::{SwInterfaceDetails, SwInterfaceGetTable, SwInterfaces};
use vpp_client::wire::api::ip::{IpRouteV2Dump, IpTableDump, IpUnnumberedDump};
use vpp_client::wire::api::ipip::IpipTunnelDump;
use vpp_client::wire::api::vxlan::VxlanTunnelV2Dump;
use vpp_client::wire::api::wireguard::{WireguardInterfaceDump, WireguardPeersDetails, WireguardPeersDump};
use vpp_client::wire::types::{FibPath, FibSourceId, FibTarget, SwIfIndex};
use vpp_client::{CallError, Client};

/// The name of the agent's FIB source.
pub(crate) const SOURCE: &str = "peregrine";
/// What an interface takes that nobody has told anything else.
const USUAL_MTU: u32 = 9000;

/// What VPP holds of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// One line for each thing.
    pub(crate) lines: BTreeSet<String>,
    /// The interfaces that are not the test's own, by what they are.
    pub(crate) interfaces: BTreeMap<String, SwIfIndex>,
}

impl State {
    /// Reads it all.
    pub(crate) async fn read(client: &Client) -> Result<Self, CallError> {
        let names = names(client).await?;
        let mut state = Self::default();
        state.interfaces(client, &names).await?;
        state.routes(client, &names).await?;
        state.peers(client, &names).await?;
        state.srv6(client).await?;
        Ok(state)
    }

    async fn interfaces(&mut self, client: &Client, names: &Names) -> Result<(), CallError> {
        let borrowers = client.dump_all(&IpUnnumberedDump::all()).await?;
        for interface in client.dump_all(&SwInterfaces::all()).await? {
            let index = interface.sw_if_index;
            if is_the_tests_own(&interface) {
                continue;
            }
            let mut line =
                format!("{}: {}", names.of(index), if interface.flags.is_admin_up() { "up" } else { "down" });
            let tag = interface.tag.to_str();
            if !tag.is_empty() {
                line += &format!(", tagged {tag}");
            }
            if let Some(borrower) = borrowers.iter().find(|borrower| borrower.sw_if_index == index) {
                line += &format!(", borrows {}", names.of(borrower.ip_sw_if_index));
            }
            let gso = [("ip4-output", "gso-ip4"), ("ip6-output", "gso-ip6")];
            if enabled(client, index, gso).await? {
                line += ", gso";
            }
            let mtu = interface.mtu.first().map_or(0, |mtu| mtu.get());
            if mtu != USUAL_MTU {
                line += &format!(", mtu {mtu}");
            }
            if names.of(index).starts_with("vxlan ") {
                line += &in_table(client, index).await?;
            }
            self.lines.insert(line);
            self.interfaces.insert(names.of(index), index);
        }
        Ok(())
    }

    async fn peers(&mut self, client: &Client, names: &Names) -> Result<(), CallError> {
        for (_, name, allowed) in wireguard_peers(client, names).await? {
            for prefix in allowed {
                self.lines.insert(format!("{name}: may send {prefix}"));
            }
        }
        Ok(())
    }

    async fn routes(&mut self, client: &Client, names: &Names) -> Result<(), CallError> {
        for source in sources(client).await? {
            for table in client.dump_all(&IpTableDump::default()).await? {
                let (id, is_ipv6) = (table.table.table_id, table.table.is_ip6.is_true());
                let dump = IpRouteV2Dump::new(id, is_ipv6, Some(source));
                let read = |all: &mut Vec<_>, details: &vpp_client::wire::api::ip::IpRouteV2Details| {
                    all.push((details.route.prefix.net(), details.route.paths.to_vec()));
                };
                for (prefix, paths) in client.dump(&dump, Vec::new(), read).await? {
                    let prefix = prefix.map_or_else(|| "?".to_owned(), |prefix| prefix.to_string());
                    let paths: BTreeSet<String> = paths.iter().map(|path| written(path, names)).collect();
                    let paths: Vec<String> = paths.into_iter().collect();
                    self.lines.insert(format!(
                        "route {prefix} in table {}: {}",
                        id.value(),
                        paths.join(" and ")
                    ));
                }
            }
        }
        Ok(())
    }

    /// What is too much and what is missing against `expected`.
    pub(crate) fn against(&self, expected: &BTreeSet<String>) -> Result<(), String> {
        let mut differences = String::new();
        for line in self.lines.difference(expected) {
            differences += &format!("\n  too much: {line}");
        }
        for line in expected.difference(&self.lines) {
            differences += &format!("\n  missing:  {line}");
        }
        if differences.is_empty() { Ok(()) } else { Err(differences) }
    }
}

/// The agent's FIB sources. VPP makes another one whenever it is asked for one, and more than one would show as routes
/// that are there twice, or not at all.
pub(crate) async fn sources(client: &Client) -> Result<Vec<FibSourceId>, CallError> {
    let all = client.dump_all(&FibSourceDump::default()).await?;
    let ours = all.iter().filter(|details| details.src.name.to_str() == SOURCE);
    Ok(ours.map(|details| details.src.id).collect())
}

/// The peers of WireGuard interfaces: VPP's number, name, what they may send.
async fn wireguard_peers(
    client: &Client,
    names: &Names,
) -> Result<Vec<(u32, String, Vec<String>)>, CallError> {
    let read = |all: &mut Vec<_>, details: &WireguardPeersDetails| {
        let peer = &details.peer;
        let allowed = peer.allowed_ips.iter().filter_map(|allowed| allowed.net());
        let allowed: Vec<String> = allowed.map(|net| net.to_string()).collect();
        let at = peer.endpoint.ip().map_or_else(|| "?".to_owned(), |at| at.to_string());
        all.push((peer.peer_index.get(), at, peer.port.get(), peer.sw_if_index, allowed));
    };
    let all = client.dump(&WireguardPeersDump::new(u32::MAX), Vec::new(), read).await?;
    let named = |(index, at, port, interface, allowed): (u32, String, u16, SwIfIndex, Vec<String>)| {
        (index, format!("peer {at} port {port} on {}", names.of(interface)), allowed)
    };
    Ok(all.into_iter().map(named).collect())
}

/// VPP's number of the peer with this name.
pub(crate) async fn wireguard_peer(client: &Client, name: &str) -> Result<Option<u32>, CallError> {
    let all = wireguard_peers(client, &names(client).await?).await?;
    Ok(all.into_iter().find(|(_, of, _)| of == name).map(|(index, ..)| index))
}

/// What is there before the agent comes: VPP's own interface, and those that the test made.
fn is_the_tests_own(interface: &SwInterfaceDetails) -> bool {
    let name = interface.interface_name.to_str();
    ["local0", "loop", "memif", "pg"].iter().any(|own| name.starts_with(own))
}

/// What interfaces stand for.
struct Names(BTreeMap<u32, String>);

impl Names {
    fn of(&self, index: SwIfIndex) -> String {
        let name = self.0.get(&index.value());
        name.cloned().unwrap_or_else(|| format!("interface {} that does not exist", index.value()))
    }
}

/// VPP's name for each interface, or what makes it unique where VPP's name is a mere number.
async fn names(client: &Client) -> Result<Names, CallError> {
    let interfaces = client.dump_all(&SwInterfaces::all()).await?;
    let mut names: BTreeMap<u32, String> = interfaces
        .iter()
        .map(|interface| (interface.sw_if_index.value(), interface.interface_name.to_str().into_owned()))
        .collect();
    for details in client.dump_all(&IpipTunnelDump::all()).await? {
        let tunnel = details.tunnel;
        if let (Some(local), Some(remote)) = (tunnel.src().ip(), tunnel.dst().ip()) {
            names.insert(tunnel.sw_if_index().value(), format!("ipip {local} -> {remote}"));
        }
    }
    for details in client.dump_all(&VxlanTunnelV2Dump::all()).await? {
        if let (Some(local), Some(remote)) = (details.src_address.ip(), details.dst_address.ip()) {
            let (vni, port) = (details.vni, details.dst_port);
            let name = format!("vxlan {local} -> {remote} vni {vni} port {port}");
            names.insert(details.sw_if_index.value(), name);
        }
    }
    for details in client.dump_all(&WireguardInterfaceDump::new(false, SwIfIndex::NONE)).await? {
        let interface = details.interface;
        if let Some((local, port)) = interface.listens() {
            names.insert(interface.sw_if_index.value(), format!("wireguard {local} port {port}"));
        }
    }
    Ok(Names(names))
}

/// The table that an interface is in, of both families; empty for the main one.
async fn in_table(client: &Client, index: SwIfIndex) -> Result<String, CallError> {
    let mut tables = BTreeSet::new();
    for is_ipv6 in [false, true] {
        tables.insert(client.call(&SwInterfaceGetTable::new(index, is_ipv6)).await?.vrf_id.value());
    }
    let tables: Vec<String> = tables.iter().map(ToString::to_string).collect();
    Ok(if tables == ["0"] { String::new() } else { format!(", in table {}", tables.join(" and ")) })
}

/// Whether a feature is on, in the arcs of both families.
async fn enabled(client: &Client, index: SwIfIndex, arcs: [(&str, &str); 2]) -> Result<bool, CallError> {
    let mut on = true;
    for (arc, feature) in arcs {
        let ask = FeatureIsEnabled::new(index, arc, feature).expect("short names");
        on &= client.call(&ask).await?.is_enabled.is_true();
    }
    Ok(on)
}

fn written(path: &FibPath, names: &Names) -> String {
    let weight = if path.weight() > 1 { format!(" with weight {}", path.weight()) } else { String::new() };
    let target = match path.target() {
        Some(FibTarget::Via(index, hop)) => format!("via {hop} on {}", names.of(index)),
        Some(FibTarget::Attached(index)) => format!("into {}", names.of(index)),
        Some(FibTarget::Recursive(table, hop)) if table.value() == 0 => format!("via {hop}"),
        Some(FibTarget::Recursive(table, hop)) => format!("via {hop} in table {}", table.value()),
        Some(FibTarget::Lookup(table)) => format!("as in table {}", table.value()),
        Some(FibTarget::Drop) => "drop".to_owned(),
        Some(FibTarget::Unreachable) => "unreachable".to_owned(),
        Some(FibTarget::Prohibited) => "prohibited".to_owned(),
        Some(FibTarget::Local) => "to itself".to_owned(),
        None => "in some other way".to_owned(),
    };
    target + &weight
}
