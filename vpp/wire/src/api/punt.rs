//! `punt`: packets handed to the host.

include!(concat!(env!("OUT_DIR"), "/punt.rs"));
