//! The rows of the suite, one file each.

pub(crate) mod flat;
pub(crate) mod ipip;
pub(crate) mod network;
pub(crate) mod srv6;
pub(crate) mod vxlan;
pub(crate) mod wireguard;
