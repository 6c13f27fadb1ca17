//! Any octets as a recorded file.
#![no_main]

#[path = "../src/mrt.rs"]
mod mrt;

libfuzzer_sys::fuzz_target!(|data: &[u8]| mrt::mrt(data));
