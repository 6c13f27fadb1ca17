//! Where VPP's uplink is to be found: by its name from the settings, else by our node's address.

use bgp_core::time::Instant;

use super::Handler;
use crate::config::Config;
use crate::desired::Uplink;
use crate::effects::{Effects, VppEdit};
use crate::event::Change;
use crate::model::{Node, NodeName};
use std::sync::Arc;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct HostHandler {
    me: NodeName,
    uplink: Option<Arc<str>>,
}

impl HostHandler {
    pub(crate) fn new(config: &Config) -> Self {
        Self { me: config.node.clone(), uplink: config.vpp.as_ref().and_then(|vpp| vpp.uplink.clone()) }
    }
}

impl Handler<Change<NodeName, Node>> for HostHandler {
    fn on(&mut self, _now: Instant, event: &Change<NodeName, Node>, fx: &mut Effects) {
        let node = match event {
            Change::Resync(all) => all.iter().find(|(name, _)| *name == self.me).map(|(_, node)| node),
            Change::Upsert(name, node) if *name == self.me => Some(node),
            Change::Delete(name) if *name == self.me => None,
            Change::Upsert(..) | Change::Delete(_) => return,
        };
        let addresses: Vec<_> = node.map(|node| node.addresses().collect()).unwrap_or_default();
        let known = self.uplink.is_some() || !addresses.is_empty();
        fx.vpp.push(VppEdit::Uplink(known.then(|| Uplink { name: self.uplink.clone(), addresses })));
    }
}
