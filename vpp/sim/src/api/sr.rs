//! `sr`: SRv6. Its return values are its own and mean something else than in VPP's table.
//!
//! What kills a VPP kills this: an empty list of segments, steering in an unknown table, a behaviour from 14 on, which
//! only plugins would have. More than 16 SIDs are accepted; VPP reads on behind the list, here zeros come.

use vpp_wire::name::MsgName;

use super::field::{bytes_at, prefix_at, push_address, u8_at, u32_at};
use super::retval::{INVALID_SW_IF_INDEX, INVALID_VALUE, OK};
use super::row::{Row, Serve, foreign, foreign_dump};
use crate::context::Cx;
use crate::state::key::Af;
use crate::state::sr::{Localsid, Policy};
use crate::vpp::Death;

/// Bytes of a list of segments: count, weight, room for 16.
const LIST: usize = 261;
/// SIDs that have room in a list.
const ROOM: usize = 16;
/// The first behaviour that belongs to plugins.
const FIRST_OF_PLUGINS: u8 = 14;

mod behavior {
    pub(super) const X: u8 = 2;
    pub(super) const DX2: u8 = 5;
    pub(super) const DX6: u8 = 6;
    pub(super) const DX4: u8 = 7;
    pub(super) const END_UN_PERF: u8 = 11;
    pub(super) const END_UN: u8 = 12;
    pub(super) const UA: u8 = 13;
}

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve: Serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    let dump = |name, answer, crc, serve: Serve| {
        foreign_dump(MsgName::new(name, 0x5107_7d14), MsgName::new(answer, crc), serve)
    };
    vec![
        plain("sr_set_encap_source", 0xd3ba_d5e1, "sr_set_encap_source_reply", |cx, payload| {
            cx.state.sr.encap_source = *bytes_at(payload, 10)?;
            cx.retval(OK);
            Some(())
        }),
        plain("sr_set_encap_hop_limit", 0xaa75_d7d0, "sr_set_encap_hop_limit_reply", |cx, payload| {
            cx.retval(if u8_at(payload, 10)? == 0 { INVALID_VALUE } else { OK });
            Some(())
        }),
        plain("sr_localsid_add_del", 0x5a36_c324, "sr_localsid_add_del_reply", localsid),
        plain("sr_policy_add", 0x44ac_92e8, "sr_policy_add_reply", |cx, payload| {
            policy_add(cx, payload, None)
        }),
        plain("sr_policy_add_v2", 0xf629_7f36, "sr_policy_add_v2_reply", |cx, payload| {
            policy_add(cx, payload, Some(*bytes_at(payload, 36 + LIST)?))
        }),
        plain("sr_policy_mod", 0xb97b_b56e, "sr_policy_mod_reply", |cx, payload| {
            policy_mod(cx, payload, None)
        }),
        plain("sr_policy_mod_v2", 0xc054_4823, "sr_policy_mod_v2_reply", |cx, payload| {
            policy_mod(cx, payload, Some(*bytes_at(payload, 43 + LIST)?))
        }),
        plain("sr_policy_del", 0xcb4d_48d5, "sr_policy_del_reply", |cx, payload| {
            u32_at(payload, 26)?;
            let retval = cx.state.remove_sr_policy(*bytes_at(payload, 10)?);
            cx.retval(retval);
            Some(())
        }),
        plain("sr_steering_add_del", 0xe46b_0a0f, "sr_steering_add_del_reply", steering),
        dump("sr_localsids_dump", "sr_localsids_details", 0x2e92_21b9, localsids_dump),
        dump("sr_policies_dump", "sr_policies_details", 0xdb6f_f2a1, |cx, _| policies_dump(cx, Form::V1)),
        dump("sr_policies_v2_dump", "sr_policies_v2_details", 0x96dc_b699, |cx, _| {
            policies_dump(cx, Form::V2)
        }),
        dump("sr_policies_with_sl_index_dump", "sr_policies_with_sl_index_details", 0xca2e_9bc8, |cx, _| {
            policies_dump(cx, Form::WithIndex)
        }),
        dump("sr_steering_pol_dump", "sr_steering_pol_details", 0xd412_58c9, steering_dump),
    ]
}

fn localsid(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (is_del, sid) = (u8_at(payload, 10)? != 0, *bytes_at::<16>(payload, 11)?);
    let (behavior, target, table) = (u8_at(payload, 28)?, u32_at(payload, 29)?, u32_at(payload, 37)?);
    let (af, next_hop) = super::field::address_at(payload, 41)?;
    let crosses =
        matches!(behavior, behavior::X | behavior::DX2 | behavior::DX4 | behavior::DX6 | behavior::UA);
    if crosses && cx.state.interfaces.get(target).is_none() {
        cx.retval(INVALID_SW_IF_INDEX);
        return Some(());
    }
    let len = match behavior {
        behavior::END_UN | behavior::END_UN_PERF => 48,
        behavior::UA => 64,
        _ => 128,
    };
    let retval = if is_del {
        cx.state.remove_localsid(sid, len, table)
    } else if behavior >= FIRST_OF_PLUGINS {
        cx.death = Some(Death::LocalsidBehavior);
        return Some(());
    } else {
        let next_hop = (crosses && behavior != behavior::DX2).then_some((af, next_hop));
        let psp = u8_at(payload, 27)? != 0;
        cx.state.add_localsid(Localsid { sid, len, psp, behavior, table, target, next_hop })
    };
    cx.retval(retval);
    Some(())
}

