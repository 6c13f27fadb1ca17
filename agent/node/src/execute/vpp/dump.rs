//! What VPP holds, as far as the agent cares.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_core::desired::{IpipKey, Tunnel, VxlanKey};
use agent_core::event::{Dump, DumpedTunnel, FibPath, FibSourceId, Interface, SwIfIndex};
use agent_core::model::{RouteKey, TableId, Vni};
use agent_core::plan::TUNNEL_TAG;
use bgp_core::Family;
use vpp_client::wire::api::fib::{FibSourceDetails, FibSourceDump};
use vpp_client::wire::api::interface::{SwInterfaceGetTable, SwInterfaces};
use vpp_client::wire::api::ip::{IpAddressDump, IpRouteV2Dump, IpTableDump, IpUnnumberedDump};
use vpp_client::wire::api::ipip::{IpipTunnelDump, TunnelMode};
use vpp_client::wire::api::vxlan::{VxlanTunnelV2Details, VxlanTunnelV2Dump};
use vpp_client::wire::types::{FibSourceId as WireSource, SwIfIndex as WireInterface, TableId as WireTable};
use vpp_client::{CallError, Client};

use super::request::{SOURCE_NAME, read_path};
use super::{ike, nat, wireguard};

/// Reads everything.
pub(super) async fn everything(client: &Client, adopt: bool) -> Result<Dump, CallError> {
    let mut interfaces = interfaces(client).await?;
    let tables = tables(client).await?;
    let sources = sources(client).await?;
    let fib_source = named(&sources, SOURCE_NAME);
    let mut tunnels = tunnels(client).await?;
    tunnels.extend(wireguard::interfaces(client).await?);
    let vrfs = vrfs(client, &tunnels, &tables).await?;
    for interface in &mut interfaces {
        // Only in a network's table a tunnel has addresses of its own.
        if interface.tag.starts_with(TUNNEL_TAG) && vrfs.iter().any(|(index, ..)| *index == interface.index) {
            own_addresses(client, interface).await?;
        }
    }
    let wireguard = wireguard::peers(client).await?;
    let routes = match fib_source {
        Some(source) => routes(client, source, &tables).await?,
        None => Vec::new(),
    };
    let ike = ike::profiles(client).await?;
    let snat = nat::addresses(client).await?;
    let srv6 = super::srv6::dump(client).await?;
    let others = if adopt { others(client, &sources).await? } else { Vec::new() };
    Ok(Dump {
        interfaces,
        tables,
        fib_source,
        source_names: sources.iter().map(|(name, _)| Arc::clone(name)).collect(),
        tunnels,
        vrfs,
        srv6,
        wireguard,
        ike,
        snat,
        routes,
        others,
    })
}

/// Reads the interfaces with their addresses.
pub(super) async fn interfaces(client: &Client) -> Result<Vec<Interface>, CallError> {
    let read = |all: &mut Vec<Interface>, details: &vpp_client::wire::api::interface::SwInterfaceDetails| {
        all.push(Interface {
            index: SwIfIndex(details.sw_if_index.value()),
            name: Arc::from(&*details.interface_name.to_str()),
            tag: Arc::from(&*details.tag.to_str()),
            admin_up: details.flags.is_admin_up(),
            mtu: details.mtu.first().map_or(0, |mtu| mtu.get()),
            addresses: Vec::new(),
            unnumbered: None,
        });
    };
    let mut interfaces = client.dump(&SwInterfaces::all(), Vec::new(), read).await?;
    let borrowers = client.dump_all(&IpUnnumberedDump::all()).await?;
    let lenders: BTreeMap<u32, SwIfIndex> = borrowers
        .iter()
        .map(|details| (details.sw_if_index.value(), SwIfIndex(details.ip_sw_if_index.value())))
        .collect();
    for interface in &mut interfaces {
        interface.unnumbered = lenders.get(&interface.index.0).copied();
        // Tunnels borrow; to ask each of many for addresses of its own would take long.
        if interface.tag.starts_with(TUNNEL_TAG) {
            continue;
        }
        own_addresses(client, interface).await?;
    }
    Ok(interfaces)
}

async fn own_addresses(client: &Client, interface: &mut Interface) -> Result<(), CallError> {
    for is_ipv6 in [false, true] {
        let dump = IpAddressDump::new(WireInterface::new(interface.index.0), is_ipv6);
        let addresses = client.dump_all(&dump).await?;
        interface.addresses.extend(addresses.iter().filter_map(|details| details.prefix.net()));
    }
    Ok(())
}

pub(super) async fn tables(client: &Client) -> Result<Vec<(TableId, Family)>, CallError> {
    let all = client.dump_all(&IpTableDump::default()).await?;
    let table = |is_ip6: bool| if is_ip6 { Family::Ipv6Unicast } else { Family::Ipv4Unicast };
    // SRv6 has tables without a number, which are nobody's business.
    let numbered =
        |details: &&vpp_client::wire::api::ip::IpTableDetails| details.table.table_id.value() != u32::MAX;
    Ok(all
        .iter()
        .filter(numbered)
        .map(|details| (TableId(details.table.table_id.value()), table(details.table.is_ip6.is_true())))
        .collect())
}

/// Ours.
pub(super) async fn fib_source(client: &Client) -> Result<Option<FibSourceId>, CallError> {
    Ok(named(&sources(client).await?, SOURCE_NAME))
}

