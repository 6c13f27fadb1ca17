//! What a simulated VPP is started with. Parses values, never touches the system.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use ipnet::IpNet;

use crate::release::Release;

/// Settings of a simulated VPP, as its command line gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Path of the API socket. A stale socket file there is replaced.
    pub socket: PathBuf,
    /// Path of the control socket (see [`crate::control`]), if one is wanted.
    pub control: Option<PathBuf>,
    /// The interfaces that exist from the start, from sw_if_index 1 upward: they stand for the uplinks that whoever
    /// started VPP gave it. They are administratively up.
    pub interfaces: Vec<InterfaceSpec>,
    /// How many worker threads there are besides the main one.
    pub workers: usize,
    /// Names of messages (without CRC) to leave out of the message table, as if a plugin were not loaded.
    pub hide: Vec<String>,
    /// The release whose messages it has, in its forms.
    pub release: Release,
    /// Whether 16 unclean disconnects after a full socket stop the process, as they stop a real VPP.
    pub leaks: bool,
    /// Whether a simulated VPP that died starts again by itself with empty state. Otherwise [`crate::run()`] ends with
    /// [`crate::SimError::Died`].
    pub respawn: bool,
}

impl SimOptions {
    /// Options for a VPP with nothing but `local0`, on the API socket `socket`, that leaks as the real one does and stays
    /// dead once it died.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            control: None,
            interfaces: Vec::new(),
            workers: 0,
            hide: Vec::new(),
            release: Release::default(),
            leaks: true,
            respawn: false,
        }
    }
}

/// An interface that exists from the start, written `NAME=ADDR/LEN[,ADDR/LEN…]` or just `NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceSpec {
    /// VPP's name for it, at most 63 bytes, for example `host-eth0`.
    pub name: String,
    /// Its addresses with their prefix lengths, host bits kept.
    pub addresses: Vec<IpNet>,
}

/// Why an interface given as text was not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InterfaceSpecError {
    /// The name is empty or longer than the 63 bytes VPP keeps.
    #[error("an interface name has 1 to 63 bytes, this one has {0}")]
    Name(usize),
    /// A part behind the `=` is no address with a prefix length.
    #[error("`{0}` is no address with a prefix length, such as 192.0.2.1/24")]
    Address(String),
}

impl FromStr for InterfaceSpec {
    type Err = InterfaceSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, addresses) = text.split_once('=').unwrap_or((text, ""));
        if name.is_empty() || name.len() > 63 {
            return Err(InterfaceSpecError::Name(name.len()));
        }
        let addresses = addresses
            .split(',')
            .filter(|part| !part.is_empty())
            .map(|part| parse_address(part).ok_or_else(|| InterfaceSpecError::Address(part.to_owned())))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { name: name.to_owned(), addresses })
    }
}

/// An address with its length; a bare address is a host.
fn parse_address(text: &str) -> Option<IpNet> {
    text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_read_from_text() {
        let spec: InterfaceSpec = "host-eth0=192.0.2.1/24,2001:db8::1/64".parse().expect("good text");
        assert_eq!(spec.name, "host-eth0");
        assert_eq!(
            spec.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["192.0.2.1/24", "2001:db8::1/64"]
        );
        assert_eq!("tap0".parse::<InterfaceSpec>().map(|s| s.addresses.len()), Ok(0));
    }

    #[test]
    fn bad_text_is_named() {
        assert_eq!("=1.2.3.4/8".parse::<InterfaceSpec>(), Err(InterfaceSpecError::Name(0)));
        assert_eq!(
            "a=1.2.3.4/33".parse::<InterfaceSpec>(),
            Err(InterfaceSpecError::Address("1.2.3.4/33".into()))
        );
        assert_eq!("x".repeat(64).parse::<InterfaceSpec>(), Err(InterfaceSpecError::Name(64)));
    }
}
