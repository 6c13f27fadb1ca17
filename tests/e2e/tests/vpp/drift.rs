//! What somebody else may do to our objects behind our back.

use std::net::Ipv6Addr;

use ipnet::IpNet;
use vpp_client::Client;
use vpp_client::wire::api::interface::{
    SwInterfaceSetFlags, SwInterfaceSetUnnumbered, SwInterfaceTagAddDel, SwInterfaces,
};
use vpp_client::wire::api::ip::{RouteDelete, RouteReplace};
use vpp_client::wire::api::ipip::IpipDelTunnel;
use vpp_client::wire::api::sr::{SrLocalsidAddDel, SrPolicyModV2, SrSteeringAddDel, Srv6SidList};
use vpp_client::wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanTunnel};
use vpp_client::wire::api::wireguard::{WireguardInterfaceDelete, WireguardPeerRemove};
use vpp_client::wire::types::{AddressFamily, FibPath, FibTarget, SwIfIndex, TableId};

use crate::state::{State, sources, wireguard_peer};
use crate::target::UPLINK;

/// Something that a stranger does.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// Deletes an interface, with its routes still there.
    Delete(String),
    /// Switches an interface off.
    SwitchOff(String),
    /// Takes an interface's borrowed addresses away.
    TakeAddresses(String),
    /// Takes an interface's tag off.
    TakeTag(String),
    /// Deletes a route.
    DeleteRoute(String),
    /// Has a route drop what it gets.
    SpoilRoute(String),
    /// Removes a WireGuard peer.
    RemovePeer(String),
    /// Deletes a local SID of SRv6.
    DeleteLocalsid(String),
    /// Has an SR policy send a share of its packets elsewhere. To delete one that something is steered into would hurt VPP.
    SpoilPolicy(String),
    /// Has nothing steered into an SR policy any more.
    DeleteSteering(String),
}

/// Everything that can be done to what VPP holds.
pub(crate) fn deeds(state: &State) -> Vec<Deed> {
    let mut deeds = Vec::new();
    for line in &state.lines {
        match line.split_once(": ") {
            Some((interface, settings)) if state.interfaces.contains_key(interface) => {
                let name = || interface.to_owned();
                deeds.push(Deed::SwitchOff(name()));
                if settings.contains("borrows") {
                    deeds.push(Deed::TakeAddresses(name()));
                }
                if settings.contains("tagged") {
                    deeds.push(Deed::TakeTag(name()));
                }
                deeds.push(Deed::Delete(name()));
            }
            Some((route, paths)) if route.starts_with("route ") => {
                deeds.push(Deed::DeleteRoute(route.to_owned()));
                if paths != "drop" {
                    deeds.push(Deed::SpoilRoute(route.to_owned()));
                }
            }
            // Once, though it may send from several prefixes.
            Some((peer, may)) if peer.starts_with("peer ") => {
                let address = peer.split(' ').nth(1).unwrap_or("?");
                if may.starts_with(&format!("may send {address}/")) {
                    deeds.push(Deed::RemovePeer(peer.to_owned()));
                }
            }
            Some((srv6, _)) if srv6.starts_with("localsid ") => {
                deeds.push(Deed::DeleteLocalsid(srv6.to_owned()));
            }
            Some((srv6, _)) if srv6.starts_with("policy ") => deeds.push(Deed::SpoilPolicy(srv6.to_owned())),
            Some((srv6, _)) if srv6.starts_with("steering ") => {
                deeds.push(Deed::DeleteSteering(srv6.to_owned()));
            }
            _ => panic!("nobody knows how to spoil this: {line}"),
        }
    }
    deeds
}

