//! `ikev2`: profiles, and associations as far as a test says that somebody answers.

use vpp_wire::name::MsgName;

use super::field::{NONE, bytes_at, push_text, text, u8_at, u32_at};
use super::retval::{INVALID_SW_IF_INDEX, INVALID_VALUE, OK, UNSPECIFIED};
use super::row::{Row, foreign, foreign_dump};
use crate::context::Cx;
use crate::state::ikev2::{Profile, Sa, Selector};

/// Bytes of `ikev2_id.data`.
const ID: usize = 64;
/// Bytes of `ikev2_keys`, which are all zero here.
const KEYS: usize = 455;
/// Bytes of what was negotiated, and of the counters behind it.
const NEGOTIATED: usize = 4 * 10 + 12;

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    let named = 0xebf7_9a66;
    vec![
        foreign(
            MsgName::new("ikev2_plugin_get_version", 0x5107_7d14),
            MsgName::new("ikev2_plugin_get_version_reply", 0x9b32_cf86),
            14,
            get_version,
        ),
        plain(
            "ikev2_plugin_set_sleep_interval",
            0xb7c0_96ae,
            "ikev2_plugin_set_sleep_interval_reply",
            set_sleep_interval,
        ),
        foreign(
            MsgName::new("ikev2_get_sleep_interval", 0x5107_7d14),
            MsgName::new("ikev2_get_sleep_interval_reply", 0x78ab_91dc),
            18,
            get_sleep_interval,
        ),
        plain("ikev2_profile_add_del", 0x2c92_5b55, "ikev2_profile_add_del_reply", add_del),
        plain("ikev2_profile_set_auth", 0x642c_97cd, "ikev2_profile_set_auth_reply", set_auth),
        plain("ikev2_profile_set_id", 0x4d7e_2418, "ikev2_profile_set_id_reply", set_id),
        plain("ikev2_profile_set_ts", 0x8eb8_cfd1, "ikev2_profile_set_ts_reply", set_ts),
        plain("ikev2_set_tunnel_interface", 0xca67_182c, "ikev2_set_tunnel_interface_reply", set_tunnel),
        plain("ikev2_set_responder", 0xa205_5df1, "ikev2_set_responder_reply", set_responder),
        plain("ikev2_set_ike_transforms", 0xaa99_fec0, "ikev2_set_ike_transforms_reply", set_ike_transforms),
        plain("ikev2_set_esp_transforms", 0xa63d_c205, "ikev2_set_esp_transforms_reply", set_esp_transforms),
        plain("ikev2_set_sa_lifetime", 0x7039_feaa, "ikev2_set_sa_lifetime_reply", set_lifetime),
        plain("ikev2_profile_set_udp_encap", named, "ikev2_profile_set_udp_encap_reply", set_udp_encap),
        plain("ikev2_profile_disable_natt", named, "ikev2_profile_disable_natt_reply", disable_natt),
        plain(
            "ikev2_profile_set_ipsec_udp_port",
            0x615c_e758,
            "ikev2_profile_set_ipsec_udp_port_reply",
            set_udp_port,
        ),
        plain("ikev2_profile_set_liveness", 0x6bdf_4d65, "ikev2_profile_set_liveness_reply", set_liveness),
        plain("ikev2_initiate_sa_init", named, "ikev2_initiate_sa_init_reply", initiate),
        foreign_dump(
            MsgName::new("ikev2_profile_dump", 0x5107_7d14),
            MsgName::new("ikev2_profile_details", 0x3e3e_895b),
            profile_dump,
        ),
        foreign_dump(
            MsgName::new("ikev2_sa_dump", 0x5107_7d14),
            MsgName::new("ikev2_sa_details", 0x937c_22d5),
            |cx, _| sa_dump(cx, Version::One),
        ),
        foreign_dump(
            MsgName::new("ikev2_sa_v2_dump", 0x5107_7d14),
            MsgName::new("ikev2_sa_v2_details", 0xa616_e604),
            |cx, _| sa_dump(cx, Version::Two),
        ),
        foreign_dump(
            MsgName::new("ikev2_sa_v3_dump", 0x5107_7d14),
            MsgName::new("ikev2_sa_v3_details", 0x85c9_a941),
            |cx, _| sa_dump(cx, Version::Three),
        ),
    ]
}

fn get_version(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    cx.answer_with(|out, _| out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0]));
    Some(())
}

fn set_sleep_interval(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    cx.state.ikev2.sleep_interval = *bytes_at(payload, 10)?;
    cx.retval(OK);
    Some(())
}

