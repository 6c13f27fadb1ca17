//! Speakers on loopback addresses, over real TCP: sessions, routes both ways, restarts, shutdown.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bgp_core::command::{Applied, Clear, Command, Origination, PeerConfig, StopMode};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::query::{PeerStatus, RouteQuery, RouteTable};
use bgp_core::rib::RibEvent;
use bgp_core::session::{HoldTime, IdleHold, RemoteAsn, State};
use bgp_core::speaker::SpeakerSettings;
use bgp_core::{Asn, Family, FamilySet, Nlri, RouterId};
use bgp_net::{Handle, ListenerState, NetSettings, Subscription};

/// Nothing here takes a tenth of this; a test that waits for ever says so.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// A speaker with an address of its own.
struct Node {
    handle: Handle,
    asn: u32,
    address: SocketAddr,
}

impl Node {
    async fn start(asn: u32, address: &str) -> Self {
        Self::start_at(asn, SocketAddr::new(address.parse().unwrap(), 0)).await
    }

    async fn start_at(asn: u32, address: SocketAddr) -> Self {
        let settings =
            SpeakerSettings::new(InstanceName::new("test"), Asn(asn), RouterId(asn), u64::from(asn) ^ 0x5eed);
        let handle = bgp_net::spawn(settings, NetSettings { listen: vec![address] }).unwrap();
        let listeners = soon("listeners", handle.listeners()).await.unwrap();
        let ListenerState::Listening(address) = listeners[0].state else { panic!("{listeners:?}") };
        Self { handle, asn, address }
    }

    fn key(&self) -> PeerKey {
        PeerKey::from_socket(self.address)
    }

    fn config(&self, other: &Self) -> PeerConfig {
        PeerConfig {
            local_address: Some(self.address.ip()),
            families: FamilySet::UNICAST,
            idle_hold: IdleHold { min: Duration::from_millis(20), max: Duration::from_secs(1) },
            connect_retry: Duration::from_millis(200),
            ..PeerConfig::new(RemoteAsn::Is(Asn(other.asn)))
        }
    }

    async fn command(&self, command: Command) -> Applied {
        soon("command", self.handle.command(command)).await.unwrap()
    }

    async fn join(&self, other: &Self) {
        self.command(Command::PutPeer(other.key(), self.config(other))).await;
    }

    async fn established(&self, other: &Self) {
        soon("established", self.handle.wait_for(&other.key(), State::Established)).await.unwrap();
    }

    async fn peer(&self, other: &Self) -> PeerStatus {
        let peers = soon("peers", self.handle.peers()).await.unwrap();
        peers.into_iter().find(|peer| peer.key == other.key()).unwrap()
    }

    async fn announce(&self, prefixes: impl IntoIterator<Item = Nlri>, next_hop: Option<&str>) {
        let next_hop: Option<IpAddr> = next_hop.map(|next_hop| next_hop.parse().unwrap());
        let mut commands: Vec<_> = prefixes
            .into_iter()
            .map(|nlri| Command::PutOrigination(nlri, Origination { next_hop, ..Origination::default() }))
            .collect();
        commands.push(Command::LoadingDone);
        for answer in soon("originations", self.handle.commands(commands)).await.unwrap() {
            answer.unwrap();
        }
    }

    async fn follow(&self) -> View {
        let stream = soon("subscription", self.handle.subscribe(FamilySet::UNICAST)).await.unwrap();
        View { stream, best: BTreeSet::new() }
    }

    async fn routes(&self, family: Family) -> Vec<Nlri> {
        let query = RouteQuery { table: RouteTable::LocRib, family, prefix: None };
        soon("routes", self.handle.routes(query).collect())
            .await
            .unwrap()
            .into_iter()
            .map(|route| route.nlri)
            .collect()
    }
}

/// What the change stream has told so far.
struct View {
    stream: Subscription,
    best: BTreeSet<Nlri>,
}

impl View {
    fn hear(&mut self, events: Vec<RibEvent>) {
        for event in events {
            match event {
                RibEvent::Resync => self.best.clear(),
                RibEvent::Change(change) if change.best.is_some() => {
                    self.best.insert(change.nlri);
                }
                RibEvent::Change(change) => {
                    self.best.remove(&change.nlri);
                }
                RibEvent::Replayed | RibEvent::Converged(_) => {}
            }
        }
    }

