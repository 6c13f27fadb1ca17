//! Who may connect: the configured neighbours, and everybody in a prefix of dynamic ones.
//!
//! A dynamic neighbour comes into being with a connection from an address of its prefix where nobody is configured. It
//! never connects itself. When it has had no connection for as long as its longest back-off, and no routes of it are kept
//! any more, it is forgotten: so one that keeps failing is still held off meanwhile. It is forgotten sooner where its place
//! is needed, unless routes of it are kept.

use std::net::SocketAddr;

use bgp_wire::Asn;
use ipnet::IpNet;

use super::state::Speaker;
use super::{Door, Output, Transport};
use crate::command::{Applied, PeerConfig, PeerRange, Refusal};
use crate::outbox::Outbox;
use crate::peer_key::{BGP_PORT, PeerIx, PeerKey};
use crate::session::{Link, RemoteAsn};
use crate::time::Instant;

/// TTL of sessions that need not be with a direct neighbour.
const USUAL_TTL: u8 = 64;

/// A prefix of dynamic neighbours, and how many there are.
pub(super) struct Range {
    pub(super) range: PeerRange,
    pub(super) count: u32,
}

/// How a connection with such a neighbour is made.
pub(super) fn transport(config: &PeerConfig, local_asn: Asn, remote: SocketAddr) -> Transport {
    let external = match config.remote_asn {
        RemoteAsn::Is(asn) => asn != local_asn,
        RemoteAsn::External => true,
        RemoteAsn::Internal => false,
    };
    let ttl = match config.ttl_security {
        Some(_) => u8::MAX,
        None if external => config.multihop_ttl.unwrap_or(1),
        None => USUAL_TTL,
    };
    Transport {
        local: config.local_address,
        local_port: config.local_port,
        device: config.device.clone(),
        remote,
        ttl,
        // 256 - hops, in eight bits.
        min_ttl: config.ttl_security.and_then(|hops| hops.get().wrapping_neg().try_into().ok()),
        password: config.password.clone(),
    }
}

/// Who may connect.
impl Speaker {
    /// How a connection that a neighbour opened must be treated before anything is read from it or passed to
    /// [`Input::Accepted`](super::Input::Accepted). `None` where nobody is expected from there: it is to be closed, and
    /// nothing said about it.
    #[must_use]
    pub fn welcome(&self, link: &Link) -> Option<Transport> {
        if let Some(peer) = self.expected(link) {
            let neighbour = self.peer(peer)?;
            let local_asn = neighbour.session.settings().local_asn;
            return Some(transport(&neighbour.config, local_asn, link.remote));
        }
        let (prefix, range) = self.range_of(link)?;
        if range.count >= range.range.limit && self.departing(prefix).is_none() {
            tracing::debug!(%prefix, remote = %link.remote, "there are as many dynamic neighbors as may be");
            return None;
        }
        let config = &range.range.config;
        Some(transport(config, config.presented(self.settings.asn), link.remote))
    }

    /// From where connections are welcome, for whoever listens: to install keys, and to turn others away at once.
    #[must_use]
    pub fn doors(&self) -> Vec<Door> {
        let configured = self.by_key.iter().filter_map(|(key, peer)| {
            let neighbour = self.peer(*peer).filter(|neighbour| neighbour.range.is_none())?;
            Some(Door { from: key.address.into(), password: neighbour.config.password.clone() })
        });
        let ranges = self
            .ranges
            .iter()
            .map(|(prefix, range)| Door { from: *prefix, password: range.range.config.password.clone() });
        configured.chain(ranges).collect()
    }

    /// Changes whenever [`Speaker::doors`] may give another answer.
    #[must_use]
    pub fn doors_version(&self) -> u64 {
        self.doors_version
    }

    /// The prefix that makes the other end a dynamic neighbour.
    fn range_of(&self, link: &Link) -> Option<(IpNet, &Range)> {
        let key = PeerKey::from_socket(link.remote);
        if self.at_address(&key).next().is_some() {
            // Somebody is configured there, for another address of ours.
            return None;
        }
        let local = link.local.ip().to_canonical();
        let candidates = self.ranges.iter().filter(|(prefix, range)| {
            prefix.contains(&key.address)
                && range.range.config.local_address.is_none_or(|wanted| wanted == local)
        });
        candidates.max_by_key(|(prefix, _)| prefix.prefix_len()).map(|(prefix, range)| (*prefix, range))
    }

    /// The neighbours at the address of `key`, whatever their ports.
    pub(super) fn at_address(&self, key: &PeerKey) -> impl Iterator<Item = PeerIx> {
        let (address, zone) = (key.address, key.zone);
        self.by_key
            .range(key.with_port(0)..=key.with_port(u16::MAX))
            .filter(move |(key, _)| key.address == address && key.zone == zone)
            .map(|(_, peer)| *peer)
    }
}

