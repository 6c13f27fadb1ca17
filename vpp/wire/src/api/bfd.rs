//! `bfd`: Bidirectional Forwarding Detection (RFC 5880) over UDP.

include!(concat!(env!("OUT_DIR"), "/bfd.rs"));
