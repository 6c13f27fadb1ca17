//! The speaker against a reference that works everything out anew each time.
//!
//! A sequence of small happenings goes to both: to the speaker as octets and commands, to the [`reference`] as plain
//! values. Whenever the speaker has come to rest, everything that can be seen of it must be what the reference says: what
//! neighbours have said and what became of it, the best paths and why, and what each neighbour believes that has taken
//! every UPDATE at its word. `PROPTEST_CASES` asks for so many sequences instead of the usual ones.
//!
//! - [`route`]: routes and UPDATEs as plain values, [`policy`]: policies
//! - [`reference`]: the reference
//! - [`link`]: the speaker and its neighbours, [`happening`]: what happens to both
//!
//! The reference and its policies are plain Rust; only how a policy is said to the speaker, `link` and this page know that.

mod happening;
mod link;
mod policy;
mod reference;
mod route;

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::num::NonZeroU8;
use std::time::Duration;

use bgp_wire::attr::ExtCommunity;
use bgp_wire::{Asn, RouterId};
use ipnet::Ipv4Net;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use self::happening::{
    Happening, LOCAL, NAMES, PEERS, Spec, address, aggregates, happening, next_hops, nth, prefixes,
};
use self::link::{Link, key};
use self::policy::{Policy, Range, SET};
use self::reference::{Chain, Decision, Knobs, NextHopMode, OUR_ASN, Peer, Reference, Rejected};
use self::route::{Attrs, Update};
use crate::command::{self, Aggregate, Clear, Command, Origination, PeerConfig};
use crate::policy as definition;
use crate::query::{NotTold, RouteTable};
use crate::rib::{DecisionSettings, NextHopState, PathRejected};
use crate::session::{GracefulRestart, IdleHold, RemoteAsn};

/// The speaker and the reference side by side.
struct Both {
    link: Link,
    reference: Reference,
    /// What each neighbour must have been told when all was last compared.
    before: Vec<BTreeMap<Ipv4Net, Attrs>>,
    /// How much has happened since.
    happened: usize,
    /// Something of it may have moved neighbours to other update groups.
    moved: bool,
    /// What each neighbour has said at some time.
    said_once: Vec<BTreeSet<Ipv4Net>>,
}

impl Both {
    fn new(pull_octets: usize) -> Self {
        let peer = |(n, (asn, id)): (usize, &(u32, u32))| Peer {
            address: address(n),
            asn: *asn,
            id: *id,
            local: if n == LOCAL.0 { LOCAL.1 } else { OUR_ASN },
            up: false,
            import: Chain { policies: vec![], accepts: true },
            export: Chain { policies: vec![], accepts: true },
            next_hop: NextHopMode::Default,
            knobs: Knobs::default(),
            graceful: n == 1 || n == 3,
            leaving: false,
            said: BTreeMap::new(),
            stale: BTreeSet::new(),
        };
        let reference = Reference {
            peers: PEERS.iter().enumerate().map(peer).collect(),
            policies: NAMES.into_iter().map(|name| (name, Policy::OPEN)).collect(),
            global: [Vec::new(), Vec::new()],
            set: Vec::new(),
            originations: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            via: BTreeMap::new(),
            next_hops: BTreeMap::new(),
            cluster: None,
            decision: Decision {
                always_compare_med: false,
                missing_med_worst: false,
                ignore_as_path_length: false,
                multipath: 1,
                relax: false,
            },
        };
        let mut both = Self {
            link: Link::new(pull_octets),
            reference,
            before: vec![BTreeMap::new(); PEERS.len()],
            happened: 0,
            moved: false,
            said_once: vec![BTreeSet::new(); PEERS.len()],
        };
        both.put_set(Vec::new());
        for name in NAMES {
            both.put_policy(name, Policy::OPEN);
        }
        for peer in 0..PEERS.len() {
            both.put_peer(peer);
        }
        both.link.command(Command::LoadingDone);
        for peer in 0..PEERS.len() {
            both.happen(Happening::Up(peer, false));
        }
        both
    }

