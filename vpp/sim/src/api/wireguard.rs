//! `wireguard`: interfaces, peers, and news of them.

use vpp_wire::frame;
use vpp_wire::name::MsgName;

use super::field::{NONE, address_at, bytes_at, prefix_at, push_address, u8_at, u32_at};
use super::retval::{
    ENTRY_ALREADY_EXISTS, INVALID_REGISTRATION, INVALID_SW_IF_INDEX, INVALID_VALUE, NO_SUCH_ENTRY,
    NO_SUCH_FIB, OK,
};
use super::row::{Row, foreign, foreign_dump};
use crate::context::Cx;
use crate::state::wireguard::{Key, Peer, PeerEvent, Wg};

/// The message that tells of peers, and its CRC.
pub(crate) const EVENT: MsgName = MsgName::new("wireguard_peer_event", 0x4e1b_5d67);

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    vec![
        foreign(
            MsgName::new("wireguard_interface_create", 0xa530_137e),
            MsgName::new("wireguard_interface_create_reply", 0x5383_d31f),
            14,
            create,
        ),
        plain("wireguard_interface_delete", 0xf9e6_675e, "wireguard_interface_delete_reply", delete),
        foreign_dump(
            MsgName::new("wireguard_interface_dump", 0x2c95_4158),
            MsgName::new("wireguard_interface_details", 0x0dd4_865d),
            interface_dump,
        ),
        plain("want_wireguard_peer_events", 0x3bc6_66c8, "want_wireguard_peer_events_reply", want_events),
        foreign(
            MsgName::new("wireguard_peer_add", 0x9b8a_ad61),
            MsgName::new("wireguard_peer_add_reply", 0x084a_0cd3),
            14,
            |cx, payload| add(cx, payload, Version::One),
        ),
        foreign(
            MsgName::new("wireguard_peer_add_v2", 0x4a07_ba90),
            MsgName::new("wireguard_peer_add_v2_reply", 0x084a_0cd3),
            14,
            |cx, payload| add(cx, payload, Version::Two),
        ),
        plain("wireguard_peer_remove", 0x3b74_607a, "wireguard_peer_remove_reply", remove),
        foreign_dump(
            MsgName::new("wireguard_peers_dump", 0x3b74_607a),
            MsgName::new("wireguard_peers_details", 0x6a9f_6bc3),
            |cx, payload| peers_dump(cx, payload, Version::One),
        ),
        foreign_dump(
            MsgName::new("wireguard_peers_v2_dump", 0x3b74_607a),
            MsgName::new("wireguard_peers_v2_details", 0xf5b8_6f42),
            |cx, payload| peers_dump(cx, payload, Version::Two),
        ),
        plain("wg_set_async_mode", 0xa646_5f7c, "wg_set_async_mode_reply", set_async_mode),
    ]
}

/// Which form of a peer: the second has a key known to both in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

fn u16_at(payload: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes_at(payload, at)?))
}

fn create(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let generate = u8_at(payload, 101)? != 0;
    let wg = Wg {
        instance: u32_at(payload, 10)?,
        private: if generate { cx.state.wireguard.generate() } else { *bytes_at::<32>(payload, 18)? },
        port: u16_at(payload, 82)?,
        src: address_at(payload, 84)?,
    };
    match cx.state.add_wireguard(wg) {
        Some(at) => cx.retval_and(OK, at),
        None => cx.retval_and(INVALID_REGISTRATION, NONE),
    }
    Some(())
}

fn delete(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let at = u32_at(payload, 10)?;
    let retval = if cx.state.interfaces.get(at).is_none() {
        INVALID_SW_IF_INDEX
    } else if cx.state.wireguard_at(at).is_none() {
        INVALID_VALUE
    } else {
        cx.state.delete_wireguard(at);
        OK
    };
    tell_first(cx);
    cx.retval(retval);
    Some(())
}

fn interface_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (show, wanted) = (u8_at(payload, 10)? != 0, u32_at(payload, 11)?);
    let all = cx.state.interfaces.iter().map(|(at, _)| at).filter(|at| wanted == NONE || wanted == *at);
    let found: Vec<(u32, Wg)> = all.filter_map(|at| Some((at, cx.state.wireguard_at(at)?.clone()))).collect();
    for (at, wg) in found {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&wg.instance.to_be_bytes());
            out.extend_from_slice(&at.to_be_bytes());
            out.extend_from_slice(&if show { wg.private } else { [0; 32] });
            out.extend_from_slice(&wg.public());
            out.extend_from_slice(&wg.port.to_be_bytes());
            push_address(out, wg.src.0, wg.src.1);
        });
    }
    Some(())
}

