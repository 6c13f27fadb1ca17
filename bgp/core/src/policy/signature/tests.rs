use std::net::Ipv4Addr;

use bgp_wire::attr::{Builder, Canonical, Origin};
use bgp_wire::{Asn, Family};
use proptest::prelude::*;

use super::*;
use crate::policy::{
    Condition, Decider, Default, Direction, Flow, Learned, Library, Otherwise, PeerType, Pipeline, PolicyDef,
    PolicyName, PrefixRange, Route, StatementDef, trace,
};
use crate::rib::AttrSet;

fn net(bits: u32, len: u8) -> Ipv4Net {
    Ipv4Net::new(Ipv4Addr::from(bits), len).unwrap().trunc()
}

/// In few places, so that they meet.
fn nets() -> impl Strategy<Value = Ipv4Net> {
    let bits = (0_u32..4, 0_u32..3, 0_u32..3).prop_map(|(a, b, c)| a << 30 | b << 16 | c << 14);
    (bits, prop_oneof![0_u8..4, 12_u8..=20, Just(32)]).prop_map(|(bits, len)| net(bits, len))
}

fn ranges() -> impl Strategy<Value = PrefixRange> {
    (nets(), 0_u8..10, 0_u8..10).prop_map(|(net, above, more)| {
        let min = (net.prefix_len() + above).min(32);
        PrefixRange::new(net.into(), min, (min + more).min(32)).unwrap()
    })
}

/// What a statement asks for: some prefixes, or the family, or both.
fn statements() -> impl Strategy<Value = (Vec<PrefixRange>, bool)> {
    (proptest::collection::vec(ranges(), 0..3), any::<bool>())
}

fn matching(pipeline: &Pipeline, net: Ipv4Net) -> Vec<usize> {
    let octets = Builder::new(Origin::Igp).build();
    let attrs = AttrSet::new(&octets, None, Canonical(&octets).facts());
    let route = Route {
        direction: Direction::Import,
        nlri: IpNet::from(net).into(),
        attrs: &attrs,
        learned: Learned::External,
        neighbor: Ipv4Addr::LOCALHOST.into(),
        peer_type: PeerType::External,
        front: &[] as &[Asn],
        interfaces: None,
    };
    trace(pipeline, &route).1.into_iter().filter_map(Decider::statement).collect()
}

proptest! {
    #[test]
    fn the_statements_that_match_are_met_in_order_and_no_others(
        defs in proptest::collection::vec(statements(), 1..20),
        asked in proptest::collection::vec(nets(), 20),
    ) {
        let statements = defs.iter().map(|(ranges, family)| {
            let prefixes = (!ranges.is_empty()).then(|| Condition::Prefix(ranges.clone()));
            let family = family.then(|| Condition::Family(vec![Family::Ipv4Unicast]));
            StatementDef::new(family.into_iter().chain(prefixes).collect(), vec![], Flow::Next)
        });
        let def = PolicyDef { statements: statements.collect(), default: Default::Accept };
        let mut library = Library::new();
        let name = PolicyName::from("p");
        library.put_policy(&name, def).unwrap();
        let pipeline = library.pipeline(&[name], Otherwise::Reject).unwrap();
        for net in asked {
            let holds = |ranges: &[PrefixRange]| ranges.is_empty() || ranges.iter().any(|range| range.contains(net.into()));
            let expected: Vec<usize> =
                (1..).zip(&defs).filter(|(_, (ranges, _))| holds(ranges)).map(|(at, _)| at).collect();
            prop_assert_eq!(matching(&pipeline, net), expected, "{}", net);
            let nlri = Nlri::from(IpNet::from(net));
            if pipeline.is_outside(&nlri) {
                prop_assert_eq!(pipeline.signature(&nlri), Signature::default(), "{}", net);
            }
        }
    }
}

#[test]
fn one_look_is_enough_for_most_prefixes() {
    let blocks =
        |texts: &[&str]| Blocks::new(texts.iter().map(|text| Bits::from(text.parse::<IpNet>().unwrap())));
    let few = blocks(&["10.16.0.0/12", "192.0.2.0/24", "203.0.113.7/32"]);
    let may_hold = |text: &str| few.may_hold(text.parse().unwrap());
    assert!(may_hold("10.16.0.0/16") && may_hold("10.31.255.255/32") && may_hold("192.0.2.128/25"));
    assert!(may_hold("192.0.3.0/24"), "the same block");
    assert!(!may_hold("10.15.255.0/24") && !may_hold("10.32.0.0/16") && !may_hold("203.1.113.7/32"));
    // What is larger than a block may be in anything, as far as this tells.
    assert!(may_hold("0.0.0.0/0") && may_hold("172.16.0.0/15"));
    assert!(blocks(&["0.0.0.0/0"]).0.is_none() && blocks(&["0.0.0.0/1", "128.0.0.0/1"]).0.is_none());
    assert!(blocks(&["0.0.0.0/1"]).0.is_some());
}
