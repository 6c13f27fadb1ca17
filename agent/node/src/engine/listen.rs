//! Where the speaker listens: the port of the BGPConfiguration of this node, else of the default one, else 179.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use agent_core::BgpMode;
use agent_core::event::{Change, Event};
use agent_core::model::{BgpConfigName, NodeName, PeerPort};

/// Follows the configuration.
#[derive(Debug)]
pub(super) struct Listening {
    mode: BgpMode,
    own: BgpConfigName,
    ports: BTreeMap<BgpConfigName, PeerPort>,
    listed: bool,
}

impl Listening {
    pub(super) fn new(mode: BgpMode, node: NodeName) -> Self {
        Self { mode, own: BgpConfigName::Node(node), ports: BTreeMap::new(), listed: false }
    }

    /// Take in an event.
    pub(super) fn hear(&mut self, event: &Event) {
        // Everything else says nothing about ports.
        let Event::BgpConfig(change) = event else { return };
        match change {
            Change::Resync(all) => {
                self.listed = true;
                let port = |(name, config): &(BgpConfigName, agent_core::model::BgpConfig)| {
                    config.listen_port.map(|port| (name.clone(), port))
                };
                self.ports = all.iter().filter_map(port).collect();
            }
            Change::Upsert(name, config) => {
                self.ports.remove(name);
                self.ports.extend(config.listen_port.map(|port| (name.clone(), port)));
            }
            Change::Delete(name) => {
                self.ports.remove(name);
            }
        }
    }

    /// Where to listen now; nowhere before the configuration is known, as the port would be a guess.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        if !self.listed {
            return Vec::new();
        }
        let port = self.ports.get(&self.own).or_else(|| self.ports.get(&BgpConfigName::Default));
        let port = port.map_or(PeerPort::BGP.0, |port| port.0);
        let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
        match self.mode {
            BgpMode::DualStack => vec![v4, v6],
            BgpMode::V4Only => vec![v4],
            BgpMode::V6Only => vec![v6],
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::model::BgpConfig;

    use super::*;

    fn port(port: u16) -> BgpConfig {
        BgpConfig { listen_port: Some(PeerPort(port)), ..BgpConfig::default() }
    }

    #[test]
    fn the_node_comes_before_the_cluster_and_nothing_before_the_first_list() {
        let own = BgpConfigName::Node("a".into());
        let mut listening = Listening::new(BgpMode::V4Only, "a".into());
        let ports = |listening: &Listening| -> Vec<u16> {
            listening.addresses().iter().map(SocketAddr::port).collect()
        };
        assert_eq!(ports(&listening), [0; 0]);
        listening.hear(&Event::BgpConfig(Change::Resync(vec![])));
        assert_eq!(ports(&listening), [179]);
        listening.hear(&Event::BgpConfig(Change::Upsert(BgpConfigName::Default, port(1790))));
        listening.hear(&Event::BgpConfig(Change::Upsert(BgpConfigName::Node("b".into()), port(1))));
        assert_eq!(ports(&listening), [1790]);
        listening.hear(&Event::BgpConfig(Change::Upsert(own.clone(), port(1791))));
        assert_eq!(ports(&listening), [1791]);
        listening.hear(&Event::BgpConfig(Change::Upsert(own.clone(), BgpConfig::default())));
        assert_eq!(ports(&listening), [1790]);
        listening.hear(&Event::BgpConfig(Change::Delete(BgpConfigName::Default)));
        assert_eq!(ports(&listening), [179]);
    }
}