fn get_sleep_interval(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    cx.answer_with(|out, state| {
        out.extend_from_slice(&OK.to_be_bytes());
        out.extend_from_slice(&state.ikev2.sleep_interval);
    });
    Some(())
}

/// The name in the field at 10, where it mostly is.
fn name(payload: &[u8]) -> Option<&[u8]> {
    Some(text(bytes_at::<64>(payload, 10)?))
}

/// Changes a profile, and answers; -1 where there is none of this name.
fn change(cx: &mut Cx<'_>, name: &[u8], change: impl FnOnce(&mut Profile)) -> Option<()> {
    let known = cx.state.ikev2.named(name).map(change).is_some();
    // It may be what the other side was waiting for.
    cx.state.exchange(false);
    cx.retval(if known { OK } else { UNSPECIFIED });
    Some(())
}

fn add_del(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (name, add) = (name(payload)?, u8_at(payload, 74)? != 0);
    let done = if add { cx.state.add_profile(name) } else { cx.state.delete_profile(name) };
    cx.retval(if done { OK } else { UNSPECIFIED });
    Some(())
}

/// As many bytes as the field at `at` says, from the next one on.
fn counted(payload: &[u8], at: usize) -> Option<&[u8]> {
    let length = usize::try_from(u32_at(payload, at)?).ok()?;
    payload.get(at + 4..)?.get(..length)
}

fn set_auth(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (method, hex, data) = (u8_at(payload, 74)?, u8_at(payload, 75)?, counted(payload, 76)?.to_vec());
    if data.is_empty() {
        cx.retval(INVALID_VALUE);
        return Some(());
    }
    change(cx, name(payload)?, |profile| profile.auth = (method, hex, data))
}

fn set_id(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (local, kind, data) = (u8_at(payload, 74)? != 0, u8_at(payload, 75)?, counted(payload, 76)?.to_vec());
    change(cx, name(payload)?, |profile| {
        let id = if local { &mut profile.local_id } else { &mut profile.remote_id };
        *id = (kind, data);
    })
}

fn set_ts(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (local, selector) = (u8_at(payload, 82)? != 0, *bytes_at::<39>(payload, 83)?);
    change(cx, name(payload)?, |profile| {
        let place = if local { &mut profile.local_ts } else { &mut profile.remote_ts };
        *place = Some(selector);
    })
}

fn set_tunnel(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let at = u32_at(payload, 74)?;
    if cx.state.interfaces.get(at).is_none() {
        cx.retval(INVALID_SW_IF_INDEX);
        return Some(());
    }
    change(cx, name(payload)?, |profile| profile.tunnel = Some(at))
}

fn set_responder(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let responder = (u32_at(payload, 74)?, *bytes_at::<17>(payload, 78)?);
    change(cx, name(payload)?, |profile| profile.responder = Some(responder))
}

fn set_ike_transforms(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let transforms = *bytes_at::<8>(payload, 74)?;
    change(cx, name(payload)?, |profile| profile.ike_transforms = transforms)
}

/// As before 26.06, which took the first of the functions that make keys.
pub(crate) fn set_ike_transforms_2602(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let mut transforms = [0; 8];
    *transforms.first_chunk_mut()? = *bytes_at::<7>(payload, 74)?;
    change(cx, name(payload)?, |profile| profile.ike_transforms = transforms)
}

fn set_esp_transforms(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let transforms = *bytes_at::<6>(payload, 74)?;
    change(cx, name(payload)?, |profile| profile.esp_transforms = transforms)
}

fn set_lifetime(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let long = |at| Some(u64::from_be_bytes(*bytes_at(payload, at)?));
    let lifetime = (long(74)?, long(90)?, u32_at(payload, 82)?, u32_at(payload, 86)?);
    change(cx, name(payload)?, |profile| profile.lifetime = lifetime)
}

fn set_udp_encap(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    change(cx, name(payload)?, |profile| profile.udp_encap = true)
}

fn disable_natt(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    change(cx, name(payload)?, |profile| profile.natt_disabled = true)
}

fn set_udp_port(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let port = (u8_at(payload, 10)? != 0).then_some(u16::from_be_bytes(*bytes_at(payload, 11)?));
    change(cx, text(bytes_at::<64>(payload, 13)?), |profile| profile.udp_port = port)
}

fn set_liveness(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    u32_at(payload, 14)?;
    cx.retval(OK);
    Some(())
}

fn initiate(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let begun = cx.state.initiate(name(payload)?);
    cx.retval(if begun { OK } else { UNSPECIFIED });
    Some(())
}

