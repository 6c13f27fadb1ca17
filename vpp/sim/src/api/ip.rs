//! `ip`: tables and addresses. Routes are in [`super::route`].

use vpp_wire::Message;
use vpp_wire::api::ip::{
    IpAddressDetails, IpAddressDump, IpTableAddDel, IpTableAddDelReply, IpTableDetails, IpTableDump,
    IpUnnumberedDetails, IpUnnumberedDump,
};
use vpp_wire::name::MsgName;

use super::field::{NONE, bytes_at, push_address, push_text, text, u8_at, u32_at};
use super::retval::{NO_SUCH_FIB, OK};
use super::row::{Row, foreign, row};
use crate::context::Cx;
use crate::state::key::Af;
use crate::state::sources::API;

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    vec![
        row::<IpAddressDump, IpAddressDetails>(ip_address_dump),
        row::<IpUnnumberedDump, IpUnnumberedDetails>(ip_unnumbered_dump),
        row::<IpTableAddDel, IpTableAddDelReply>(|cx, payload| {
            let is_add = IpTableAddDel::parse(payload).ok()?.is_add();
            add_del(cx, is_add, Table::at(payload, 11)?);
            Some(())
        }),
        row::<IpTableDump, IpTableDetails>(ip_table_dump),
        plain("ip_table_add_del_v2", 0x14e5_081f, "ip_table_add_del_v2_reply", |cx, payload| {
            add_del(cx, u8_at(payload, 80)? != 0, Table::at(payload, 10)?);
            Some(())
        }),
        foreign(
            MsgName::new("ip_table_allocate", 0xb9d2_e09e),
            MsgName::new("ip_table_allocate_reply", 0x1728_303a),
            79,
            ip_table_allocate,
        ),
        plain("ip_table_replace_begin", 0xb9d2_e09e, "ip_table_replace_begin_reply", |cx, payload| {
            on_table(cx, payload, |cx, table| cx.state.fib.mark(table.af, table.id, API))
        }),
        plain("ip_table_replace_end", 0xb9d2_e09e, "ip_table_replace_end_reply", |cx, payload| {
            on_table(cx, payload, |cx, table| cx.state.fib.sweep(table.af, table.id, API))
        }),
        plain("ip_table_flush", 0xb9d2_e09e, "ip_table_flush_reply", |cx, payload| {
            on_table(cx, payload, flush)
        }),
        plain("set_ip_flow_hash_v3", 0xb787_6e07, "set_ip_flow_hash_v3_reply", |cx, payload| {
            let (id, af) = (u32_at(payload, 10)?, Af::of_flag(u8_at(payload, 14)? == 1));
            u32_at(payload, 15)?;
            let known = cx.state.fib.table(af, id).is_some();
            cx.retval(if known { OK } else { NO_SUCH_FIB });
            Some(())
        }),
    ]
}

/// A table as requests name it.
struct Table<'a> {
    id: u32,
    af: Af,
    name: &'a [u8],
}

impl<'a> Table<'a> {
    fn at(payload: &'a [u8], at: usize) -> Option<Self> {
        Some(Self {
            id: u32_at(payload, at)?,
            af: Af::of_flag(u8_at(payload, at + 4)? != 0),
            name: text(bytes_at::<64>(payload, at + 5)?),
        })
    }
}

fn push_table(out: &mut Vec<u8>, af: Af, id: u32, name: &[u8]) {
    out.extend_from_slice(&id.to_be_bytes());
    out.push(u8::from(af == Af::Ip6));
    push_text::<64>(out, name);
}

fn add_del(cx: &mut Cx<'_>, is_add: bool, table: Table<'_>) {
    if is_add {
        cx.state.fib.add_table(table.af, table.id, table.name);
    } else {
        cx.state.fib.delete_table(table.af, table.id);
    }
    cx.retval(OK);
}

/// Runs `act` on the table at offset 10, if there is one.
fn on_table(cx: &mut Cx<'_>, payload: &[u8], act: impl FnOnce(&mut Cx<'_>, &Table<'_>)) -> Option<()> {
    let table = Table::at(payload, 10)?;
    let known = cx.state.fib.table(table.af, table.id).is_some();
    if known {
        act(cx, &table);
    }
    cx.retval(if known { OK } else { NO_SUCH_FIB });
    Some(())
}

/// Removes the API's routes, and takes down every interface in that table.
fn flush(cx: &mut Cx<'_>, table: &Table<'_>) {
    let inside: Vec<u32> = cx
        .state
        .interfaces
        .iter()
        .filter(|(_, interface)| interface.tables[table.af.index()] == table.id)
        .map(|(at, _)| at)
        .collect();
    for at in inside {
        cx.state.set_up(at, false);
    }
    cx.state.fib.flush(table.af, table.id, API);
}

fn ip_table_allocate(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let table = Table::at(payload, 10)?;
    let id = if table.id == NONE { cx.state.fib.unused_table(table.af) } else { table.id };
    cx.state.fib.add_table(table.af, id, table.name);
    cx.answer_with(|out, _| {
        out.extend_from_slice(&OK.to_be_bytes());
        push_table(out, table.af, id, table.name);
    });
    Some(())
}

fn ip_table_dump(cx: &mut Cx<'_>, _: &[u8]) -> Option<()> {
    for af in [Af::Ip4, Af::Ip6] {
        let ids: Vec<u32> = cx.state.fib.tables(af).map(|table| table.id).collect();
        for id in ids {
            cx.answer_with(|out, state| {
                if let Some(table) = state.fib.table(af, id) {
                    push_table(out, af, id, &table.name);
                }
            });
        }
    }
    // Tables without a number: where binding SIDs are looked up, as long as there are any.
    for of in cx.state.sr.is_used().then_some(["IP6", "IP4"]).into_iter().flatten() {
        let name = format!("SRv6 steering of {of} prefixes through BSIDs");
        cx.answer_with(|out, _| push_table(out, Af::Ip6, NONE, name.as_bytes()));
    }
    Some(())
}

fn ip_address_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let request = IpAddressDump::parse(payload).ok()?;
    let (at, af) = (request.sw_if_index.value(), Af::of_flag(request.is_ipv6.is_true()));
    for (addr, len) in cx.state.addresses(at, af) {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&at.to_be_bytes());
            push_address(out, af, addr);
            out.push(len);
        });
    }
    Some(())
}

fn ip_unnumbered_dump(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let wanted = IpUnnumberedDump::parse(payload).ok()?.sw_if_index.value();
    let found: Vec<(u32, u32)> = cx
        .state
        .interfaces
        .iter()
        .filter(|(at, _)| wanted == NONE || wanted == *at)
        .filter_map(|(at, interface)| Some((at, interface.lender?)))
        .collect();
    for (borrower, lender) in found {
        cx.answer_with(|out, _| {
            out.extend_from_slice(&borrower.to_be_bytes());
            out.extend_from_slice(&lender.to_be_bytes());
        });
    }
    Some(())
}