/// Only peers that are there now are watched from now on.
fn want_events(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (interface, peer, on) = (u32_at(payload, 10)?, u32_at(payload, 14)?, u32_at(payload, 18)? != 0);
    u32_at(payload, 22)?;
    let client = cx.client;
    let mut retval = OK;
    let all: Vec<u32> = cx.state.wireguard.peers.iter().map(|(at, _)| at).collect();
    for at in all {
        let Some(found) = cx.state.wireguard.peers.get_mut(at) else { continue };
        if (interface != NONE && found.interface != interface) || (peer != NONE && at != peer) {
            continue;
        }
        let watched = found.watchers.contains(&client);
        match (on, watched) {
            (true, false) => found.watchers.push(client),
            (false, true) => found.watchers.retain(|watcher| *watcher != client),
            (true, true) | (false, false) => retval = INVALID_REGISTRATION,
        }
    }
    cx.retval(retval);
    Some(())
}

fn add(cx: &mut Cx<'_>, payload: &[u8], version: Version) -> Option<()> {
    // Where the two forms differ: the second has the key, and whether it is one, before the public key.
    let more = if version == Version::Two { 33 } else { 0 };
    let preshared = match version {
        Version::One => None,
        Version::Two => (u8_at(payload, 46)? != 0).then_some(*bytes_at::<32>(payload, 14)?),
    };
    let at = |at: usize| at + more;
    let mut allowed = Vec::new();
    for place in 0..usize::from(u8_at(payload, at(76))?) {
        allowed.push(prefix_at(payload, at(77) + 18 * place)?);
    }
    let peer = Peer {
        public: *bytes_at::<32>(payload, at(14))?,
        preshared,
        port: u16_at(payload, at(46))?,
        keepalive: u16_at(payload, at(48))?,
        table: u32_at(payload, at(50))?,
        endpoint: address_at(payload, at(54))?,
        interface: u32_at(payload, at(71))?,
        allowed,
        flags: 0,
        watchers: Vec::new(),
    };
    let retval = if peer.allowed.is_empty() {
        INVALID_VALUE
    } else if cx.state.wireguard_at(peer.interface).is_none() {
        INVALID_SW_IF_INDEX
    } else if cx.state.fib.table(peer.endpoint.0, peer.table).is_none() {
        NO_SUCH_FIB
    } else if cx.state.wireguard.known(peer.interface, &peer.public) {
        ENTRY_ALREADY_EXISTS
    } else {
        OK
    };
    let index = if retval == OK { cx.state.add_peer(peer) } else { NONE };
    cx.retval_and(retval, index);
    Some(())
}

fn remove(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let at = u32_at(payload, 10)?;
    let removed = cx.state.wireguard.remove_peer(at);
    tell_first(cx);
    cx.retval(if removed { OK } else { NO_SUCH_ENTRY });
    Some(())
}

/// What a request causes to peers is told to its client before the answer.
fn tell_first(cx: &mut Cx<'_>) {
    let id = cx.state.wireguard.event_id;
    let client = cx.client;
    let (own, others): (Vec<_>, Vec<_>) =
        cx.state.wireguard.take_events().into_iter().partition(|event| event.client == client);
    for event in own {
        push_event(cx.out, id, event);
    }
    cx.state.wireguard.put_back(others);
}

/// Appends an event as a frame. Its client index is 0, whoever it is for.
pub(crate) fn push_event(out: &mut Vec<u8>, id: u16, event: PeerEvent) {
    frame::push(out, |out| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&event.peer.to_be_bytes());
        out.push(event.flags);
    });
}

fn peers_dump(cx: &mut Cx<'_>, payload: &[u8], version: Version) -> Option<()> {
    let wanted = u32_at(payload, 10)?;
    let found: Vec<(u32, Peer)> = cx
        .state
        .wireguard
        .peers
        .iter()
        .filter(|(at, _)| wanted == NONE || wanted == *at)
        .map(|(at, peer)| (at, peer.clone()))
        .collect();
    for (at, peer) in found {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&at.to_be_bytes());
            if version == Version::Two {
                out.extend_from_slice(&peer.preshared.unwrap_or(Key::default()));
                out.push(u8::from(peer.preshared.is_some()));
            }
            out.extend_from_slice(&peer.public);
            out.extend_from_slice(&peer.port.to_be_bytes());
            out.extend_from_slice(&peer.keepalive.to_be_bytes());
            out.extend_from_slice(&peer.table.to_be_bytes());
            push_address(out, peer.endpoint.0, peer.endpoint.1);
            out.extend_from_slice(&peer.interface.to_be_bytes());
            out.push(peer.flags);
            out.push(u8::try_from(peer.allowed.len()).unwrap_or(u8::MAX));
            for (af, addr, len) in &peer.allowed {
                push_address(out, *af, *addr);
                out.push(*len);
            }
        });
    }
    Some(())
}

fn set_async_mode(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    cx.state.wireguard.asynchronous = u8_at(payload, 10)? != 0;
    cx.retval(OK);
    Some(())
}
