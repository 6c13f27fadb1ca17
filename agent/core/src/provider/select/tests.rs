//! The table, row by row.

use super::*;
use crate::config::{Encryption, IpsecConfig};
use crate::event::Change;
use crate::model::{Node, NodeName, SidList, SrCandidate, SrKey};
use bgp_core::rib::Originator;

const NEAR: &str = "192.0.2.2";
const FAR: &str = "198.51.100.2";
const NEAR6: &str = "2001:db8::2";
const FAR6: &str = "2001:db8:9::2";

/// Our node has addresses of both IP versions, or of IPv4 only.
fn facts(dual: bool) -> Facts {
    let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
    let own = Node {
        ipv4: Some("192.0.2.1/24".parse().unwrap()),
        ipv6: dual.then(|| "2001:db8::1/64".parse().unwrap()),
        ..Node::default()
    };
    facts.nodes_changed(&Change::Resync(vec![(NodeName::from("a"), own)]));
    facts
}

fn kind(carriage: Carriage, hop: &str, facts: &Facts) -> Option<Kind> {
    select(carriage, hop.parse().unwrap(), facts).ok().map(|choice| choice.kind)
}

#[test]
fn what_is_chosen() {
    let plain = facts(true);
    let v4_only = facts(false);
    let (mut ipsec, mut srv6) = (facts(true), facts(true));
    ipsec.ipsec = Some(IpsecConfig::default());
    // An SR policy for IPv4 leads to the near node, none to the far one.
    let endpoint = NEAR6.parse().unwrap();
    let candidate = SrCandidate {
        preference: 11,
        originator: Originator::default(),
        bsid: "fd00:b::4".parse().unwrap(),
        behavior: SrBehavior::Dt4,
        lists: [SidList { weight: 1, sids: ["fd00:2::4".parse().unwrap()].into() }].into(),
    };
    srv6.policies.put(SrKey { endpoint, color: 4, distinguisher: 0 }, Some(candidate));
    let (ipsec, srv6) = (ipsec, srv6);
    let steered = |behavior, pooled| Carriage::Steered { behavior, pooled };
    let (dt4, dt6) = (SrBehavior::Dt4, SrBehavior::Dt6);
    let vni = Carriage::Network(Vni::new(7).unwrap());
    let (ipip, cross) = (Carriage::Ipip(Reach::All), Carriage::Ipip(Reach::OtherSubnets));
    let (vxlan, vcross) = (Carriage::Vxlan(Reach::All), Carriage::Vxlan(Reach::OtherSubnets));
    let cases: &[(Carriage, &str, &Facts, Option<Kind>)] = &[
        // 1: another network, whatever else is on
        (vni, NEAR, &plain, Some(Kind::Vxlan)),
        (vni, NEAR, &srv6, Some(Kind::Vxlan)),
        (vni, NEAR, &ipsec, Some(Kind::Vxlan)),
        // 2: SRv6, in or out of any pool; an IPv4 next hop is beyond it
        (steered(dt4, false), NEAR6, &srv6, Some(Kind::Srv6)),
        (steered(dt4, true), NEAR6, &srv6, Some(Kind::Srv6)),
        (steered(dt4, true), NEAR, &srv6, Some(Kind::Flat)),
        (steered(dt4, false), FAR, &srv6, Some(Kind::Flat)),
        // where no policy leads: what is in a pool waits for one, what comes from elsewhere is routed as it is
        (steered(dt6, true), NEAR6, &srv6, Some(Kind::Srv6)),
        (steered(dt4, true), FAR6, &srv6, Some(Kind::Srv6)),
        (steered(dt6, false), NEAR6, &srv6, Some(Kind::Flat)),
        (steered(dt4, false), FAR6, &srv6, Some(Kind::Flat)),
        // the pools of SIDs
        (Carriage::Localsids, NEAR6, &srv6, Some(Kind::Flat)),
        (Carriage::BindingSids, NEAR6, &srv6, None),
        // 3: in no pool
        (Carriage::Outside, NEAR, &plain, Some(Kind::Flat)),
        (Carriage::Outside, FAR, &ipsec, Some(Kind::Flat)),
        // 4: IPIP
        (ipip, NEAR, &plain, Some(Kind::Ipip)),
        (ipip, FAR, &plain, Some(Kind::Ipip)),
        (ipip, NEAR, &ipsec, Some(Kind::Ipsec)),
        // 5: IPIP across subnets; the same for a node without such an address
        (cross, FAR, &plain, Some(Kind::Ipip)),
        (cross, FAR, &ipsec, Some(Kind::Ipsec)),
        (cross, NEAR, &plain, Some(Kind::Flat)),
        (cross, NEAR, &ipsec, Some(Kind::Flat)),
        (cross, FAR6, &plain, Some(Kind::Ipip)),
        (cross, FAR6, &v4_only, Some(Kind::Flat)),
        // 6: VXLAN, which IPsec has nothing to do with
        (vxlan, NEAR, &plain, Some(Kind::Vxlan)),
        (vxlan, NEAR, &ipsec, Some(Kind::Vxlan)),
        // 7: VXLAN across subnets
        (vcross, FAR, &plain, Some(Kind::Vxlan)),
        (vcross, NEAR, &plain, Some(Kind::Flat)),
        (vcross, FAR6, &v4_only, Some(Kind::Flat)),
        // 8: otherwise
        (Carriage::Plain, FAR, &plain, Some(Kind::Flat)),
        (Carriage::Plain, FAR, &ipsec, Some(Kind::Flat)),
        // addresses of services
        (Carriage::Withheld, NEAR, &plain, None),
        (Carriage::Withheld, NEAR6, &srv6, None),
    ];
    for (carriage, hop, facts, wanted) in cases {
        assert_eq!(kind(*carriage, hop, facts), *wanted, "{carriage:?} {hop} {facts:?}");
    }
}

#[test]
fn pools_say_how_they_are_carried() {
    let pool = |ipip, vxlan| Pool { ipip, vxlan, ..Pool::new("10.0.0.0/8".parse().unwrap()) };
    use Encapsulation::{Always, CrossSubnet, Never};
    assert_eq!(Carriage::of(&pool(Never, Never)), Carriage::Plain);
    assert_eq!(Carriage::of(&pool(Always, Never)), Carriage::Ipip(Reach::All));
    assert_eq!(Carriage::of(&pool(CrossSubnet, Never)), Carriage::Ipip(Reach::OtherSubnets));
    assert_eq!(Carriage::of(&pool(Never, Always)), Carriage::Vxlan(Reach::All));
    assert_eq!(Carriage::of(&pool(Never, CrossSubnet)), Carriage::Vxlan(Reach::OtherSubnets));
    assert_eq!(Carriage::of(&pool(CrossSubnet, Always)), Carriage::Ipip(Reach::OtherSubnets), "IPIP wins");
}
