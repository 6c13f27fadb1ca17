//! A destination of any family, as settings name it and as people read it.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::{fmt, str::FromStr};

use super::{
    Ipv4Prefix, Ipv6Prefix, Label, NlriKey, RouteDistinguisher, SrPolicy4, SrPolicy6, VpnIpv4Prefix,
    VpnIpv6Prefix, sr_policy, vpn,
};
use crate::family::Family;

/// A route's destination, whatever its family. Ordered by family, then by the parts of its key.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Nlri {
    /// An IPv4 unicast prefix; its host bits are clear when it comes from a message or from a text.
    V4(Ipv4Net),
    /// An IPv6 unicast prefix; likewise.
    V6(Ipv6Net),
    /// An IPv4 prefix of a VPN.
    VpnV4(VpnIpv4Prefix),
    /// An IPv6 prefix of a VPN.
    VpnV6(VpnIpv6Prefix),
    /// An SR policy with an IPv4 endpoint.
    SrPolicy4(SrPolicy4),
    /// An SR policy with an IPv6 endpoint.
    SrPolicy6(SrPolicy6),
}

impl Nlri {
    /// The family it belongs to.
    #[must_use]
    pub const fn family(&self) -> Family {
        match self {
            Self::V4(_) => Family::Ipv4Unicast,
            Self::V6(_) => Family::Ipv6Unicast,
            Self::VpnV4(_) => Family::Ipv4Vpn,
            Self::VpnV6(_) => Family::Ipv6Vpn,
            Self::SrPolicy4(_) => Family::Ipv4SrPolicy,
            Self::SrPolicy6(_) => Family::Ipv6SrPolicy,
        }
    }

    /// Its octets in a message, without a path identifier. The label counts where the family has labels.
    #[must_use]
    pub fn octets(&self, label: Option<Label>) -> Vec<u8> {
        let mut out = [0; 32];
        let count = match *self {
            Self::V4(net) => Ipv4Prefix::from(net).write(label, &mut out),
            Self::V6(net) => Ipv6Prefix::from(net).write(label, &mut out),
            Self::VpnV4(key) => key.write(label, &mut out),
            Self::VpnV6(key) => key.write(label, &mut out),
            Self::SrPolicy4(key) => key.write(label, &mut out),
            Self::SrPolicy6(key) => key.write(label, &mut out),
        };
        out[..count].to_vec()
    }

    /// The prefix that it is, or that it is in a VPN; `None` for what is no prefix.
    #[must_use]
    pub fn prefix(&self) -> Option<IpNet> {
        match *self {
            Self::V4(net) => Some(IpNet::V4(net)),
            Self::V6(net) => Some(IpNet::V6(net)),
            Self::VpnV4(key) => Some(IpNet::V4(key.prefix.into())),
            Self::VpnV6(key) => Some(IpNet::V6(key.prefix.into())),
            Self::SrPolicy4(_) | Self::SrPolicy6(_) => None,
        }
    }

    /// The prefix that it is; `None` for one of a VPN and for what is no prefix.
    #[must_use]
    pub const fn unicast(&self) -> Option<IpNet> {
        match *self {
            Self::V4(net) => Some(IpNet::V4(net)),
            Self::V6(net) => Some(IpNet::V6(net)),
            Self::VpnV4(_) | Self::VpnV6(_) | Self::SrPolicy4(_) | Self::SrPolicy6(_) => None,
        }
    }

    /// The distinguisher of the VPN that it is a prefix of.
    #[must_use]
    pub const fn rd(&self) -> Option<RouteDistinguisher> {
        match *self {
            Self::VpnV4(key) => Some(key.rd),
            Self::VpnV6(key) => Some(key.rd),
            Self::V4(_) | Self::V6(_) | Self::SrPolicy4(_) | Self::SrPolicy6(_) => None,
        }
    }

