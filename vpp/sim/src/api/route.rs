//! `ip`: routes. Version 1 is version 2 without a source: its routes are the API's.

use vpp_wire::api::ip::{IpRouteAddDelV2, IpRouteAddDelV2Reply, IpRouteV2Details, IpRouteV2Dump};
use vpp_wire::name::MsgName;
use vpp_wire::{Message, frame};
use zerocopy::{FromBytes, IntoBytes};

use super::field::{NONE, prefix_at, push_address, u8_at, u32_at};
use super::retval::{
    INVALID_PREFIX_LENGTH, NO_MATCHING_INTERFACE, NO_PATHS_IN_ROUTE, NO_SUCH_ENTRY, NO_SUCH_FIB,
    NO_SUCH_TABLE, OK, UNSPECIFIED,
};
use super::row::{Row, foreign, row};
use crate::context::Cx;
use crate::state::State;
use crate::state::fib::Listed;
use crate::state::key::{Af, Key};
use crate::state::path::{self, Path};
use crate::state::sources::API;
use crate::vpp::Death;

/// Bytes of the details of a route with one path, header included.
const USUAL_DETAILS: usize = frame::HEADER + 34 + size_of::<Path>();

/// With and without source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

pub(super) fn rows() -> Vec<Row> {
    let old = |name, crc, answer, answer_crc, size, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, answer_crc), size, serve)
    };
    vec![
        row::<IpRouteAddDelV2, IpRouteAddDelV2Reply>(|cx, payload| add_del(cx, payload, Version::V2)),
        row::<IpRouteV2Dump, IpRouteV2Details>(|cx, payload| {
            let source = IpRouteV2Dump::parse(payload).ok()?.src.value();
            dump(cx, payload, 11, (source != 0).then_some(source), Version::V2)
        }),
        old("ip_route_add_del", 0xb8ec_fe0d, "ip_route_add_del_reply", 0x1992_deab, 14, |cx, payload| {
            add_del(cx, payload, Version::V1)
        }),
        Row {
            is_dump: true,
            ..old("ip_route_dump", 0xb9d2_e09e, "ip_route_details", 0xbda8_f315, 33, |cx, payload| {
                dump(cx, payload, 10, None, Version::V1)
            })
        },
        old("ip_route_lookup", 0x710d_6471, "ip_route_lookup_reply", 0x5d8f_ebcb, 37, |cx, payload| {
            lookup(cx, payload, Version::V1)
        }),
        old("ip_route_lookup_v2", 0x710d_6471, "ip_route_lookup_v2_reply", 0x84cc_9e03, 38, |cx, payload| {
            lookup(cx, payload, Version::V2)
        }),
    ]
}

fn add_del(cx: &mut Cx<'_>, payload: &[u8], version: Version) -> Option<()> {
    let (is_add, is_multipath) = (u8_at(payload, 10)? != 0, u8_at(payload, 11)? != 0);
    let table = u32_at(payload, 12)?;
    let (af, addr, len) = prefix_at(payload, 20)?;
    let count = usize::from(u8_at(payload, 38)?);
    let (source, rest) = match version {
        Version::V1 => (API, payload.get(39..)?),
        Version::V2 => (u8_at(payload, 39)?, payload.get(40..)?),
    };
    let source = if source == 0 { API } else { source };
    let (paths, _) = <[Path]>::ref_from_prefix_with_elems(rest, count).ok()?;

    let retval = check(cx.state, af, table, len, paths, is_add, is_multipath);
    if retval != OK {
        cx.retval_and(retval, NONE);
        return Some(());
    }
    if is_add && paths.iter().any(|path| path.kind.get() == path::UDP_ENCAP) {
        cx.death = Some(Death::UdpEncap);
        return Some(());
    }
    let key = Key::new(addr, len);
    let fib = &mut cx.state.fib;
    cx.paths.clear();
    cx.paths.extend_from_slice(paths);
    // Out of an interface to one host: VPP takes the host for the neighbour, and lists it so.
    if len == af.max_len() {
        for path in cx.paths.iter_mut().filter(|path| path::shape(path) == path::Shape::Attached) {
            path.address = addr;
        }
    }
    let stats_index = match (is_add, is_multipath) {
        (true, false) => fib.put(af, table, key, addr, source, cx.paths),
        (true, true) => fib.add_paths(af, table, key, addr, source, cx.paths),
        (false, false) => {
            fib.take(af, table, key, source);
            None
        }
        (false, true) => {
            fib.remove_paths(af, table, key, source, cx.paths);
            None
        }
    };
    cx.retval_and(OK, stats_index.unwrap_or(NONE));
    Some(())
}

