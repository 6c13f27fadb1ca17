//! A neighbour that does not read: what it costs while others change a large table again and again.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::time::Duration;

use bgp_core::command::{Command, PeerConfig};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::session::{RemoteAsn, State};
use bgp_core::speaker::SpeakerSettings;
use bgp_core::stats::{SpeakerStats, TableSizes};
use bgp_core::{Asn, Family, RouterId};
use bgp_net::{Handle, ListenerState, NetSettings};
use bgp_wire::{Capability, Open};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const PREFIXES: u32 = 200_000;
const ROUNDS: u32 = 4;
/// What an update group keeps for slow members, and a chunk on top.
const RING: u64 = (1 << 20) + 128 * 1024;

/// A neighbour of this AS number that has joined, and says nothing more.
async fn join(handle: &Handle, to: SocketAddr, from: &str, asn: u32) -> TcpStream {
    let key = PeerKey::new(from.parse().unwrap());
    let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::Is(Asn(asn))) };
    handle.command(Command::PutPeer(key, config)).await.unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.bind(SocketAddr::new(key.address, 0)).unwrap();
    let mut stream = socket.connect(to).await.unwrap();
    let mut hello = BytesMut::new();
    let capabilities = vec![Capability::family(Family::Ipv4Unicast)];
    Open::new(Asn(asn), 90, RouterId(asn), capabilities).encode(&mut hello).unwrap();
    bgp_wire::frame::put_keepalive(&mut hello);
    stream.write_all(&hello).await.unwrap();
    handle.wait_for(&key, State::Established).await.unwrap();
    stream
}

/// UPDATEs of the whole table, 300 prefixes in each; `round` stands in the MED.
fn table(round: u32) -> Vec<u8> {
    let mut octets = Vec::new();
    for start in (0..PREFIXES).step_by(300) {
        let mut body = vec![0, 0];
        // ORIGIN, AS_PATH 65002, NEXT_HOP, MED.
        let mut attributes =
            vec![0x40, 1, 1, 0, 0x40, 2, 4, 2, 1, 0xfd, 0xea, 0x40, 3, 4, 192, 0, 2, 2, 0x80, 4, 4];
        attributes.extend((round * 16 + start / 300 % 16).to_be_bytes());
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
        for n in start..PREFIXES.min(start + 300) {
            body.push(24);
            body.extend_from_slice(&(0x0a00_0000 + (n << 8)).to_be_bytes()[..3]);
        }
        octets.extend([0xff; 16]);
        octets.extend((19 + body.len() as u16).to_be_bytes());
        octets.push(2);
        octets.extend(body);
    }
    octets
}

async fn figures(handle: &Handle) -> (SpeakerStats, TableSizes) {
    handle.ask(|speaker, _| (speaker.stats(), speaker.sizes())).await.unwrap()
}

#[tokio::test]
async fn a_neighbour_that_does_not_read_costs_bounded_memory() {
    let settings = SpeakerSettings::new(InstanceName::new("test"), Asn(65001), RouterId(1), 1);
    let listen: SocketAddr = "127.0.7.1:0".parse().unwrap();
    let handle = bgp_net::spawn(settings, NetSettings { listen: vec![listen] }).unwrap();
    let ListenerState::Listening(address) = handle.listeners().await.unwrap()[0].state else {
        panic!("not listening")
    };
    handle.command(Command::LoadingDone).await.unwrap();
    let mut sender = join(&handle, address, "127.0.0.1", 65002).await;
    let _deaf = join(&handle, address, "127.0.0.2", 65003).await;
    let mut reader = join(&handle, address, "127.0.0.3", 65004).await;
    let reading = tokio::spawn(async move {
        let (mut buffer, mut octets) = (vec![0; 64 * 1024], 0);
        while let Ok(count @ 1..) = reader.read(&mut buffer).await {
            octets += count as u64;
        }
        octets
    });
    let mut first = None;
    for round in 0..ROUNDS {
        sender.write_all(&table(round)).await.unwrap();
        let patience = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let (stats, sizes) = figures(&handle).await;
                assert!(sizes.waiting_octets <= RING, "{sizes:?}");
                if stats.prefixes_announced >= u64::from((round + 1) * PREFIXES) {
                    return sizes;
                }
            }
        });
        let sizes = patience.await.expect("the table arrives");
        assert_eq!(sizes.destinations[0], u64::from(PREFIXES));
        let first = *first.get_or_insert(sizes);
        assert!(sizes.table_octets <= 2 * first.table_octets, "{first:?} has become {sizes:?}");
        assert!(sizes.attribute_sets <= 64, "{sizes:?}");
    }
    let (stats, _) = figures(&handle).await;
    assert!(stats.fell_behind >= 1, "{stats:?}");
    let peers = handle.peers().await.unwrap();
    assert!(peers.iter().all(|peer| peer.state == State::Established && peer.established_count == 1));
    drop(sender);
    handle.shutdown(bgp_core::command::StopMode::Destroy).await;
    let octets = reading.await.unwrap();
    assert!(octets > u64::from(PREFIXES) * 4, "the one that reads has the table: {octets}");
}
