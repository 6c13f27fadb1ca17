//! VPP changes hands: what Calico/VPP's own agent leaves is taken over, and given back.
//!
//! What it leaves is made here by hand, as it does it: tunnels without a tag that borrow the uplink's addresses, a host route for
//! each remote node in table 2, destinations in table 0, all of them under VPP's own source; among them some that are in BGP no
//! more, and beside them a route that is nobody's business.

use std::collections::BTreeSet;
use std::net::IpAddr;

use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;
use vpp_client::wire::api::cnat::{CnatSetSnatAddressesV2, CnatSnatPolicyAddDelExcludePfx};
use vpp_client::wire::api::fib::FibSourceDump;
use vpp_client::wire::api::gso::FeatureGsoEnableDisable;
use vpp_client::wire::api::interface::{SwInterfaceSetFlags, SwInterfaceSetUnnumbered, SwInterfaces};
use vpp_client::wire::api::ip::{IpAddressDump, IpRouteV2Dump, IpTableAddDel, IpTableDump, RouteReplace};
use vpp_client::wire::api::ipip::{IpipAddTunnel, IpipTunnelDump};
use vpp_client::wire::api::vlib::AddNodeNext;
use vpp_client::wire::api::vxlan::{VxlanAddDelTunnelV3, VxlanTunnel, VxlanTunnelV2Dump};
use vpp_client::wire::api::wireguard::{InterfaceCreate, PeerAdd, WireguardInterfaceDump};
use vpp_client::wire::types::{AddressFamily, FibPath, FibSourceId, FibTarget, SwIfIndex, TableId};
use vpp_client::{CallError, Client};

use crate::row::{Carried, Row};
use crate::rows;
use crate::target::{On, UPLINK};
use crate::world::{DESTINATIONS, World};

/// IPv4 by IPIP, IPv6 by VXLAN, as the other agent had it.
const ROW: Row = Row {
    ipv4: Carried { ..rows::ipip::ROW.ipv4 },
    ipv6: Carried { ..rows::vxlan::ROW.ipv6 },
    ..Row::named("takeover")
};

/// Of anybody: neither in a pool nor towards a node.
const FOREIGN: &str = "198.51.100.0/24 in table 0";

/// The other agent at work.
struct Other<'a> {
    client: &'a Client,
    uplink: SwIfIndex,
}

impl<'a> Other<'a> {
    async fn new(client: &'a Client) -> Self {
        let all = client.dump_all(&SwInterfaces::all()).await.unwrap();
        let uplink = all.iter().find(|interface| interface.interface_name.to_str() == UPLINK);
        let uplink = uplink.expect("the uplink").sw_if_index;
        for is_ipv6 in [false, true] {
            client.dump_all(&IpAddressDump::new(uplink, is_ipv6)).await.unwrap();
            client.call(&IpTableAddDel::add(TableId::new(2), is_ipv6, "pods").unwrap()).await.unwrap();
        }
        // The client wants to know what is there before it makes more.
        client.dump_all(&IpTableDump::default()).await.unwrap();
        client.dump_all(&FibSourceDump::default()).await.unwrap();
        client.dump_all(&IpipTunnelDump::all()).await.unwrap();
        client.dump_all(&VxlanTunnelV2Dump::all()).await.unwrap();
        client.dump_all(&WireguardInterfaceDump::new(false, SwIfIndex::NONE)).await.unwrap();
        Self { client, uplink }
    }

    /// What every tunnel gets.
    async fn dress(&self, index: SwIfIndex) {
        self.client.call(&SwInterfaceSetUnnumbered::new(self.uplink, index, true)).await.unwrap();
        self.client.call(&FeatureGsoEnableDisable::new(index, true)).await.unwrap();
        self.client.call(&SwInterfaceSetFlags::new(index, true)).await.unwrap();
    }

    async fn route(&self, prefix: &str, table: u32, target: FibTarget) {
        let prefix: ipnet::IpNet = prefix.parse().unwrap();
        let path = [FibPath::new(target, AddressFamily::of(prefix.addr())).unwrap()];
        // Which source it is doesn't matter: it is taken back at once.
        let route = RouteReplace::new(TableId::new(table), prefix, FibSourceId::new(200), &path).unwrap();
        self.client.call(&route.given_back()).await.unwrap();
    }

    async fn ipip(&self, remote: &str, pods: &str) {
        let (local, to) = ("192.0.2.1".parse().unwrap(), remote.parse().unwrap());
        let add = IpipAddTunnel::new(local, to, TableId::DEFAULT).unwrap();
        let index = self.client.call(&add).await.unwrap().sw_if_index;
        self.dress(index).await;
        self.route(&format!("{remote}/32"), 2, FibTarget::Attached(index)).await;
        self.route(pods, 0, FibTarget::Attached(index)).await;
    }

    async fn vxlan(&self, remote: &str, pods: &str) {
        let remote: IpAddr = remote.parse().unwrap();
        let tunnel = VxlanTunnel {
            local: "2001:db8:1::1".parse().unwrap(),
            remote,
            port: 4789,
            vni: 4096,
            table: TableId::DEFAULT,
        };
        let next = self.client.call(&AddNodeNext::vxlan6_to_ip6().unwrap()).await.unwrap().next_index.get();
        let add = VxlanAddDelTunnelV3::add(&tunnel, next).unwrap();
        let index = self.client.call(&add).await.unwrap().sw_if_index;
        self.dress(index).await;
        self.route(&format!("{remote}/128"), 2, FibTarget::Attached(index)).await;
        self.route(pods, 0, FibTarget::Via(index, remote)).await;
    }

