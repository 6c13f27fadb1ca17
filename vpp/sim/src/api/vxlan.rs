//! `vxlan`: VXLAN tunnels (RFC 7348), found and deleted by all that makes one unique.

use vpp_wire::api::vxlan::{
    VxlanAddDelTunnelV3, VxlanAddDelTunnelV3Reply, VxlanTunnelV2Details, VxlanTunnelV2Dump,
};

use super::field::{NONE, address_at, push_address, u8_at, u16_at, u32_at};
use super::retval::{
    INSTANCE_IN_USE, INVALID_DECAP_NEXT, INVALID_VALUE, NO_SUCH_ENTRY, NO_SUCH_FIB, OK, SAME_SRC_DST,
    TUNNEL_EXIST,
};
use super::row::{Row, row};
use crate::context::Cx;
use crate::state::interface::{Kind, Vxlan};

pub(super) fn rows() -> Vec<Row> {
    vec![
        row::<VxlanAddDelTunnelV3, VxlanAddDelTunnelV3Reply>(add_del_tunnel),
        row::<VxlanTunnelV2Dump, VxlanTunnelV2Details>(tunnel_dump),
    ]
}

fn add_del_tunnel(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let ((af, src), (dst_af, dst)) = (address_at(payload, 15)?, address_at(payload, 32)?);
    let wish = Vxlan {
        instance: u32_at(payload, 11)?,
        af,
        src,
        dst,
        src_port: u16_at(payload, 49)?,
        dst_port: u16_at(payload, 51)?,
        table: u32_at(payload, 57)?,
        decap_next: u32_at(payload, 61)?,
        vni: u32_at(payload, 65)?,
        l3: u8_at(payload, 69)? != 0,
    };
    let is_add = u8_at(payload, 10)? != 0;
    let retval = if af != dst_af {
        INVALID_VALUE
    } else if src == dst {
        SAME_SRC_DST
    } else if cx.state.fib.table(af, wish.table).is_none() {
        NO_SUCH_FIB
    } else {
        OK
    };
    if retval != OK {
        cx.retval_and(retval, NONE);
        return Some(());
    }
    let found = cx.state.interfaces.vxlan_like(&wish);
    let (retval, at) = match (is_add, found) {
        (true, Some(_)) => (TUNNEL_EXIST, NONE),
        (true, None) if !cx.state.graph.has_next(wish.input(), wish.decap_next) => (INVALID_DECAP_NEXT, NONE),
        (true, None) => cx.state.add_vxlan(wish).map_or((INSTANCE_IN_USE, NONE), |at| (OK, at)),
        (false, Some(at)) => {
            cx.state.delete_interface(at);
            (OK, at)
        }
        (false, None) => (NO_SUCH_ENTRY, NONE),
    };
    cx.retval_and(retval, at);
    Some(())
}

fn tunnel_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let wanted = u32_at(payload, 10)?;
    let found: Vec<(u32, Vxlan)> = cx
        .state
        .interfaces
        .iter()
        .filter(|(at, _)| wanted == NONE || wanted == *at)
        .filter_map(|(at, interface)| match &interface.kind {
            Kind::Vxlan(tunnel) => Some((at, tunnel.clone())),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Ipip(_) | Kind::Wireguard(_) => None,
        })
        .collect();
    for (at, tunnel) in found {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&at.to_be_bytes());
            out.extend_from_slice(&tunnel.instance.to_be_bytes());
            push_address(out, tunnel.af, tunnel.src);
            push_address(out, tunnel.af, tunnel.dst);
            out.extend_from_slice(&tunnel.src_port.to_be_bytes());
            out.extend_from_slice(&tunnel.dst_port.to_be_bytes());
            out.extend_from_slice(&NONE.to_be_bytes());
            out.extend_from_slice(&tunnel.table.to_be_bytes());
            out.extend_from_slice(&tunnel.decap_next.to_be_bytes());
            out.extend_from_slice(&tunnel.vni.to_be_bytes());
        });
    }
    Some(())
}
