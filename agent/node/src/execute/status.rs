//! What this node publishes about itself on its own object.
//!
//! With a folder of manifests there is nobody to publish to: it is written into the folder of state as a manifest, for whoever
//! brings the cluster's manifests together.

use std::io;
use std::path::{Path, PathBuf};

use agent_core::model::{PerFamily, PublicKey};

/// Public keys, by the IP version of the traffic between nodes; none where WireGuard is off.
pub(crate) type Keys = PerFamily<Option<PublicKey>>;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct NodeStatus {
    file: PathBuf,
    node: String,
    published: Option<Keys>,
}

impl NodeStatus {
    /// Publishes what node `node` says into the folder of state.
    pub(crate) fn in_folder(state: &Path, node: &str) -> Self {
        Self { file: state.join("node-status.yaml"), node: node.to_owned(), published: None }
    }

    /// These are the keys now.
    pub(crate) fn publish(&mut self, keys: Keys) {
        // Who never had WireGuard on has nothing to take back.
        let nothing = keys == Keys::default() && self.published.is_none() && !self.file.exists();
        if self.published == Some(keys) || nothing {
            return;
        }
        self.published = Some(keys);
        let file = self.file.display();
        match self.write(keys) {
            Ok(()) => {
                let text =
                    |key: Option<PublicKey>| key.map_or_else(|| "none".to_owned(), |key| key.to_string());
                let (ipv4, ipv6) = (text(keys.v4), text(keys.v6));
                tracing::info!(%file, ipv4, ipv6, "this node's wireguard keys, which other nodes have to know");
            }
            Err(error) => tracing::warn!(%file, %error, "this node's wireguard keys are not published"),
        }
    }

    fn write(&self, keys: Keys) -> io::Result<()> {
        let new = self.file.with_extension("new");
        std::fs::write(&new, manifest(&self.node, keys))?;
        std::fs::rename(new, &self.file)
    }
}

/// An empty key says that there is none any more, as Calico's agents say it.
fn manifest(node: &str, keys: Keys) -> String {
    let text = |key: Option<PublicKey>| key.map(|key| key.to_string()).unwrap_or_default();
    let name = serde_json::Value::from(node);
    format!(
        "# Written by peregrine: what other nodes have to find on this node's object.\n\
         apiVersion: v1\n\
         kind: Node\n\
         metadata:\n  \
           name: {name}\n  \
           annotations:\n    \
             projectcalico.org/WireguardPublicKey: \"{}\"\n    \
             projectcalico.org/WireguardPublicKeyV6: \"{}\"\n",
        text(keys.v4),
        text(keys.v6)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::{Object, decode};
    use crate::yaml::documents;

    #[test]
    fn what_is_published_is_what_other_nodes_read() {
        let dir = tempfile::tempdir().unwrap();
        let mut status = NodeStatus::in_folder(dir.path(), "node-a");
        status.publish(Keys::default());
        assert!(!dir.path().join("node-status.yaml").exists(), "there is nothing to say");
        let read = |keys: Keys, status: &mut NodeStatus| {
            status.publish(keys);
            let text = std::fs::read_to_string(dir.path().join("node-status.yaml")).unwrap();
            let found = decode(&documents(&text).unwrap()[0]).remove(0);
            assert_eq!(found.flaws, []);
            let Some(Object::Node(node)) = found.object else { panic!("{found:?}") };
            Keys { v4: node.wireguard_key, v6: node.wireguard_key_v6 }
        };
        let both = Keys { v4: Some(PublicKey([4; 32])), v6: Some(PublicKey([6; 32])) };
        assert_eq!(read(both, &mut status), both);
        let one = Keys { v6: None, ..both };
        assert_eq!(read(one, &mut status), one);
        // It is off, also for an agent that starts now.
        assert_eq!(read(Keys::default(), &mut NodeStatus::in_folder(dir.path(), "node-a")), Keys::default());
    }
}
