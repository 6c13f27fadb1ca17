//! What a speaker is made with.

use std::time::Duration;

use bgp_wire::{Asn, RouterId};

use crate::peer_key::InstanceName;
use crate::rib::DecisionSettings;

/// What a speaker is made with. Everything else is told by commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeakerSettings {
    /// Name of this speaker among those of the process.
    pub instance: InstanceName,
    /// AS number, where a peer's configuration does not say otherwise.
    pub asn: Asn,
    /// BGP Identifier (RFC 6286).
    pub router_id: RouterId,
    /// Seed of jitter and hashes. Equal inputs with an equal seed give equal output bytes; different processes should
    /// have different seeds, since peers choose what is hashed.
    pub seed: u64,
    /// How paths are compared, and how many are used at once.
    pub decision: DecisionSettings,
    /// How long a configured neighbour that has never been up holds up `Converged`, counted from
    /// `Command::LoadingDone`.
    pub convergence_grace: Duration,
    /// How long a neighbour that is not bound to send End-of-RIB has to be without an UPDATE to have told everything.
    pub convergence_quiet: Duration,
    /// The longest that anything holds up `Converged`, counted from `Command::LoadingDone`.
    pub convergence_deadline: Duration,
    /// This process took the place of one that neighbours may have had sessions with. They are told so (R bit) in the
    /// first session of each, and routes are held back until they have told theirs (RFC 4724 section 4.1).
    pub restarted: bool,
    /// After a restart: how long routes are held back for neighbours that have not been up, counted from
    /// `Command::LoadingDone`.
    pub deferral_grace: Duration,
    /// After a restart: the longest that routes are held back, counted from the first call. The
    /// Selection_Deferral_Timer of RFC 4724.
    pub selection_deferral: Duration,
}

impl SpeakerSettings {
    /// Settings with the usual times (a grace of 3 s, a quiet of 3 s, a deadline of 30 s) and without multipath.
    #[must_use]
    pub fn new(instance: InstanceName, asn: Asn, router_id: RouterId, seed: u64) -> Self {
        Self {
            instance,
            asn,
            router_id,
            seed,
            decision: DecisionSettings::RFC4271,
            convergence_grace: Duration::from_secs(3),
            convergence_quiet: Duration::from_secs(3),
            convergence_deadline: Duration::from_secs(30),
            restarted: false,
            deferral_grace: Duration::from_secs(3),
            selection_deferral: Duration::from_secs(30),
        }
    }
}
