//! Sessions in virtual time: a speaker on the test's own runtime, whose clock jumps to the next deadline whenever nobody
//! has anything to do, and a neighbour that is a bare socket.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use bgp_core::command::{Command, PeerConfig};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::session::{HoldTime, RemoteAsn, State};
use bgp_core::speaker::SpeakerSettings;
use bgp_core::{Asn, Family, FamilySet, RouterId};
use bgp_net::{Handle, ListenerState, NetSettings};
use bgp_wire::{Capability, Frame, MessageType, Open, split_message};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, advance};

const HOLD: u16 = 9;

/// A speaker, and a neighbour that has joined it.
struct Bench {
    handle: Handle,
    key: PeerKey,
    stream: TcpStream,
    unread: BytesMut,
}

fn keepalive() -> BytesMut {
    let mut message = BytesMut::new();
    bgp_wire::frame::put_keepalive(&mut message);
    message
}

impl Bench {
    async fn established() -> Self {
        let settings = SpeakerSettings::new(InstanceName::new("test"), Asn(65001), RouterId(1), 1);
        let listen: SocketAddr = "127.0.6.1:0".parse().unwrap();
        let (handle, task) = bgp_net::task(settings, NetSettings { listen: vec![listen] });
        tokio::spawn(task);
        Self::join(handle, PeerKey::new("127.0.0.1".parse().unwrap())).await
    }

    /// A neighbour joins a speaker that there is.
    async fn join(handle: Handle, key: PeerKey) -> Self {
        let config = PeerConfig {
            passive: true,
            hold_time: HoldTime::new(HOLD).unwrap(),
            ..PeerConfig::new(RemoteAsn::Is(Asn(65002)))
        };
        handle.command(Command::PutPeer(key, config)).await.unwrap();
        let ListenerState::Listening(address) = handle.listeners().await.unwrap()[0].state else {
            panic!("not listening")
        };
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(key.address, 0)).unwrap();
        let stream = socket.connect(address).await.unwrap();
        // The clock doesn't wait for octets that the system holds back.
        stream.set_nodelay(true).unwrap();
        let mut bench = Self { handle, key, stream, unread: BytesMut::new() };
        let capabilities = vec![Capability::family(Family::Ipv4Unicast)];
        let mut hello = BytesMut::new();
        Open::new(Asn(65002), 90, RouterId(2), capabilities).encode(&mut hello).unwrap();
        bench.say(&hello).await;
        assert_eq!(bench.hear().await.0, MessageType::Open);
        bench.say(&keepalive()).await;
        assert_eq!(bench.hear().await.0, MessageType::Keepalive);
        bench.handle.wait_for(&key, State::Established).await.unwrap();
        bench
    }

    async fn say(&mut self, octets: &[u8]) {
        self.stream.write_all(octets).await.unwrap();
    }

    /// The next message: its kind and its body.
    async fn hear(&mut self) -> (MessageType, Vec<u8>) {
        loop {
            if let Some(Frame { kind, body, raw }) = split_message(&self.unread, 4096).unwrap() {
                let (body, length) = (body.to_vec(), raw.len());
                self.unread.advance(length);
                return (kind, body);
            }
            assert!(self.stream.read_buf(&mut self.unread).await.unwrap() > 0, "the speaker has closed");
        }
    }

    async fn state(&self) -> (State, u64) {
        let peers = self.handle.peers().await.unwrap();
        let peer = peers.iter().find(|peer| peer.key == self.key).unwrap();
        (peer.state, peer.established_count)
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_neighbour_is_told_and_left_when_the_hold_time_is_over() {
    let mut bench = Bench::established().await;
    let start = Instant::now();
    let mut keepalives = 0;
    let body = loop {
        match bench.hear().await {
            (MessageType::Keepalive, _) => keepalives += 1,
            (MessageType::Update, body) => assert_eq!(body, [0; 4], "End-of-RIB"),
            (MessageType::Notification, body) => break body,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(body, [4, 0]);
    let silence = start.elapsed();
    assert!((Duration::from_secs(9)..Duration::from_millis(9100)).contains(&silence), "{silence:?}");
    assert!((3..=4).contains(&keepalives), "one about every 2.25 to 3 s, not {keepalives}");
    assert_eq!(bench.stream.read_buf(&mut bench.unread).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn words_that_have_arrived_count_as_heard_however_late_the_speaker_gets_to_them() {
    let mut bench = Bench::established().await;
    for _ in 0..20 {
        // While the whole process slept through several hold times, the neighbour kept talking.
        bench.say(&keepalive()).await;
        advance(Duration::from_secs(60)).await;
        assert_eq!(bench.state().await, (State::Established, 1));
    }
}

/// Holds up the speaker: time passes, and nobody on its thread gets a turn meanwhile.
async fn hold_up(handle: &Handle, time: Duration) {
    let job = move |_: &mut bgp_core::speaker::Speaker, _| {
        // The clock is moved by the first poll.
        let _ = pin!(advance(time)).poll(&mut Context::from_waker(Waker::noop()));
    };
    handle.ask(job).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_speaker_that_was_held_up_hears_what_has_arrived_before_it_counts_the_time() {
    let mut bench = Bench::established().await;
    for _ in 0..20 {
        bench.say(&keepalive()).await;
        hold_up(&bench.handle, Duration::from_secs(60)).await;
        assert_eq!(bench.state().await, (State::Established, 1));
    }
    // And counts it all the same.
    hold_up(&bench.handle, Duration::from_secs(60)).await;
    bench.handle.wait_for(&bench.key, State::Active).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_quiet_neighbour_count_behind_a_queue_that_another_one_fills() {
    let mut quiet = Bench::established().await;
    let other = PeerKey::new("127.0.0.2".parse().unwrap());
    let mut noisy = Bench::join(quiet.handle.clone(), other).await;
    // Withdrawals of what was never announced, as many as the queue holds several times over.
    let mut update = vec![0xff; 16];
    let prefixes: Vec<u8> =
        (0..1000_u16).flat_map(|n| [16, n.to_be_bytes()[0], n.to_be_bytes()[1]]).collect();
    update.extend((23 + prefixes.len() as u16).to_be_bytes());
    update.push(2);
    update.extend((prefixes.len() as u16).to_be_bytes());
    update.extend(prefixes);
    update.extend([0, 0]);
    let flood = update.repeat(2000);
    let mut stream = noisy.stream.into_split();
    let flooding = tokio::spawn(async move {
        stream.1.write_all(&flood).await.unwrap();
        stream
    });
    for _ in 0..20 {
        quiet.say(&keepalive()).await;
        hold_up(&quiet.handle, Duration::from_secs(60)).await;
        assert_eq!(quiet.state().await, (State::Established, 1));
    }
    let _stream = flooding.await.unwrap();
    noisy.unread.clear();
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_keeps_talking_stays() {
    let mut bench = Bench::established().await;
    let families = FamilySet::only(Family::Ipv4Unicast);
    assert_eq!(bench.handle.peers().await.unwrap()[0].negotiated, families);
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_secs(8)).await;
        bench.say(&keepalive()).await;
    }
    assert_eq!(bench.state().await, (State::Established, 1));
}
