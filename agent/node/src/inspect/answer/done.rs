//! What operators ask of neighbours, and what became of it, as JSON.

use bgp_core::command::{Applied, Refusal};
use bgp_core::peer_key::PeerKey;
use serde::{Deserialize, Serialize};

/// `POST /v1/clear`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct ClearQuestion {
    /// A neighbour by address, with its port where there are several at it, or `all`.
    pub(crate) peer: String,
    /// One direction only. Both without this, unless `hard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) soft: Option<Soft>,
    /// Reset the session.
    #[serde(default)]
    pub(crate) hard: bool,
}

/// A direction of a soft refresh.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Soft {
    /// What the neighbor has told us: run import policy again, and ask for it again where the neighbor answers that.
    In,
    /// What we have told the neighbor: send it again.
    Out,
}

/// `POST /v1/peer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PeerQuestion {
    /// A neighbour by address, with its port where there are several at it, or `all`.
    pub(crate) peer: String,
    /// What is to happen.
    pub(crate) action: PeerAction,
    /// What the neighbour is told, with `disable`: at most 255 octets of UTF-8 (RFC 9003).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// What is to happen to a neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PeerAction {
    /// Administrative stop.
    Disable,
    /// The end of a stop, of a graceful shutdown, and of any wait.
    Enable,
    /// Graceful shutdown (RFC 8326).
    Gshut,
}

/// What became of it at one neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Done {
    /// The neighbour.
    pub(crate) peer: String,
    /// `unchanged`, `applied`, `session-reset` or `refused`.
    pub(crate) result: String,
    /// The same in words.
    pub(crate) detail: String,
}

impl Done {
    /// It was carried out.
    pub(crate) fn new(peer: PeerKey, applied: Applied, words: &str) -> Self {
        let result = match applied {
            Applied::Unchanged => "unchanged",
            Applied::Applied => "applied",
            Applied::SessionReset => "session-reset",
        };
        Self { peer: peer.to_string(), result: result.into(), detail: words.into() }
    }

    /// It was not.
    pub(crate) fn refused(peer: PeerKey, why: &Refusal) -> Self {
        Self { peer: peer.to_string(), result: "refused".into(), detail: why.to_string() }
    }
}