    fn put_set(&mut self, ranges: Vec<Range>) {
        self.link.command(Command::PutSet(SET.into(), policy::set(&ranges)));
        self.reference.set = ranges;
    }

    fn put_policy(&mut self, name: &'static str, policy: Policy) {
        self.link.command(Command::PutPolicy(name.into(), policy.def()));
        self.reference.policies.insert(name, policy);
    }

    fn put_peer(&mut self, number: usize) {
        let peer = &self.reference.peers[number];
        let chain = |chain: &Chain| {
            let default =
                if chain.accepts { definition::Otherwise::Accept } else { definition::Otherwise::Reject };
            command::Chain::new(chain.policies.iter().copied(), default)
        };
        let knobs = peer.knobs;
        let config = PeerConfig {
            passive: true,
            graceful_restart: peer.graceful.then_some(GracefulRestart::USUAL),
            idle_hold: IdleHold { min: Duration::from_secs(1), max: Duration::from_secs(1) },
            import: chain(&peer.import),
            export: chain(&peer.export),
            next_hop: match peer.next_hop {
                NextHopMode::Default => command::NextHopMode::Default,
                NextHopMode::Ours => command::NextHopMode::SelfAddress,
                NextHopMode::Keep => command::NextHopMode::Keep,
            },
            route_reflector_client: knobs.client,
            allow_own_as: knobs.allow_own_as,
            enforce_first_as: knobs.enforce_first_as,
            as_override: knobs.as_override,
            local_asn: (peer.local != OUR_ASN).then_some(command::LocalAsn {
                asn: Asn(peer.local),
                no_prepend: knobs.no_prepend,
                replace_as: knobs.replace_as,
            }),
            remove_private_as: knobs
                .remove_private
                .map(|(all, replace)| command::RemovePrivateAs { all, replace }),
            ..PeerConfig::new(RemoteAsn::Is(Asn(peer.asn)))
        };
        self.link.command(Command::PutPeer(key(peer), config));
    }

    fn put_next_hop(&mut self, hop: Ipv4Addr) {
        let cost = self.reference.next_hops.get(&hop).copied().unwrap_or(Some(0));
        let via = self.reference.via.get(&hop).into_iter().flatten().copied().map(Into::into).collect();
        let (reachable, metric) = (cost.is_some(), cost.unwrap_or(0));
        let state = NextHopState { reachable, metric, via, ..NextHopState::default() };
        self.link.command(Command::PutNextHop(hop.into(), state));
    }

    fn announce(&mut self, peer: usize, prefix: Ipv4Net, attrs: Attrs) {
        if self.reference.peers[peer].up {
            self.link.say(peer, &Update::announce(prefix, attrs.clone()).write());
            self.reference.peers[peer].announce(prefix, attrs);
            self.said_once[peer].insert(prefix);
        }
    }

    fn withdraw(&mut self, peer: usize, prefix: Ipv4Net) {
        if self.reference.peers[peer].up {
            self.link.say(peer, &Update::withdraw(prefix).write());
            self.reference.peers[peer].withdraw(prefix);
        }
    }