    async fn until(&mut self, what: &str, done: impl Fn(&BTreeSet<Nlri>) -> bool) {
        let reading = async {
            while !done(&self.best) {
                let events = self.stream.take(100).await.unwrap();
                self.hear(events);
            }
        };
        soon(what, reading).await;
    }
}

fn nlri(text: &str) -> Nlri {
    text.parse().unwrap()
}

/// The `n`th prefix of 10.0.0.0/8 in steps of /24.
fn prefix(n: u32) -> Nlri {
    nlri(&format!("10.{}.{}.0/24", n >> 8, n & 0xff))
}

#[tokio::test]
async fn two_speakers_exchange_routes() {
    let (a, b) = (Node::start(65001, "127.0.1.1").await, Node::start(65002, "127.0.1.2").await);
    a.announce([nlri("203.0.113.0/24"), nlri("198.51.100.0/24")], Some("192.0.2.1")).await;
    a.announce([nlri("2001:db8:a::/48")], Some("2001:db8::1")).await;
    b.announce([nlri("192.0.2.0/24")], Some("192.0.2.2")).await;
    let (mut at_a, mut at_b) = (a.follow().await, b.follow().await);
    // Both connect, so connections may collide.
    a.join(&b).await;
    b.join(&a).await;
    a.established(&b).await;
    b.established(&a).await;
    let all: BTreeSet<_> = ["203.0.113.0/24", "198.51.100.0/24", "2001:db8:a::/48", "192.0.2.0/24"]
        .into_iter()
        .map(nlri)
        .collect();
    at_b.until("routes at b", |best| *best == all).await;
    at_a.until("routes at a", |best| *best == all).await;
    assert_eq!(b.routes(Family::Ipv6Unicast).await, [nlri("2001:db8:a::/48")]);
    let status = b.peer(&a).await;
    assert_eq!(
        (status.state, status.remote_asn, status.applied_hold_time),
        (State::Established, Some(Asn(65001)), Some(90))
    );

    a.command(Command::DeleteOrigination(nlri("203.0.113.0/24"))).await;
    at_b.until("withdrawal at b", |best| !best.contains(&nlri("203.0.113.0/24"))).await;
    // The loss of the session takes the routes with it, a new session brings them back.
    b.command(Command::DisablePeer(a.key(), "maintenance".into())).await;
    at_b.until("loss at b", |best| best.len() == 1).await;
    at_a.until("loss at a", |best| !best.contains(&nlri("192.0.2.0/24"))).await;
    let error = a.peer(&b).await.last_error.unwrap();
    assert!(error.contains("Administrative Shutdown") && error.contains("maintenance"), "{error}");
    b.command(Command::EnablePeer(a.key())).await;
    at_b.until("routes at b again", |best| best.len() == 3).await;
    at_a.until("routes at a again", |best| best.len() == 3).await;
    for node in [a, b] {
        soon("shutdown", node.handle.shutdown(StopMode::Notify("bye".into()))).await;
        assert!(node.handle.peers().await.is_err());
    }
}

#[tokio::test]
async fn a_large_table_arrives_whole_while_the_other_way_is_busy_too() {
    let (a, b) = (Node::start(65001, "127.0.2.1").await, Node::start(65002, "127.0.2.2").await);
    a.announce((0..20_000).map(prefix), Some("192.0.2.1")).await;
    b.announce((20_000..40_000).map(prefix), Some("192.0.2.2")).await;
    let (mut at_a, mut at_b) = (a.follow().await, b.follow().await);
    a.join(&b).await;
    b.join(&a).await;
    at_a.until("table at a", |best| best.len() == 40_000).await;
    at_b.until("table at b", |best| best.len() == 40_000).await;
    assert_eq!(a.routes(Family::Ipv4Unicast).await.into_iter().collect::<BTreeSet<_>>(), at_b.best);
    a.command(Command::ClearPeer(b.key(), Clear::Hard)).await;
    // The new session may be there before the loss has been told, and then the stream merges the two.
    soon("another session", async {
        let mut events = a.handle.peer_events().unwrap();
        while a.peer(&b).await.established_count < 2 {
            events.recv().await.unwrap();
        }
    })
    .await;
    at_b.until("table at b again", |best| best.len() == 40_000).await;
    soon("shutdown", a.handle.shutdown(StopMode::Notify("".into()))).await;
    at_b.until("own routes at b", |best| best.len() == 20_000).await;
}

