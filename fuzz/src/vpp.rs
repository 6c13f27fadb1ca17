//! What must hold for any octets that a VPP may send.

use vpp_wire::api::messages;
use vpp_wire::frame::{Cut, HEADER, cut};
use vpp_wire::head::{context_at, message_id};

/// Octets as a stream of frames, and each of their payloads as every message there is.
pub(crate) fn stream(mut octets: &[u8]) {
    loop {
        match cut(octets) {
            Ok(Cut::Frame(payload)) => {
                assert_eq!(payload.len(), octets.len().min(HEADER + payload.len()) - HEADER);
                every_message(payload);
                octets = &octets[HEADER + payload.len()..];
            }
            Ok(Cut::Need(total)) => return assert!(total > octets.len() && total >= HEADER),
            Err(_) => return,
        }
    }
}

fn every_message(payload: &[u8]) {
    let _ = (message_id(payload), context_at(payload, 2), context_at(payload, 6));
    for message in messages() {
        match (message.measure)(payload) {
            Ok(length) => {
                assert!(length >= message.layout.fixed && length <= payload.len(), "{}", message.name);
                // What stands behind does not matter, and nothing can be left away.
                assert_eq!((message.measure)(&payload[..length]), Ok(length), "{}", message.name);
                assert!((message.measure)(&payload[..length - 1]).is_err(), "{}", message.name);
            }
            Err(short) => {
                assert!(short.needed > payload.len() && short.present == payload.len(), "{}", message.name);
            }
        }
    }
}
