//! One document → the objects in it, each with its name, its line and its mistakes.

use std::fmt;

use agent_core::model::Filter;

use super::{
    BgpConfiguration, BgpPeer, BlockAffinity, FelixConfiguration, IpPool, Network, Node, bgp_filter,
};
use crate::yaml::{Flaw, Flaws, Item, Line, Mistake, Tree, nearest};

/// The kinds that the agent reads.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// `Node`, of Kubernetes or of Calico.
    Node,
    /// `BGPConfiguration`.
    BgpConfiguration,
    /// `BGPFilter`.
    BgpFilter,
    /// `BGPPeer`.
    BgpPeer,
    /// `IPPool`.
    IpPool,
    /// `BlockAffinity`.
    BlockAffinity,
    /// `FelixConfiguration`.
    FelixConfiguration,
    /// `Network`.
    Network,
}

/// Calico's own groups.
const CALICO: &[&str] = &["crd.projectcalico.org/v1", "projectcalico.org/v3"];

/// Kinds that belong in a folder of manifests for Calico and that this release takes no notice of.
const UNREAD: &[&str] = &[
    "CalicoNodeStatus",
    "EndpointSlice",
    "IPAMBlock",
    "IPAMConfig",
    "IPAMConfiguration",
    "IPAMHandle",
    "IPReservation",
    "NetworkAttachmentDefinition",
    "Pod",
    "Secret",
    "Service",
];

impl Kind {
    /// All of them, in the order in which a first list is told.
    pub(crate) const ALL: [Self; 8] = [
        Self::Node,
        Self::BgpConfiguration,
        Self::FelixConfiguration,
        Self::BgpFilter,
        Self::BgpPeer,
        Self::IpPool,
        Self::Network,
        Self::BlockAffinity,
    ];

