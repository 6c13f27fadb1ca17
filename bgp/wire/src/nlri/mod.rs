//! Prefixes as messages carry them and as tables key them: one file for each encoding.
//!
//! [`NlriKey`] is the compact key of one family, [`Prefixes`] reads a field of them without allocating,
//! [`Nlri`] is the value for everyone who does not care which family it is.
//!
//! RFC 4271 section 4.3, RFC 4760 section 5, RFC 7911 section 3 (path identifiers).

mod key;
mod prefixes;
mod unicast;
mod value;

pub use key::{NlriKey, PathId};
pub use prefixes::Prefixes;
pub(crate) use prefixes::check;
pub use unicast::{Ipv4Prefix, Ipv6Prefix};
pub use value::{Nlri, NlriParseError};
