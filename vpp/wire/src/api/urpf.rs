//! `urpf`: check of source addresses against the routes.

include!(concat!(env!("OUT_DIR"), "/urpf.rs"));