    fn happen(&mut self, happening: Happening) {
        self.happened += 1;
        self.moved |= matches!(
            happening,
            Happening::Assign(..)
                | Happening::Global(..)
                | Happening::NextHopMode(..)
                | Happening::Knobs(..)
                | Happening::Cluster(_)
                | Happening::Leave(..)
                | Happening::Policy(..)
                | Happening::Originate(..)
                | Happening::NoMore(_)
        );
        match happening {
            Happening::Up(peer, other) => {
                if !self.reference.peers[peer].up {
                    self.reference.peers[peer].id = PEERS[peer].1 + if other { 2 } else { 0 };
                    self.link.stall(peer, false);
                    self.link.connect(peer, &self.reference.peers[peer]);
                    self.reference.peers[peer].up = true;
                }
            }
            Happening::Down(peer) => {
                if self.reference.peers[peer].up {
                    self.link.disconnect(peer);
                    self.reference.peers[peer].down();
                }
            }
            Happening::EndOfRib(peer) => {
                if self.reference.peers[peer].up {
                    self.link.say(peer, &Update::default().write());
                    self.reference.peers[peer].end_of_rib();
                }
            }
            Happening::Wait => {
                self.link.pass(Duration::from_secs(500));
                self.reference.peers.iter_mut().for_each(Peer::end_of_rib);
            }
            Happening::Leave(peer, leaving) => {
                let of = key(&self.reference.peers[peer]);
                let command = if leaving { Command::GracefulShutdown(of) } else { Command::EnablePeer(of) };
                self.link.command(command);
                self.reference.peers[peer].leaving = leaving;
            }
            Happening::Refresh(peer) => self.link.ask(peer),
            Happening::Announce(peer, prefix, spec) => {
                self.announce(peer, prefixes()[prefix], spec.attrs(peer));
            }
            Happening::Withdraw(peer, prefix) => self.withdraw(peer, prefixes()[prefix]),
            Happening::Many(peer, from, count, one) => {
                for n in from..from + count {
                    let med = if one { 0 } else { n % 7 };
                    self.announce(peer, nth(n), Spec { med, ..Spec::default() }.attrs(peer));
                }
            }
            Happening::ManyGone(peer, from, count) => {
                (from..from + count).for_each(|n| self.withdraw(peer, nth(n)));
            }
            Happening::Originate(prefix, spec) => {
                let (prefix, attrs) = (prefixes()[prefix], spec.own());
                let origination = Origination {
                    next_hop: attrs.next_hop.map(Into::into),
                    med: attrs.med,
                    local_pref: attrs.local_pref,
                    communities: attrs.communities.iter().copied().collect(),
                    large_communities: attrs.large.iter().map(|[a, b, c]| (*a, *b, *c)).collect(),
                    ext_communities: attrs.extended.iter().map(|one| ExtCommunity(*one)).collect(),
                    ..Origination::default()
                };
                self.link.command(Command::PutOrigination(ipnet::IpNet::V4(prefix).into(), origination));
                self.reference.originations.insert(prefix, attrs);
            }
            Happening::NoMore(prefix) => {
                let prefix = prefixes()[prefix];
                self.link.command(Command::DeleteOrigination(ipnet::IpNet::V4(prefix).into()));
                self.reference.originations.remove(&prefix);
            }
            Happening::Policy(name, policy) => self.put_policy(NAMES[name], policy),
            Happening::Set(ranges) => self.put_set(ranges),
            Happening::Assign(peer, export, which, accepts) => {
                let policies = which.into_iter().map(|n| NAMES[n]).collect();
                let of = &mut self.reference.peers[peer];
                *(if export { &mut of.export } else { &mut of.import }) = Chain { policies, accepts };
                self.put_peer(peer);
            }
            Happening::Global(export, which) => {
                let policies: Vec<_> = which.into_iter().map(|n| NAMES[n]).collect();
                let way = if export { definition::Direction::Export } else { definition::Direction::Import };
                let names = policies.iter().copied().map(Into::into).collect();
                self.link.command(Command::PutGlobalPolicies(way, names));
                self.reference.global[usize::from(export)] = policies;
            }
            Happening::NextHopMode(peer, mode) => {
                let modes = [NextHopMode::Default, NextHopMode::Ours, NextHopMode::Keep];
                self.reference.peers[peer].next_hop = modes[usize::from(mode)];
                self.put_peer(peer);
            }
            Happening::Knobs(peer, knobs) => {
                // Some are for neighbours of one kind only.
                let external = PEERS[peer].0 != OUR_ASN;
                self.reference.peers[peer].knobs = Knobs {
                    client: knobs.client && !external,
                    as_override: knobs.as_override && external,
                    remove_private: knobs.remove_private.filter(|_| external),
                    ..knobs
                };
                self.put_peer(peer);
            }
            Happening::Cluster(id) => {
                self.link.command(Command::PutClusterId(id.map(RouterId)));
                self.reference.cluster = id;
            }
            Happening::Decision(decision) => {
                self.link.command(Command::PutDecision(DecisionSettings {
                    always_compare_med: decision.always_compare_med,
                    missing_med_worst: decision.missing_med_worst,
                    ignore_as_path_length: decision.ignore_as_path_length,
                    multipath: NonZeroU8::new(decision.multipath as u8).unwrap(),
                    multipath_relax: decision.relax,
                    ..DecisionSettings::RFC4271
                }));
                self.reference.decision = decision;
            }
            Happening::NextHop(which, state) => {
                let hop = next_hops()[which];
                match state {
                    None => {
                        self.link.command(Command::DeleteNextHop(hop.into()));
                        self.reference.next_hops.remove(&hop);
                        self.reference.via.remove(&hop);
                    }
                    Some(cost) => {
                        self.reference.next_hops.insert(hop, cost);
                        self.put_next_hop(hop);
                    }
                }
            }
            Happening::Via(which, via) => {
                let hop = next_hops()[which];
                self.reference.via.insert(hop, via);
                self.reference.via.retain(|_, via| !via.is_empty());
                self.put_next_hop(hop);
            }
            Happening::Aggregate(which, how) => {
                let prefix = aggregates()[which];
                match how {
                    Some(summary_only) => {
                        let aggregate = Aggregate { summary_only, ..Aggregate::default() };
                        self.link.command(Command::PutAggregate(prefix.into(), aggregate));
                        self.reference.aggregates.insert(prefix, summary_only);
                    }
                    None => {
                        self.link.command(Command::DeleteAggregate(prefix.into()));
                        self.reference.aggregates.remove(&prefix);
                    }
                }
            }
            Happening::Clear(peer, inward) => {
                let clear = if inward { Clear::SoftIn } else { Clear::SoftOut };
                self.link.command(Command::ClearPeer(key(&self.reference.peers[peer]), clear));
            }
            Happening::Stall(peer, stalled) => self.link.stall(peer, stalled),
            Happening::Steps(count) => {
                for _ in 0..count {
                    self.link.step();
                    // Whoever asks in between gets an answer, whatever it is.
                    prefixes().into_iter().for_each(|prefix| drop(self.link.explain(prefix)));
                }
            }
            Happening::Settle => {
                self.happened -= 1;
                self.compare();
            }
        }
    }

