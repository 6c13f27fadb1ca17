//! The messages, one module per VPP API file.
//!
//! Every message of the catalogue is here. Some are declared by hand, with the constructors of their requests; the others
//! by the build script, from the catalogue, and a module's own file has only what VPP must be protected from: the
//! constructors of requests with private fields. A request that a release has in another form, under another CRC, is a type
//! of its own, named after the last release with it (`Ikev2SetIkeTransforms2602`).
//!
//! What has neither constructors nor public fields is never sent. Absent for good: `ip_table_flush` of the default table,
//! `cnat_session_purge` (takes the translations along), `sock_init_shm` and `memclnt_keepalive` (of no use on the socket).
#![allow(unused_qualifications, reason = "the build script writes every path in full")]

pub mod af_packet;
pub mod bfd;
pub mod cnat;
pub mod crypto_sw_scheduler;
pub mod feature;
pub mod fib;
pub mod gso;
pub mod ikev2;
pub mod interface;
pub mod ip;
pub mod ip_neighbor;
pub mod ipip;
pub mod ipsec;
pub mod memclnt;
pub mod npol;
pub mod punt;
pub mod sr;
pub mod tapv2;
pub mod urpf;
pub mod vlib;
pub mod vpe;
pub mod vxlan;
pub mod wireguard;

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
    af_packet::GENERATED,
    bfd::GENERATED,
    cnat::GENERATED,
    crypto_sw_scheduler::GENERATED,
    feature::GENERATED,
    fib::GENERATED,
    gso::GENERATED,
    ikev2::GENERATED,
    interface::GENERATED,
    ip::GENERATED,
    ip_neighbor::GENERATED,
    ipip::GENERATED,
    ipsec::GENERATED,
    memclnt::GENERATED,
    npol::GENERATED,
    punt::GENERATED,
    sr::GENERATED,
    tapv2::GENERATED,
    urpf::GENERATED,
    vlib::GENERATED,
    vpe::GENERATED,
    vxlan::GENERATED,
    wireguard::GENERATED,
];

/// Every message this crate knows.
pub fn messages() -> impl Iterator<Item = &'static Descriptor> {
    MODULES.iter().copied().flatten()
}
