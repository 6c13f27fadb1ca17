//! Any octets as a stream of BGP messages on a session of some kind.
#![no_main]

#[path = "../src/bgp.rs"]
mod bgp;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bgp::message(data));
