//! WireGuard: keys on interfaces, and peers. Nothing is encrypted; a session comes up as soon as a test says that the peer
//! answers.

use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use super::State;
use super::interface::{Interface, Kind};
use super::key::Af;
use super::pool::Pool;

/// A key of either kind.
pub(crate) type Key = [u8; 32];

/// `wireguard_peer_flags`: removed, or no longer believed in.
pub(crate) const DEAD: u8 = 1;
/// `wireguard_peer_flags`: there is a session.
pub(crate) const ESTABLISHED: u8 = 2;

/// What makes an interface one of WireGuard.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Wg {
    /// The number in its name.
    pub(crate) instance: u32,
    /// Its private key.
    pub(crate) private: Key,
    /// Its UDP port.
    pub(crate) port: u16,
    /// Where packets come from.
    pub(crate) src: (Af, [u8; 16]),
}

impl Wg {
    /// The key that others know it by.
    pub(crate) fn public(&self) -> Key {
        x25519(self.private, X25519_BASEPOINT_BYTES)
    }
}

impl std::fmt::Debug for Wg {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wg")
            .field("instance", &self.instance)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A peer of an interface.
#[derive(Clone)]
pub(crate) struct Peer {
    /// What it is known by.
    pub(crate) public: Key,
    /// A key known to both, where there is one.
    pub(crate) preshared: Option<Key>,
    /// Its UDP port.
    pub(crate) port: u16,
    /// Seconds between words that say nothing; 0: never.
    pub(crate) keepalive: u16,
    /// Where its address is looked up.
    pub(crate) table: u32,
    /// Its address.
    pub(crate) endpoint: (Af, [u8; 16]),
    /// The interface it belongs to.
    pub(crate) interface: u32,
    /// What may come from it.
    pub(crate) allowed: Vec<(Af, [u8; 16], u8)>,
    /// How it stands.
    pub(crate) flags: u8,
    /// Clients that want to hear of it.
    pub(crate) watchers: Vec<u32>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// News of a peer for one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerEvent {
    /// For whom.
    pub(crate) client: u32,
    /// Which peer.
    pub(crate) peer: u32,
    /// How it stands now.
    pub(crate) flags: u8,
}

/// All that is not an interface.
#[derive(Debug)]
pub(crate) struct Wireguard {
    /// Peers of all interfaces.
    pub(crate) peers: Pool<Peer>,
    /// Whether another thread encrypts.
    pub(crate) asynchronous: bool,
    /// The message that tells of events.
    pub(crate) event_id: u16,
    /// Who answers, under which key.
    answering: Vec<(Af, [u8; 16], Key)>,
    events: Vec<PeerEvent>,
    generated: u8,
}

impl Wireguard {
    pub(crate) fn new() -> Self {
        Self {
            peers: Pool::new(),
            asynchronous: false,
            event_id: 0,
            answering: Vec::new(),
            events: Vec::new(),
            generated: 0,
        }
    }

    /// What happened to peers since this was last asked.
    pub(crate) fn take_events(&mut self) -> Vec<PeerEvent> {
        std::mem::take(&mut self.events)
    }

    /// Some of them were not for whoever asked.
    pub(crate) fn put_back(&mut self, events: Vec<PeerEvent>) {
        self.events.extend(events);
    }

    /// A client is gone, and with it what it wanted to hear of.
    pub(crate) fn forget_client(&mut self, client: u32) {
        let all: Vec<u32> = self.peers.iter().map(|(at, _)| at).collect();
        for at in all {
            if let Some(peer) = self.peers.get_mut(at) {
                peer.watchers.retain(|watcher| *watcher != client);
            }
        }
    }

    /// A private key that no interface has. Predictable: nothing here is worth keeping secret.
    pub(crate) fn generate(&mut self) -> Key {
        self.generated = self.generated.wrapping_add(1);
        let mut key = [self.generated; 32];
        // As every key of the curve is made (RFC 7748 section 5).
        key[0] &= 248;
        key[31] = key[31] & 127 | 64;
        key
    }

