//! `POST /v1/check`: what policies as files have them would change at the neighbours of this process, for the routes that it
//! holds. Nothing is changed.
//!
//! Policies of the files take the places of those in force that have their names, among the others in force: of manifests
//! those of BGPFilters, of a speaker's file all, with the chains of its neighbours and of all of them. What policy says now and then is
//! compared path by path, on import as received, on export as selected. Pages of the tables are read one by one, as fast
//! as sessions let them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use agent_core::filter_of;
use bgp_core::command::{Chain, Command};
use bgp_core::peer_key::PeerKey;
use bgp_core::policy::{
    Direction, Interfaces, Learned, Library, PeerType, Pipeline, PolicyName, Route, Verdict, eval,
};
use bgp_core::query::{PathEntry, PeerStatus, PolicyStatus, RouteQuery, RouteTable};
use bgp_core::{Asn, Family, Nlri};
use bgp_net::{Handle, RoutesError, Stopped};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use super::answer::{Affected, CheckQuestion, PolicyChange, direction};
use super::control;
use super::http::{Body, failure, json};
use super::stopped;
use crate::check::examine;
use crate::engine::{Ask, ask_compile};

/// More than the manifests of any cluster have.
const LONGEST: usize = 64 << 20;

/// `POST /v1/check`.
pub(super) async fn answer(
    speaker: &Handle,
    engine: Option<&mpsc::Sender<Ask>>,
    request: Request<Incoming>,
) -> Response<Body> {
    let question: CheckQuestion = match control::read(request, LONGEST).await {
        Ok(question) => question,
        Err(refused) => return *refused,
    };
    match changes(speaker, engine, question).await {
        Ok(Ok(changes)) => json(StatusCode::OK, &changes),
        Ok(Err(error)) => failure(StatusCode::BAD_REQUEST, error),
        Err(Stopped) => stopped(),
    }
}

async fn changes(
    speaker: &Handle,
    engine: Option<&mpsc::Sender<Ask>>,
    question: CheckQuestion,
) -> Result<Result<Vec<PolicyChange>, String>, Stopped> {
    let CheckQuestion { files, named } = question;
    let checked = examine(files.into_iter().map(|(name, text)| (name.into(), text)).collect());
    let (now, peers) = speaker.ask(|speaker, at| (speaker.policies(), speaker.peers(at))).await?;
    let mut commands = checked.commands();
    if let Some(engine) = engine {
        // By the pools and the settings that are in force here: the files need not have any.
        let policies = ask_compile(engine, checked.filters()).await.ok_or(Stopped)?;
        commands.retain(|(_, of_manifests)| !of_manifests);
        commands.extend(policies.into_iter().map(|(name, def)| (Command::PutPolicy(name, def), true)));
    }
    let then = match Then::new(&now, commands) {
        Ok(then) => then,
        Err(error) => return Ok(Err(error)),
    };
    let kinds: BTreeMap<PeerKey, PeerType> = peers.iter().map(|peer| (peer.key, kind(peer))).collect();
    let mut all = Vec::new();
    for peer in &peers {
        for way in [Direction::Import, Direction::Export] {
            let Some((before, after)) = then.pipelines(&now, peer.key, way) else { continue };
            let front = [peer.local_asn];
            let session = Session {
                key: peer.key,
                kind: kind(peer),
                front: if kind(peer) == PeerType::External { &front } else { &[] },
                way,
                interfaces: &now.interfaces,
                kinds: &kinds,
            };
            for family in peer.families.iter().map(|status| status.family) {
                let table = match way {
                    Direction::Import => RouteTable::AdjRibIn(peer.key),
                    Direction::Export => RouteTable::LocRib,
                };
                let mut change = PolicyChange {
                    neighbor: peer.key.to_string(),
                    direction: direction(way).to_owned(),
                    family: family.name().to_owned(),
                    ..PolicyChange::default()
                };
                compare(speaker, family, table, &session, (&before, &after), named, &mut change).await?;
                if !change.is_empty() {
                    all.push(change);
                }
            }
        }
    }
    Ok(Ok(all))
}

