//! What each message does: read the request, change the state, write the answer. One file per VPP API module.
//!
//! A handler gets a payload of any length with any bytes and returns `None` when it is shorter than it says, which VPP does
//! not answer. Messages that `vpp-wire` has are read with its types where their fields are readable; the others, which
//! only other clients send, are declared here by name, CRC and offsets.
//!
//! Return values are those of VPP 26.06, as recorded; where VPP accepts nonsense, so does this.
//!
//! * [`row`]: the table of handlers; [`field`]: reading and writing fields; [`retval`]: what is answered
//! * one module per API module of VPP; routes, the largest part of `ip`, have one of their own

pub(crate) mod cnat;
pub(crate) mod feature;
pub(crate) mod fib;
pub(crate) mod field;
pub(crate) mod ikev2;
pub(crate) mod interface;
pub(crate) mod ip;
pub(crate) mod ipip;
pub(crate) mod ipsec;
pub(crate) mod memclnt;
pub(crate) mod retval;
pub(crate) mod route;
pub(crate) mod row;
pub(crate) mod sr;
pub(crate) mod vlib;
pub(crate) mod vpe;
pub(crate) mod vxlan;
pub(crate) mod wireguard;
