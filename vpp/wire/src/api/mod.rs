//! The messages, one module per VPP API file.
//!
//! A module holds the wire structs, written by one `messages!` list, and the constructors of its requests. What
//! the catalogue knows and this folder does not is absent because nothing sends it yet. Absent for good:
//! `ip_table_flush` (takes the table's interfaces down), `sock_init_shm` and `memclnt_keepalive` (of no use on
//! the socket), and every first-version message with a safer successor in all supported releases.

pub mod feature;
pub mod fib;
pub mod gso;
pub mod interface;
pub mod ip;
pub mod ipip;
pub mod memclnt;
pub mod vpe;

use crate::message::Descriptor;

/// Every message this crate knows, module by module.
pub const MODULES: &[&[Descriptor]] = &[
    memclnt::MESSAGES,
    vpe::MESSAGES,
    interface::MESSAGES,
    ip::MESSAGES,
    fib::MESSAGES,
    ipip::MESSAGES,
    gso::MESSAGES,
    feature::MESSAGES,
];

/// Every message this crate knows.
pub fn messages() -> impl Iterator<Item = &'static Descriptor> {
    MODULES.iter().copied().flatten()
}
