//! `vlib`: edges of the packet graph, and of the command line the one command that lets go of leaked sockets.

use vpp_wire::Message;
use vpp_wire::api::vlib::{AddNodeNext, AddNodeNextReply, CliInband, CliInbandReply};

use super::field::{NONE, bytes_at, text};
use super::retval::{NO_SUCH_NODE, NO_SUCH_NODE2, OK, UNSPECIFIED};
use super::row::{Row, row};
use crate::context::Cx;
use crate::state::graph::Unknown;

pub(super) fn rows() -> Vec<Row> {
    vec![row::<AddNodeNext, AddNodeNextReply>(add_node_next), row::<CliInband, CliInbandReply>(cli_inband)]
}

/// Asked again it answers the same.
fn add_node_next(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (node, next) = (text(bytes_at::<64>(payload, 10)?), text(bytes_at::<64>(payload, 74)?));
    match cx.state.graph.add_next(node, next) {
        Ok(index) => cx.retval_and(OK, index),
        Err(Unknown::Node) => cx.retval_and(NO_SUCH_NODE, NONE),
        Err(Unknown::Next) => cx.retval_and(NO_SUCH_NODE2, NONE),
    }
    Some(())
}

/// There are no files here, so that whatever script is to be carried out is absent, and no other command.
fn cli_inband(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let command = CliInband::parse(payload).ok()?.cmd().to_str().into_owned();
    let said = match command.strip_prefix("exec ") {
        Some(file) => {
            cx.healed = true;
            format!("exec: failed to open `{file}': No such file or directory")
        }
        None => format!("unknown input `{command}'"),
    };
    cx.answer_with(|out, _| {
        out.extend_from_slice(&UNSPECIFIED.to_be_bytes());
        out.extend_from_slice(&u32::try_from(said.len()).unwrap_or(0).to_be_bytes());
        out.extend_from_slice(said.as_bytes());
    });
    Some(())
}
