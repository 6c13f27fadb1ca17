//! IKEv2: profiles, and what comes of them with other nodes of which a test says that they answer. No packet is sent.
//!
//! A profile's tunnel goes up and down with its association, by VPP's own doing. Measured, and easy to get wrong:
//!
//! * what was initiated and not answered is tried again by VPP every two seconds, and no dump shows it;
//! * what is initiated again while it is up goes down first;
//! * a peer that fails to authenticate takes the *responder's tunnel interface* with it, although no client asked for that.

use super::State;
use super::interface::Kind;
use super::pool::Pool;

/// `ikev2_state`: the other side, or this one, did not believe what it was told.
pub(crate) const AUTH_FAILED: u32 = 3;
/// `ikev2_state`: all is well.
pub(crate) const AUTHENTICATED: u32 = 4;

/// Authentication by a shared key.
const SHARED_KEY: u8 = 2;
/// An identity that is an IPv4 address.
const IPV4: u8 = 1;

/// Profiles, and who answers.
#[derive(Debug)]
pub(crate) struct Ikev2 {
    /// By index.
    pub(crate) profiles: Pool<Profile>,
    /// Seconds between two looks at what is under way, as VPP's own bytes.
    pub(crate) sleep_interval: [u8; 8],
    /// Other nodes by address, with their shared keys.
    peers: Vec<([u8; 4], Vec<u8>)>,
    next_spi: u64,
}

/// A profile. Fields that are only stored are kept as they came.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    /// At most 63 bytes.
    pub(crate) name: Vec<u8>,
    /// Type and value of our identity.
    pub(crate) local_id: (u8, Vec<u8>),
    /// Type and value of the other's identity.
    pub(crate) remote_id: (u8, Vec<u8>),
    /// What may be sent from here; as `ikev2_ts` from its protocol on.
    pub(crate) local_ts: Selector,
    /// What may be sent from there.
    pub(crate) remote_ts: Selector,
    /// Where to initiate to: interface and address as on the wire.
    pub(crate) responder: Option<(u32, [u8; 17])>,
    /// Key exchange, with 26.06's `prf_alg`.
    pub(crate) ike_transforms: [u8; Self::IKE_TRANSFORMS],
    /// Payload.
    pub(crate) esp_transforms: [u8; 6],
    /// Lifetime, most data, jitter, handover.
    pub(crate) lifetime: (u64, u64, u32, u32),
    /// All ones: none.
    pub(crate) udp_port: Option<u16>,
    /// The protected interface.
    pub(crate) tunnel: Option<u32>,
    /// See RFC 3948.
    pub(crate) udp_encap: bool,
    /// See RFC 7296, section 2.23.
    pub(crate) natt_disabled: bool,
    /// Method, whether the value is hexadecimal, the value.
    pub(crate) auth: (u8, u8, Vec<u8>),
    /// An exchange was begun here and goes on.
    pub(crate) pending: bool,
    /// What came of an exchange.
    pub(crate) sa: Option<Sa>,
}

/// `ikev2_ts` from its protocol on.
pub(crate) type Selector = Option<[u8; 39]>;

/// An association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sa {
    /// `ikev2_state`
    pub(crate) state: u32,
    /// It was begun here.
    pub(crate) initiator: bool,
    /// The initiator's and the responder's number.
    pub(crate) spi: [u64; 2],
}

impl Ikev2 {
    /// Nothing.
    pub(crate) fn new() -> Self {
        Self { profiles: Pool::new(), sleep_interval: 2f64.to_le_bytes(), peers: Vec::new(), next_spi: 1 }
    }

    /// The index of the profile with this name.
    pub(crate) fn index_of(&self, name: &[u8]) -> Option<u32> {
        self.profiles.iter().find(|(_, profile)| profile.name == name).map(|(at, _)| at)
    }

    /// The profile with this name.
    pub(crate) fn named(&mut self, name: &[u8]) -> Option<&mut Profile> {
        self.profiles.get_mut(self.index_of(name)?)
    }

    fn key_of(&self, remote: [u8; 4]) -> Option<&[u8]> {
        self.peers.iter().find(|(address, _)| *address == remote).map(|(_, key)| key.as_slice())
    }
}

impl Profile {
    /// Bytes of the transforms for key exchange.
    pub(crate) const IKE_TRANSFORMS: usize = 8;

    /// The other side's address, as far as it can be told.
    fn remote(&self) -> Option<[u8; 4]> {
        match &self.responder {
            Some((_, [_, a, b, c, d, ..])) => Some([*a, *b, *c, *d]),
            None if self.remote_id.0 == IPV4 => self.remote_id.1.first_chunk().copied(),
            None => None,
        }
    }

    /// Everything is said that authentication needs.
    fn complete(&self) -> bool {
        self.auth.0 == SHARED_KEY
            && self.local_id.0 != 0
            && self.remote_id.0 != 0
            && self.local_ts.is_some()
            && self.remote_ts.is_some()
    }

