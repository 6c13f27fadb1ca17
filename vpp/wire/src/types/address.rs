//! Addresses and prefixes. An IPv4 address stands in the first 4 of 16 bytes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

use crate::layout::{Described, Shape};
use crate::message::Refused;

wire_int! {
    /// Address family, as VPP numbers them.
    pub struct AddressFamily: u8 {
        /// IPv4.
        IP4 = 0,
        /// IPv6.
        IP6 = 1,
    }
}

impl AddressFamily {
    /// That of an address.
    #[must_use]
    pub const fn of(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(_) => Self::IP4,
            IpAddr::V6(_) => Self::IP6,
        }
    }
}

/// The 16 bytes that hold an address of either family.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    Debug,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct AddressUnion(pub(super) [u8; 16]);

impl AddressUnion {
    pub(super) const ZERO: Self = Self([0; 16]);

    pub(super) fn new(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(ip) => {
                let [a, b, c, d] = ip.octets();
                Self([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            }
            IpAddr::V6(ip) => Self(ip.octets()),
        }
    }

    pub(super) fn v4(self) -> Ipv4Addr {
        let [a, b, c, d, ..] = self.0;
        Ipv4Addr::new(a, b, c, d)
    }

    pub(super) fn v6(self) -> Ipv6Addr {
        self.0.into()
    }
}

impl Described for AddressUnion {
    const SHAPE: Shape = Shape::Octets(16);
}

/// An IPv4 address without its family.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Ip4Address([u8; 4]);

/// An IPv6 address without its family; a segment identifier.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Ip6Address([u8; 16]);

impl Ip4Address {
    /// The address.
    #[must_use]
    pub fn addr(self) -> Ipv4Addr {
        self.0.into()
    }
}

impl Ip6Address {
    /// `::`
    pub const UNSPECIFIED: Self = Self([0; 16]);

    /// The address.
    #[must_use]
    pub fn addr(self) -> Ipv6Addr {
        self.0.into()
    }
}

impl From<Ipv4Addr> for Ip4Address {
    fn from(ip: Ipv4Addr) -> Self {
        Self(ip.octets())
    }
}

impl From<Ipv6Addr> for Ip6Address {
    fn from(ip: Ipv6Addr) -> Self {
        Self(ip.octets())
    }
}

impl std::fmt::Debug for Ip4Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.addr().fmt(f)
    }
}

impl std::fmt::Debug for Ip6Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.addr().fmt(f)
    }
}

impl Described for Ip4Address {
    const SHAPE: Shape = Shape::Octets(4);
}

impl Described for Ip6Address {
    const SHAPE: Shape = Shape::Octets(16);
}

wire_struct! {
    /// An address with its family.
    pub struct Address {
        af: AddressFamily,
        un: AddressUnion,
    }
    /// An address and a prefix length. Interface addresses keep their host bits; routes must not have any.
    pub struct Prefix {
        address: Address,
        len: u8,
    }
}

impl Address {
    /// The IPv4 address 0.0.0.0, which many messages take for "none".
    pub const UNSPECIFIED: Self = Self { af: AddressFamily::IP4, un: AddressUnion::ZERO };

    /// The address; `None` when VPP sent a family it does not have.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self.af {
            AddressFamily::IP4 => Some(self.un.v4().into()),
            AddressFamily::IP6 => Some(self.un.v6().into()),
            _ => None,
        }
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Self { af: AddressFamily::of(ip), un: AddressUnion::new(ip) }
    }
}

impl Prefix {
    /// An interface address with the length of its subnet: host bits stay.
    #[must_use]
    pub fn with_host(net: IpNet) -> Self {
        Self { address: net.addr().into(), len: net.prefix_len() }
    }

    /// A route's prefix.
    ///
    /// # Errors
    /// [`Refused::HostBits`].
    pub fn network(net: IpNet) -> Result<Self, Refused> {
        if net != net.trunc() {
            return Err(Refused::HostBits(net.addr(), net.prefix_len()));
        }
        Ok(Self::with_host(net))
    }

    /// Address and length as they came; `None` for a family or a length that does not exist.
    #[must_use]
    pub fn net(&self) -> Option<IpNet> {
        IpNet::new(self.address.ip()?, self.len).ok()
    }

    /// The network, without host bits: VPP dumps a connected route with the interface's address.
    #[must_use]
    pub fn truncated(&self) -> Option<IpNet> {
        self.net().map(|net| net.trunc())
    }

    /// The address alone.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// The length as it came, which may be one the family does not have.
    #[must_use]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Whether this is the prefix of everything.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromBytes;

    proptest! {
        /// What is put in comes out, and whatever bytes VPP sends, nothing panics.
        #[test]
        fn prefixes_go_both_ways(address: IpAddr, len in 0u8..=128, raw: [u8; 18]) {
            if let Ok(net) = IpNet::new(address, len) {
                prop_assert_eq!(Prefix::with_host(net).net(), Some(net));
                prop_assert_eq!(Prefix::network(net.trunc()).map(|p| p.net()), Ok(Some(net.trunc())));
                prop_assert_eq!(Prefix::network(net).is_err(), net != net.trunc());
            }
            let prefix = Prefix::read_from_bytes(&raw).expect("18 bytes");
            prop_assert_eq!(prefix.net().is_some(), raw[0] == 0 && raw[17] <= 32 || raw[0] == 1 && raw[17] <= 128);
        }
    }
}