fn push_id(out: &mut Vec<u8>, (kind, data): &(u8, Vec<u8>)) {
    let data = data.get(..ID).unwrap_or(data);
    out.push(*kind);
    out.push(data.len() as u8);
    out.extend_from_slice(data);
    out.resize(out.len() + ID - data.len(), 0);
}

fn push_selector(out: &mut Vec<u8>, local: bool, selector: &Selector) {
    out.extend_from_slice(&[0; 8]);
    out.push(u8::from(local));
    out.extend_from_slice(&selector.unwrap_or([0; 39]));
}

fn profile_dump(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    dump_profiles(cx, Profile::IKE_TRANSFORMS)
}

/// As before 26.06, without `prf_alg`.
pub(crate) fn profile_dump_2602(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    dump_profiles(cx, Profile::IKE_TRANSFORMS - 1)
}

/// `transforms`: so many bytes of those for key exchange.
fn dump_profiles(cx: &mut Cx<'_>, transforms: usize) -> Option<()> {
    let shown = |profile: &Profile| {
        let mut out = Vec::with_capacity(400);
        push_text::<64>(&mut out, &profile.name);
        push_id(&mut out, &profile.local_id);
        push_id(&mut out, &profile.remote_id);
        push_selector(&mut out, true, &profile.local_ts);
        push_selector(&mut out, false, &profile.remote_ts);
        let (interface, address) = profile.responder.unwrap_or((NONE, [0; 17]));
        out.extend_from_slice(&interface.to_be_bytes());
        out.extend_from_slice(&address);
        out.extend_from_slice(profile.ike_transforms.get(..transforms).unwrap_or(&[]));
        out.extend_from_slice(&profile.esp_transforms);
        let (lifetime, most_data, jitter, handover) = profile.lifetime;
        out.extend_from_slice(&lifetime.to_be_bytes());
        out.extend_from_slice(&most_data.to_be_bytes());
        out.extend_from_slice(&jitter.to_be_bytes());
        out.extend_from_slice(&handover.to_be_bytes());
        out.extend_from_slice(&profile.udp_port.unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(&profile.tunnel.unwrap_or(NONE).to_be_bytes());
        out.push(u8::from(profile.udp_encap));
        out.push(u8::from(profile.natt_disabled));
        let (method, hex, data) = &profile.auth;
        out.extend_from_slice(&[*method, *hex]);
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
        out
    };
    let all: Vec<Vec<u8>> = cx.state.ikev2.profiles.iter().map(|(_, profile)| shown(profile)).collect();
    for shown in all {
        cx.answer_with(|out, _| out.extend_from_slice(&shown));
    }
    Some(())
}

/// The forms in which associations are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
    Three,
}

fn sa_dump(cx: &mut Cx<'_>, version: Version) -> Option<()> {
    let with_sa = cx.state.ikev2.profiles.iter().filter_map(|(at, profile)| Some((at, profile, profile.sa?)));
    let shown = |number: u32, at: u32, profile: &Profile, sa: Sa| {
        let mut out = vec![0; 4];
        out.extend_from_slice(&number.to_be_bytes());
        match version {
            Version::One => out.extend_from_slice(&at.to_be_bytes()),
            Version::Two | Version::Three => {
                push_text::<64>(&mut out, &profile.name);
                out.extend_from_slice(&sa.state.to_be_bytes());
            }
        }
        out.extend_from_slice(&sa.spi[0].to_be_bytes());
        out.extend_from_slice(&sa.spi[1].to_be_bytes());
        let (ours, theirs) = (&profile.local_id, &profile.remote_id);
        let (initiator, responder) = if sa.initiator { (ours, theirs) } else { (theirs, ours) };
        for (_, address) in [initiator, responder] {
            out.push(0);
            out.extend_from_slice(address.get(..4).unwrap_or(&[0; 4]));
            out.extend_from_slice(&[0; 12]);
        }
        out.resize(out.len() + KEYS, 0);
        push_id(&mut out, initiator);
        push_id(&mut out, responder);
        out.resize(out.len() + NEGOTIATED, 0);
        if version == Version::Three {
            out.extend_from_slice(&0f64.to_le_bytes());
        }
        out
    };
    let all: Vec<Vec<u8>> =
        (0u32..).zip(with_sa).map(|(number, (at, profile, sa))| shown(number, at, profile, sa)).collect();
    for shown in all {
        cx.answer_with(|out, _| out.extend_from_slice(&shown));
    }
    Some(())
}
