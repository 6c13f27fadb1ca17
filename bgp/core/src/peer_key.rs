//! Names of sessions and connections.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;

/// The port BGP listens on (RFC 4271 section 3).
pub const BGP_PORT: u16 = 179;

/// Which speaker of the process: `node` for Calico, one per virtual router for Cilium.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceName(Arc<str>);

impl InstanceName {
    /// Names an instance.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The IPv6 zone of a link-local address: the index of the interface it is valid on, as the kernel's
/// `sin6_scope_id`. Never 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zone(std::num::NonZeroU32);

impl Zone {
    /// The zone with this interface index; `None` for 0, which the kernel uses for "no zone".
    #[must_use]
    pub const fn new(index: u32) -> Option<Self> {
        match std::num::NonZeroU32::new(index) {
            Some(index) => Some(Self(index)),
            None => None,
        }
    }

    /// The interface index.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0.get()
    }
}

/// The identity of a configured neighbour inside one instance: its address with zone, and its port.
///
/// There is at most one session for each key. The port is the one we connect *to*; a connection that the
/// neighbour opens comes from any port and is matched by address and zone alone.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerKey {
    /// The neighbour's address. IPv4-mapped IPv6 addresses are kept as IPv4 by [`PeerKey::new`].
    pub address: IpAddr,
    /// Set for IPv6 link-local addresses, for which the same address names another neighbour on another link.
    pub zone: Option<Zone>,
    /// The neighbour's port, usually [`BGP_PORT`].
    pub port: u16,
}

impl PeerKey {
    /// A key with the usual port and no zone.
    #[must_use]
    pub fn new(address: IpAddr) -> Self {
        Self { address: address.to_canonical(), zone: None, port: BGP_PORT }
    }

    /// The same neighbour at another port.
    #[must_use]
    pub const fn with_port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// The same address on the given link.
    #[must_use]
    pub const fn with_zone(mut self, zone: Option<Zone>) -> Self {
        self.zone = zone;
        self
    }

    /// The key of the remote end of a socket. The zone counts for IPv6 link-local addresses only.
    #[must_use]
    pub fn from_socket(remote: SocketAddr) -> Self {
        let zone = match remote {
            SocketAddr::V6(v6) if v6.ip().is_unicast_link_local() => Zone::new(v6.scope_id()),
            SocketAddr::V6(_) | SocketAddr::V4(_) => None,
        };
        Self::new(remote.ip()).with_zone(zone).with_port(remote.port())
    }

    /// Where to connect to.
    #[must_use]
    pub fn socket(&self) -> SocketAddr {
        match self.address {
            IpAddr::V4(v4) => SocketAddr::from((v4, self.port)),
            IpAddr::V6(v6) => {
                let scope = self.zone.map_or(0, Zone::index);
                SocketAddr::V6(std::net::SocketAddrV6::new(v6, self.port, 0, scope))
            }
        }
    }
}

/// The address, then `%zone` and `:port` where they aren't the usual ones; an IPv6 address is in
/// brackets when a port follows, as in `[fe80::1%2]:1790`.
impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let brackets = self.address.is_ipv6() && self.port != BGP_PORT;
        if brackets {
            f.write_str("[")?;
        }
        write!(f, "{}", self.address)?;
        if let Some(zone) = self.zone {
            write!(f, "%{}", zone.index())?;
        }
        if brackets {
            f.write_str("]")?;
        }
        if self.port != BGP_PORT {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// The text isn't an address with an optional numeric zone and port.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a neighbour's address (expected ADDRESS, ADDRESS%ZONE, IPV4:PORT or [IPV6]:PORT)")]
pub struct ParsePeerKeyError;

/// Reads what `Display` writes.
impl FromStr for PeerKey {
    type Err = ParsePeerKeyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            match rest.split_once(']').ok_or(ParsePeerKeyError)? {
                (host, "") => (host, None),
                (host, port) => (host, Some(port.strip_prefix(':').ok_or(ParsePeerKeyError)?)),
            }
        } else if text.matches(':').count() == 1 {
            text.split_once(':').map(|(host, port)| (host, Some(port))).ok_or(ParsePeerKeyError)?
        } else {
            (text, None)
        };
        let port = port.map_or(Ok(BGP_PORT), |p| p.parse().map_err(|_| ParsePeerKeyError))?;
        let (address, zone) = match host.split_once('%') {
            None => (host, None),
            Some((address, zone)) => {
                let index = zone.parse().map_err(|_| ParsePeerKeyError)?;
                (address, Some(Zone::new(index).ok_or(ParsePeerKeyError)?))
            }
        };
        let address = address.parse().map_err(|_| ParsePeerKeyError)?;
        Ok(Self::new(address).with_zone(zone).with_port(port))
    }
}

