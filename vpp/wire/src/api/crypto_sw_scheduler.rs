//! `crypto_sw_scheduler`: which workers do cryptography.

include!(concat!(env!("OUT_DIR"), "/crypto_sw_scheduler.rs"));