    /// The peer of an interface with this key.
    pub(crate) fn known(&self, interface: u32, public: &Key) -> bool {
        self.peers.iter().any(|(_, peer)| peer.interface == interface && peer.public == *public)
    }

    fn set_flags(&mut self, at: u32, flags: u8) {
        let Some(peer) = self.peers.get_mut(at) else { return };
        if std::mem::replace(&mut peer.flags, flags) == flags {
            return;
        }
        let news = peer.watchers.iter().map(|client| PeerEvent { client: *client, peer: at, flags });
        self.events.extend(news);
    }

    /// Removes a peer; who watched it hears so.
    pub(crate) fn remove_peer(&mut self, at: u32) -> bool {
        if self.peers.get(at).is_none() {
            return false;
        }
        self.set_flags(at, DEAD);
        self.peers.remove(at).is_some()
    }

    /// Sessions come up with whoever answers under the key that it is known by, and go down with who doesn't any more.
    fn shake_hands(&mut self) {
        let all: Vec<u32> = self.peers.iter().map(|(at, _)| at).collect();
        for at in all {
            let Some(peer) = self.peers.get(at) else { continue };
            let (af, address) = peer.endpoint;
            let answers = self.answering.contains(&(af, address, peer.public));
            self.set_flags(at, if answers { ESTABLISHED } else { 0 });
        }
    }
}

impl State {
    /// Adds a WireGuard interface; its sw_if_index, or `None` where the instance number is taken. All ones as instance takes
    /// the smallest that is free.
    pub(crate) fn add_wireguard(&mut self, mut wg: Wg) -> Option<u32> {
        let instance_of = |interface: &Interface| match &interface.kind {
            Kind::Wireguard(wg) => Some(wg.instance),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Ipip(_) | Kind::Vxlan(_) => None,
        };
        let taken = |instance: u32| self.interfaces.iter().any(|(_, i)| instance_of(i) == Some(instance));
        if wg.instance == u32::MAX {
            wg.instance = (0..).find(|instance| !taken(*instance))?;
        } else if taken(wg.instance) {
            return None;
        }
        let name = format!("wg{}", wg.instance).into_bytes();
        let mut interface = Interface::new(Kind::Wireguard(wg), name, "Wireguard Tunnel");
        (interface.link_mtu, interface.mtu) = (0, [0; 4]);
        Some(self.interfaces.add(interface))
    }

    /// The keys of a WireGuard interface; `None` where it is none.
    pub(crate) fn wireguard_at(&self, at: u32) -> Option<&Wg> {
        match &self.interfaces.get(at)?.kind {
            Kind::Wireguard(wg) => Some(wg),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Ipip(_) | Kind::Vxlan(_) => None,
        }
    }

    /// Removes a WireGuard interface with its peers.
    pub(crate) fn delete_wireguard(&mut self, at: u32) {
        let peers: Vec<u32> = self
            .wireguard
            .peers
            .iter()
            .filter(|(_, peer)| peer.interface == at)
            .map(|(peer, _)| peer)
            .collect();
        for peer in peers {
            self.wireguard.remove_peer(peer);
        }
        self.delete_interface(at);
    }

    /// Adds a peer that is none yet; its index.
    pub(crate) fn add_peer(&mut self, peer: Peer) -> u32 {
        let at = self.wireguard.peers.insert(peer);
        self.wireguard.shake_hands();
        at
    }

    /// From now on the node at this address answers under this key; or is gone.
    pub(crate) fn wireguard_peer(&mut self, af: Af, address: [u8; 16], key: Option<Key>) {
        self.wireguard.answering.retain(|(of, at, _)| (*of, *at) != (af, address));
        self.wireguard.answering.extend(key.map(|key| (af, address, key)));
        self.wireguard.shake_hands();
    }
}
