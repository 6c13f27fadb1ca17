//! `memclnt`: handshake, goodbye and ping. The ids of this module are the same in every VPP.

use vpp_wire::Message;
use vpp_wire::api::memclnt::{
    ControlPing, ControlPingReply, SockclntCreate, SockclntCreateReply, SockclntDelete, SockclntDeleteReply,
    id,
};
use vpp_wire::name::MsgName;

use super::field::{NONE, bytes_at};
use super::retval::{INVALID_VALUE, OK};
use super::row::{Row, foreign, row};
use crate::context::Cx;

/// The handshake, which `vpp.rs` answers itself: it comes before there is a client.
pub(crate) const SOCKCLNT_CREATE: &str = SockclntCreate::DESCRIPTOR.name.name();

pub(super) fn rows() -> Vec<Row> {
    vec![
        row::<SockclntCreate, SockclntCreateReply>(|_, _| None),
        row::<SockclntDelete, SockclntDeleteReply>(sockclnt_delete),
        row::<ControlPing, ControlPingReply>(control_ping),
        foreign(
            MsgName::new("api_versions", 0x5107_7d14),
            MsgName::new("api_versions_reply", 0x5f0d_99d6),
            14,
            |cx, _| {
                cx.retval_and(OK, 0);
                Some(())
            },
        ),
        foreign(
            MsgName::new("get_first_msg_id", 0xebf7_9a66),
            MsgName::new("get_first_msg_id_reply", 0x7d33_7472),
            12,
            get_first_msg_id,
        ),
    ]
}

/// The id that a message of this module has in every VPP.
pub(crate) fn fixed_id(name: &str) -> Option<u16> {
    Some(match name {
        "get_first_msg_id" => 10,
        "get_first_msg_id_reply" => 11,
        "api_versions" => 12,
        "api_versions_reply" => 13,
        "sockclnt_create" => id::SOCKCLNT_CREATE.value(),
        "sockclnt_create_reply" => id::SOCKCLNT_CREATE_REPLY.value(),
        "sockclnt_delete" => id::SOCKCLNT_DELETE.value(),
        "sockclnt_delete_reply" => id::SOCKCLNT_DELETE_REPLY.value(),
        "control_ping" => id::CONTROL_PING.value(),
        "control_ping_reply" => id::CONTROL_PING_REPLY.value(),
        _ => return None,
    })
}

fn sockclnt_delete(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = SockclntDelete::parse(payload).ok()?;
    let handle = request.index.value();
    cx.clients.get_mut(handle)?;
    cx.goodbye = Some(handle);
    cx.retval(1); // `response`: done
    Some(())
}

fn control_ping(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    cx.answer_with(|out, _| {
        out.extend_from_slice(&OK.to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&std::process::id().to_be_bytes());
    });
    Some(())
}

/// No module is known by its own version here: the answer is that of an unknown one.
fn get_first_msg_id(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    bytes_at::<64>(payload, 10)?;
    cx.answer_with(|out, _| {
        out.extend_from_slice(&INVALID_VALUE.to_be_bytes());
        out.extend_from_slice(&NONE.to_be_bytes()[..2]);
    });
    Some(())
}
