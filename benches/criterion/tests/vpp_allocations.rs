//! No allocation per message on the way to VPP and back, and few octets and allocations for each route in the agent.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::net::{IpAddr, Ipv4Addr};

use agent_core::event::{FibSourceId, Generation, VppEvent, VppReply};
use agent_core::model::{Node, NodeName};
use agent_core::plan::{VppAction, VppOp};
use agent_core::{Change, Config, Engine, Event};
use bench_core::nth;
use bgp_core::rib::{AttrId, AttrStore, NextHopSet, RibChange, RibEvent};
use bgp_core::time::Instant;
use bgp_core::{Family, NextHop, Nlri};
use ipnet::{IpNet, Ipv4Net};
use test_support::allocations::{Counting, counted, retained};
use vpp_client::wire::Retval;
use vpp_client::wire::api::fib::{FibSourceAdd, FibSourceDump};
use vpp_client::wire::api::ip::{IpTableDump, RouteReplace};
use vpp_client::wire::types::{AddressFamily, FibPath, FibTarget, TableId};
use vpp_client::{Client, ClientSettings};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Requests in flight.
const WINDOW: usize = 200;

#[test]
fn a_request_and_its_reply_cost_no_allocation() {
    let socket = std::env::temp_dir().join(format!("bench-core-{}.sock", std::process::id()));
    // The other side allocates on a thread of its own.
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let sim = {
        let _inside = other.enter();
        vpp_sim::Sim::builder(&socket).spawn().unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, _notices) = {
        let _inside = runtime.enter();
        Client::connect(&socket, ClientSettings::default())
    };
    let pipeline = client.pipeline::<u32, Retval>(2 * WINDOW as u16);
    let source = runtime.block_on(async {
        client.ready().await.unwrap();
        // What the client wants to have seen before it lets a request about it pass.
        client.dump_all(&FibSourceDump::default()).await.unwrap();
        client.dump_all(&IpTableDump::default()).await.unwrap();
        client.call(&FibSourceAdd::below_api("bench", 130).unwrap()).await.unwrap().id
    });
    let next_hop = IpAddr::from([192, 0, 2, 1]);
    let paths = [FibPath::new(FibTarget::Recursive(TableId::DEFAULT, next_hop), AddressFamily::IP4).unwrap()];
    let mut completions = Vec::with_capacity(2 * WINDOW);
    let mut pump = |count: u32| {
        runtime.block_on(async {
            let (mut sent, mut answered) = (0, 0);
            while answered < count {
                while sent < count && pipeline.free() > 0 {
                    // The same thousand routes again and again.
                    let prefix = prefix(sent % 1000);
                    let route = RouteReplace::new(TableId::DEFAULT, prefix, source, &paths).unwrap();
                    pipeline.submit(&route, sent).unwrap();
                    sent += 1;
                }
                pipeline.completions(&mut completions).await;
                for completion in completions.drain(..) {
                    completion.outcome.unwrap().ok().unwrap();
                    answered += 1;
                }
            }
        });
    };
    // Buffers grow to what a window needs.
    pump(5_000);
    let ((), allocations) = counted(|| pump(20_000));
    println!("20,000 requests and replies: {allocations} allocations");
    assert!(allocations <= 20, "{allocations} allocations for 20,000 requests");
    runtime.block_on(client.close());
    other.block_on(sim.close());
}

/// An engine that has everything but routes, and a VPP that says yes.
struct World {
    engine: Engine,
    now: Instant,
    ops: Vec<VppOp>,
    attributes: AttrId,
    routes: usize,
}

