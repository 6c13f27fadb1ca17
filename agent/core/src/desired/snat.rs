//! Values of source NAT.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses that sources become.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SnatAddresses {
    /// Of IPv4.
    pub ipv4: Option<Ipv4Addr>,
    /// Of IPv6.
    pub ipv6: Option<Ipv6Addr>,
}

impl SnatAddresses {
    /// What VPP has once it was told these while it had others: it never forgets a family's address.
    #[must_use]
    pub fn over(self, before: Self) -> Self {
        Self { ipv4: self.ipv4.or(before.ipv4), ipv6: self.ipv6.or(before.ipv6) }
    }
}

/// What an interface is to source NAT.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SnatTable {
    /// Its traffic is that of a pod: not translated by itself.
    Pod,
    /// It leads to the host: what goes there is never translated.
    Host,
}

impl fmt::Display for SnatTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pod => "pod",
            Self::Host => "host",
        })
    }
}
