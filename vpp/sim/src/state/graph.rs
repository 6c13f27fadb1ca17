//! The packet graph, as far as clients see it: which nodes may follow a node, by number.

/// The nodes that can be asked about, each with the nodes that follow it from the beginning.
const NODES: [(&str, &[&str]); 4] = [
    ("vxlan4-input", &["error-drop", "l2-input"]),
    ("vxlan6-input", &["error-drop", "l2-input"]),
    ("ip4-input", &[]),
    ("ip6-input", &[]),
];

/// What a client named is not in the graph.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The node.
    Node,
    /// The one that shall follow it.
    Next,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Graph {
    /// For each of [`NODES`], what follows it.
    nexts: [Vec<&'static str>; NODES.len()],
}

impl Graph {
    /// As it is when the process starts.
    pub(crate) fn new() -> Self {
        Self { nexts: NODES.map(|(_, nexts)| nexts.to_vec()) }
    }

    /// Has a node follow another one; its number.
    pub(crate) fn add_next(&mut self, node: &[u8], next: &[u8]) -> Result<u32, Unknown> {
        let place = |name: &[u8]| NODES.iter().position(|(node, _)| node.as_bytes() == name);
        let nexts = place(node).and_then(|at| self.nexts.get_mut(at)).ok_or(Unknown::Node)?;
        let (next, _) = place(next).and_then(|at| NODES.get(at)).ok_or(Unknown::Next)?;
        let at = nexts.iter().position(|known| known == next).unwrap_or_else(|| {
            nexts.push(next);
            nexts.len() - 1
        });
        u32::try_from(at).map_err(|_| Unknown::Next)
    }

    /// Whether a node has a successor of this number.
    pub(crate) fn has_next(&self, node: &str, index: u32) -> bool {
        let at = NODES.iter().position(|(name, _)| *name == node);
        at.and_then(|at| self.nexts.get(at)).is_some_and(|nexts| (index as usize) < nexts.len())
    }
}
