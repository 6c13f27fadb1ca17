//! Interfaces: what VPP keeps about each, and the events their changes cause.

use std::collections::BTreeMap;

use super::key::{Af, Key, mask};
use super::pool::{Indices, Pool};
use super::wireguard::Wg;

/// `local0`, which is always there.
pub(crate) const LOCAL0: u32 = 0;

/// What an interface is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `local0`
    Local,
    /// A loopback with its instance number.
    Loopback(u32),
    /// Given at start.
    Uplink,
    /// An IPIP tunnel.
    Ipip(Ipip),
    /// A WireGuard interface.
    Wireguard(Wg),
    /// A VXLAN tunnel.
    Vxlan(Vxlan),
}

/// A VXLAN tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vxlan {
    /// The number in its name.
    pub(crate) instance: u32,
    /// Family of both ends.
    pub(crate) af: Af,
    /// Own end.
    pub(crate) src: [u8; 16],
    /// Other end.
    pub(crate) dst: [u8; 16],
    /// UDP port of the own end.
    pub(crate) src_port: u16,
    /// UDP port of the other end.
    pub(crate) dst_port: u16,
    /// Where the other end is looked up.
    pub(crate) table: u32,
    /// Where packets go that come out.
    pub(crate) decap_next: u32,
    /// The network's number, as large as a client pleases.
    pub(crate) vni: u32,
    /// IP packets inside, no Ethernet of others.
    pub(crate) l3: bool,
}

impl Vxlan {
    /// The graph's node that packets come out of.
    pub(crate) const fn input(&self) -> &'static str {
        match self.af {
            Af::Ip4 => "vxlan4-input",
            Af::Ip6 => "vxlan6-input",
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let key = |tunnel: &Self| {
            (tunnel.af, tunnel.src, tunnel.dst, tunnel.src_port, tunnel.dst_port, tunnel.table, tunnel.vni)
        };
        key(self) == key(other)
    }
}

/// An IPIP tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ipip {
    /// The number in its name.
    pub(crate) instance: u32,
    /// Family of both ends.
    pub(crate) af: Af,
    /// Own end.
    pub(crate) src: [u8; 16],
    /// Other end.
    pub(crate) dst: [u8; 16],
    /// Where the other end is looked up.
    pub(crate) table: u32,
    /// Encapsulation and decapsulation flags.
    pub(crate) flags: u8,
    /// Point to point, or more.
    pub(crate) mode: u8,
    /// DSCP of the outer header.
    pub(crate) dscp: u8,
}

impl Ipip {
    fn ends(&self) -> Ends {
        (self.af, self.src, self.dst, self.table, self.mode)
    }
}

/// The features that can be asked for: arc and name. GSO switches the last two.
pub(crate) const FEATURES: [(&str, &str); 4] = [
    ("ip4-unicast", "ip4-not-enabled"),
    ("ip4-unicast", "ip4-vxlan-bypass"),
    ("ip4-output", "gso-ip4"),
    ("ip6-output", "gso-ip6"),
];

/// An address with its prefix length, host bits kept.
pub(crate) type Address = ([u8; 16], u8);

/// One interface.
#[derive(Debug)]
pub(crate) struct Interface {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its name, at most 63 bytes.
    pub(crate) name: Vec<u8>,
    /// VPP's name of its driver.
    pub(crate) device: &'static str,
    /// Its hardware address.
    pub(crate) mac: [u8; 6],
    /// Administratively up; the link follows.
    pub(crate) up: bool,
    /// What the hardware could carry.
    pub(crate) link_mtu: u16,
    /// Of L3, IPv4, IPv6 and MPLS; 0 means as L3.
    pub(crate) mtu: [u32; 4],
    /// What a client wrote on it, at most 63 bytes.
    pub(crate) tag: Vec<u8>,
    /// The table of each family.
    pub(crate) tables: [u32; 2],
    /// The addresses of each family, in the order they came.
    pub(crate) addresses: [Vec<Address>; 2],
    /// The interface that lends its addresses.
    pub(crate) lender: Option<u32>,
    /// Whether packets may be segmented here.
    pub(crate) gso: bool,
    /// Whether service translation looks at its packets.
    pub(crate) cnat: bool,
    /// How often each feature was enabled and not disabled since.
    features: [u32; FEATURES.len()],
    /// How packets are fetched, as `sw_interface_set_rx_mode` has it.
    pub(crate) rx_mode: u32,
}

