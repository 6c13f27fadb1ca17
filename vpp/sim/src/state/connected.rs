//! Addresses on interfaces, and the routes that come with them: the connected prefix, the own address, and for IPv4 the
//! drops for the network and broadcast addresses.

use super::State;
use super::interface::{Address, broadcast, network};
use super::key::{Af, Key};
use super::path::{self, Path};
use super::sources::INTERFACE;

/// Why an address is not added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressError {
    /// The family has no such prefix length.
    Length,
    /// It overlaps an address in the same table.
    InUse,
    /// It is not there.
    NotFound,
}

/// A route that an address brings along: prefix, the address to list it with, path.
type Connected = (Key, [u8; 16], Path);

impl State {
    /// Puts an address on an interface that exists.
    pub(crate) fn add_address(&mut self, at: u32, af: Af, address: Address) -> Result<(), AddressError> {
        if address.1 > af.max_len() {
            return Err(AddressError::Length);
        }
        if self.interfaces.overlaps(at, af, address) {
            return Err(AddressError::InUse);
        }
        let Some(interface) = self.interfaces.get_mut(at) else { return Ok(()) };
        interface.addresses[af.index()].push(address);
        if interface.up {
            self.connect(at, af, address);
        }
        Ok(())
    }

    /// Takes an address off an interface that exists.
    pub(crate) fn remove_address(&mut self, at: u32, af: Af, address: Address) -> Result<(), AddressError> {
        if address.1 > af.max_len() {
            return Err(AddressError::Length);
        }
        let Some(interface) = self.interfaces.get_mut(at) else { return Err(AddressError::NotFound) };
        let addresses = &mut interface.addresses[af.index()];
        let found = addresses.iter().position(|other| *other == address).ok_or(AddressError::NotFound)?;
        addresses.remove(found);
        let left = addresses.clone();
        if interface.up {
            self.disconnect(at, af, address, &left);
        }
        Ok(())
    }

    /// Adds the routes of an address.
    pub(super) fn connect(&mut self, at: u32, af: Af, address: Address) {
        let Some(table) = self.interfaces.get(at).map(|interface| interface.tables[af.index()]) else {
            return;
        };
        for (key, given, path) in connected(at, af, address) {
            self.fib.put(af, table, key, given, INTERFACE, &mut [path]);
        }
    }

    /// Removes the routes of an address, but not those that the `left` ones need too.
    pub(super) fn disconnect(&mut self, at: u32, af: Af, address: Address, left: &[Address]) {
        let Some(table) = self.interfaces.get(at).map(|interface| interface.tables[af.index()]) else {
            return;
        };
        let needed: Vec<Connected> = left.iter().flat_map(|other| connected(at, af, *other)).collect();
        for (key, ..) in connected(at, af, address) {
            if !needed.iter().any(|(other, ..)| *other == key) {
                self.fib.take(af, table, key, INTERFACE);
            }
        }
    }
}

/// The routes of an address on interface `at`.
fn connected(at: u32, af: Af, address: Address) -> Vec<Connected> {
    let (addr, len) = address;
    let own = (Key::host(af, addr), addr, path::local(af, at, addr));
    let prefix = Key::new(addr, len);
    let host = |addr| Key::host(af, addr);
    let mut routes = Vec::with_capacity(4);
    match (af, len) {
        (Af::Ip4, 0..=30) => {
            // listed with the host bits of the first address in it
            routes.push((prefix, addr, path::attached(af, at)));
            for edge in [network(address), broadcast(af, address)] {
                if edge != addr {
                    routes.push((host(edge), edge, path::drop(af)));
                }
            }
        }
        (Af::Ip4, 31) => {
            let mut other = addr;
            other[3] ^= 1;
            routes.push((host(other), other, path::attached(af, at)));
        }
        (Af::Ip6, 0..=127) => routes.push((prefix, prefix.addr, path::attached(af, at))),
        _ => {}
    }
    routes.push(own);
    routes
}
