//! `cnat`: source translation and services. Nothing is translated here.

use vpp_wire::name::MsgName;

use super::field::{bytes_at, prefix_at, u8_at, u32_at};
use super::retval::{FEATURE_DISABLED, INVALID_SW_IF_INDEX, INVALID_VALUE, NO_SUCH_ENTRY, OK};
use super::row::{Row, foreign, foreign_dump};
use crate::context::Cx;
use crate::state::cnat::{BACKEND, IF_TABLES, TRANSLATION};
use crate::state::key::Af;
use crate::vpp::Death;

/// The highest policy.
const POLICY_DNAT: u8 = 3;

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    vec![
        plain("cnat_set_snat_addresses", 0xd997_e96c, "cnat_set_snat_addresses_reply", set_addresses),
        plain(
            "cnat_set_snat_addresses_v2",
            0xc012_5c26,
            "cnat_set_snat_addresses_v2_reply",
            set_addresses_v2,
        ),
        plain("cnat_set_snat_policy", 0x37a3_ce23, "cnat_set_snat_policy_reply", set_policy),
        plain(
            "cnat_snat_policy_add_del_exclude_pfx",
            0xe26d_d79a,
            "cnat_snat_policy_add_del_exclude_pfx_reply",
            exclude_prefix,
        ),
        plain(
            "cnat_snat_policy_add_del_if",
            0x4ebb_8d02,
            "cnat_snat_policy_add_del_if_reply",
            policy_interface,
        ),
        plain("cnat_translation_del", 0x3a91_bde5, "cnat_translation_del_reply", translation_del),
        plain("cnat_session_purge", 0x5107_7d14, "cnat_session_purge_reply", session_purge),
        foreign(
            MsgName::new("cnat_translation_update", 0xf8d4_0bc5),
            MsgName::new("cnat_translation_update_reply", 0xe2fc_8294),
            14,
            translation_update,
        ),
        foreign(
            MsgName::new("cnat_get_snat_addresses", 0x5107_7d14),
            MsgName::new("cnat_get_snat_addresses_reply", 0x8795_13c1),
            38,
            get_addresses,
        ),
        foreign_dump(
            MsgName::new("cnat_snat_addresses_dump", 0x5107_7d14),
            MsgName::new("cnat_snat_addresses_details", 0x09ae_6b38),
            addresses_dump,
        ),
        foreign_dump(
            MsgName::new("cnat_translation_dump", 0x5107_7d14),
            MsgName::new("cnat_translation_details", 0x1a51_40b7),
            translation_dump,
        ),
        // No session ever comes to be.
        foreign_dump(
            MsgName::new("cnat_session_dump", 0x5107_7d14),
            MsgName::new("cnat_session_details", 0x7a78_bf3f),
            |_, _| Some(()),
        ),
    ]
}

fn set_addresses(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    set(cx, *bytes_at(payload, 10)?, *bytes_at(payload, 14)?, u32_at(payload, 30)?)
}

fn set_addresses_v2(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (forward, back) = (u32_at(payload, 10)?, u32_at(payload, 14)?);
    u8_at(payload, 42)?;
    // Indices, not ids: as many as there are tables.
    let tables = cx.state.fib.tables(Af::Ip4).count().max(cx.state.fib.tables(Af::Ip6).count());
    if [forward, back].iter().any(|index| usize::try_from(*index).is_ok_and(|index| index >= tables)) {
        cx.death = Some(Death::SnatTable);
        return Some(());
    }
    set(cx, *bytes_at(payload, 18)?, *bytes_at(payload, 22)?, u32_at(payload, 38)?)
}

fn set(cx: &mut Cx<'_>, ip4: [u8; 4], ip6: [u8; 16], sw_if_index: u32) -> Option<()> {
    let done = cx.state.cnat.set_addresses(ip4, ip6, sw_if_index);
    cx.retval(if done { OK } else { FEATURE_DISABLED });
    Some(())
}

