//! `af_packet`: interfaces of the host (AF_PACKET), one end of which Linux has.

include!(concat!(env!("OUT_DIR"), "/af_packet.rs"));
