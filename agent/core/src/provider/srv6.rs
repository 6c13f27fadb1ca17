//! SRv6: packets are encapsulated with the segments of the SR policy that leads to the next hop's node and gives packets of
//! their family there. A destination is steered into the policy; it has no route.
//!
//! The node itself is steered from the pods' table, so that pods' traffic for it takes the same way there as the answers do
//! back, while the host's own, in the main table, does not.

use std::net::IpAddr;

use bgp_core::Family;

use super::sr_policies::Slot;
use super::{Carriage, DesiredSet, Facts, Provider, Unserved};
use crate::desired::{ObjectKey, Spec};
use crate::model::{Hop, RouteKey, SrBehavior, SrCandidate, TableId};

/// See the module's text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Srv6;

impl Provider for Srv6 {
    fn name(&self) -> &'static str {
        "srv6"
    }

    fn desired(
        &self,
        hop: Hop,
        carriage: Carriage,
        facts: &Facts,
        out: &mut DesiredSet,
    ) -> Result<(), Unserved> {
        let source = facts.own().and_then(|node| node.ipv6).ok_or(Unserved::NoLocalAddress(hop.address))?;
        let (Carriage::Steered { behavior, .. }, IpAddr::V6(endpoint)) = (carriage, hop.address) else {
            return Err(Unserved::PolicyMissing(hop.address));
        };
        let active = |behavior| facts.policies.active(Slot { endpoint, behavior });
        let candidate = active(behavior).ok_or(Unserved::PolicyMissing(hop.address))?;
        let mut policy = |candidate: &SrCandidate| {
            let lists = candidate.lists.clone();
            out.define(ObjectKey::SrPolicy(candidate.bsid), Spec::SrPolicy { source: source.addr(), lists });
            candidate.bsid
        };
        let (bsid, six) = (policy(candidate), active(SrBehavior::Dt6).map(policy));
        out.steer = Some(bsid);
        if let Some(bsid) = six {
            let host = RouteKey { table: TableId::PODS, prefix: hop.address.into() };
            out.want([ObjectKey::Table(TableId::PODS, Family::Ipv6Unicast)]);
            out.define(ObjectKey::SrSteering(host), Spec::SrSteering(bsid));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Encryption;
    use crate::event::Change;
    use crate::model::{Node, NodeName, SidList, SrKey};
    use bgp_core::rib::Originator;
    use std::net::Ipv6Addr;

    const TO: &str = "2001:db8::2";

    fn addr(text: &str) -> Ipv6Addr {
        text.parse().unwrap()
    }

    fn hop(address: &str) -> Hop {
        Hop { address: address.parse().unwrap(), weight: 1 }
    }

    fn lists() -> std::sync::Arc<[SidList]> {
        [SidList { weight: 12, sids: [addr("fd00:2::4")].into() }].into()
    }

    fn facts(ipv6: Option<&str>, policies: &[(SrBehavior, &str)]) -> Facts {
        let mut facts = Facts::new(NodeName::from("a"), Encryption::default());
        let node = Node { ipv6: ipv6.map(|net| net.parse().unwrap()), ..Node::default() };
        facts.nodes_changed(&Change::Resync(vec![("a".into(), node)]));
        for (behavior, bsid) in policies {
            let key = SrKey { endpoint: addr(TO), color: behavior.color(), distinguisher: 0 };
            let candidate = SrCandidate {
                preference: 11,
                originator: Originator::default(),
                bsid: addr(bsid),
                behavior: *behavior,
                lists: lists(),
            };
            facts.policies.put(key, Some(candidate));
        }
        facts
    }

    fn steered(behavior: SrBehavior) -> Carriage {
        Carriage::Steered { behavior, pooled: true }
    }

    #[test]
    fn a_destination_takes_the_policy_of_its_family_and_the_node_that_of_ipv6() {
        let (dt4, dt6) = (SrBehavior::Dt4, SrBehavior::Dt6);
        let facts = facts(Some("2001:db8::1/64"), &[(dt4, "fd00:b::4"), (dt6, "fd00:b::6")]);
        let policy = Some(Spec::SrPolicy { source: addr("2001:db8::1"), lists: lists() });
        let host = RouteKey { table: TableId::PODS, prefix: "2001:db8::2/128".parse().unwrap() };
        for (behavior, bsid) in [(dt4, "fd00:b::4"), (dt6, "fd00:b::6")] {
            let mut out = DesiredSet::default();
            Srv6.desired(hop(TO), steered(behavior), &facts, &mut out).unwrap();
            assert_eq!(out.steer, Some(addr(bsid)));
            assert_eq!(out.objects[&ObjectKey::SrPolicy(addr(bsid))], policy);
            assert_eq!(out.objects[&ObjectKey::SrPolicy(addr("fd00:b::6"))], policy);
            let to_node = Some(Spec::SrSteering(addr("fd00:b::6")));
            assert_eq!(out.objects[&ObjectKey::SrSteering(host)], to_node);
            assert!(out.objects.contains_key(&ObjectKey::Table(TableId::PODS, Family::Ipv6Unicast)));
            assert!(out.paths.is_empty() && out.routes.is_empty());
        }
    }

    #[test]
    fn without_a_policy_for_ipv6_the_node_is_not_steered() {
        let facts = facts(Some("2001:db8::1/64"), &[(SrBehavior::Dt4, "fd00:b::4")]);
        let mut out = DesiredSet::default();
        Srv6.desired(hop(TO), steered(SrBehavior::Dt4), &facts, &mut out).unwrap();
        assert_eq!(out.objects.keys().collect::<Vec<_>>(), [&ObjectKey::SrPolicy(addr("fd00:b::4"))]);
        let mut out = DesiredSet::default();
        let missing = Srv6.desired(hop(TO), steered(SrBehavior::Dt6), &facts, &mut out);
        assert_eq!(missing, Err(Unserved::PolicyMissing(hop(TO).address)));
        assert_eq!(out, DesiredSet::default());
    }

    #[test]
    fn without_an_ipv6_address_of_ours_nothing_is_encapsulated() {
        let facts = facts(None, &[(SrBehavior::Dt4, "fd00:b::4")]);
        let mut out = DesiredSet::default();
        let unserved = Srv6.desired(hop(TO), steered(SrBehavior::Dt4), &facts, &mut out);
        assert_eq!(unserved, Err(Unserved::NoLocalAddress(hop(TO).address)));
        assert_eq!(out, DesiredSet::default());
    }
}