async fn compare(
    speaker: &Handle,
    family: Family,
    table: RouteTable,
    session: &Session<'_>,
    (before, after): (&Pipeline, &Pipeline),
    named: bool,
    change: &mut PolicyChange,
) -> Result<(), Stopped> {
    let mut routes = speaker.routes(RouteQuery { table, family, prefix: None });
    loop {
        let entry = match routes.next().await {
            Ok(Some(entry)) => entry,
            // A peer that went away in the meantime has no routes.
            Ok(None) | Err(RoutesError::Query(_)) => return Ok(()),
            Err(RoutesError::Stopped(Stopped)) => return Err(Stopped),
        };
        let paths = entry.paths.iter().filter(|path| session.concerns(path));
        for path in paths {
            let route = session.route(entry.nlri, path);
            change.paths += 1;
            let affected = match (eval(before, &route), eval(after, &route)) {
                (Verdict::Reject(_), Verdict::Accept(..)) => &mut change.accepted,
                (Verdict::Accept(..), Verdict::Reject(_)) => &mut change.rejected,
                (Verdict::Accept(one, _), Verdict::Accept(other, _)) if one != other => &mut change.changed,
                (Verdict::Accept(..), Verdict::Accept(..)) | (Verdict::Reject(_), Verdict::Reject(_)) => {
                    continue;
                }
            };
            affected.add(entry.nlri, named);
        }
    }
}

impl Affected {
    fn add(&mut self, nlri: Nlri, named: bool) {
        self.paths += 1;
        if named {
            let prefix = nlri.to_string();
            // Paths of one destination come together.
            if self.prefixes.last() != Some(&prefix) {
                self.prefixes.push(prefix);
            }
        }
    }
}

fn kind(peer: &PeerStatus) -> PeerType {
    if peer.remote_asn == Some(peer.local_asn) { PeerType::Internal } else { PeerType::External }
}

/// A session on which policy runs.
struct Session<'a> {
    key: PeerKey,
    kind: PeerType,
    front: &'a [Asn],
    way: Direction,
    interfaces: &'a Interfaces,
    kinds: &'a BTreeMap<PeerKey, PeerType>,
}

impl Session<'_> {
    /// Whether policy sees a path: on export the best one, if it is not from the neighbour itself.
    fn concerns(&self, path: &PathEntry) -> bool {
        match self.way {
            Direction::Import => true,
            Direction::Export => path.best && path.source != Some(self.key),
        }
    }

    fn route<'r>(&'r self, nlri: Nlri, path: &'r PathEntry) -> Route<'r> {
        let learned = match path.source.and_then(|source| self.kinds.get(&source)) {
            None => Learned::Local,
            Some(PeerType::External) => Learned::External,
            Some(PeerType::Internal) => Learned::Internal,
        };
        let address: IpAddr = self.key.address;
        Route {
            direction: self.way,
            nlri,
            attrs: &path.attrs,
            learned,
            neighbor: address,
            peer_type: self.kind,
            front: match self.way {
                Direction::Import => &[],
                Direction::Export => self.front,
            },
            interfaces: Some(self.interfaces),
        }
    }
}

/// Policy as it would be.
struct Then {
    library: Library,
    /// What runs before each neighbour's own, on import and on export.
    global: [Vec<PolicyName>; 2],
    chains: BTreeMap<PeerKey, (Chain, Chain)>,
}

impl Then {
    /// Puts what a speaker would be told over what is in force.
    fn new(now: &PolicyStatus, commands: Vec<(Command, bool)>) -> Result<Self, String> {
        let mut library = now.library.clone();
        let chains = now.peers.iter().map(|peer| (peer.key, (peer.import.clone(), peer.export.clone())));
        let mut chains: BTreeMap<_, _> = chains.collect();
        let mut global = [now.import.clone(), now.export.clone()];
        if commands.iter().any(|(_, of_manifests)| !of_manifests) {
            // The file names all of them.
            global = [Vec::new(), Vec::new()];
        }
        let mut named = BTreeSet::new();
        let mut ranges = Vec::new();
        for (command, of_manifests) in commands {
            let done = if let Command::PutPolicy(name, def) = command {
                // Others depend on objects that perhaps are not among the files.
                if of_manifests && filter_of(&name).is_none() {
                    continue;
                }
                library.put_policy(&name, def).map(drop)
            } else if let Command::PutSet(name, def) = command {
                if of_manifests {
                    continue;
                }
                library.put_set(&name, &def).map(drop)
            } else if let Command::PutPeer(key, config) = command {
                if let Some(chain) = chains.get_mut(&key).filter(|_| !of_manifests) {
                    *chain = (config.import, config.export);
                    named.insert(key);
                }
                Ok(())
            } else if let Command::PutPeerRange(prefix, range) = command {
                ranges.push((prefix, range.config));
                Ok(())
            } else if let Command::PutGlobalPolicies(direction, policies) = command {
                global[place(direction)] = policies;
                Ok(())
            } else {
                Ok(())
            };
            if let Err(mistakes) = done {
                let mistakes: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
                return Err(mistakes.join("; "));
            }
        }
        // Who has no entry of its own may be there for being in a prefix.
        for (key, chain) in chains.iter_mut().filter(|(key, _)| !named.contains(*key)) {
            let around = ranges.iter().filter(|(prefix, _)| prefix.contains(&key.address));
            if let Some((_, config)) = around.max_by_key(|(prefix, _)| prefix.prefix_len()) {
                *chain = (config.import.clone(), config.export.clone());
            }
        }
        Ok(Self { library, global, chains })
    }

