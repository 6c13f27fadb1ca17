//! `ipip`: IP-in-IP tunnels.

use vpp_wire::Message;
use vpp_wire::api::ipip::{
    IpipAddTunnel, IpipAddTunnelReply, IpipDelTunnel, IpipDelTunnelReply, IpipTunnelDetails, IpipTunnelDump,
};

use super::field::{NONE, address_at, push_address, u8_at, u32_at};
use super::retval::{
    IF_ALREADY_EXISTS, INSTANCE_IN_USE, INVALID_PROTOCOL, INVALID_VALUE, NO_SUCH_ENTRY, NO_SUCH_FIB, OK,
    SAME_SRC_DST,
};
use super::row::{Row, row};
use crate::context::Cx;
use crate::state::interface::{Ipip, Kind};

/// The highest tunnel mode.
const MODE_MP: u8 = 1;

/// All encapsulation and decapsulation flags.
const FLAGS: u8 = 0x7f;

pub(super) fn rows() -> Vec<Row> {
    vec![
        row::<IpipAddTunnel, IpipAddTunnelReply>(add_tunnel),
        row::<IpipDelTunnel, IpipDelTunnelReply>(del_tunnel),
        row::<IpipTunnelDump, IpipTunnelDetails>(tunnel_dump),
    ]
}

fn add_tunnel(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    IpipAddTunnel::parse(payload).ok()?;
    let ((af, src), (dst_af, dst)) = (address_at(payload, 14)?, address_at(payload, 31)?);
    let wish = Ipip {
        instance: u32_at(payload, 10)?,
        af,
        src,
        dst,
        table: u32_at(payload, 52)?,
        flags: u8_at(payload, 56)?,
        mode: u8_at(payload, 57)?,
        dscp: u8_at(payload, 58)?,
    };
    let retval = if af != dst_af {
        INVALID_PROTOCOL
    } else if src == dst {
        SAME_SRC_DST
    } else if wish.flags & !FLAGS != 0 || wish.mode > MODE_MP {
        INVALID_VALUE
    } else if cx.state.fib.table(af, wish.table).is_none() {
        NO_SUCH_FIB
    } else {
        OK
    };
    if retval != OK {
        cx.retval_and(retval, NONE);
        return Some(());
    }
    if let Some(at) = cx.state.interfaces.tunnel_like(&wish) {
        cx.retval_and(IF_ALREADY_EXISTS, at);
        return Some(());
    }
    match cx.state.add_tunnel(wish) {
        Some(at) => cx.retval_and(OK, at),
        None => cx.retval_and(INSTANCE_IN_USE, NONE),
    }
    Some(())
}

fn del_tunnel(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let at = IpipDelTunnel::parse(payload).ok()?.sw_if_index.value();
    let is_tunnel =
        cx.state.interfaces.get(at).is_some_and(|interface| matches!(interface.kind, Kind::Ipip(_)));
    if is_tunnel {
        cx.state.delete_interface(at);
    }
    let retval = if is_tunnel { OK } else { NO_SUCH_ENTRY };
    cx.retval(retval);
    Some(())
}

fn tunnel_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let wanted = IpipTunnelDump::parse(payload).ok()?.sw_if_index.value();
    let found: Vec<(u32, Ipip)> = cx
        .state
        .interfaces
        .tunnels()
        .filter(|(at, _)| wanted == NONE || wanted == *at)
        .map(|(at, tunnel)| (at, tunnel.clone()))
        .collect();
    for (at, tunnel) in found {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&tunnel.instance.to_be_bytes());
            push_address(out, tunnel.af, tunnel.src);
            push_address(out, tunnel.af, tunnel.dst);
            out.extend_from_slice(&at.to_be_bytes());
            out.extend_from_slice(&tunnel.table.to_be_bytes());
            out.extend_from_slice(&[tunnel.flags, tunnel.mode, tunnel.dscp]);
        });
    }
    Some(())
}