    /// Lets the speaker come to rest, and compares everything.
    fn compare(&mut self) {
        self.link.settle(&self.reference);
        for peer in 0..PEERS.len() {
            self.compare_heard(peer);
        }
        self.compare_best();
        self.compare_lives();
        for peer in 0..PEERS.len() {
            self.compare_told(peer);
        }
        (self.happened, self.moved) = (0, false);
    }

    /// What a neighbour has said, and what became of it.
    fn compare_heard(&mut self, peer: usize) {
        let reference = &self.reference;
        let heard = self.link.routes(RouteTable::AdjRibIn(key(&reference.peers[peer])));
        let said = &reference.peers[peer].said;
        let prefixes: BTreeSet<_> = said.keys().chain(heard.keys()).collect();
        for prefix in prefixes {
            let expected = said.get(prefix).map(|attrs| {
                let rejected = match reference.imported(peer, *prefix) {
                    Ok(_) => None,
                    Err(Rejected::FirstAs) => Some(PathRejected::FirstAs),
                    Err(Rejected::ClusterLoop) => Some(PathRejected::ClusterLoop),
                    Err(Rejected::AsLoop) => Some(PathRejected::AsLoop),
                    Err(Rejected::OriginatorLoop) => Some(PathRejected::OriginatorLoop),
                    Err(Rejected::OwnNextHop) => Some(PathRejected::OwnNextHop),
                    Err(Rejected::Policy) => Some(PathRejected::ImportPolicy),
                };
                (reference.received(peer, attrs), rejected, reference.peers[peer].stale.contains(prefix))
            });
            let seen = heard.get(prefix).map(|route| {
                let [path] = &route.paths[..] else { panic!("{} paths of {prefix}", route.paths.len()) };
                (attrs_of(path), path.rejected, path.stale)
            });
            assert_eq!(seen, expected, "{prefix} from neighbour {peer}: seen, expected");
        }
    }

