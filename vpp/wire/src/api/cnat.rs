//! `cnat`: translation of service and source addresses.

include!(concat!(env!("OUT_DIR"), "/cnat.rs"));