/// What VPP checks, in its order. A delete is checked like an add.
fn check(
    state: &State,
    af: Af,
    table: u32,
    len: u8,
    paths: &[Path],
    is_add: bool,
    is_multipath: bool,
) -> i32 {
    if len > af.max_len() {
        return INVALID_PREFIX_LENGTH;
    }
    if state.fib.table(af, table).is_none() {
        return NO_SUCH_FIB;
    }
    for path in paths {
        let proto = path.proto.get();
        if proto > path::LAST_PROTO {
            return UNSPECIFIED;
        }
        match path.kind.get() {
            path::CLASSIFY => return NO_SUCH_TABLE,
            path::NORMAL | path::SOURCE_LOOKUP if proto <= 1 => {
                let interface = path.sw_if_index.get();
                if interface == path::NO_INTERFACE {
                    if state.fib.table(Af::of_flag(proto == 1), path.table_id.get()).is_none() {
                        return NO_SUCH_FIB;
                    }
                } else if state.interfaces.get(interface).is_none() {
                    return NO_MATCHING_INTERFACE;
                }
            }
            _ => {}
        }
    }
    if paths.is_empty() && (is_add || is_multipath) {
        return NO_PATHS_IN_ROUTE;
    }
    OK
}

fn dump(
    cx: &mut Cx<'_>,
    payload: &[u8],
    table_at: usize,
    source: Option<u8>,
    version: Version,
) -> Option<()> {
    let (id, af) = (u32_at(payload, table_at)?, Af::of_flag(u8_at(payload, table_at + 4)? != 0));
    payload.get(table_at + 68)?;
    cx.answer_each(|out, state, head| {
        let Some(table) = state.fib.table(af, id) else { return };
        let routes = state.fib.list(af, table, source);
        out.reserve(routes.size_hint().1.unwrap_or(0) * USUAL_DETAILS);
        for route in routes {
            frame::push(out, |out| {
                head(out);
                push_route(out, af, id, &route, version);
            });
        }
    });
    Some(())
}

fn lookup(cx: &mut Cx<'_>, payload: &[u8], version: Version) -> Option<()> {
    let (id, exact) = (u32_at(payload, 10)?, u8_at(payload, 14)? != 0);
    let (af, addr, len) = prefix_at(payload, 15)?;
    cx.answer_with(|out, state| {
        let table = state.fib.table(af, id);
        let found =
            table.and_then(|table| state.fib.lookup(af, table, Key::new(addr, len.min(af.max_len())), exact));
        let retval = match (table, &found) {
            (None, _) => NO_SUCH_FIB,
            (_, None) => NO_SUCH_ENTRY,
            (Some(_), Some(_)) => OK,
        };
        out.extend_from_slice(&retval.to_be_bytes());
        match found {
            Some(route) => push_route(out, af, id, &route, version),
            None => out.resize(out.len() + if version == Version::V1 { 27 } else { 28 }, 0),
        }
    });
    Some(())
}

fn push_route(out: &mut Vec<u8>, af: Af, table: u32, route: &Listed<'_>, version: Version) {
    out.extend_from_slice(&table.to_be_bytes());
    out.extend_from_slice(&route.stats_index.to_be_bytes());
    push_address(out, af, route.given);
    out.push(route.key.len);
    let paths = route.paths.get(..route.paths.len().min(255)).unwrap_or(&[]);
    out.push(u8::try_from(paths.len()).unwrap_or(u8::MAX));
    if version == Version::V2 {
        out.push(route.source);
    }
    out.extend_from_slice(paths.as_bytes());
}
