//! `ipsec`, `crypto_sw_scheduler`, and `show_threads` of `vlib`: who encrypts. Nothing is encrypted here.

use vpp_wire::name::MsgName;

use super::field::{push_text, u8_at, u32_at};
use super::retval::{INVALID_VALUE, INVALID_VALUE_2, OK};
use super::row::{Row, foreign};
use crate::context::Cx;

pub(super) fn rows() -> Vec<Row> {
    let plain = |name, crc, answer, serve| {
        foreign(MsgName::new(name, crc), MsgName::new(answer, 0xe8d4_e804), 10, serve)
    };
    vec![
        plain("ipsec_set_async_mode", 0xa646_5f7c, "ipsec_set_async_mode_reply", set_async_mode),
        plain(
            "crypto_sw_scheduler_set_worker",
            0xb427_4502,
            "crypto_sw_scheduler_set_worker_reply",
            set_worker,
        ),
        foreign(
            MsgName::new("show_threads", 0x5107_7d14),
            MsgName::new("show_threads_reply", 0xefd7_8e83),
            14,
            show_threads,
        ),
    ]
}

fn set_async_mode(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    cx.state.crypto.asynchronous = u8_at(payload, 10)? != 0;
    cx.retval(OK);
    Some(())
}

/// Somebody must be left who encrypts; the main thread counts.
fn set_worker(cx: &mut Cx<'_>, payload: &[u8]) -> Option<()> {
    let (worker, on) = (u32_at(payload, 10)?, u8_at(payload, 14)? != 0);
    let able = 1 + cx.state.crypto.workers.iter().filter(|on| **on).count();
    let place = cx.state.crypto.workers.get_mut(worker as usize);
    let retval = match place {
        None => INVALID_VALUE,
        Some(_) if !on && able <= 1 => INVALID_VALUE_2,
        Some(place) => {
            *place = on;
            OK
        }
    };
    cx.retval(retval);
    Some(())
}

fn show_threads(cx: &mut Cx<'_>, _payload: &[u8]) -> Option<()> {
    cx.answer_with(|out, state| {
        let workers = state.crypto.workers.len() as u32;
        out.extend_from_slice(&OK.to_be_bytes());
        out.extend_from_slice(&(workers + 1).to_be_bytes());
        for id in 0..=workers {
            let (name, kind) =
                if id == 0 { ("vpp_main".to_owned(), "") } else { (format!("vpp_wk_{}", id - 1), "workers") };
            out.extend_from_slice(&id.to_be_bytes());
            push_text::<64>(out, name.as_bytes());
            push_text::<64>(out, kind.as_bytes());
            out.extend_from_slice(&std::process::id().to_be_bytes());
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&id.to_be_bytes());
            out.extend_from_slice(&0u32.to_be_bytes());
        }
    });
    Some(())
}
