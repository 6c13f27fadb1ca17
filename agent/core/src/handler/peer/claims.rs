//! Who asks for which session, and who gets it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgp_core::command::PeerConfig;
use bgp_core::peer_key::PeerKey;

use crate::model::{Condition, NodeName, ObjectRef, PeerName};

/// Who asks for sessions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Claimant {
    /// A BGPPeer object.
    Peer(PeerName),
    /// Another node of the mesh.
    Mesh(NodeName),
}

/// On what ground. The smaller goes first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ground {
    /// An object for all nodes.
    Global,
    /// An object for this node.
    Node,
    /// The other half of an object that selects this node as remote end.
    Reverse,
    /// The mesh.
    Mesh,
}

/// One session asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) ground: Ground,
    pub(super) key: PeerKey,
    pub(super) config: Box<PeerConfig>,
    /// The object that a person would change.
    pub(super) origin: ObjectRef,
    /// The neighbour is to be reached through this gateway.
    pub(super) gateway: Option<IpAddr>,
}

/// What the claims of one address come to.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) gone: Vec<PeerKey>,
    pub(super) changed: Vec<(PeerKey, Claim)>,
    pub(super) conflicts: Vec<Condition>,
    pub(super) conflicts_changed: bool,
    /// The gateway to the address, before and now.
    pub(super) gateway: (Option<IpAddr>, Option<IpAddr>),
}

type Place = (Ground, Claimant, u16);

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Claims {
    by_address: BTreeMap<IpAddr, BTreeMap<Place, Claim>>,
    by_claimant: BTreeMap<Claimant, BTreeSet<IpAddr>>,
    sessions: BTreeMap<IpAddr, BTreeMap<PeerKey, Claim>>,
    conflicts: BTreeMap<IpAddr, Vec<Condition>>,
}

impl Claims {
    /// Everyone who has claims.
    pub(super) fn claimants(&self) -> impl Iterator<Item = &Claimant> {
        self.by_claimant.keys()
    }

    /// Puts new claims in place of a claimant's old ones. Addresses that either concerns are added to `touched`.
    pub(super) fn replace(&mut self, claimant: Claimant, claims: Vec<Claim>, touched: &mut BTreeSet<IpAddr>) {
        for address in self.by_claimant.remove(&claimant).unwrap_or_default() {
            touched.insert(address);
            if let Some(places) = self.by_address.get_mut(&address) {
                places.retain(|(_, owner, _), _| *owner != claimant);
                if places.is_empty() {
                    self.by_address.remove(&address);
                }
            }
        }
        for claim in claims {
            let address = claim.key.address;
            touched.insert(address);
            self.by_claimant.entry(claimant.clone()).or_default().insert(address);
            let place = (claim.ground, claimant.clone(), claim.key.port);
            self.by_address.entry(address).or_default().entry(place).or_insert(claim);
        }
    }

    /// Decides who has the sessions of an address, and says what that changes.
    pub(super) fn settle(&mut self, address: IpAddr) -> Verdict {
        let mut sessions: BTreeMap<PeerKey, Claim> = BTreeMap::new();
        let mut conflicts = Vec::new();
        for ((ground, _, _), claim) in self.by_address.get(&address).into_iter().flatten() {
            if *ground == Ground::Mesh && !sessions.is_empty() {
                continue;
            }
            match sessions.get(&claim.key) {
                None => {
                    sessions.insert(claim.key, claim.clone());
                }
                // The two halves of one wish, or twice the same: nothing to tell.
                Some(winner) if same(winner, claim) || *ground == Ground::Reverse => {}
                Some(winner) => conflicts.push(Condition::warning(
                    claim.origin.clone(),
                    "",
                    format!("{} already has the session with {}", winner.origin, claim.key),
                    "let one object only ask for this neighbor",
                )),
            }
        }
        let before = self.sessions.remove(&address).unwrap_or_default();
        let gateway = |sessions: &BTreeMap<PeerKey, Claim>| sessions.values().find_map(|claim| claim.gateway);
        let gateway = (gateway(&before), gateway(&sessions));
        let gone = before.keys().filter(|key| !sessions.contains_key(key)).copied().collect();
        let changed = sessions
            .iter()
            .filter(|(key, claim)| before.get(key) != Some(claim))
            .map(|(k, c)| (*k, c.clone()))
            .collect();
        if !sessions.is_empty() {
            self.sessions.insert(address, sessions);
        }
        let conflicts_before = self.conflicts.remove(&address).unwrap_or_default();
        let conflicts_changed = conflicts_before != conflicts;
        if !conflicts.is_empty() {
            self.conflicts.insert(address, conflicts.clone());
        }
        Verdict { gone, changed, conflicts, conflicts_changed, gateway }
    }
}

/// Whether two claims ask for the same session, names aside.
fn same(one: &Claim, other: &Claim) -> bool {
    let plain = |claim: &Claim| PeerConfig { description: String::new(), ..(*claim.config).clone() };
    one.origin == other.origin || plain(one) == plain(other)
}
