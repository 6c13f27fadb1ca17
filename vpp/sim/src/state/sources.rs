//! FIB sources: who put a route there, and whose route wins.

/// A source's number; VPP has one byte for it.
pub(crate) type SourceId = u8;

/// Built in: prefixes that every table has.
pub(crate) const SPECIAL: SourceId = 1;
/// Built in: connected prefixes and own addresses.
pub(crate) const INTERFACE: SourceId = 4;
/// Built in: local SIDs, binding SIDs and what is steered into policies.
pub(crate) const SR: SourceId = 5;
/// Built in: routes of `ip_route_add_del`, and of its version 2 with source 0.
pub(crate) const API: SourceId = 8;
/// Built in: routes of the command line.
pub(crate) const CLI: SourceId = 9;
/// Built in: next hops that other routes resolve through.
pub(crate) const RECURSIVE_RESOLUTION: SourceId = 18;
/// Built in: the default route that drops.
pub(crate) const DEFAULT_ROUTE: SourceId = 20;

/// The sources a VPP 26.06 with the usual plugins starts with, in the order of their ids: priority and name.
const BUILT_IN: [(u8, &str); 26] = [
    (255, "invalid"),
    (0, "special"),
    (1, "classify"),
    (2, "proxy"),
    (3, "interface"),
    (16, "SR"),
    (32, "BIER"),
    (48, "6RD"),
    (128, "API"),
    (129, "CLI"),
    (144, "LISP"),
    (160, "MAP"),
    (176, "DHCP"),
    (192, "IPv6-proxy-nd"),
    (193, "IPv6-nd"),
    (208, "adjacency"),
    (224, "mpls"),
    (240, "attached_export"),
    (251, "recursive-resolution"),
    (252, "urpf-exempt"),
    (253, "default-route"),
    (254, "interpose"),
    (16, "path-mtu"),
    (2, "cnat"),
    (208, "nat-low"),
    (16, "nat-hi"),
];

/// How many sources are built in; added ones are numbered from here.
pub(crate) const BUILT_IN_COUNT: usize = BUILT_IN.len();

/// One source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Lower wins.
    pub(crate) priority: u8,
    /// Its name, at most 63 bytes; two may have the same.
    pub(crate) name: Vec<u8>,
}

/// All sources, by id.
#[derive(Debug)]
pub(crate) struct Sources(Vec<Source>);

impl Sources {
    /// The built-in ones.
    pub(crate) fn new() -> Self {
        Self(BUILT_IN.iter().map(|&(priority, name)| Source { priority, name: name.into() }).collect())
    }

    /// Adds a source, also when the name exists. Ids are one byte and wrap around, as VPP's do.
    pub(crate) fn add(&mut self, priority: u8, name: Vec<u8>) -> SourceId {
        let id = u8::try_from(self.0.len() % 256).unwrap_or(0);
        self.0.push(Source { priority, name });
        id
    }

    /// What decides between two sources: the smaller wins. A source nobody added comes last.
    pub(crate) fn rank(&self, id: SourceId) -> (u8, SourceId) {
        (self.0.get(usize::from(id)).map_or(u8::MAX, |source| source.priority), id)
    }

    /// A source's name; its number when nobody added it.
    pub(crate) fn name(&self, id: SourceId) -> String {
        self.0
            .get(usize::from(id))
            .map_or_else(|| format!("#{id}"), |source| String::from_utf8_lossy(&source.name).into_owned())
    }

    /// A source that was added, or is built in.
    pub(crate) fn get(&self, id: SourceId) -> Option<&Source> {
        self.0.get(usize::from(id))
    }
}
