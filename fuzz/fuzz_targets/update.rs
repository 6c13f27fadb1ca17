//! Any octets as the body of an UPDATE on a session of some kind.
#![no_main]

#[path = "../src/bgp.rs"]
mod bgp;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bgp::update(data));