/// Does it.
pub(crate) async fn commit(client: &Client, deed: &Deed) {
    let state = State::read(client).await.expect("VPP is there");
    let index = |name: &String| state.interfaces[name];
    let done = match deed {
        Deed::Delete(name) => delete(client, name, index(name)).await,
        Deed::SwitchOff(name) => client.call(&SwInterfaceSetFlags::new(index(name), false)).await.map(drop),
        Deed::TakeAddresses(name) => {
            let all = client.dump_all(&SwInterfaces::all()).await.expect("VPP is there");
            let uplink = all.iter().find(|interface| interface.interface_name.to_str() == UPLINK);
            let lender = uplink.expect("the uplink").sw_if_index;
            client.call(&SwInterfaceSetUnnumbered::new(lender, index(name), false)).await.map(drop)
        }
        Deed::TakeTag(name) => client.call(&SwInterfaceTagAddDel::del(index(name))).await.map(drop),
        Deed::RemovePeer(name) => {
            let peer = wireguard_peer(client, name).await.expect("VPP is there").expect("the peer");
            client.call(&WireguardPeerRemove::new(peer)).await.map(drop)
        }
        Deed::DeleteLocalsid(name) => {
            let delete = SrLocalsidAddDel::delete(address(name)).expect("a SID");
            client.call(&delete).await.map(drop)
        }
        Deed::SpoilPolicy(name) => {
            let bsid = address(name);
            let list = Srv6SidList::new(&[bsid], 1).expect("a list");
            let add = SrPolicyModV2::add_list(bsid, bsid, list).expect("a policy");
            client.call(&add).await.map(drop)
        }
        Deed::DeleteSteering(name) => {
            let (table, prefix) = place(name);
            let delete = SrSteeringAddDel::delete(table, prefix).expect("a good prefix");
            client.call(&delete).await.map(drop)
        }
        Deed::DeleteRoute(route) | Deed::SpoilRoute(route) => {
            let source = *sources(client).await.expect("VPP is there").first().expect("a FIB source");
            let (table, prefix) = place(route);
            if matches!(deed, Deed::DeleteRoute(_)) {
                let delete = RouteDelete::new(table, prefix, source).expect("a good prefix");
                client.call(&delete).await.map(drop)
            } else {
                let family = AddressFamily::of(prefix.addr());
                let drop_it = [FibPath::new(FibTarget::Drop, family).expect("a path")];
                let replace = RouteReplace::new(table, prefix, source, &drop_it).expect("a good prefix");
                client.call(&replace).await.map(drop)
            }
        }
    };
    done.unwrap_or_else(|error| panic!("{deed:?}: {error}"));
}

/// Where in VPP's tables something is: `route 192.0.2.0/24 in table 0`.
fn place(name: &str) -> (TableId, IpNet) {
    let words: Vec<&str> = name.split(' ').collect();
    let [_, prefix, "in", "table", table] = words[..] else { panic!("in no table: {name}") };
    (TableId::new(table.parse().expect("a table")), prefix.parse().expect("a prefix"))
}

/// The address in a name: `policy fd00::1`.
fn address(name: &str) -> Ipv6Addr {
    name.split(' ').nth(1).and_then(|address| address.parse().ok()).expect("an address")
}

async fn delete(client: &Client, name: &str, index: SwIfIndex) -> Result<(), vpp_client::CallError> {
    let words: Vec<&str> = name.split(' ').collect();
    match words[..] {
        ["wireguard", ..] => client.call(&WireguardInterfaceDelete::new(index)).await.map(drop),
        ["ipip", ..] => client.call(&IpipDelTunnel::new(index)).await.map(drop),
        ["vxlan", local, "->", remote, "vni", vni, "port", port] => {
            let tunnel = VxlanTunnel {
                local: local.parse().expect("an address"),
                remote: remote.parse().expect("an address"),
                port: port.parse().expect("a port"),
                vni: vni.parse().expect("a number"),
                table: TableId::DEFAULT,
            };
            let delete = VxlanAddDelTunnelV3::delete(&tunnel).expect("a tunnel");
            client.call(&delete).await.map(drop)
        }
        _ => panic!("nobody knows how to delete {name}"),
    }
}