/// The SIDs of the list that begins at an offset, and its weight. Whoever sends more than there is room for is believed.
fn list_at(payload: &[u8], at: usize) -> Option<(Vec<[u8; 16]>, u32)> {
    let count = usize::from(u8_at(payload, at)?);
    payload.get(at..at + LIST)?;
    let sid = |number: usize| {
        let inside = number < ROOM;
        inside.then(|| bytes_at::<16>(payload, at + 5 + number * 16).copied()).flatten().unwrap_or_default()
    };
    Some(((0..count).map(sid).collect(), u32_at(payload, at + 1)?))
}

fn policy_add(cx: &mut Cx<'_>, payload: &[u8], source: Option<[u8; 16]>) -> Option<()> {
    let (sids, weight) = list_at(payload, 36)?;
    let policy = Policy {
        bsid: *bytes_at(payload, 10)?,
        encap: u8_at(payload, 30)? != 0,
        kind: u8_at(payload, 31)?,
        table: u32_at(payload, 32)?,
        encap_src: given(cx, source),
        lists: Vec::new(),
    };
    if sids.is_empty() {
        cx.death = Some(Death::EmptySidList);
        return Some(());
    }
    let retval = cx.state.add_sr_policy(policy, sids, weight);
    cx.retval(retval);
    Some(())
}

fn policy_mod(cx: &mut Cx<'_>, payload: &[u8], source: Option<[u8; 16]>) -> Option<()> {
    let bsid = *bytes_at(payload, 10)?;
    let (operation, index) = (u8_at(payload, 34)?, u32_at(payload, 35)?);
    let (sids, weight) = list_at(payload, 43)?;
    let retval = match operation {
        1 if sids.is_empty() => {
            cx.death = Some(Death::EmptySidList);
            return Some(());
        }
        1 => {
            let source = given(cx, source);
            cx.state.add_sid_list(bsid, source, sids, weight)
        }
        2 => cx.state.remove_sid_list(bsid, index),
        3 => cx.state.weigh_sid_list(bsid, index, weight),
        _ => -1,
    };
    cx.retval(retval);
    Some(())
}

/// The source of a request, or the one that was set for all.
fn given(cx: &Cx<'_>, source: Option<[u8; 16]>) -> [u8; 16] {
    source.filter(|source| *source != [0; 16]).unwrap_or(cx.state.sr.encap_source)
}

fn steering(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (is_del, bsid) = (u8_at(payload, 10)? != 0, *bytes_at::<16>(payload, 11)?);
    let table = match u32_at(payload, 31)? {
        u32::MAX => 0,
        table => table,
    };
    let (_, addr, len) = prefix_at(payload, 35)?;
    u32_at(payload, 53)?;
    let af = match u8_at(payload, 57)? {
        4 => Af::Ip4,
        6 => Af::Ip6,
        // Frames are steered by nobody here.
        _ => {
            cx.retval(-1);
            return Some(());
        }
    };
    let retval = if is_del {
        cx.state.unsteer(af, table, (addr, len))
    } else if cx.state.fib.table(af, table).is_none() {
        cx.death = Some(Death::SteeringTable);
        return Some(());
    } else {
        cx.state.steer(bsid, af, table, (addr, len))
    };
    cx.retval(retval);
    Some(())
}

fn localsids_dump(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    let all: Vec<Localsid> = cx.state.sr.localsids().cloned().collect();
    for sid in all {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&sid.sid);
            out.extend_from_slice(&[u8::from(sid.psp), sid.behavior]);
            out.extend_from_slice(&sid.table.to_be_bytes());
            out.extend_from_slice(&[0; 4]);
            let (af, next_hop) = sid.next_hop.unwrap_or((Af::Ip4, [0; 16]));
            push_address(out, af, next_hop);
            out.extend_from_slice(&sid.target.to_be_bytes());
        });
    }
    Some(())
}

/// Which details of a policy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    V1,
    V2,
    WithIndex,
}

fn policies_dump(cx: &mut Cx<'_>, form: Form) -> Option<()> {
    let all: Vec<Policy> = cx.state.sr.policies().cloned().collect();
    for policy in all {
        cx.answer_with(|out, state| {
            out.extend_from_slice(&policy.bsid);
            let spray = u8::from(policy.kind == 1);
            match form {
                Form::V2 => {
                    out.extend_from_slice(&policy.encap_src);
                    out.push(policy.kind);
                }
                Form::V1 | Form::WithIndex => out.push(spray),
            }
            out.push(u8::from(policy.encap));
            out.extend_from_slice(&policy.table.to_be_bytes());
            // Counted in one octet, whatever there is.
            out.push(policy.lists.len() as u8);
            for (index, list) in state.sr.lists(&policy).take(usize::from(policy.lists.len() as u8)) {
                out.push(list.sids.len() as u8);
                out.extend_from_slice(&list.weight.to_be_bytes());
                if form == Form::WithIndex {
                    out.extend_from_slice(&index.to_be_bytes());
                }
                let room = list.sids.iter().copied().chain(std::iter::repeat([0; 16])).take(ROOM);
                room.for_each(|sid| out.extend_from_slice(&sid));
            }
        });
    }
    Some(())
}

fn steering_dump(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    let all: Vec<_> = cx.state.sr.steerings().map(|(steering, bsid)| (steering.clone(), bsid)).collect();
    for (steering, bsid) in all {
        cx.answer_with(|out, _| {
            out.push(if steering.af == Af::Ip4 { 4 } else { 6 });
            out.extend_from_slice(&steering.table.to_be_bytes());
            push_address(out, steering.af, steering.prefix.0);
            out.push(steering.prefix.1);
            // In the place of an interface VPP shows what it has in that memory: the first bytes of an IPv6 address.
            let [a, b, c, d, ..] = if steering.af == Af::Ip6 { steering.prefix.0 } else { [0; 16] };
            out.extend_from_slice(&[d, c, b, a]);
            out.extend_from_slice(&bsid);
        });
    }
    Some(())
}
