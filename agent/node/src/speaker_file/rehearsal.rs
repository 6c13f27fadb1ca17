//! What only a speaker knows to be wrong: the file is told to one that does nothing, before it is told to the real one.
//!
//! So what a speaker refuses is a mistake with a line like any other, `peregrine check` finds it, and a neighbour that is
//! refused stops nobody else.

use std::collections::BTreeMap;

use bgp_core::command::{Chain, Command, PeerConfig, PeerRange};
use bgp_core::outbox::Outbox;
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::policy::PolicyName;
use bgp_core::speaker::{Output, Speaker, SpeakerSettings};
use bgp_core::time::Instant;
use bgp_wire::Nlri;
use ipnet::IpNet;

use super::{RefusedNeighbor, SpeakerFile, Standing, Whom};
use crate::yaml::{Flaw, Flaws, Item, Line, Mistake};

/// What a part of the file is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Subject {
    /// An entry of `neighbors`.
    Neighbor(Whom),
    /// An entry of `originate`.
    Origination(Nlri),
    /// An entry of `aggregate`.
    Aggregate(IpNet),
    /// An entry of `policies`.
    Policy(PolicyName),
}

/// Where that part is.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) line: Line,
    field: String,
    /// A neighbour's address as written.
    address: String,
}

impl Place {
    /// The place of a value.
    pub(super) fn of(item: &Item<'_>, address: &str) -> Self {
        Self { line: item.line(), field: item.path().to_owned(), address: address.to_owned() }
    }
}

/// The places of the whole file.
pub(super) type Places = BTreeMap<Subject, Place>;

impl SpeakerFile {
    /// Tells everything to a speaker that does nothing. A neighbour that it refuses is taken out and listed; whatever
    /// else it refuses is a mistake of the whole file.
    pub(super) fn rehearse(&mut self, places: &Places, flaws: &Flaws) {
        let settings = SpeakerSettings::new(InstanceName::new("rehearsal"), self.asn, self.router_id, 0);
        let (mut speaker, mut out) = (Speaker::new(settings), Outbox::new());
        for command in self.commands_since(None) {
            let subject = subject(&command);
            let answer = speaker.command(Instant::ZERO, command, &mut out);
            while out.pop().is_some() {}
            let (Err(refusal), Some(subject)) = (answer, subject) else { continue };
            let Some(Place { line, field, address }) = places.get(&subject).cloned() else { continue };
            let mistake = Mistake::Refused { reason: refusal.to_string() };
            let Subject::Neighbor(whom) = subject else {
                flaws.add(line, field, mistake);
                continue;
            };
            match whom {
                Whom::Peer(key) => drop(self.peers.remove(&key)),
                Whom::Range(prefix) => drop(self.ranges.remove(&prefix)),
            }
            let flaws = vec![Flaw { line, field, mistake }];
            self.doubtful.retain(|doubtful| doubtful.whom != Some(whom));
            let (whom, standing) = (Some(whom), Standing::Stopped);
            self.refused.push(RefusedNeighbor { address, whom, flaws, standing });
        }
        self.refused.sort_by_key(|refused| refused.flaws.first().map(|flaw| flaw.line));
    }

    /// A speaker with the identity of this file.
    pub(super) fn stage(&self) -> Stage {
        let settings = SpeakerSettings::new(InstanceName::new("rehearsal"), self.asn, self.router_id, 0);
        Stage { speaker: Speaker::new(settings), out: Outbox::new() }
    }
}

/// A speaker that does nothing, to ask which neighbours go with an identity. It keeps none of them.
pub(super) struct Stage {
    speaker: Speaker,
    out: Outbox<Output>,
}

impl Stage {
    /// Whether such a neighbour goes with the identity.
    pub(super) fn takes_peer(&mut self, key: PeerKey, config: &PeerConfig) -> bool {
        self.takes(Command::PutPeer(key, without_policies(config)), Command::DeletePeer(key))
    }

    /// Whether such a prefix goes with the identity.
    pub(super) fn takes_range(&mut self, prefix: IpNet, range: &PeerRange) -> bool {
        let range = PeerRange { config: without_policies(&range.config), ..range.clone() };
        self.takes(Command::PutPeerRange(prefix, range), Command::DeletePeerRange(prefix))
    }

    fn takes(&mut self, put: Command, delete: Command) -> bool {
        let taken = self.speaker.command(Instant::ZERO, put, &mut self.out).is_ok();
        let deleted = self.speaker.command(Instant::ZERO, delete, &mut self.out).is_ok();
        while self.out.pop().is_some() {}
        taken && deleted
    }
}

/// The policies are not on the stage, and no identity contradicts one.
fn without_policies(config: &PeerConfig) -> PeerConfig {
    PeerConfig { import: Chain::REJECT, export: Chain::REJECT, ..config.clone() }
}

/// What a command of [`SpeakerFile::commands_since`] is about; `None` for sets, which are never refused, and for what a
/// first file doesn't say.
fn subject(command: &Command) -> Option<Subject> {
    Some(if let Command::PutPeer(key, _) = command {
        Subject::Neighbor(Whom::Peer(*key))
    } else if let Command::PutPeerRange(prefix, _) = command {
        Subject::Neighbor(Whom::Range(*prefix))
    } else if let Command::PutOrigination(nlri, _) = command {
        Subject::Origination(*nlri)
    } else if let Command::PutAggregate(prefix, _) = command {
        Subject::Aggregate(*prefix)
    } else if let Command::PutPolicy(name, _) = command {
        Subject::Policy(name.clone())
    } else {
        return None;
    })
}
