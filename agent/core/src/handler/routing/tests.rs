//! What becomes of affinity rows.

#![allow(clippy::wildcard_enum_match_arm)]

use super::*;
use crate::model::AffinityState;

struct Bench {
    handler: RoutingHandler,
    originated: Vec<String>,
    sets: BTreeMap<String, Vec<String>>,
    dropped: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        let mut bench = Self {
            handler: RoutingHandler::new(&Config::new(NodeName::from("a"))),
            originated: Vec::new(),
            sets: BTreeMap::new(),
            dropped: Vec::new(),
        };
        let node = Node {
            ipv4: Some("192.0.2.1/24".parse().unwrap()),
            ipv6: Some("2001:db8::1/64".parse().unwrap()),
            ..Node::default()
        };
        bench.hear(&Change::Resync(vec![(NodeName::from("a"), node)]));
        bench
    }

    fn hear<E>(&mut self, event: &E)
    where
        RoutingHandler: Handler<E>,
    {
        let mut fx = Effects::default();
        self.handler.on(Instant::ZERO, event, &mut fx);
        while let Some(Event::Address(change)) = fx.then.pop_front() {
            Handler::<Change<IpNet, Origin>>::on(&mut self.handler, Instant::ZERO, &change, &mut fx);
        }
        self.handler.tell(&mut fx);
        for edit in fx.bgp {
            match edit {
                BgpEdit::Put(BgpObject::Origination(prefix, origination)) => {
                    assert_eq!(origination, Origination::default());
                    self.originated.push(prefix.to_string());
                }
                BgpEdit::Delete(BgpKey::Origination(prefix)) => {
                    self.originated.retain(|text| *text != prefix.to_string());
                }
                BgpEdit::Put(BgpObject::PrefixSet(name, members)) => {
                    let members = members.iter().map(ToString::to_string).collect();
                    self.sets.insert(name.to_string(), members);
                }
                other => panic!("{other:?}"),
            }
        }
        for edit in fx.vpp {
            match edit {
                VppEdit::WantRoute(Owner::Host, key, _) => self.dropped.push(key.prefix.to_string()),
                VppEdit::ReleaseRoute(Owner::Host, key) => {
                    self.dropped.retain(|text| *text != key.prefix.to_string());
                }
                VppEdit::Want(Owner::Host, ObjectKey::FibSource) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn row(&mut self, name: &str, affinity: Affinity) {
        self.hear(&Change::Upsert(AffinityName::from(name), affinity));
    }
}

fn block(text: &str) -> Affinity {
    Affinity::confirmed(text.parse().unwrap(), NodeName::from("a"))
}

#[test]
fn every_state_of_a_row() {
    let confirmed = block("10.0.0.0/26");
    for (affinity, announced) in [
        (confirmed.clone(), true),
        (Affinity { state: AffinityState::Pending, ..confirmed.clone() }, false),
        (Affinity { state: AffinityState::PendingDeletion, ..confirmed.clone() }, false),
        (Affinity { deleted: true, ..confirmed.clone() }, false),
        (Affinity { host: false, ..confirmed.clone() }, false),
        (Affinity { node: NodeName::from("b"), ..confirmed.clone() }, false),
    ] {
        let mut bench = Bench::new();
        bench.row("r", affinity.clone());
        assert_eq!(bench.originated.len(), usize::from(announced), "{affinity:?}");
        assert_eq!(bench.dropped, bench.originated);
        // A confirmed row that gets into this state stops being announced.
        bench.row("r", confirmed.clone());
        assert_eq!(bench.originated, ["10.0.0.0/26"]);
        bench.row("r", affinity.clone());
        assert_eq!(bench.originated.len(), usize::from(announced), "{affinity:?}");
        assert_eq!(bench.dropped, bench.originated);
    }
}

#[test]
fn sets_tell_the_block_from_what_is_inside() {
    let mut bench = Bench::new();
    bench.hear(&Change::<AffinityName, Affinity>::Resync(Vec::new()));
    assert_eq!(bench.sets.len(), 4, "sets exist before the first block: {:?}", bench.sets);
    bench.row("r", block("10.0.0.0/26"));
    bench.row("s", block("fd00::/122"));
    assert_eq!(bench.sets["aggregated-v4"], ["10.0.0.0/26"]);
    assert_eq!(bench.sets["host-v4"], ["10.0.0.0/26 le 32"]);
    assert_eq!(bench.sets["aggregated-v6"], ["fd00::/122"]);
    bench.hear(&Change::<AffinityName, Affinity>::Delete(AffinityName::from("r")));
    assert_eq!(bench.sets["aggregated-v4"], Vec::<String>::new());
    assert_eq!(bench.originated, ["fd00::/122"]);
}

#[test]
fn two_rows_of_one_block_count_once() {
    let mut bench = Bench::new();
    bench.row("old-name", block("10.0.0.0/26"));
    bench.row("new-name", block("10.0.0.0/26"));
    assert_eq!(bench.originated, ["10.0.0.0/26"]);
    bench.hear(&Change::<AffinityName, Affinity>::Delete(AffinityName::from("old-name")));
    assert_eq!(bench.originated, ["10.0.0.0/26"]);
    bench.hear(&Change::<AffinityName, Affinity>::Resync(Vec::new()));
    assert_eq!(bench.originated, Vec::<String>::new());
}

#[test]
fn a_row_may_move_to_another_block() {
    let mut bench = Bench::new();
    bench.row("r", block("10.0.0.0/26"));
    bench.row("r", block("10.0.1.0/26"));
    assert_eq!(bench.originated, ["10.0.1.0/26"]);
    assert_eq!(bench.dropped, ["10.0.1.0/26"]);
}

#[test]
fn a_family_without_an_address_waits_for_one() {
    let mut bench = Bench::new();
    bench.hear(&Change::Upsert(NodeName::from("a"), Node::default()));
    bench.row("r", block("10.0.0.0/26"));
    assert_eq!(bench.originated, Vec::<String>::new());
    let node = Node { ipv4: Some("192.0.2.1/24".parse().unwrap()), ..Node::default() };
    bench.hear(&Change::Upsert(NodeName::from("a"), node));
    assert_eq!(bench.originated, ["10.0.0.0/26"]);
    bench.hear(&Change::<NodeName, Node>::Delete(NodeName::from("a")));
    assert_eq!(bench.originated, Vec::<String>::new());
}

#[test]
fn a_single_address_needs_no_drop_route() {
    let mut bench = Bench::new();
    bench.row("r", block("10.0.0.1/32"));
    assert_eq!((bench.originated.len(), bench.dropped.len()), (1, 0));
}
