//! `peregrine peer`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::output::change;
use super::{Asking, Changed};
use crate::inspect::answer::{PeerAction, PeerQuestion};

/// Stop a neighbor, start it, or leave it gently first.
///
/// What is said here is no part of any configuration: the running process remembers it. It outlives reloads of the speaker's
/// file and changes of BGPPeers; it is forgotten when the neighbor is deleted from them, and when the process ends.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Administrative stop: the session ends, and there is none until `enable`.
    ///
    /// The neighbor is told so with Cease, Administrative Shutdown, and the message (RFC 9003); as a Hard Reset where it
    /// would keep our routes otherwise (RFC 8538). Neither end keeps routes of the other. `peregrine peers` shows the
    /// message as the reason. Said of a neighbor that is stopped already it replaces the message only.
    Disable {
        #[command(flatten)]
        whom: Whom,
        /// What the neighbor is told, and `peregrine peers` shows: at most 255 octets of UTF-8.
        #[arg(long, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Start: ends a stop, a graceful shutdown, and any wait.
    ///
    /// The neighbor is tried at once, however long a back-off after failures, or what else held it, would have lasted. Said of
    /// a neighbor that nothing holds it changes nothing.
    Enable {
        #[command(flatten)]
        whom: Whom,
    },
    /// Graceful shutdown (RFC 8326): make the session the last choice of both ends before it is stopped.
    ///
    /// Every route that the neighbor is told goes out again with the community GRACEFUL_SHUTDOWN (65535:0), and with
    /// LOCAL_PREF 0 to an internal neighbor; what it has told gets the community and LOCAL_PREF 0 here. So both ends, and
    /// those behind them, move to other paths while this one still works. Once they have, stop the neighbor with `disable`,
    /// or leave it so: `enable` takes everything back. It outlives a new session.
    Gshut {
        #[command(flatten)]
        whom: Whom,
    },
}

#[derive(Debug, Args)]
struct Whom {
    /// The neighbor by address, as in 192.0.2.2 or fe80::1%2; with its port, as in 192.0.2.2:1790 (IPv6 in brackets),
    /// where several are at one address. Or all: every neighbor. Only root and the user of the running process may do this.
    #[arg(value_name = "PEER|all")]
    peer: String,
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let (whom, action, message) = match &arguments.action {
        Action::Disable { whom, message } => (whom, PeerAction::Disable, message.clone()),
        Action::Enable { whom } => (whom, PeerAction::Enable, None),
        Action::Gshut { whom } => (whom, PeerAction::Gshut, None),
    };
    let question = PeerQuestion { peer: whom.peer.clone(), action, message };
    change(&whom.asking, Changed { place: "/v1/peer", question: &question })
}
