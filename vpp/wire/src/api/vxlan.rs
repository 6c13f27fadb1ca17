//! `vxlan`: VXLAN tunnels (RFC 7348).

include!(concat!(env!("OUT_DIR"), "/vxlan.rs"));
