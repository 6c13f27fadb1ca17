//! Types of the catalogue that stand in messages of more than one module, as the build script declares them.
#![allow(unused_qualifications, reason = "the build script writes every path in full")]

include!(concat!(env!("OUT_DIR"), "/types.rs"));