/// All FIB sources, each with its name.
async fn sources(client: &Client) -> Result<Vec<(Arc<str>, FibSourceId)>, CallError> {
    let all = client.dump_all(&FibSourceDump::default()).await?;
    let source = |details: &FibSourceDetails| {
        (Arc::from(&*details.src.name.to_str()), FibSourceId(details.src.id.value()))
    };
    Ok(all.iter().map(source).collect())
}

/// The smallest where there are several: VPP makes another one for each request.
fn named(sources: &[(Arc<str>, FibSourceId)], name: &str) -> Option<FibSourceId> {
    sources.iter().filter(|(its, _)| &**its == name).map(|(_, id)| *id).min()
}

async fn tunnels(client: &Client) -> Result<Vec<DumpedTunnel>, CallError> {
    let mut tunnels = vxlan_tunnels(client).await?;
    let all = client.dump_all(&IpipTunnelDump::all()).await?;
    let ours = all.iter().map(|details| &details.tunnel);
    let ours =
        ours.filter(|tunnel| tunnel.table_id() == WireTable::DEFAULT && tunnel.mode() == TunnelMode::P2P);
    let tunnel = |tunnel: &vpp_client::wire::api::ipip::IpipTunnel| {
        let (local, remote) = (tunnel.src().ip()?, tunnel.dst().ip()?);
        let key = IpipKey { local, remote };
        Some(DumpedTunnel { index: SwIfIndex(tunnel.sw_if_index().value()), tunnel: Tunnel::Ipip(key) })
    };
    tunnels.extend(ours.filter_map(tunnel));
    Ok(tunnels)
}

async fn vxlan_tunnels(client: &Client) -> Result<Vec<DumpedTunnel>, CallError> {
    let all = if_known(client.dump_all(&VxlanTunnelV2Dump::all()).await)?;
    let tunnel = |details: &VxlanTunnelV2Details| {
        // Others make tunnels with two ports, or to groups; we have no name for them.
        let key = VxlanKey {
            local: details.src_address.ip()?,
            remote: details.dst_address.ip()?,
            vni: Vni::new(details.vni.get())?,
            port: Some(details.dst_port.get()).filter(|port| *port == details.src_port.get())?,
            table: TableId(details.encap_vrf_id.value()),
        };
        Some(DumpedTunnel { index: SwIfIndex(details.sw_if_index.value()), tunnel: Tunnel::Vxlan(key) })
    };
    Ok(all.iter().filter_map(tunnel).collect())
}

/// The tables of VXLAN tunnels, where they are not the main ones. Only networks have such, and each has a table: without
/// one there is nothing to ask.
async fn vrfs(
    client: &Client,
    tunnels: &[DumpedTunnel],
    tables: &[(TableId, Family)],
) -> Result<Vec<(SwIfIndex, Family, TableId)>, CallError> {
    let mut vrfs = Vec::new();
    if !tables.iter().any(|(table, _)| table.network().is_some()) {
        return Ok(vrfs);
    }
    for tunnel in tunnels.iter().filter(|tunnel| matches!(tunnel.tunnel, Tunnel::Vxlan(_))) {
        for family in Family::UNICAST {
            let ask = SwInterfaceGetTable::new(WireInterface::new(tunnel.index.0), !family.is_ipv4());
            let table = TableId(client.call(&ask).await?.vrf_id.value());
            if table != TableId::MAIN {
                vrfs.push((tunnel.index, family, table));
            }
        }
    }
    Ok(vrfs)
}

/// What a VPP has no message for it has none of.
pub(super) fn if_known<T>(all: Result<Vec<T>, CallError>) -> Result<Vec<T>, CallError> {
    match all {
        Err(CallError::Missing(_)) => Ok(Vec::new()),
        other => other,
    }
}

async fn routes(
    client: &Client,
    source: FibSourceId,
    tables: &[(TableId, Family)],
) -> Result<Vec<(RouteKey, Vec<FibPath>)>, CallError> {
    let mut routes = Vec::new();
    for (table, family) in tables.iter().copied() {
        let is_ipv6 = family == Family::Ipv6Unicast;
        let dump = IpRouteV2Dump::new(WireTable::new(table.0), is_ipv6, Some(WireSource::new(source.0)));
        routes = client
            .dump(&dump, routes, move |routes, details| {
                let route = &details.route;
                if let Some(prefix) = route.prefix.truncated() {
                    routes.push((RouteKey { table, prefix }, route.paths.iter().map(read_path).collect()));
                }
            })
            .await?;
    }
    Ok(routes)
}

/// What VPP calls the source of every client that names none.
const API_SOURCE: &str = "API";

/// The routes of VPP's own source in the tables that agents for Calico write.
async fn others(
    client: &Client,
    sources: &[(Arc<str>, FibSourceId)],
) -> Result<Vec<(RouteKey, Vec<FibPath>)>, CallError> {
    let Some(source) = named(sources, API_SOURCE) else { return Ok(Vec::new()) };
    let tables = [TableId::MAIN, TableId::PODS];
    let tables: Vec<(TableId, Family)> =
        tables.iter().flat_map(|table| Family::UNICAST.map(|family| (*table, family))).collect();
    routes(client, source, &tables).await
}