fn get_addresses(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    cx.answer_with(|out, state| {
        let snat = state.cnat.snat.as_ref();
        out.extend_from_slice(&if snat.is_some() { OK } else { FEATURE_DISABLED }.to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&snat.map_or([0; 4], |snat| snat.ip4));
        out.extend_from_slice(&snat.map_or([0; 16], |snat| snat.ip6));
        out.extend_from_slice(&snat.map_or(0, |snat| snat.sw_if_index).to_be_bytes());
    });
    Some(())
}

fn addresses_dump(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    if cx.state.cnat.snat.is_none() {
        return Some(());
    }
    cx.answer_with(|out, state| {
        let Some(snat) = &state.cnat.snat else { return };
        // A return value, and four tables: forward and return of each family.
        out.extend_from_slice(&[0; 20]);
        out.extend_from_slice(&snat.ip4);
        out.extend_from_slice(&snat.ip6);
        out.extend_from_slice(&snat.sw_if_index.to_be_bytes());
    });
    Some(())
}

fn set_policy(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let policy = u8_at(payload, 10)?;
    let Some(snat) = &mut cx.state.cnat.snat else {
        cx.death = Some(Death::SnatWithoutAddresses);
        return Some(());
    };
    let known = policy <= POLICY_DNAT;
    if known {
        snat.policy = policy;
    }
    cx.retval(if known { OK } else { INVALID_VALUE });
    Some(())
}

fn exclude_prefix(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (add, prefix) = (u8_at(payload, 10)? != 0, prefix_at(payload, 11)?);
    let Some(snat) = &mut cx.state.cnat.snat else {
        cx.death = Some(Death::SnatWithoutAddresses);
        return Some(());
    };
    snat.exclude(add, prefix);
    cx.retval(OK);
    Some(())
}

fn policy_interface(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (at, add, table) = (u32_at(payload, 10)?, u8_at(payload, 14)? != 0, u8_at(payload, 15)?);
    let known = cx.state.interfaces.get(at).is_some();
    let retval = match (&mut cx.state.cnat.snat, usize::from(table)) {
        _ if !known => INVALID_SW_IF_INDEX,
        (_, IF_TABLES..) => INVALID_VALUE,
        (None, _) => FEATURE_DISABLED,
        (Some(snat), table) => {
            if let Some(table) = snat.interfaces.get_mut(table) {
                if add {
                    table.insert(at);
                } else {
                    table.remove(&at);
                }
            }
            OK
        }
    };
    cx.retval(retval);
    Some(())
}

fn translation_update(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let backends = usize::try_from(u32_at(payload, 10 + 32)?).ok()?;
    let length = TRANSLATION.checked_add(backends.checked_mul(BACKEND)?)?;
    let translation = payload.get(10..)?.get(..length)?;
    if backends == 0 {
        cx.death = Some(Death::TranslationWithoutBackends);
        return Some(());
    }
    let id = cx.state.cnat.put_translation(translation);
    cx.retval_and(OK, id);
    Some(())
}

fn translation_del(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let known = cx.state.cnat.delete_translation(u32_at(payload, 10)?);
    cx.retval(if known { OK } else { NO_SUCH_ENTRY });
    Some(())
}

/// Details leave out flags, kind of load balancing and flow hash; a backend that is resolved has flag 4.
fn translation_dump(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    let all: Vec<Vec<u8>> = cx
        .state
        .cnat
        .translations()
        .map(|(id, given)| {
            let mut shown = given.to_vec();
            let mut put = |at: usize, bytes: &[u8]| {
                for (place, byte) in shown.iter_mut().skip(at).zip(bytes) {
                    *place = *byte;
                }
            };
            put(24, &id.to_be_bytes());
            put(29, &[0, 0, 0]);
            put(36, &[0; 4]);
            let backends = given.len().saturating_sub(TRANSLATION) / BACKEND;
            for backend in 0..backends {
                put(TRANSLATION + backend * BACKEND + BACKEND - 1, &[4]);
            }
            shown
        })
        .collect();
    for shown in all {
        cx.answer_with(|out, _| out.extend_from_slice(&shown));
    }
    Some(())
}

fn session_purge(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    cx.state.cnat.purge();
    cx.retval(OK);
    Some(())
}
