//! `ip_neighbor`: neighbours of interfaces, and how long they are remembered.

include!(concat!(env!("OUT_DIR"), "/ip_neighbor.rs"));
