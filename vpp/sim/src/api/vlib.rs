//! `vlib`: edges of the packet graph.

use vpp_wire::api::vlib::{AddNodeNext, AddNodeNextReply};

use super::field::{NONE, bytes_at, text};
use super::retval::{NO_SUCH_NODE, NO_SUCH_NODE2, OK};
use super::row::{Row, row};
use crate::context::Cx;
use crate::state::graph::Unknown;

pub(super) fn rows() -> Vec<Row> {
    vec![row::<AddNodeNext, AddNodeNextReply>(add_node_next)]
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