/// Dynamic neighbours.
impl Speaker {
    /// Makes a neighbour of the other end, if a prefix says that it may be one.
    pub(super) fn admit(&mut self, now: Instant, link: &Link, out: &mut Outbox<Output>) -> Option<PeerIx> {
        let (prefix, range) = self.range_of(link)?;
        let config = PeerConfig { passive: true, ..range.range.config.clone() };
        if range.count >= range.range.limit {
            let place = self.departing(prefix)?;
            self.delete_peer(now, &place, out);
        }
        let key = PeerKey::from_socket(link.remote).with_port(BGP_PORT);
        let settings = config.session(self.settings.asn, self.settings.router_id);
        if let Some(range) = self.ranges.get_mut(&prefix) {
            range.count += 1;
        }
        tracing::info!(peer = %key, %prefix, "a dynamic neighbor");
        Some(self.add_peer(now, key, config, settings, Some(prefix), out))
    }

    /// A dynamic neighbour of this prefix that has no connection and no routes, the one longest without.
    fn departing(&self, prefix: IpNet) -> Option<PeerKey> {
        let neighbours = self.departures.iter().filter_map(|(_, peer)| self.peer(*peer));
        neighbours
            .filter(|neighbour| neighbour.range == Some(prefix) && neighbour.stale.families().is_empty())
            .map(|neighbour| neighbour.key)
            .next()
    }

    /// Notes whether a dynamic neighbour is still wanted.
    pub(super) fn note_departure(&mut self, now: Instant, peer: PeerIx) {
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else { return };
        if neighbour.range.is_none() || neighbour.gone {
            return;
        }
        // An operator's stop is to be remembered.
        let idle = neighbour.session.status().conn.is_none() && !neighbour.disabled;
        match (idle, neighbour.departs) {
            (true, None) => {
                let at = now + neighbour.config.idle_hold.max;
                neighbour.departs = Some(at);
                self.departures.insert((at, peer));
            }
            (false, Some(at)) => {
                neighbour.departs = None;
                self.departures.remove(&(at, peer));
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// Forgets the dynamic neighbours whose time has come.
    pub(super) fn depart(&mut self, now: Instant, out: &mut Outbox<Output>) {
        while let Some(&(at, peer)) = self.departures.first()
            && at <= now
        {
            self.departures.remove(&(at, peer));
            let Some(neighbour) = self.peer_mut(peer) else { continue };
            match neighbour.stale.until().filter(|until| *until > now) {
                Some(until) => {
                    neighbour.departs = Some(until);
                    self.departures.insert((until, peer));
                }
                None => {
                    let key = neighbour.key;
                    self.delete_peer(now, &key, out);
                }
            }
        }
    }

    /// A neighbour is dynamic no longer, or no longer one at all.
    pub(super) fn leave_range(&mut self, peer: PeerIx) {
        let Some(neighbour) = self.peers.get_mut(peer.index()).and_then(Option::as_deref_mut) else { return };
        if let Some(at) = neighbour.departs.take() {
            self.departures.remove(&(at, peer));
        }
        if let Some(range) = neighbour.range.take().and_then(|prefix| self.ranges.get_mut(&prefix)) {
            range.count -= 1;
        }
    }

    fn dynamic(&self, prefix: IpNet) -> Vec<(PeerKey, PeerIx)> {
        let of_range = |peer: &PeerIx| self.peer(*peer).is_some_and(|peer| peer.range == Some(prefix));
        self.by_key.iter().filter(|(_, peer)| of_range(peer)).map(|(key, peer)| (*key, *peer)).collect()
    }

    pub(super) fn put_range(
        &mut self,
        now: Instant,
        prefix: IpNet,
        range: PeerRange,
        out: &mut Outbox<Output>,
    ) -> Result<Applied, Refusal> {
        let network = prefix.network();
        if prefix.addr() != network || (network.is_multicast() && prefix.prefix_len() >= 4) {
            return Err(Refusal::PeerRange(prefix));
        }
        let config = PeerConfig { passive: true, ..range.config.clone() };
        let settings = self.check_config(network, &config)?;
        match self.ranges.get_mut(&prefix) {
            Some(known) if known.range == range => return Ok(Applied::Unchanged),
            Some(known) => known.range = range,
            None => {
                self.ranges.insert(prefix, Range { range, count: 0 });
            }
        }
        self.doors_version += 1;
        self.review_cluster();
        let mut applied = Applied::Applied;
        for (_, peer) in self.dynamic(prefix) {
            if self.update_peer(now, peer, config.clone(), settings.clone(), out) == Applied::SessionReset {
                applied = Applied::SessionReset;
            }
        }
        Ok(applied)
    }

    pub(super) fn delete_range(&mut self, now: Instant, prefix: IpNet, out: &mut Outbox<Output>) -> Applied {
        if !self.ranges.contains_key(&prefix) {
            return Applied::Unchanged;
        }
        for (key, _) in self.dynamic(prefix) {
            self.delete_peer(now, &key, out);
        }
        self.ranges.remove(&prefix);
        self.review_cluster();
        self.doors_version += 1;
        Applied::Applied
    }
}