    fn compare_best(&mut self) {
        let reference = &self.reference;
        let table = self.link.routes(RouteTable::LocRib);
        for prefix in reference.prefixes().iter().chain(table.keys()).collect::<BTreeSet<_>>() {
            let expected = reference.best(*prefix).map(|(source, attrs, rung)| {
                (source.map(|peer| key(&reference.peers[peer])), attrs, rung.to_owned())
            });
            let seen = table.get(prefix).filter(|route| route.paths[0].best).map(|route| {
                let path = &route.paths[0];
                let rung = route.decided_by.map(|rung| rung.to_string());
                (path.source, attrs_of(path), rung.unwrap_or_default())
            });
            assert_eq!(seen, expected, "the best path to {prefix}: seen, expected");
            // Our own routes lead nowhere, as far as the change stream goes.
            let used = expected.map(|(source, ..)| (source.is_none(), reference.next_hops_used(*prefix)));
            let stream = self.link.stream.get(prefix).map(|change| {
                let hops = change.hops.next_hops().map(|hop| match hop.address() {
                    std::net::IpAddr::V4(address) => address,
                    std::net::IpAddr::V6(address) => panic!("{address} as a next hop"),
                });
                (change.local, if change.local { BTreeSet::new() } else { hops.collect() })
            });
            assert_eq!(stream, used, "the change stream on {prefix}: seen, expected");
        }
    }

    /// Why each neighbour hears of a prefix, or does not.
    fn compare_lives(&mut self) {
        for prefix in prefixes() {
            let Some(life) =
                self.link.explain(prefix).filter(|life| life.nlri == ipnet::IpNet::V4(prefix).into())
            else {
                continue;
            };
            for (number, peer) in self.reference.peers.iter().enumerate() {
                if self.link.stalled.contains(&number) {
                    continue;
                }
                let telling = life.told.iter().find(|telling| telling.peer == key(peer)).unwrap();
                let expected = self.reference.told(number, prefix).filter(|_| peer.up);
                let seen = telling.told.as_ref().ok().map(|paths| attrs_of(&paths[0]));
                assert_eq!(seen, expected, "{prefix}, {:?}: what is explained, expected", telling.told);
                let pending = matches!(telling.told, Err(NotTold::Pending));
                assert!(!pending, "{prefix} for neighbour {number} at rest");
            }
        }
    }

    /// What a neighbour believes, and how it came to it.
    fn compare_told(&mut self, peer: usize) {
        let expected = self.reference.adj_out(peer);
        let before = std::mem::replace(&mut self.before[peer], expected.clone());
        let asked = self.link.routes(RouteTable::AdjRibOut(key(&self.reference.peers[peer])));
        let Some(session) = self.link.sessions.get_mut(&peer) else {
            assert!(asked.is_empty() && !self.reference.peers[peer].up);
            self.before[peer].clear();
            return;
        };
        if self.link.stalled.contains(&peer) {
            self.before[peer].clear();
            return;
        }
        for prefix in session.held.keys().chain(expected.keys()).collect::<BTreeSet<_>>() {
            let (seen, expected) = (session.held.get(prefix), expected.get(prefix));
            assert_eq!(seen, expected, "{prefix} as told to neighbour {peer}: seen, expected");
        }
        let answered: BTreeMap<_, _> =
            asked.iter().map(|(prefix, route)| (*prefix, attrs_of(&route.paths[0]))).collect();
        assert_eq!(answered, expected, "the answer on what neighbour {peer} has been told");
        let taken_back = std::mem::take(&mut session.taken_back);
        if self.happened <= 1 {
            let gap =
                taken_back.iter().find(|prefix| before.contains_key(prefix) && expected.contains_key(prefix));
            assert_eq!(gap, None, "neighbour {peer} had to do without it for a moment");
        }
        // Once too often may be told who was slow, or moved before it had read everything, and what a neighbour has had
        // itself.
        let mut superfluous = std::mem::take(&mut session.superfluous);
        superfluous.retain(|prefix| !self.said_once[peer].contains(prefix));
        let exact = !session.was_slow && (!self.moved || self.happened <= 1);
        if exact {
            assert_eq!(superfluous, BTreeSet::new(), "neighbour {peer} had to forget what it did not have");
        }
    }
}

