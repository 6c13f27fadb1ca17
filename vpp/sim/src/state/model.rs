//! The state as one value, and the changes that touch interfaces and routes both.

use super::cnat::Cnat;
use super::fib::Fib;
use super::graph::Graph;
use super::ikev2::Ikev2;
use super::interface::{Address, Interface, Interfaces, Ipip, Kind, Vxlan};
use super::key::{Af, bytes_of};
use super::sr::Sr;
use super::wireguard::Wireguard;
use crate::options::InterfaceSpec;
use crate::release::Release;

/// Who encrypts.
#[derive(Debug, Default)]
pub(crate) struct Crypto {
    /// Not the thread that has the packet.
    pub(crate) asynchronous: bool,
    /// Which workers do.
    pub(crate) workers: Vec<bool>,
}

/// The state of one simulated process.
#[derive(Debug)]
pub(crate) struct State {
    /// What it poses as.
    pub(crate) release: Release,
    /// Interfaces.
    pub(crate) interfaces: Interfaces,
    /// Tables and routes.
    pub(crate) fib: Fib,
    /// Address translation.
    pub(crate) cnat: Cnat,
    /// Keys for tunnels.
    pub(crate) ikev2: Ikev2,
    /// Who encrypts.
    pub(crate) crypto: Crypto,
    /// SRv6.
    pub(crate) sr: Sr,
    /// Peers.
    pub(crate) wireguard: Wireguard,
    /// The packet graph.
    pub(crate) graph: Graph,
}

impl State {
    /// A process that was just started: `local0`, the default tables, and the interfaces it was given.
    pub(crate) fn new(release: Release, given: &[InterfaceSpec]) -> Self {
        let mut state = Self {
            release,
            interfaces: Interfaces::new(),
            fib: Fib::new(),
            cnat: Cnat::default(),
            ikev2: Ikev2::new(),
            crypto: Crypto::default(),
            sr: Sr::new(),
            wireguard: Wireguard::new(),
            graph: Graph::new(),
        };
        for (number, spec) in (0u8..).zip(given) {
            let mut uplink = Interface::new(Kind::Uplink, spec.name.clone().into_bytes(), "af-packet");
            uplink.mac = [0x02, 0xfe, 0, 0, 0, number];
            let at = state.interfaces.add(uplink);
            state.set_up(at, true);
            for net in &spec.addresses {
                let (af, addr) = bytes_of(net.addr());
                if let Err(error) = state.add_address(at, af, (addr, net.prefix_len())) {
                    tracing::warn!(interface = spec.name, address = %net, ?error, "this address is not added");
                }
            }
        }
        state.interfaces.take_events();
        state
    }

    /// Sets the administrative state. The connected routes of an interface exist while it is up.
    pub(crate) fn set_up(&mut self, at: u32, up: bool) {
        if !self.interfaces.set_up(at, up) {
            return;
        }
        for af in [Af::Ip4, Af::Ip6] {
            for address in self.addresses(at, af) {
                if up {
                    self.connect(at, af, address);
                } else {
                    self.disconnect(at, af, address, &[]);
                }
            }
        }
    }

    /// Moves an interface without addresses into another table, which must exist.
    pub(crate) fn bind(&mut self, at: u32, af: Af, table: u32) {
        let Some(interface) = self.interfaces.get_mut(at) else { return };
        let old = std::mem::replace(&mut interface.tables[af.index()], table);
        self.fib.lock_table(af, table);
        self.fib.unlock_table(af, old);
    }

    /// Adds a tunnel unlike all others, whose table exists; its sw_if_index, or `None` when its instance number is taken.
    pub(crate) fn add_tunnel(&mut self, tunnel: Ipip) -> Option<u32> {
        let (af, table) = (tunnel.af, tunnel.table);
        let at = self.interfaces.add_tunnel(tunnel)?;
        self.fib.lock_table(af, table);
        Some(at)
    }

    /// Adds a VXLAN tunnel unlike all others, whose table exists; its sw_if_index, or `None` when its instance number is
    /// taken.
    pub(crate) fn add_vxlan(&mut self, tunnel: Vxlan) -> Option<u32> {
        let (af, table) = (tunnel.af, tunnel.table);
        let at = self.interfaces.add_vxlan(tunnel)?;
        self.fib.lock_table(af, table);
        Some(at)
    }

    /// Removes an interface with everything on it. Its routes stay, and drop. What it was.
    pub(crate) fn delete_interface(&mut self, at: u32) -> Option<Interface> {
        self.interfaces.get(at)?;
        self.set_up(at, false);
        for af in [Af::Ip4, Af::Ip6] {
            self.bind(at, af, 0);
        }
        let borrowers: Vec<u32> = self
            .interfaces
            .iter()
            .filter(|(_, other)| other.lender == Some(at))
            .map(|(other, _)| other)
            .collect();
        for borrower in borrowers {
            if let Some(interface) = self.interfaces.get_mut(borrower) {
                interface.lender = None;
            }
        }
        let gone = self.interfaces.remove(at)?;
        self.fib.interface_deleted(at);
        if let Kind::Ipip(tunnel) = &gone.kind {
            self.fib.unlock_table(tunnel.af, tunnel.table);
        }
        if let Kind::Vxlan(tunnel) = &gone.kind {
            self.fib.unlock_table(tunnel.af, tunnel.table);
        }
        Some(gone)
    }

    /// The addresses of an interface.
    pub(crate) fn addresses(&self, at: u32, af: Af) -> Vec<Address> {
        self.interfaces.get(at).map_or_else(Vec::new, |interface| interface.addresses[af.index()].clone())
    }
}
