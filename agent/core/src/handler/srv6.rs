//! This node's own part of SRv6: the SIDs by which others reach its pods, the source of what it encapsulates, and the SR
//! policies by which others learn of its SIDs.
//!
//! Which SIDs they are is a setting, or is claimed from pools by somebody else (`ipam`); they stay the same over restarts.
//! What other nodes' policies come to is the business of `connectivity`.

use std::net::{IpAddr, Ipv6Addr};

use bgp_core::SrPolicy6;
use bgp_core::command::Origination;
use bgp_core::time::Instant;

use super::Handler;
use crate::config::Config;
use crate::desired::{BgpKey, BgpObject, ObjectKey, Owner, Spec, Wishes};
use crate::effects::{BgpEdit, Effects, Origin};
use crate::event::Change;
use crate::model::{Condition, Node, NodeName, ObjectRef, Sids, SrBehavior};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Srv6Handler {
    me: NodeName,
    on: bool,
    /// Our node's IPv6 address; `None` before it is known, and for a node without one.
    address: Option<Ipv6Addr>,
    node_known: bool,
    sids: Option<Sids>,
    wishes: Wishes,
    /// The address that the policies which are announced lead to.
    announced: Option<Ipv6Addr>,
}

impl Srv6Handler {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            me: config.node.clone(),
            on: config.srv6.is_some(),
            address: None,
            node_known: false,
            sids: None,
            wishes: Wishes::default(),
            announced: None,
        }
    }

    fn tell(&mut self, fx: &mut Effects) {
        let mut wishes = Wishes::default();
        if let Some(address) = self.address {
            wishes.define(ObjectKey::EncapSource, Spec::EncapSource(address));
        }
        for (behavior, sids) in self.sids.iter().flat_map(|sids| SrBehavior::ALL.map(|of| (of, sids))) {
            wishes.define(ObjectKey::Localsid(sids.of(behavior).sid), Spec::Localsid(behavior));
        }
        self.wishes.replace(Owner::Srv6, wishes, &mut fx.vpp);
        let announced = self.address.filter(|_| self.sids.is_some());
        for behavior in SrBehavior::ALL {
            if let Some(gone) = self.announced.filter(|_| self.announced != announced) {
                fx.bgp.push(BgpEdit::Delete(BgpKey::SrPolicy(key(behavior, gone))));
            }
            if let (Some(address), Some(sids)) = (announced, &self.sids) {
                let origination = Origination {
                    next_hop: Some(IpAddr::V6(address)),
                    sr_policy: Some(Box::new(sids.of(behavior).candidate_path(behavior))),
                    ..Origination::default()
                };
                let policy = BgpObject::SrPolicy(key(behavior, address), Box::new(origination));
                fx.bgp.push(BgpEdit::Put(policy));
            }
        }
        self.announced = announced;
        let missing = self.node_known && self.address.is_none();
        let conditions = missing.then(|| {
            Condition::error(
                ObjectRef::new("Node", self.me.as_str()),
                "metadata.annotations.projectcalico.org/IPv6Address",
                "no IPv6 address, so SRv6 can neither send nor receive",
                "set the annotation to this node's IPv6 address and subnet length",
            )
        });
        fx.conditions(Origin::Connectivity, "srv6", conditions.into_iter().collect());
    }
}

/// What other nodes know a policy by: Calico's nodes all have distinguisher 0, and a color for each behaviour.
const fn key(behavior: SrBehavior, endpoint: Ipv6Addr) -> SrPolicy6 {
    SrPolicy6 { distinguisher: 0, color: behavior.color(), endpoint }
}

impl Handler<Sids> for Srv6Handler {
    fn on(&mut self, _now: Instant, event: &Sids, fx: &mut Effects) {
        if self.on && self.sids.as_ref() != Some(event) {
            self.sids = Some(*event);
            self.tell(fx);
        }
    }
}

impl Handler<Change<NodeName, Node>> for Srv6Handler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        let node = match event {
            Change::Resync(all) => all.iter().find(|(name, _)| *name == self.me).map(|(_, node)| node),
            Change::Upsert(name, node) if *name == self.me => Some(node),
            // What others send here they send until the node says otherwise: its object may be on its way back.
            Change::Upsert(..) | Change::Delete(_) => None,
        };
        let Some(node) = node.filter(|_| self.on) else { return };
        let address = node.ipv6.map(|net| net.addr());
        if !std::mem::replace(&mut self.node_known, true) || self.address != address {
            self.address = address;
            self.tell(fx);
        }
    }
}