    /// The name in `kind:`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::BgpConfiguration => "BGPConfiguration",
            Self::BgpFilter => "BGPFilter",
            Self::BgpPeer => "BGPPeer",
            Self::IpPool => "IPPool",
            Self::BlockAffinity => "BlockAffinity",
            Self::FelixConfiguration => "FelixConfiguration",
            Self::Network => "Network",
        }
    }

    fn groups(self) -> &'static [&'static str] {
        match self {
            Self::Node => &["v1", "projectcalico.org/v3"],
            Self::Network => &["projectcalico.org/v3"],
            Self::BgpConfiguration
            | Self::BgpFilter
            | Self::BgpPeer
            | Self::IpPool
            | Self::BlockAffinity
            | Self::FelixConfiguration => CALICO,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of an object inside its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName(String);

impl ObjectName {
    /// The name of an object that lives in no namespace, as all that we read do.
    pub(crate) fn cluster(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Its text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object of one of the kinds that the agent reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// `Node`.
    Node(Node),
    /// `BGPConfiguration`.
    BgpConfiguration(BgpConfiguration),
    /// `BGPFilter`.
    BgpFilter(Filter),
    /// `BGPPeer`.
    BgpPeer(BgpPeer),
    /// `IPPool`.
    IpPool(IpPool),
    /// `BlockAffinity`.
    BlockAffinity(BlockAffinity),
    /// `FelixConfiguration`.
    FelixConfiguration(FelixConfiguration),
    /// `Network`.
    Network(Network),
}

/// What one place of a file turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// What it says it is; `None` where it doesn't say so understandably.
    pub(crate) id: Option<(Kind, ObjectName)>,
    /// Where it begins.
    pub(crate) line: Line,
    /// Its content where it has no mistake but warnings.
    pub(crate) object: Option<Object>,
    /// Where it has one: what the rest of it says, if a part can stand without the others. Better than nothing, and worse
    /// than a version that was whole.
    pub(crate) rest: Option<Object>,
    /// Everything that is wrong with it.
    pub(crate) flaws: Vec<Flaw>,
}

/// Read one document: an object, or a list of objects. Objects of kinds that the agent has no use for are left out.
pub(crate) fn decode(document: &Tree) -> Vec<Decoded> {
    let mut found = Vec::new();
    decode_into(document, &mut found, 0);
    found
}

fn decode_into(tree: &Tree, found: &mut Vec<Decoded>, depth: usize) {
    let flaws = Flaws::default();
    let root = Item::root(tree, &flaws);
    let broken = |flaws: Flaws| Decoded {
        id: None,
        line: tree.line,
        object: None,
        rest: None,
        flaws: flaws.into_vec(),
    };
    let Some(mut fields) = root.fields() else { return found.push(broken(flaws)) };
    let version = fields.need("apiVersion").and_then(|item| item.text());
    let kind_item = fields.need("kind");
    let Some(kind_name) = kind_item.as_ref().and_then(Item::text) else { return found.push(broken(flaws)) };

    if kind_name == "List" || Kind::ALL.iter().any(|kind| kind_name.strip_suffix("List") == Some(kind.name()))
    {
        // A list of lists of lists is no manifest that anyone writes by intent.
        if depth < 3 {
            for place in fields.take("items").map(|items| items.list()).unwrap_or_default() {
                decode_into(place.tree(), found, depth + 1);
            }
        }
        if flaws.count() > 0 {
            found.push(broken(flaws));
        }
        return;
    }
    let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == kind_name) else {
        if !UNREAD.contains(&kind_name) {
            let known = Kind::ALL.iter().map(|kind| kind.name()).chain(UNREAD.iter().copied());
            let near = nearest(kind_name, known).map(str::to_owned);
            if let Some(item) = &kind_item {
                item.flaw(Mistake::UnknownKind { found: kind_name.to_owned(), near });
            }
            found.push(broken(flaws));
        }
        return;
    };
    let Some(version) = version else { return found.push(broken(flaws)) };
    if !kind.groups().contains(&version) {
        if let Some(item) = fields.take("apiVersion") {
            item.flaw(Mistake::Word { wanted: kind.groups(), found: version.to_owned() });
        }
        return found.push(broken(flaws));
    }

    let metadata = fields.need("metadata");
    let name = metadata.as_ref().and_then(|metadata| {
        let mut fields = metadata.fields()?;
        let name = fields.need("name").and_then(|name| name.text()).filter(|name| !name.is_empty());
        // Labels, annotations, owners and the rest are the API's own and other people's.
        fields.ignore_others();
        name
    });
    let status = fields.take("status");
    let spec = fields.take("spec");
    let object = name.and_then(|name| {
        // A Kubernetes Node says all we need in its metadata.
        if kind == Kind::Node && version == "v1" {
            return Node::decode_kubernetes(metadata.as_ref()).map(Object::Node);
        }
        let Some(spec) = &spec else {
            fields.need("spec");
            return None;
        };
        match kind {
            Kind::Node => Node::decode_calico(metadata.as_ref(), spec, status.as_ref()).map(Object::Node),
            Kind::BgpConfiguration => {
                if !is_config_name(name) {
                    let rule = "a BGPConfiguration is read only under the names \"default\" and \"node.<node name>\"";
                    flaws.add(tree.line, "metadata.name", Mistake::Conflict { rule });
                }
                BgpConfiguration::decode(spec).map(Object::BgpConfiguration)
            }
            Kind::BgpFilter => bgp_filter::decode(spec).map(Object::BgpFilter),
            Kind::BgpPeer => BgpPeer::decode(spec).map(Object::BgpPeer),
            Kind::IpPool => IpPool::decode(spec).map(Object::IpPool),
            Kind::BlockAffinity => BlockAffinity::decode(spec).map(Object::BlockAffinity),
            Kind::Network => Network::decode(spec).map(Object::Network),
            Kind::FelixConfiguration => {
                if !is_config_name(name) {
                    let rule = "a FelixConfiguration is read only under the names \"default\" and \"node.<node name>\"";
                    flaws.add(tree.line, "metadata.name", Mistake::Conflict { rule });
                }
                FelixConfiguration::decode(spec).map(Object::FelixConfiguration)
            }
        }
    });
    fields.finish();
    let whole = flaws.count() == 0;
    // A rule of a filter is a whole thing by itself.
    let rest = object.clone().filter(|_| !whole && kind == Kind::BgpFilter);
    let object = object.filter(|_| whole);
    let id = name.map(|name| (kind, ObjectName::cluster(name)));
    found.push(Decoded { id, line: tree.line, object, rest, flaws: flaws.into_vec() });
}

/// Whether settings under this name mean anything to any node.
fn is_config_name(name: &str) -> bool {
    name == "default" || name.starts_with("node.")
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::super::yaml::documents;
    use super::*;

    /// The one object of a text that may have warnings only.
    pub(in super::super) fn one(text: &str) -> (ObjectName, Object) {
        let docs = documents(text).unwrap();
        let mut decoded = decode(&docs[0]);
        assert_eq!(decoded.len(), 1, "{decoded:?}");
        let decoded = decoded.remove(0);
        let Some(object) = decoded.object else { panic!("{:?}", decoded.flaws) };
        (decoded.id.unwrap().1, object)
    }

    /// Everything that is wrong with a text.
    pub(in super::super) fn problems(text: &str) -> Vec<String> {
        let docs = documents(text).unwrap();
        docs.iter().flat_map(decode).flat_map(|decoded| decoded.flaws).map(|flaw| flaw.to_string()).collect()
    }

    #[test]
    fn lists_are_opened() {
        let text = "\
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: a}
- apiVersion: v1
  kind: Secret
  metadata: {name: s}
- apiVersion: projectcalico.org/v3
  kind: IPPoolList
  items:
  - apiVersion: projectcalico.org/v3
    kind: IPPool
    metadata: {name: p}
    spec: {cidr: 10.0.0.0/8}
";
        let docs = documents(text).unwrap();
        let ids: Vec<_> =
            decode(&docs[0]).into_iter().map(|decoded| (decoded.id.unwrap(), decoded.line.0)).collect();
        let name = |name: &str| ObjectName::cluster(name);
        assert_eq!(ids, [((Kind::Node, name("a")), 4), ((Kind::IpPool, name("p")), 13)]);
    }

    #[test]
    fn what_is_no_object_is_reported() {
        let cases = [
            ("just text\n", "line 1: must be a map, not a single value"),
            ("kind: Node\nmetadata: {name: a}\n", "line 1: apiVersion: is required"),
            ("apiVersion: v1\n", "line 1: kind: is required"),
            (
                "apiVersion: v1\nkind: BGPPear\n",
                "line 2: kind: \"BGPPear\" is no kind that the agent reads; did you mean \"BGPPeer\"?",
            ),
            (
                "apiVersion: projectcalico.org/v1\nkind: IPPool\nmetadata: {name: a}\nspec: {cidr: 10.0.0.0/8}\n",
                "line 1: apiVersion: must be crd.projectcalico.org/v1 or projectcalico.org/v3, not \"projectcalico.org/v1\"",
            ),
            (
                "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {}\nspec: {}\n",
                "line 3: metadata.name: is required",
            ),
            (
                "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: a}\n",
                "line 1: spec: is required",
            ),
            (
                "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspecs: {}\n",
                "line 4: specs: unknown field; did you mean \"spec\"?",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problems(text), [expected], "{text}");
        }
    }
}
