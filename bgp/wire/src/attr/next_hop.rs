//! Next hops: NEXT_HOP, and those inside MP_REACH_NLRI (RFC 4271 section 5.1.3, RFC 2545 section 3; those of VPNs behind a
//! route distinguisher of zero, RFC 4364 section 4.3.2 and RFC 4659 section 3.2.1).

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::DecodeCtx;
use crate::{error::AttrProblem, family::Family};

/// Octets of a route distinguisher.
const RD: usize = 8;

/// Where packets of a route go next.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NextHop {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address, and the link-local address beside it where there is one.
    V6 {
        /// The address that routes are resolved by. A peer may put a link-local address here, when it has no
        /// other.
        global: Ipv6Addr,
        /// The second address of a 32-octet next hop, if it is link-local.
        link_local: Option<Ipv6Addr>,
    },
}

impl NextHop {
    /// The address by which reachability is judged: the only one, or the global one. An IPv6 one that stands for an IPv4
    /// address is that address, as traffic goes to it over IPv4 (RFC 4659 section 3.2.1.2, RFC 4798 section 2).
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        match *self {
            Self::V4(address) => IpAddr::V4(address),
            Self::V6 { global, .. } => global.to_canonical(),
        }
    }

    /// Reads the next hop of MP_REACH_NLRI of a family. `extended` says that IPv6 next hops were agreed for IPv4
    /// prefixes (RFC 8950). An SR policy may have either.
    pub(crate) fn parse(family: Family, extended: bool, octets: &[u8]) -> Option<Self> {
        match family {
            Family::Ipv4Unicast if extended => Self::parse_ipv4(octets).or_else(|| Self::parse_ipv6(octets)),
            Family::Ipv4Unicast => Self::parse_ipv4(octets),
            Family::Ipv6Unicast => Self::parse_ipv6(octets),
            Family::Ipv4Vpn | Family::Ipv6Vpn => {
                let next_hop = Self::parse_vpn(octets)?;
                let version = match next_hop {
                    Self::V4(_) => family == Family::Ipv4Vpn,
                    Self::V6 { .. } => extended || family == Family::Ipv6Vpn,
                };
                version.then_some(next_hop)
            }
            Family::Ipv4SrPolicy | Family::Ipv6SrPolicy => {
                Self::parse_ipv4(octets).or_else(|| Self::parse_ipv6(octets))
            }
        }
    }

    /// Reads a next hop of VPN prefixes: 12 octets, 24, or 48 with a link-local address. The distinguisher in front of
    /// each address has to be zero and means nothing, so that another one does no harm. Peers that have link-local
    /// addresses only put the unspecified address before it (RFC 4659 section 3.2.1.1).
    fn parse_vpn(octets: &[u8]) -> Option<Self> {
        let (_, address) = octets.split_first_chunk::<RD>()?;
        match address.len() {
            4 | 16 => Self::parse_ipv4(address).or_else(|| Self::parse_ipv6(address)),
            40 => {
                let (global, rest) = address.split_first_chunk::<16>()?;
                let (_, second) = rest.split_first_chunk::<RD>()?;
                let second = Ipv6Addr::from(<[u8; 16]>::try_from(second).ok()?);
                let link_local = Some(second).filter(Ipv6Addr::is_unicast_link_local);
                let global = Ipv6Addr::from(*global);
                let global = link_local.filter(|_| global.is_unspecified()).unwrap_or(global);
                Some(Self::V6 { global, link_local })
            }
            _ => None,
        }
    }

    /// Reads the next hop of MP_REACH_NLRI for IPv4 prefixes (4 octets) or IPv6 prefixes (16, or 32 with a
    /// link-local address). A second address that is not link-local is ignored: some speakers send `::` when
    /// they have none.
    pub(crate) fn parse_ipv4(octets: &[u8]) -> Option<Self> {
        <[u8; 4]>::try_from(octets).ok().map(|octets| Self::V4(octets.into()))
    }

    /// See [`NextHop::parse_ipv4`].
    pub(crate) fn parse_ipv6(octets: &[u8]) -> Option<Self> {
        let (global, rest) = octets.split_first_chunk::<16>()?;
        let link_local = match rest {
            [] => None,
            rest => Some(Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?)),
        };
        Some(Self::V6 {
            global: Ipv6Addr::from(*global),
            link_local: link_local.filter(Ipv6Addr::is_unicast_link_local),
        })
    }

    /// Writes the next hop into the front of `out`, as MP_REACH_NLRI of a family holds it, and says how many octets it
    /// took.
    pub(crate) fn write(&self, family: Family, out: &mut [u8; Self::LONGEST]) -> usize {
        let rd = match family {
            Family::Ipv4Vpn | Family::Ipv6Vpn => RD,
            Family::Ipv4Unicast | Family::Ipv6Unicast | Family::Ipv4SrPolicy | Family::Ipv6SrPolicy => 0,
        };
        *out = [0; Self::LONGEST];
        match self {
            Self::V4(address) => {
                out[rd..rd + 4].copy_from_slice(&address.octets());
                rd + 4
            }
            Self::V6 { global, link_local } => {
                out[rd..rd + 16].copy_from_slice(&global.octets());
                match link_local {
                    Some(address) => {
                        out[2 * rd + 16..2 * rd + 32].copy_from_slice(&address.octets());
                        2 * rd + 32
                    }
                    None => rd + 16,
                }
            }
        }
    }

    /// Its octets in MP_REACH_NLRI of a family.
    #[must_use]
    pub fn octets(&self, family: Family) -> Vec<u8> {
        let mut out = [0; Self::LONGEST];
        let count = self.write(family, &mut out);
        out[..count].to_vec()
    }

    /// The most octets that a next hop takes in MP_REACH_NLRI.
    pub(crate) const LONGEST: usize = 48;

    /// Whether the address can be a host's: neither unspecified, multicast nor, in IPv4, reserved (RFC 4271
    /// section 6.3).
    #[must_use]
    pub const fn is_host(&self) -> bool {
        match *self {
            Self::V4(address) => !address.is_unspecified() && address.octets()[0] < 224,
            Self::V6 { global, .. } => !global.is_unspecified() && !global.is_multicast(),
        }
    }
}