impl Interface {
    /// An interface as VPP creates it: down, in table 0, with nothing set.
    pub(crate) fn new(kind: Kind, name: Vec<u8>, device: &'static str) -> Self {
        Self {
            kind,
            name,
            device,
            mac: [0; 6],
            up: false,
            link_mtu: 9000,
            mtu: [9000, 0, 0, 0],
            tag: Vec::new(),
            tables: [0; 2],
            addresses: [Vec::new(), Vec::new()],
            lender: None,
            gso: false,
            cnat: false,
            features: [0; FEATURES.len()],
            rx_mode: 0,
        }
    }

    /// `if_status_flags`: 1 administratively up, 2 link up.
    pub(crate) fn flags(&self) -> u32 {
        if self.up { 3 } else { 0 }
    }

    /// Whether the feature at this place in [`FEATURES`] is on.
    pub(crate) fn feature_is_on(&self, feature: usize) -> bool {
        let by_gso = FEATURES.get(feature).is_some_and(|(_, name)| name.starts_with("gso-"));
        (by_gso && self.gso) || self.features.get(feature).is_some_and(|count| *count > 0)
    }

    /// Enables or disables a feature once.
    pub(crate) fn count_feature(&mut self, feature: usize, enable: bool) {
        if let Some(count) = self.features.get_mut(feature) {
            *count = if enable { count.saturating_add(1) } else { count.saturating_sub(1) };
        }
    }
}

/// Something happened to an interface; what happens to it while one request is carried out is one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Which.
    pub(crate) sw_if_index: u32,
    /// What came up.
    pub(crate) flags: u32,
    /// Whether it is gone.
    pub(crate) deleted: bool,
}

/// What tunnels must not have in common.
#[derive(Debug, Default)]
struct Tunnels {
    by_ends: BTreeMap<Ends, u32>,
    numbers: Numbers,
}

/// Instance numbers of tunnels of one kind.
#[derive(Debug, Default)]
struct Numbers {
    /// A tunnel's place among the tunnels is its instance, unless another one was asked for.
    places: Indices,
    /// The places by instance.
    instances: BTreeMap<u32, u32>,
}

/// Family, own end, other end, table, mode: no two tunnels have all of these in common.
type Ends = (Af, [u8; 16], [u8; 16], u32, u8);

/// All interfaces by sw_if_index.
#[derive(Debug)]
pub(crate) struct Interfaces {
    pool: Pool<Interface>,
    events: Vec<Event>,
    tunnels: Tunnels,
    vxlan: Numbers,
}

impl Interfaces {
    /// Just `local0`.
    pub(crate) fn new() -> Self {
        let mut pool = Pool::new();
        let local = Interface {
            link_mtu: 0,
            mtu: [0; 4],
            ..Interface::new(Kind::Local, b"local0".to_vec(), "local")
        };
        let at = pool.insert(local);
        debug_assert_eq!(at, LOCAL0);
        Self { pool, events: Vec::new(), tunnels: Tunnels::default(), vxlan: Numbers::default() }
    }

    /// Adds an interface; its sw_if_index.
    pub(crate) fn add(&mut self, interface: Interface) -> u32 {
        let at = self.pool.insert(interface);
        self.event(Event { sw_if_index: at, flags: 0, deleted: false });
        at
    }

    /// Adds the interface of a tunnel unlike all others; its sw_if_index, or `None` when the instance number is taken.
    /// All ones as instance lets the place among the tunnels decide.
    pub(crate) fn add_tunnel(&mut self, mut tunnel: Ipip) -> Option<u32> {
        let place = self.tunnels.numbers.places.take();
        if tunnel.instance == u32::MAX {
            tunnel.instance = place;
        }
        if self.tunnels.numbers.instances.contains_key(&tunnel.instance) {
            self.tunnels.numbers.places.give_back(place);
            return None;
        }
        self.tunnels.numbers.instances.insert(tunnel.instance, place);
        let ends = tunnel.ends();
        let name = format!("ipip{}", tunnel.instance).into_bytes();
        let interface = Interface::new(Kind::Ipip(tunnel), name, "IPIP tunnel device");
        let at = self.add(Interface { link_mtu: 65516, ..interface });
        self.tunnels.by_ends.insert(ends, at);
        Some(at)
    }

    /// Adds the interface of a VXLAN tunnel unlike all others; its sw_if_index, or `None` when the instance number is
    /// taken.
    pub(crate) fn add_vxlan(&mut self, mut tunnel: Vxlan) -> Option<u32> {
        let place = self.vxlan.places.take();
        if tunnel.instance == u32::MAX {
            tunnel.instance = place;
        }
        if self.vxlan.instances.contains_key(&tunnel.instance) {
            self.vxlan.places.give_back(place);
            return None;
        }
        self.vxlan.instances.insert(tunnel.instance, place);
        let name = format!("vxlan_tunnel{}", tunnel.instance).into_bytes();
        let interface = Interface::new(Kind::Vxlan(tunnel), name, "VXLAN");
        Some(self.add(Interface { link_mtu: 0, mtu: [0; 4], ..interface }))
    }