impl World {
    fn new() -> Self {
        let me = NodeName::from("node-a");
        let mut config = Config::new(me.clone());
        config.vpp.as_mut().unwrap().audit = None;
        config.vpp.as_mut().unwrap().window = WINDOW;
        let mut world = Self {
            engine: Engine::new(config),
            now: Instant::from_secs(1),
            ops: Vec::new(),
            attributes: AttrStore::new(1).intern(&[], None, Default::default),
            routes: 0,
        };
        let node = Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() };
        for event in [
            Event::BgpConfig(Change::Resync(Vec::new())),
            Event::FelixConfig(Change::Resync(Vec::new())),
            Event::Pool(Change::Resync(Vec::new())),
            Event::Affinity(Change::Resync(Vec::new())),
            Event::Filter(Change::Resync(Vec::new())),
            Event::Peer(Change::Resync(Vec::new())),
            Event::Node(Change::Resync(vec![(me, node)])),
            Event::Rib(RibEvent::Resync),
            Event::Rib(RibEvent::Replayed),
            Event::Vpp(VppEvent::Up(Generation(1))),
        ] {
            world.engine.handle(world.now, event);
        }
        world.settle();
        world
    }

    /// Carries out what there is to do.
    fn settle(&mut self) {
        loop {
            self.engine.next_vpp_ops(self.now, WINDOW, &mut self.ops);
            if self.ops.is_empty() {
                return;
            }
            for op in self.ops.drain(..) {
                let reply = match op.action {
                    VppAction::Dump => VppReply::Dump(Box::default()),
                    VppAction::AddFibSource => VppReply::FibSource(FibSourceId(30)),
                    VppAction::PutRoute { .. } | VppAction::DelRoute { .. } => {
                        self.routes += 1;
                        VppReply::Done
                    }
                    _ => VppReply::Done,
                };
                self.engine.handle(self.now, Event::Vpp(VppEvent::Done(op.id, Ok(reply))));
            }
        }
    }

    /// Routes of a range change their next hop, or are withdrawn, as many at a time as the agent takes from the speaker.
    fn say(&mut self, range: std::ops::Range<u32>, next_hop: Option<Ipv4Addr>) {
        let hops = NextHopSet::new(next_hop.map(NextHop::V4));
        for n in range {
            let nlri = Nlri::from(prefix(n));
            let best = next_hop.map(|_| self.attributes);
            let (family, hops) = (Family::Ipv4Unicast, hops.clone());
            let change = RibChange { seq: 1, family, nlri, best, hops, local: false, sr_policy: None };
            self.engine.handle(self.now, Event::Rib(RibEvent::Change(change)));
            if n % 2048 == 0 {
                self.settle();
            }
        }
        self.settle();
    }
}

fn prefix(n: u32) -> IpNet {
    let prefix = nth(n);
    Ipv4Net::new(Ipv4Addr::from(prefix.addr()), 24).unwrap().into()
}

#[test]
fn a_route_costs_few_octets_and_no_allocation_but_its_place() {
    let mut world = World::new();
    let [here, there] = [Ipv4Addr::new(192, 0, 2, 11), Ipv4Addr::new(192, 0, 2, 12)];
    let (few, many) = (0..5_000, 5_000..45_000);
    for (what, next_hop, most) in [
        // A place in two trees, each of which has about eight in a node.
        ("added", Some(here), 400),
        ("changed", Some(there), 10),
        ("changed back", Some(here), 10),
        ("withdrawn", None, 10),
    ] {
        world.say(few.clone(), next_hop);
        let before = world.routes;
        let (((), allocations), octets) = retained(|| counted(|| world.say(many.clone(), next_hop)));
        assert_eq!(world.routes - before, many.len(), "{what}: VPP was asked for each route once");
        let per_thousand = allocations as f64 * 1000.0 / many.len() as f64;
        let octets = octets as f64 / many.len() as f64;
        println!("{what}: {per_thousand:.1} allocations per thousand routes, {octets:+.1} octets each");
        assert!(per_thousand <= f64::from(most), "{what}: {per_thousand} allocations per thousand routes");
        if what == "added" {
            assert!((10.0..=200.0).contains(&octets), "{octets} octets for each route");
        }
    }
}