#[tokio::test]
async fn a_passive_speaker_is_found_and_a_stranger_is_not_let_in() {
    let (a, b) = (Node::start(65001, "127.0.3.1").await, Node::start(65002, "127.0.3.2").await);
    // Nobody is configured yet: the connection is reset.
    let refusal = soon("refusal", async {
        // The reset may be there before the connection is.
        let mut stranger = tokio::net::TcpStream::connect(b.address).await?;
        tokio::io::AsyncReadExt::read_u8(&mut stranger).await
    });
    assert_eq!(refusal.await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    b.command(Command::PutPeer(a.key(), PeerConfig { passive: true, ..b.config(&a) })).await;
    a.join(&b).await;
    b.established(&a).await;
    // The neighbour vanishes and another takes its address: it's let in again at once.
    let address = a.address;
    soon("shutdown", a.handle.shutdown(StopMode::Notify("".into()))).await;
    let a = Node::start_at(65001, address).await;
    a.join(&b).await;
    a.established(&b).await;
    b.established(&a).await;
}

#[tokio::test]
async fn ipv6_sessions_and_live_settings() {
    let (a, b) = (Node::start(65001, "::1").await, Node::start(65002, "::1").await);
    // Both are at ::1, so each is told apart by its port, and only one may connect.
    a.join(&b).await;
    let config = PeerConfig { passive: true, hold_time: HoldTime::new(9).unwrap(), ..b.config(&a) };
    b.command(Command::PutPeer(a.key(), config.clone())).await;
    a.established(&b).await;
    assert_eq!(a.peer(&b).await.applied_hold_time, Some(9));
    let keepalive = PeerConfig { keepalive: std::num::NonZeroU16::new(2), ..config.clone() };
    assert_eq!(b.command(Command::PutPeer(a.key(), keepalive.clone())).await, Applied::Applied);
    assert_eq!(b.command(Command::PutPeer(a.key(), keepalive)).await, Applied::Unchanged);
    assert_eq!((a.peer(&b).await.established_count, b.peer(&a).await.applied_keepalive), (1, Some(2)));
    assert_eq!(
        b.command(Command::PutPeer(a.key(), PeerConfig { hold_time: HoldTime::SUGGESTED, ..config })).await,
        Applied::SessionReset
    );
    b.established(&a).await;
}

#[tokio::test]
async fn addresses_to_listen_at_can_change() {
    let a = Node::start(65001, "127.0.4.1").await;
    let other: SocketAddr = "127.0.4.2:0".parse().unwrap();
    a.handle.listen(vec![other]).await.unwrap();
    let listeners = soon("listeners", a.handle.listeners()).await.unwrap();
    assert_eq!((listeners.len(), listeners[0].wanted), (1, other));
    let ListenerState::Listening(address) = listeners[0].state else { panic!("{listeners:?}") };
    // Somebody listens there, if only to reset a stranger.
    let connected = tokio::net::TcpStream::connect(address).await;
    assert_ne!(connected.err().map(|error| error.kind()), Some(std::io::ErrorKind::ConnectionRefused));
}

#[tokio::test]
async fn a_dropped_take_loses_nothing_and_a_dropped_subscription_ends() {
    let a = Node::start(65001, "127.0.5.1").await;
    let mut view = a.follow().await;
    for n in 0..100 {
        // Begun, and dropped unless there is an answer already.
        if let Ok(events) = tokio::time::timeout(Duration::ZERO, view.stream.take(10)).await {
            view.hear(events.unwrap());
        }
        a.announce([prefix(n)], Some("192.0.2.1")).await;
    }
    view.until("all", |best| best.len() == 100).await;
    drop(view);
    assert!(soon("handles", a.handle.peers()).await.unwrap().is_empty());
}
