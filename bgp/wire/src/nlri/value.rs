//! A prefix of any family, as settings name it and as people read it.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{fmt, str::FromStr};

use crate::family::Family;

/// A route's destination, whatever its family. Ordered by family, then by address and length.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Nlri {
    /// An IPv4 unicast prefix; its host bits are clear when it comes from a message or from a text.
    V4(Ipv4Net),
    /// An IPv6 unicast prefix; likewise.
    V6(Ipv6Net),
}

impl Nlri {
    /// The family it belongs to.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self {
            Self::V4(_) => Family::Ipv4Unicast,
            Self::V6(_) => Family::Ipv6Unicast,
        }
    }
}

impl From<IpNet> for Nlri {
    fn from(net: IpNet) -> Self {
        match net.trunc() {
            IpNet::V4(net) => Self::V4(net),
            IpNet::V6(net) => Self::V6(net),
        }
    }
}

impl From<Nlri> for IpNet {
    fn from(nlri: Nlri) -> Self {
        match nlri {
            Nlri::V4(net) => Self::V4(net),
            Nlri::V6(net) => Self::V6(net),
        }
    }
}

impl fmt::Display for Nlri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(net) => net.fmt(f),
            Self::V6(net) => net.fmt(f),
        }
    }
}

/// A text that is no prefix, or has bits set behind its length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NlriParseError {
    /// Neither an IPv4 nor an IPv6 prefix.
    #[error("not a prefix: \"{0}\"")]
    Syntax(String),
    /// Bits behind the length are set; the prefix that was probably meant.
    #[error("{0} has host bits set, did you mean {1}?")]
    HostBits(IpNet, IpNet),
}

impl FromStr for Nlri {
    type Err = NlriParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let net: IpNet = text.parse().map_err(|_| NlriParseError::Syntax(text.to_owned()))?;
        if net.trunc() == net { Ok(net.into()) } else { Err(NlriParseError::HostBits(net, net.trunc())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_shows_prefixes() {
        let v4: Nlri = "203.0.113.0/24".parse().unwrap();
        let v6: Nlri = "2001:db8::/32".parse().unwrap();
        assert_eq!((v4.family(), v6.family()), (Family::Ipv4Unicast, Family::Ipv6Unicast));
        assert_eq!((v4.to_string(), v6.to_string()), ("203.0.113.0/24".into(), "2001:db8::/32".into()));
        assert!(v4 < v6);
    }

    #[test]
    fn refuses_host_bits_and_nonsense() {
        let error = "203.0.113.1/24".parse::<Nlri>().unwrap_err();
        assert_eq!(error.to_string(), "203.0.113.1/24 has host bits set, did you mean 203.0.113.0/24?");
        assert!(matches!("203.0.113.0".parse::<Nlri>(), Err(NlriParseError::Syntax(_))));
    }
}