    /// The VXLAN tunnel with the same ends, ports, table and network.
    pub(crate) fn vxlan_like(&self, wish: &Vxlan) -> Option<u32> {
        self.iter().find_map(|(at, interface)| match &interface.kind {
            Kind::Vxlan(tunnel) => tunnel.is_like(wish).then_some(at),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Ipip(_) | Kind::Wireguard(_) => None,
        })
    }

    /// The tunnel with the same ends, table and mode.
    pub(crate) fn tunnel_like(&self, wish: &Ipip) -> Option<u32> {
        self.tunnels.by_ends.get(&wish.ends()).copied()
    }

    /// Takes an interface out.
    pub(crate) fn remove(&mut self, at: u32) -> Option<Interface> {
        let gone = self.pool.remove(at)?;
        if let Kind::Ipip(tunnel) = &gone.kind {
            self.tunnels.by_ends.remove(&tunnel.ends());
            if let Some(place) = self.tunnels.numbers.instances.remove(&tunnel.instance) {
                self.tunnels.numbers.places.give_back(place);
            }
        }
        if let Kind::Vxlan(tunnel) = &gone.kind
            && let Some(place) = self.vxlan.instances.remove(&tunnel.instance)
        {
            self.vxlan.places.give_back(place);
        }
        self.event(Event { sw_if_index: at, flags: 0, deleted: true });
        Some(gone)
    }

    /// Sets the administrative state; whether that changed anything.
    pub(crate) fn set_up(&mut self, at: u32, up: bool) -> bool {
        let Some(interface) = self.pool.get_mut(at) else { return false };
        if interface.up == up {
            return false;
        }
        interface.up = up;
        let flags = interface.flags();
        self.event(Event { sw_if_index: at, flags, deleted: false });
        true
    }

    /// The interface with this index.
    pub(crate) fn get(&self, at: u32) -> Option<&Interface> {
        self.pool.get(at)
    }

    /// The interface with this index.
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut Interface> {
        self.pool.get_mut(at)
    }

    /// How many interfaces there are.
    pub(crate) fn len(&self) -> usize {
        self.pool.len()
    }

    /// All interfaces by rising index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Interface)> {
        self.pool.iter()
    }

    /// The smallest number no loopback has.
    pub(crate) fn free_loopback(&self) -> u32 {
        (0..)
            .find(|instance| !self.iter().any(|(_, other)| other.kind == Kind::Loopback(*instance)))
            .unwrap_or(u32::MAX)
    }

    /// All tunnels by rising sw_if_index.
    pub(crate) fn tunnels(&self) -> impl Iterator<Item = (u32, &Ipip)> {
        self.iter().filter_map(|(at, interface)| match &interface.kind {
            Kind::Ipip(tunnel) => Some((at, tunnel)),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Vxlan(_) | Kind::Wireguard(_) => None,
        })
    }

    /// Whether an address of the same table, other than one in the same prefix of the same interface, overlaps.
    pub(crate) fn overlaps(&self, at: u32, af: Af, (addr, len): Address) -> bool {
        let Some(table) = self.get(at).map(|interface| interface.tables[af.index()]) else { return false };
        self.iter().filter(|(_, other)| other.tables[af.index()] == table).any(|(other_at, other)| {
            other.addresses[af.index()].iter().any(|&(other_addr, other_len)| {
                let (new, old) = (Key::new(addr, len), Key::new(other_addr, other_len));
                let sibling = other_at == at && other_len == len && other_addr != addr;
                (new.covers(Key::new(other_addr, af.max_len())) || old.covers(Key::new(addr, af.max_len())))
                    && !sibling
            })
        })
    }

    /// What happened since this was last asked, one event per interface.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Whether anything happened.
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    fn event(&mut self, event: Event) {
        match self.events.iter_mut().find(|old| old.sw_if_index == event.sw_if_index) {
            Some(old) => {
                old.flags |= event.flags;
                old.deleted |= event.deleted;
            }
            None => self.events.push(event),
        }
    }
}

/// The IPv4 or IPv6 network of an address.
pub(crate) fn network((addr, len): Address) -> [u8; 16] {
    mask(addr, len)
}

/// The highest address of the prefix an address is in.
pub(crate) fn broadcast(af: Af, (addr, len): Address) -> [u8; 16] {
    let ones = match af {
        Af::Ip4 => u128::from(u32::MAX) << 96,
        Af::Ip6 => u128::MAX,
    };
    let host = ones & !u128::from_be_bytes(mask([0xff; 16], len));
    (u128::from_be_bytes(addr) | host).to_be_bytes()
}
