//! Every truncation and every single-bit flip of the golden messages: whatever they mean, nothing panics, and
//! what must hold for any octets holds.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../fuzz/src/bgp.rs"]
mod bgp;
mod vectors;

/// External, internal, 2-octet AS numbers with IPv4 alone, path identifiers for IPv4 alone and for both families; every
/// family, without and with path identifiers.
const SESSIONS: [u8; 7] = [3, 1, 2 | 16, 7 | 16, 7, 3 | 32, 7 | 32];

fn golden() -> Vec<Vec<u8>> {
    ["carried.txt", "field-faults.txt", "session.txt", "sent.txt", "sr-policy.txt", "vpn.txt"]
        .into_iter()
        .flat_map(vectors::load)
        .map(|vector| vector.octets)
        .collect()
}

/// The message on each session, and what follows its header as the body of an UPDATE.
fn check(octets: &[u8]) {
    for choice in SESSIONS {
        bgp::message(&[&[choice], octets].concat());
        bgp::update(&[&[choice], octets.get(19..).unwrap_or_default()].concat());
    }
}

#[test]
fn truncations() {
    for mut octets in golden() {
        while octets.pop().is_some() {
            // As it is, so that the message is incomplete; then with a length that says it is whole.
            check(&octets);
            if octets.len() >= 19 {
                let mut whole = octets.clone();
                whole[16..18].copy_from_slice(&(octets.len() as u16).to_be_bytes());
                check(&whole);
            }
        }
    }
}

#[test]
fn bit_flips() {
    for octets in golden() {
        for bit in 0..8 * octets.len() {
            let mut flipped = octets.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            check(&flipped);
        }
    }
}