/// The attributes of a path in an answer.
fn attrs_of(path: &crate::query::PathEntry) -> Attrs {
    let next_hop = path.next_hop.map(|hop| match hop.address() {
        std::net::IpAddr::V4(address) => address,
        std::net::IpAddr::V6(address) => panic!("{address} as a next hop"),
    });
    Attrs { next_hop, ..Attrs::read(path.attrs.canonical()) }
}

fn run(happenings: Vec<Happening>, pull_octets: usize) {
    let mut both = Both::new(pull_octets);
    for happening in happenings {
        both.happen(happening);
    }
    for peer in 0..PEERS.len() {
        both.link.stall(peer, false);
    }
    both.compare();
}

#[test]
fn a_reflected_route_has_the_identifier_that_its_sender_has_now() {
    use Happening::*;
    for again in [false, true] {
        let mut happenings = vec![
            Knobs(3, reference::Knobs { client: true, ..Default::default() }),
            Announce(3, 0, Spec::default()),
            Settle,
            Down(3),
            Settle,
            Up(3, true),
            Settle,
        ];
        if again {
            happenings.extend([Announce(3, 0, Spec::default()), EndOfRib(3), Settle]);
        }
        run(happenings, 100_000);
    }
}

#[test]
fn a_neighbour_that_is_back_with_another_identifier_is_judged_by_that() {
    use Happening::*;
    run(
        vec![
            Announce(0, 0, Spec::default()),
            Announce(1, 0, Spec::default()),
            Settle,
            Down(1),
            Settle,
            Up(1, true),
            Settle,
        ],
        100_000,
    );
}

/// What a neighbour about to be left says is marked as such (RFC 8326), even if policy takes away the mark it came with.
#[test]
fn a_mark_of_ours_stands_whatever_policy_removes() {
    use Happening::*;
    let nothing = vec![(vec![], vec![policy::Act::TheseCommunities(vec![])], policy::Flow::Next)];
    let marked = happening::COMMUNITIES.iter().position(|one| *one == reference::GRACEFUL_SHUTDOWN);
    let communities = marked.unwrap() as u8 + 1;
    run(
        vec![
            Policy(2, policy::Policy { statements: nothing, default: policy::Default::Next }),
            Global(false, vec![2]),
            Announce(5, 0, Spec { communities, ..Spec::default() }),
            Leave(5, true),
            Settle,
        ],
        100_000,
    );
}

#[test]
fn an_aggregate_comes_forward_without_a_gap() {
    use Happening::*;
    for from in [0, 3] {
        let spec = Spec { origin: 1, ..Spec::default() };
        run(
            vec![
                Announce(from, 0, spec),
                Originate(2, Spec::default()),
                Aggregate(1, Some(true)),
                Settle,
                NoMore(2),
                Settle,
                Originate(2, Spec::default()),
                Settle,
            ],
            1,
        );
    }
}

/// The usual run is the same each time. Whoever asks for a number of cases gets other ones each time.
fn config() -> ProptestConfig {
    let usual = ProptestConfig { rng_seed: RngSeed::Fixed(0x9e37_79b9), ..ProptestConfig::with_cases(128) };
    if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default() } else { usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_speaker_does_what_the_reference_says(
        happenings in prop::collection::vec(happening(), 1..50),
        pull_octets in prop_oneof![Just(1usize), Just(100_000)],
    ) {
        run(happenings, pull_octets);
    }
}