    /// The same prefix in a VPN; `None` if it is no unicast prefix.
    #[must_use]
    pub fn in_vpn(&self, rd: RouteDistinguisher) -> Option<Self> {
        match *self {
            Self::V4(net) => Some(Self::VpnV4(VpnIpv4Prefix::new(rd, net))),
            Self::V6(net) => Some(Self::VpnV6(VpnIpv6Prefix::new(rd, net))),
            Self::VpnV4(_) | Self::VpnV6(_) | Self::SrPolicy4(_) | Self::SrPolicy6(_) => None,
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

impl fmt::Display for Nlri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(net) => net.fmt(f),
            Self::V6(net) => net.fmt(f),
            Self::VpnV4(key) => key.fmt(f),
            Self::VpnV6(key) => key.fmt(f),
            Self::SrPolicy4(key) => key.fmt(f),
            Self::SrPolicy6(key) => key.fmt(f),
        }
    }
}

/// A text that is no destination, or a prefix with bits set behind its length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NlriParseError {
    /// Neither an IPv4 nor an IPv6 prefix, with or without a distinguisher, nor an SR policy.
    #[error("not a prefix: \"{0}\"")]
    Syntax(String),
    /// Bits behind the length are set; the prefix that was probably meant.
    #[error("{0} has host bits set, did you mean {1}?")]
    HostBits(IpNet, IpNet),
    /// It is none of the family asked for.
    #[error("{0} is not of family {1}")]
    Family(String, Family),
}

impl Nlri {
    /// Reads a destination of one family.
    ///
    /// # Errors
    /// The text is none, or one of another family.
    pub fn parse_as(family: Family, text: &str) -> Result<Self, NlriParseError> {
        let read = match family {
            Family::Ipv4Vpn | Family::Ipv6Vpn => vpn::parse(text).transpose()?,
            Family::Ipv4Unicast | Family::Ipv6Unicast | Family::Ipv4SrPolicy | Family::Ipv6SrPolicy => {
                Some(text.parse()?)
            }
        };
        read.filter(|nlri: &Self| nlri.family() == family)
            .ok_or_else(|| NlriParseError::Family(text.to_owned(), family))
    }
}

/// Any family's. A text that could be an IPv6 prefix is one, such as `1:2:3::/48`, which [`Nlri::parse_as`] can read as
/// the prefix `3::/48` of the VPN `1:2`.
impl FromStr for Nlri {
    type Err = NlriParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Ok(net) = text.parse::<IpNet>() else {
            let syntax = || Err(NlriParseError::Syntax(text.to_owned()));
            return sr_policy::parse(text).map(Ok).or_else(|| vpn::parse(text)).unwrap_or_else(syntax);
        };
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
    fn a_family_is_asked_for_where_the_text_alone_is_not_clear() {
        let text = "1:2:3::/48";
        assert_eq!(text.parse::<Nlri>().unwrap().family(), Family::Ipv6Unicast);
        let vpn = Nlri::parse_as(Family::Ipv6Vpn, text).unwrap();
        assert_eq!((vpn.to_string().as_str(), vpn.rd().unwrap().to_string().as_str()), (text, "1:2"));
        assert_eq!(vpn.prefix().unwrap().to_string(), "3::/48");
        assert_eq!(vpn.octets(Label::new(5)), [136, 0, 0, 0x51, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0]);
        let error = Nlri::parse_as(Family::Ipv4Vpn, text).unwrap_err();
        assert_eq!(error.to_string(), "1:2:3::/48 is not of family ipv4-vpn");
        for (family, text) in [
            (Family::Ipv4Unicast, "203.0.113.0/24"),
            (Family::Ipv6Unicast, "2001:db8::/32"),
            (Family::Ipv4Vpn, "1:2:203.0.113.0/24"),
            (Family::Ipv4SrPolicy, "1:2:192.0.2.1"),
            (Family::Ipv6SrPolicy, "1:2:2001:db8::1"),
        ] {
            let nlri = Nlri::parse_as(family, text).unwrap();
            assert_eq!((nlri.family(), nlri.to_string().as_str()), (family, text));
            assert_eq!(text.parse(), Ok(nlri));
            assert!(Nlri::parse_as(Family::Ipv6Vpn, text).is_err());
        }
    }

    #[test]
    fn refuses_host_bits_and_nonsense() {
        let error = "203.0.113.1/24".parse::<Nlri>().unwrap_err();
        assert_eq!(error.to_string(), "203.0.113.1/24 has host bits set, did you mean 203.0.113.0/24?");
        assert!(matches!("203.0.113.0".parse::<Nlri>(), Err(NlriParseError::Syntax(_))));
    }
}
