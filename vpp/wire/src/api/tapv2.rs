//! `tapv2`: tap interfaces.

include!(concat!(env!("OUT_DIR"), "/tapv2.rs"));