impl From<Ipv4Addr> for NextHop {
    fn from(address: Ipv4Addr) -> Self {
        Self::V4(address)
    }
}

impl From<Ipv6Addr> for NextHop {
    fn from(global: Ipv6Addr) -> Self {
        Self::V6 { global, link_local: None }
    }
}

impl From<IpAddr> for NextHop {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => address.into(),
        }
    }
}

impl fmt::Display for NextHop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => address.fmt(f),
            Self::V6 { global, .. } => global.fmt(f),
        }
    }
}

pub(crate) fn check(value: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    match NextHop::parse_ipv4(value) {
        Some(next_hop) if next_hop.is_host() => Ok(()),
        Some(_) => Err(AttrProblem::Value),
        None => Err(AttrProblem::Length),
    }
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{external, withdrawn_for};
    use super::*;

    #[test]
    fn only_a_host_address_of_four_octets_is_a_next_hop() {
        for (attr, problem) in [
            (&[0x40, 3, 0][..], AttrProblem::Length),
            (&[0x40, 3, 3, 192, 0, 2], AttrProblem::Length),
            (&[0x40, 3, 5, 192, 0, 2, 1, 1], AttrProblem::Length),
            (&[0x40, 3, 4, 0, 0, 0, 0], AttrProblem::Value),
            (&[0x40, 3, 4, 224, 0, 0, 1], AttrProblem::Value),
            (&[0x40, 3, 4, 255, 255, 255, 255], AttrProblem::Value),
            (&[0xc0, 3, 4, 192, 0, 2, 1], AttrProblem::Flags),
        ] {
            assert_eq!(withdrawn_for(external(), attr), Some((3, problem)), "{attr:?}");
        }
        assert_eq!(withdrawn_for(external(), &[0x40, 3, 4, 192, 0, 2, 1]), None);
    }

    #[test]
    fn ipv6_next_hops_go_there_and_back() {
        let global: Ipv6Addr = "2001:db8::1".parse().unwrap();
        let link_local: Ipv6Addr = "fe80::1".parse().unwrap();
        for next_hop in [NextHop::from(global), NextHop::V6 { global, link_local: Some(link_local) }] {
            for family in [Family::Ipv6Unicast, Family::Ipv6Vpn, Family::Ipv6SrPolicy] {
                let mut octets = [0xff; NextHop::LONGEST];
                let count = next_hop.write(family, &mut octets);
                assert_eq!(NextHop::parse(family, false, &octets[..count]), Some(next_hop));
            }
            assert_eq!(next_hop.address(), IpAddr::V6(global));
        }
        for count in [0, 4, 15, 17, 31] {
            assert_eq!(NextHop::parse_ipv6(&[0x20; 31][..count]), None);
        }
    }

    #[test]
    fn next_hops_of_vpns_stand_behind_a_zero_distinguisher() {
        let v4 = NextHop::from(Ipv4Addr::new(192, 0, 2, 1));
        let mut octets = [0xff; NextHop::LONGEST];
        assert_eq!(v4.write(Family::Ipv4Vpn, &mut octets), 12);
        assert_eq!(octets[..12], [0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1]);
        assert_eq!(NextHop::parse(Family::Ipv4Vpn, false, &octets[..12]), Some(v4));
        assert_eq!(NextHop::parse(Family::Ipv6Vpn, false, &octets[..12]), None, "as ::ffff:192.0.2.1 only");
        octets[1] = 2;
        assert_eq!(NextHop::parse(Family::Ipv4Vpn, false, &octets[..12]), Some(v4), "it means nothing");
        let v6 = NextHop::from("2001:db8::1".parse::<Ipv6Addr>().unwrap());
        assert_eq!(v6.write(Family::Ipv6Vpn, &mut octets), 24);
        assert_eq!(octets[..9], [0, 0, 0, 0, 0, 0, 0, 0, 0x20]);
        assert_eq!(NextHop::parse(Family::Ipv6Vpn, false, &octets[..24]), Some(v6));
        assert_eq!(NextHop::parse(Family::Ipv4Vpn, true, &octets[..24]), Some(v6), "RFC 8950");
        assert_eq!(NextHop::parse(Family::Ipv4Vpn, false, &octets[..24]), None);
        for family in [Family::Ipv4Vpn, Family::Ipv6Vpn] {
            for count in (0..=48).filter(|count| ![12, 24, 48].contains(count)) {
                assert_eq!(NextHop::parse(family, true, &[0x20; 48][..count]), None, "{count}");
            }
        }
    }

    #[test]
    fn an_ipv4_address_in_ipv6_form_is_reached_over_ipv4() {
        let mapped: NextHop = Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().into();
        assert_eq!(mapped.address(), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        assert_eq!(mapped.to_string(), "::ffff:192.0.2.1");
        assert_eq!(mapped.octets(Family::Ipv6Vpn).len(), 24);
    }

    #[test]
    fn a_vpn_peer_may_have_a_link_local_address_only() {
        let link_local: Ipv6Addr = "fe80::1".parse().unwrap();
        let octets = [[0; 8].as_slice(), &[0; 16], &[0; 8], &link_local.octets()].concat();
        let next_hop = NextHop::parse(Family::Ipv6Vpn, false, &octets);
        assert_eq!(next_hop, Some(NextHop::V6 { global: link_local, link_local: Some(link_local) }));
    }

    #[test]
    fn a_second_address_that_is_not_link_local_is_ignored() {
        let global: Ipv6Addr = "2001:db8::1".parse().unwrap();
        for second in ["::", "2001:db8::1"] {
            let second: Ipv6Addr = second.parse().unwrap();
            let octets = [global.octets(), second.octets()].concat();
            assert_eq!(NextHop::parse_ipv6(&octets), Some(global.into()));
        }
    }
}
