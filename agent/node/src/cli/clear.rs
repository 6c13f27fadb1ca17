//! `peregrine clear`.

use std::process::ExitCode;

use clap::Args;

use super::output::change;
use super::{Asking, Changed};
use crate::inspect::answer::{ClearQuestion, Soft};

/// Exchange routes with a neighbor again, or reset its session.
///
/// Without options: softly, in both directions; the session stays up and nothing is lost. Softly `in` runs import policy
/// again over what the neighbor has sent, which is kept, and asks for it again where the neighbor answers that (RFC 2918).
/// Softly `out` sends it everything again, between markers where both ends know them (RFC 7313).
///
/// `--hard` ends the session with Cease, Administrative Reset, and starts it again at once. Where both ends keep routes
/// over such a message (RFC 8538) they do so; to have both forget them, disable the neighbor and enable it.
///
/// Only root and the user of the running process may do this.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The neighbor by address, as in 192.0.2.2 or fe80::1%2; with its port, as in 192.0.2.2:1790 (IPv6 in brackets),
    /// where several are at one address. Or all: every neighbor.
    #[arg(value_name = "PEER|all")]
    peer: String,
    /// Softly, in this direction only.
    #[arg(long, value_name = "DIRECTION")]
    soft: Option<Soft>,
    /// Reset the session.
    #[arg(long, conflicts_with = "soft")]
    hard: bool,
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Arguments { peer, soft, hard, asking } = arguments;
    let question = ClearQuestion { peer: peer.clone(), soft: *soft, hard: *hard };
    change(asking, Changed { place: "/v1/clear", question: &question })
}