/// The name of a network interface as Linux takes it: 1 to 15 octets, without a slash or white space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceName(Arc<str>);

impl InterfaceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text can't be the name of an interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of an interface (1 to 15 octets, no slash, no white space)")]
pub struct ParseInterfaceNameError;

impl FromStr for InterfaceName {
    type Err = ParseInterfaceNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = (1..=15).contains(&text.len()) && !matches!(text, "." | "..");
        let odd = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        if fits && !text.contains(odd) { Ok(Self(text.into())) } else { Err(ParseInterfaceNameError) }
    }
}

/// A dense number for a neighbour inside one speaker; reused after the neighbour is gone.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIx(pub u32);

impl PeerIx {
    /// The number as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of one transport connection, or of one attempt to open one; never reused in a process.
///
/// Attempts get theirs from the speaker, with the top bit set; accepted connections from the shell,
/// without it. So neither has to ask the other.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

impl ConnId {
    const DIALLED: u64 = 1 << 63;

    /// The `n`th attempt of a speaker to connect, `n` below 2^63.
    #[must_use]
    pub const fn dialled(n: u64) -> Self {
        Self(n | Self::DIALLED)
    }

    /// The `n`th connection that a shell accepted, `n` below 2^63.
    #[must_use]
    pub const fn accepted(n: u64) -> Self {
        Self(n & !Self::DIALLED)
    }

    /// Whether it was ours to open.
    #[must_use]
    pub const fn is_dialled(self) -> bool {
        self.0 & Self::DIALLED != 0
    }
}

/// `out` or `in`, and the number.
impl fmt::Display for ConnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_dialled() { "out" } else { "in" }, self.0 & !Self::DIALLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_read_back() {
        for text in [
            "192.0.2.1",
            "192.0.2.1:1790",
            "2001:db8::1",
            "[2001:db8::1]:1790",
            "fe80::1%2",
            "[fe80::1%2]:1790",
        ] {
            let key: PeerKey = text.parse().unwrap();
            assert_eq!(key.to_string(), text);
        }
        for text in
            ["", "192.0.2.1:", "192.0.2.1:x", "fe80::1%eth0", "fe80::1%0", "[::1", "[::1]1790", "192.0.2"]
        {
            assert_eq!(text.parse::<PeerKey>(), Err(ParsePeerKeyError), "{text}");
        }
    }

    #[test]
    fn zone_counts_for_link_local_addresses_only() {
        let v6 = |ip: &str| SocketAddr::V6(std::net::SocketAddrV6::new(ip.parse().unwrap(), 179, 0, 3));
        assert_eq!(PeerKey::from_socket(v6("fe80::1")).zone, Zone::new(3));
        assert_eq!(PeerKey::from_socket(v6("2001:db8::1")).zone, None);
        assert_eq!(PeerKey::from_socket(v6("fe80::1")).socket(), v6("fe80::1"));
    }

    #[test]
    fn mapped_addresses_are_one_neighbour() {
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        assert_eq!(PeerKey::new(mapped), PeerKey::new("192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn names_of_interfaces_are_those_that_linux_takes() {
        for text in ["eth0", "a", "br-0123456789ab"] {
            assert_eq!(text.parse::<InterfaceName>().unwrap().as_str(), text);
        }
        for text in ["", "sixteen-octets-x", "a/b", "a b", "..", "a\0b"] {
            assert_eq!(text.parse::<InterfaceName>(), Err(ParseInterfaceNameError), "{text}");
        }
    }

    #[test]
    fn ids_of_both_directions_never_meet() {
        assert_ne!(ConnId::dialled(4), ConnId::accepted(4));
        assert_eq!(
            (ConnId::dialled(4).to_string(), ConnId::accepted(4).to_string()),
            ("out4".into(), "in4".into())
        );
    }
}
