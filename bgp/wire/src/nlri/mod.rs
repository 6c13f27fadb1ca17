//! Prefixes as messages carry them and as tables key them: one file for each encoding.
//!
//! [`NlriKey`] is the compact key of one family, [`Prefixes`] reads a field of them without allocating,
//! [`Nlri`] is the value for everyone who does not care which family it is.
//!
//! | family | key | beside the key |
//! |---|---|---|
//! | unicast | prefix | |
//! | VPN | [`RouteDistinguisher`] and prefix | [`Label`] |
//! | SR policy | distinguisher, color and endpoint | |
//!
//! RFC 4271 section 4.3, RFC 4760 section 5, RFC 7911 section 3 (path identifiers), RFC 4364, 4659 and 8277 (VPNs and
//! labels), RFC 9830 (SR policies).
//!
//! *Absent on purpose:* more than one label for a prefix, which takes a capability that we do not offer (RFC 8277
//! section 2.1).

mod key;
mod label;
mod prefixes;
mod rd;
mod sr_policy;
mod unicast;
mod value;
mod vpn;

pub use key::{NlriKey, PathId};
pub use label::{Label, LabelParseError};
pub use prefixes::Prefixes;
pub(crate) use prefixes::{check, check_family};
pub use rd::{RdParseError, RouteDistinguisher};
pub use sr_policy::{SrPolicy4, SrPolicy6};
pub use unicast::{Ipv4Prefix, Ipv6Prefix};
pub use value::{Nlri, NlriParseError};
pub use vpn::{VpnIpv4Prefix, VpnIpv6Prefix};