    /// There is an association that protects the tunnel.
    pub(crate) fn is_up(&self) -> bool {
        self.sa.is_some_and(|sa| sa.state == AUTHENTICATED)
    }
}

impl State {
    /// Adds a profile; false where the name is taken.
    pub(crate) fn add_profile(&mut self, name: &[u8]) -> bool {
        if self.ikev2.index_of(name).is_some() {
            return false;
        }
        self.ikev2.profiles.insert(Profile { name: name.to_vec(), ..Profile::default() });
        true
    }

    /// Removes a profile with its association; false where there is none.
    pub(crate) fn delete_profile(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.ikev2.index_of(name) else { return false };
        self.end_association(at);
        self.ikev2.profiles.remove(at);
        true
    }

    /// Begins an exchange; false where the profile doesn't say with whom. What is up goes down for it.
    pub(crate) fn initiate(&mut self, name: &[u8]) -> bool {
        let Some(at) = self.ikev2.index_of(name) else { return false };
        if self.ikev2.profiles.get(at).is_none_or(|profile| profile.responder.is_none()) {
            return false;
        }
        self.end_association(at);
        if let Some(profile) = self.ikev2.profiles.get_mut(at) {
            profile.pending = true;
        }
        self.exchange(false);
        true
    }

    /// From now on the node at this address answers, and initiates where that is its part, with this shared key; or is
    /// gone, and is found to be.
    pub(crate) fn ike_peer(&mut self, address: [u8; 4], key: Option<&[u8]>) {
        self.ikev2.peers.retain(|(known, _)| *known != address);
        match key {
            Some(key) => self.ikev2.peers.push((address, key.to_vec())),
            None => {
                for at in self.profiles_to(address) {
                    // Who initiated it does so again.
                    let initiator = self.end_association(at).is_some_and(|sa| sa.initiator);
                    if let Some(profile) = self.ikev2.profiles.get_mut(at) {
                        profile.pending |= initiator;
                    }
                }
            }
        }
        self.exchange(true);
    }

    fn profiles_to(&self, address: [u8; 4]) -> Vec<u32> {
        let to = self.ikev2.profiles.iter().filter(|(_, profile)| profile.remote() == Some(address));
        to.map(|(at, _)| at).collect()
    }

    /// What comes of what is under way. Who initiates tries again and again; `afresh`: it has just begun to.
    pub(crate) fn exchange(&mut self, afresh: bool) {
        let all: Vec<u32> = self.ikev2.profiles.iter().map(|(at, _)| at).collect();
        for at in all {
            let Some(profile) = self.ikev2.profiles.get(at) else { continue };
            let initiates = profile.responder.is_some();
            let under_way = if initiates { profile.pending } else { profile.sa.is_none() };
            if !profile.complete() || !under_way {
                continue;
            }
            let Some(key) = profile.remote().and_then(|remote| self.ikev2.key_of(remote)) else { continue };
            let believed = key == profile.auth.2;
            let tunnel = profile.tunnel;
            let spi = [self.ikev2.next_spi, self.ikev2.next_spi + 1];
            if !believed && !initiates {
                if afresh {
                    self.take_tunnel(at);
                }
                continue;
            }
            self.ikev2.next_spi += 2;
            if let Some(profile) = self.ikev2.profiles.get_mut(at) {
                let state = if believed { AUTHENTICATED } else { AUTH_FAILED };
                profile.sa = Some(Sa { state, initiator: initiates, spi });
                profile.pending = false;
            }
            // The index may be that of another interface by now.
            if believed && let Some(tunnel) = tunnel {
                self.set_up(tunnel, true);
            }
        }
    }

    /// VPP takes the tunnel between the two addresses for one that it made itself.
    fn take_tunnel(&mut self, at: u32) {
        let Some(profile) = self.ikev2.profiles.get(at) else { return };
        let ends = (profile.local_id.1.first_chunk::<4>(), profile.remote_id.1.first_chunk::<4>());
        let (Some(local), Some(remote)) = ends else { return };
        let is_it = |kind: &Kind| match kind {
            Kind::Ipip(tunnel) => tunnel.src.starts_with(local) && tunnel.dst.starts_with(remote),
            Kind::Local | Kind::Loopback(_) | Kind::Uplink | Kind::Vxlan(_) | Kind::Wireguard(_) => false,
        };
        let found = self.interfaces.iter().find(|(_, interface)| is_it(&interface.kind));
        if let Some(tunnel) = found.map(|(tunnel, _)| tunnel) {
            self.delete_interface(tunnel);
        }
    }

    fn end_association(&mut self, at: u32) -> Option<Sa> {
        let profile = self.ikev2.profiles.get_mut(at)?;
        profile.pending = false;
        let (up, tunnel) = (profile.is_up(), profile.tunnel);
        let sa = profile.sa.take();
        if up && let Some(tunnel) = tunnel {
            self.set_up(tunnel, false);
        }
        sa
    }
}
