//! Any octets as what a VPP sends.
#![no_main]

#[path = "../src/vpp.rs"]
mod vpp;

libfuzzer_sys::fuzz_target!(|data: &[u8]| vpp::stream(data));
