//! `wireguard`: WireGuard interfaces and peers.

include!(concat!(env!("OUT_DIR"), "/wireguard.rs"));