    async fn wireguard(&self, remote: &str, pods: &str) {
        let add = InterfaceCreate::new("192.0.2.1".parse().unwrap(), 51820, &[0x42; 32]).unwrap();
        let index = self.client.call(&add).await.unwrap().sw_if_index;
        self.dress(index).await;
        let pods_net: ipnet::IpNet = pods.parse().unwrap();
        let endpoint: IpAddr = remote.parse().unwrap();
        let allowed = [pods_net, endpoint.into()];
        let peer = PeerAdd::new(index, &[0x43; 32], endpoint, 51820, 1, TableId::DEFAULT, &allowed).unwrap();
        self.client.call(&peer).await.unwrap();
        self.route(&format!("{remote}/32"), 2, FibTarget::Attached(index)).await;
        self.route(pods, 0, FibTarget::Via(index, pods_net.addr())).await;
    }

    /// VPP may lack the feature.
    async fn snat(&self) {
        let (ipv4, ipv6) = ("192.0.2.1".parse().unwrap(), "2001:db8:1::1".parse().unwrap());
        let addresses = CnatSetSnatAddressesV2::new(Some(ipv4), Some(ipv6)).unwrap();
        if self.client.call(&addresses).await.is_ok() {
            for prefix in ["192.0.2.1/32", "10.244.0.0/16"] {
                let exclude = CnatSnatPolicyAddDelExcludePfx::new(prefix.parse().unwrap(), true);
                self.client.call(&exclude).await.unwrap();
            }
        }
    }
}

/// What stands under VPP's own source in the tables that agents write.
async fn others(client: &Client) -> Result<BTreeSet<String>, CallError> {
    let sources = client.dump_all(&FibSourceDump::default()).await?;
    let api = sources.iter().find(|source| source.src.name.to_str() == "API").map(|source| source.src.id);
    let mut all = BTreeSet::new();
    for (table, is_ipv6) in [(0, false), (0, true), (2, false), (2, true)] {
        let dump = IpRouteV2Dump::new(TableId::new(table), is_ipv6, api);
        let prefixes = client
            .dump(&dump, Vec::new(), |all: &mut Vec<_>, details| all.push(details.route.prefix.net()))
            .await?;
        all.extend(prefixes.into_iter().flatten().map(|prefix| format!("{prefix} in table {table}")));
    }
    Ok(all)
}

fn others_become(world: &World, when: &str, expected: &[&str]) {
    let expected: BTreeSet<String> = expected.iter().map(|line| (*line).to_owned()).collect();
    wait::until(&format!("of the other agent there is what must be {when}"), || {
        let found = world.with_client(async |client| others(client).await);
        let found = found.map_err(|error| error.to_string())?;
        if found == expected { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

/// See the module's text.
pub(crate) fn changes_hands(on: On) {
    if !available("e2e suite of all providers", &[IP]) || !on.available() {
        return;
    }
    Lab::run(move |lab| {
        let mut world = World::new(lab, on, &ROW);
        world.announce(&DESTINATIONS);
        world.with_client(async |client| {
            client.ready().await.expect("VPP is there");
            let other = Other::new(client).await;
            other.ipip("192.0.2.2", "10.244.2.0/26").await;
            other.vxlan("2001:db8:1::2", "fd00:10:244:2::/122").await;
            other.snat().await;
            // In BGP no more: by a tunnel of each kind, and as they are, one of them to a node.
            other.ipip("192.0.2.9", "10.244.9.0/26").await;
            other.vxlan("2001:db8:1::9", "fd00:10:244:9::/122").await;
            other.wireguard("192.0.2.7", "10.244.7.0/26").await;
            let via = |hop: &str| FibTarget::Recursive(TableId::DEFAULT, hop.parse().unwrap());
            other.route("10.244.8.0/26", 0, via("192.0.2.254")).await;
            other.route("203.0.113.0/24", 0, via("192.0.2.3")).await;
            other.route("198.51.100.0/24", 0, via("192.0.2.254")).await;
        });
        let theirs = world.state().expect("VPP is there").interfaces;
        world.node.start_with(&["--adopt"]);
        let ours = world.await_expected("after a takeover").interfaces;
        for kept in ["ipip 192.0.2.1 -> 192.0.2.2", "vxlan 2001:db8:1::1 -> 2001:db8:1::2 vni 4096 port 4789"]
        {
            assert_eq!(theirs.get(kept), ours.get(kept), "{kept} was made anew");
        }
        others_become(&world, "after a takeover", &[FOREIGN]);

        // Given back, all of it stands under VPP's own source, and no tunnel is ours.
        assert!(world.node.agent().terminate().success(), "the agent ends well");
        let held = world.expected();
        let given = world.node.run_agent(&["--release"]);
        assert!(given.status.success(), "{}", String::from_utf8_lossy(&given.stderr));
        let routes = held.iter().filter_map(|line| line.strip_prefix("route ")?.split_once(": "));
        let expected: Vec<&str> = routes.map(|(route, _)| route).chain([FOREIGN]).collect();
        others_become(&world, "after a release", &expected);
        let state = world.state().expect("VPP is there");
        assert!(!state.lines.iter().any(|line| line.contains("tagged")), "{:?}", state.lines);
        assert_eq!(state.interfaces, ours, "tunnels stay");

        // And taken over once more.
        world.node.start_with(&["--adopt"]);
        assert_eq!(world.await_expected("after a second takeover").interfaces, ours);
        others_become(&world, "after a second takeover", &[FOREIGN]);
        world.end();
    });
}
