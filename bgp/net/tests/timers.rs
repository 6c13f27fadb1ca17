//! Sessions in virtual time: a speaker on the test's own runtime, whose clock jumps to the next deadline whenever nobody
//! has anything to do, and a neighbour that is a bare socket.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
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
use tokio::net::TcpStream;
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
        let key = PeerKey::new("127.0.0.1".parse().unwrap());
        let config = PeerConfig {
            passive: true,
            hold_time: HoldTime::new(HOLD).unwrap(),
            ..PeerConfig::new(RemoteAsn::Is(Asn(65002)))
        };
        handle.command(Command::PutPeer(key, config)).await.unwrap();
        let ListenerState::Listening(address) = handle.listeners().await.unwrap()[0].state else {
            panic!("not listening")
        };
        let stream = TcpStream::connect(address).await.unwrap();
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
