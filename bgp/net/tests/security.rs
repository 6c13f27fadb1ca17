//! Speakers that protect their sessions, over real TCP in a network of their own: keys, TTL security, strangers, dynamic
//! neighbours.

#![allow(clippy::unwrap_used)]

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU8;
use std::process;
use std::time::Duration;

use bgp_core::command::{Applied, Command, PeerConfig, PeerRange};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::query::PeerStatus;
use bgp_core::secret::Secret;
use bgp_core::session::{IdleHold, RemoteAsn, State};
use bgp_core::speaker::SpeakerSettings;
use bgp_core::{Asn, RouterId};
use bgp_net::{Handle, NetSettings};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;

/// Nothing here takes a tenth of this; a test that waits for ever says so.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

fn alone(name: &str, test: impl AsyncFnOnce() + Send + 'static) {
    if !available(name, &[IP]) {
        return;
    }
    Lab::run(move |_| {
        for n in 1..=4 {
            let address = format!("2001:db8::{n}/128");
            let added =
                process::Command::new("ip").args(["addr", "add", &address, "dev", "lo", "nodad"]).status();
            assert!(added.unwrap().success(), "{address}");
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
}

/// A speaker on the test's own runtime, at port 179 of an address of its own.
struct Node {
    handle: Handle,
    asn: u32,
    address: IpAddr,
}

impl Node {
    async fn start(asn: u32, address: &str) -> Self {
        let address: IpAddr = address.parse().unwrap();
        let settings =
            SpeakerSettings::new(InstanceName::new("test"), Asn(asn), RouterId(asn), u64::from(asn) ^ 0x5eed);
        let net = NetSettings { listen: vec![SocketAddr::new(address, 179)] };
        let (handle, task) = bgp_net::task(settings, net);
        tokio::spawn(task);
        soon("listeners", handle.listeners()).await.unwrap();
        Self { handle, asn, address }
    }

    fn key(&self) -> PeerKey {
        PeerKey::new(self.address)
    }

    /// How another is configured here.
    fn config(&self, other: &Self) -> PeerConfig {
        PeerConfig {
            local_address: Some(self.address),
            idle_hold: IdleHold { min: Duration::from_millis(20), max: Duration::from_secs(1) },
            connect_retry: Duration::from_millis(200),
            ..PeerConfig::new(RemoteAsn::Is(Asn(other.asn)))
        }
    }

    async fn command(&self, command: Command) -> Applied {
        soon("command", self.handle.command(command)).await.unwrap()
    }

    async fn put(&self, other: &Self, config: &PeerConfig) -> Applied {
        self.command(Command::PutPeer(other.key(), config.clone())).await
    }

    async fn established(&self, other: &Self) {
        soon("established", self.handle.wait_for(&other.key(), State::Established)).await.unwrap();
    }

    async fn find(&self, key: &PeerKey) -> Option<PeerStatus> {
        let peers = soon("peers", self.handle.peers()).await.unwrap();
        peers.into_iter().find(|peer| peer.key == *key)
    }

    async fn peer(&self, other: &Self) -> PeerStatus {
        self.find(&other.key()).await.unwrap()
    }

    /// Waits for something to be so; looked at whenever a neighbour's state changes.
    async fn until(&self, what: &str, is: impl Fn(&[PeerStatus]) -> bool) {
        soon(what, async {
            let mut events = self.handle.peer_events().unwrap();
            while !is(&self.handle.peers().await.unwrap()) {
                events.recv().await.unwrap();
            }
        })
        .await;
    }
}

fn password(text: &str) -> Option<Secret> {
    Some(Secret::new(text.into()).unwrap())
}

/// How a connection from some address to a speaker ends, which may be before it is there.
async fn refusal(from: &str, to: &Node) -> ErrorKind {
    let socket = if to.address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.unwrap();
    socket.bind(SocketAddr::new(from.parse().unwrap(), 0)).unwrap();
    let connected = socket.connect(SocketAddr::new(to.address, 179)).await;
    let end = match connected {
        Ok(mut stream) => soon("an end", stream.read_u8()).await.map(|_| ()),
        Err(error) => Err(error),
    };
    end.unwrap_err().kind()
}

#[test]
fn signed_sessions_come_up_whoever_connects() {
    alone("signed sessions", async || {
        for (n, ours, theirs, passive) in [
            (0, "127.0.0.1", "127.0.0.2", true),
            (10, "127.0.0.3", "127.0.0.4", false),
            (20, "2001:db8::1", "2001:db8::2", true),
            (30, "2001:db8::3", "2001:db8::4", false),
        ] {
            let (a, b) = (Node::start(65001 + n, ours).await, Node::start(65002 + n, theirs).await);
            let at_b = PeerConfig { passive, password: password("k"), ..b.config(&a) };
            b.put(&a, &at_b).await;
            a.put(&b, &PeerConfig { password: password("k"), ..a.config(&b) }).await;
            a.established(&b).await;
            b.established(&a).await;
            assert!(a.peer(&b).await.has_password && b.peer(&a).await.has_password);
        }
    });
}

#[test]
fn a_wrong_password_never_connects_and_is_not_told() {
    alone("wrong password", async || {
        let (a, b) = (Node::start(65001, "127.0.0.1").await, Node::start(65002, "127.0.0.2").await);
        b.put(&a, &PeerConfig { passive: true, password: password("tiger"), ..b.config(&a) }).await;
        let config = PeerConfig { password: password("lion"), ..a.config(&b) };
        assert!(!format!("{config:?}").contains("lion"));
        a.put(&b, &config).await;
        let failed = |peers: &[PeerStatus]| peers[0].last_error.is_some();
        a.until("a failure", failed).await;
        let status = a.peer(&b).await;
        assert_eq!(
            status.last_error.as_deref(),
            Some("can't connect: no answer; the passwords may differ"),
            "{status:?}"
        );
        assert_eq!((status.established_count, b.peer(&a).await.last_error), (0, None));
        // Once it is right it connects, without anything else being told.
        a.put(&b, &PeerConfig { password: password("tiger"), ..config }).await;
        a.established(&b).await;
    });
}

#[test]
fn a_new_password_resets_that_session_once_and_no_other() {
    alone("new password", async || {
        let (a, b) = (Node::start(65001, "127.0.0.1").await, Node::start(65002, "127.0.0.2").await);
        let c = Node::start(65003, "127.0.0.3").await;
        for (one, other) in [(&a, &b), (&b, &a), (&a, &c), (&c, &a)] {
            one.put(other, &PeerConfig { password: password("old"), ..one.config(other) }).await;
        }
        for (one, other) in [(&a, &b), (&a, &c)] {
            one.established(other).await;
            other.established(one).await;
        }
        let new = |one: &Node, other| PeerConfig { password: password("new"), ..one.config(other) };
        assert_eq!(a.put(&b, &new(&a, &b)).await, Applied::SessionReset);
        assert_eq!(a.put(&b, &new(&a, &b)).await, Applied::Unchanged);
        // The other end has heard the Cease, signed with the old key, and can't come back with that.
        b.until("the Cease", |peers| peers[0].state < State::Established).await;
        let error = b.peer(&a).await.last_error.unwrap();
        assert!(error.contains("Other Configuration Change") || error.contains("no answer"), "{error}");
        assert_ne!(b.put(&a, &new(&b, &a)).await, Applied::Unchanged);
        b.established(&a).await;
        a.established(&b).await;
        assert_eq!((a.peer(&b).await.established_count, b.peer(&a).await.established_count), (2, 2));
        assert_eq!((a.peer(&c).await.established_count, c.peer(&a).await.established_count), (1, 1));
        // Without a password it is the same.
        assert_eq!(a.put(&b, &a.config(&b)).await, Applied::SessionReset);
        b.put(&a, &b.config(&a)).await;
        a.until("established", |peers| peers[0].established_count == 3).await;
        assert!(!a.peer(&b).await.has_password);
    });
}

#[test]
fn listeners_that_begin_later_have_the_keys_too() {
    alone("late listeners", async || {
        let (a, b) = (Node::start(65001, "127.0.0.1").await, Node::start(65002, "127.0.0.2").await);
        b.handle.listen(Vec::new()).await.unwrap();
        b.put(&a, &PeerConfig { passive: true, password: password("k"), ..b.config(&a) }).await;
        a.put(&b, &PeerConfig { password: password("k"), ..a.config(&b) }).await;
        b.handle.listen(vec![SocketAddr::new(b.address, 179)]).await.unwrap();
        a.established(&b).await;
    });
}

#[test]
fn ttl_security_lets_in_who_is_near() {
    alone("ttl security", async || {
        let (a, b) = (Node::start(65001, "127.0.0.1").await, Node::start(65002, "127.0.0.2").await);
        let hops = NonZeroU8::new(1);
        // At first only one end has it: the other sends TTL 64, as over several hops.
        let at_b = PeerConfig { passive: true, ttl_security: hops, ..b.config(&a) };
        b.put(&a, &at_b).await;
        a.put(&b, &PeerConfig { multihop_ttl: Some(64), ..a.config(&b) }).await;
        a.until("a refusal", |peers| peers[0].last_error.is_some()).await;
        assert_eq!((a.peer(&b).await.established_count, b.peer(&a).await.last_error), (0, None));
        a.put(&b, &PeerConfig { ttl_security: hops, multihop_ttl: Some(64), ..a.config(&b) }).await;
        a.established(&b).await;
        assert_eq!(b.peer(&a).await.ttl_security, hops);
    });
}

#[test]
fn strangers_are_reset_and_cost_nobody_a_session() {
    alone("strangers", async || {
        let (a, b) = (Node::start(65001, "127.0.0.1").await, Node::start(65002, "127.0.0.2").await);
        b.put(&a, &b.config(&a)).await;
        a.put(&b, &a.config(&b)).await;
        a.established(&b).await;
        for _ in 0..500 {
            assert_eq!(refusal("127.0.0.66", &b).await, ErrorKind::ConnectionReset);
        }
        assert_eq!((a.peer(&b).await.established_count, b.peer(&a).await.established_count), (1, 1));
    });
}

#[test]
fn whoever_is_in_a_prefix_may_be_a_neighbour() {
    alone("dynamic neighbours", async || {
        let b = Node::start(65002, "127.0.0.2").await;
        let range = |limit| {
            let config = PeerConfig {
                password: password("k"),
                idle_hold: IdleHold { min: Duration::from_millis(20), max: Duration::from_secs(60) },
                ..PeerConfig::new(RemoteAsn::External)
            };
            PeerRange { config, limit }
        };
        let prefix = "127.0.1.0/24".parse().unwrap();
        assert_eq!(b.command(Command::PutPeerRange(prefix, range(1))).await, Applied::Applied);
        assert_eq!(b.command(Command::PutPeerRange(prefix, range(1))).await, Applied::Unchanged);
        assert!(b.handle.peers().await.unwrap().is_empty(), "nobody is there yet");

        let (a, c) = (Node::start(65001, "127.0.1.1").await, Node::start(65003, "127.0.1.3").await);
        a.put(&b, &PeerConfig { password: password("k"), ..a.config(&b) }).await;
        a.established(&b).await;
        b.established(&a).await;
        assert_eq!(b.peer(&a).await.range, Some(prefix));
        // There is no room for another, until it's made.
        c.put(&b, &PeerConfig { password: password("k"), ..c.config(&b) }).await;
        c.until("a refusal", |peers| peers[0].last_error.is_some()).await;
        assert!(b.find(&c.key()).await.is_none());
        assert_eq!(b.command(Command::PutPeerRange(prefix, range(2))).await, Applied::Applied);
        c.established(&b).await;
        assert_eq!(a.peer(&b).await.established_count, 1);
        // What was said of the prefix holds for those who are there.
        let new = PeerRange { config: PeerConfig { password: password("l"), ..range(2).config }, limit: 2 };
        assert_eq!(b.command(Command::PutPeerRange(prefix, new)).await, Applied::SessionReset);
        a.put(&b, &PeerConfig { password: password("l"), ..a.config(&b) }).await;
        a.until("established again", |peers| peers[0].established_count == 2).await;
        assert_eq!(b.command(Command::DeletePeerRange(prefix)).await, Applied::Applied);
        a.until("the end", |peers| peers[0].state < State::Established).await;
        assert!(b.handle.peers().await.unwrap().is_empty());
        assert_eq!(b.command(Command::DeletePeerRange(prefix)).await, Applied::Unchanged);
    });
}