    /// What runs at a neighbour now, and what would; `None` where it is the same.
    fn pipelines(&self, now: &PolicyStatus, key: PeerKey, way: Direction) -> Option<(Pipeline, Pipeline)> {
        let before = now.peers.iter().find(|peer| peer.key == key)?;
        let after = self.chains.get(&key)?;
        let (global, before, after): (&[PolicyName], _, _) = match way {
            Direction::Import => (&now.import, &before.import, &after.0),
            Direction::Export => (&now.export, &before.export, &after.1),
        };
        let pipeline = |library: &Library, global: &[PolicyName], chain: &Chain| {
            library.pipeline(global.iter().chain(&chain.policies), chain.default).ok()
        };
        let before = pipeline(&now.library, global, before)?;
        let after = pipeline(&self.library, &self.global[place(way)], after)?;
        (before != after).then_some((before, after))
    }
}

const fn place(direction: Direction) -> usize {
    match direction {
        Direction::Import => 0,
        Direction::Export => 1,
    }
}

#[cfg(test)]
mod tests {
    use bgp_core::policy::Otherwise;
    use bgp_core::query::PeerPolicies;

    use super::*;

    const POLICIES: &str = "policies:\n  all: { statements: [{ then: next }], default: reject }\n  \
                            own: { statements: [], default: next }\n";

    /// The speaker that this file makes, with one neighbour more, which is there for being in a prefix.
    fn running(text: &str) -> PolicyStatus {
        let mut now = PolicyStatus {
            library: Library::new(),
            import: Vec::new(),
            export: Vec::new(),
            peers: Vec::new(),
            interfaces: std::sync::Arc::default(),
        };
        let then = Then::new(&now, commands(text)).unwrap();
        now.library = then.library;
        [now.import, now.export] = then.global;
        let chain = |policies: &[&str]| Chain::new(policies.iter().copied(), Otherwise::Accept);
        for address in ["192.0.2.2", "198.51.100.9"] {
            let key = address.parse().unwrap();
            now.peers.push(PeerPolicies { key, import: chain(&["own"]), export: chain(&[]) });
        }
        now
    }

    fn commands(text: &str) -> Vec<(Command, bool)> {
        let file = format!("asn: 65000\nrouter-id: 192.0.2.1\n{POLICIES}{text}");
        let checked = examine([("f".into(), file)].into_iter().collect());
        assert_eq!(checked.findings.problems, []);
        checked.commands()
    }

    #[test]
    fn policies_before_all_others_and_those_of_neighbours_in_a_prefix_count() {
        let neighbors = |of_prefix: &str| {
            format!(
                "neighbors:\n- {{ address: 192.0.2.2, asn: 65001, import: [own, accept], export: accept }}\n\
                 - {{ prefix: 198.51.100.0/24, asn: 65001, import: {of_prefix}, export: accept }}\n"
            )
        };
        let now = running(&neighbors("[own, accept]"));
        let changed = |text: &str| {
            let then = Then::new(&now, commands(text)).unwrap();
            let mut found = Vec::new();
            for peer in &now.peers {
                for way in [Direction::Import, Direction::Export] {
                    if then.pipelines(&now, peer.key, way).is_some() {
                        found.push(format!("{} {way:?}", peer.key.address));
                    }
                }
            }
            found
        };
        assert_eq!(changed(&neighbors("[own, accept]")), [""; 0]);
        assert_eq!(changed(&neighbors("[own, reject]")), ["198.51.100.9 Import"]);
        let before_all = neighbors("[own, accept]") + "export: all\n";
        assert_eq!(changed(&before_all), ["192.0.2.2 Export", "198.51.100.9 Export"]);
        let now = running(&before_all);
        let then = Then::new(&now, commands(&neighbors("[own, accept]"))).unwrap();
        assert!(then.pipelines(&now, now.peers[0].key, Direction::Export).is_some(), "it goes again");
    }
}
