//! Two speakers in one process: one announces a prefix, the other tells what it hears.
//!
//! `cargo run -p bgp-net --example exchange`

use std::net::SocketAddr;

use bgp_core::command::{Command, Origination, PeerConfig, StopMode};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::rib::RibEvent;
use bgp_core::session::RemoteAsn;
use bgp_core::speaker::SpeakerSettings;
use bgp_core::{Asn, FamilySet, RouterId};
use bgp_net::{Handle, NetSettings, spawn};

const A: &str = "127.0.0.1:1790";
const B: &str = "127.0.0.2:1790";

fn speaker(asn: u32, address: SocketAddr) -> std::io::Result<Handle> {
    let name = InstanceName::new("example");
    // A real speaker takes its seed from the system.
    let settings = SpeakerSettings::new(name, Asn(asn), RouterId(asn), u64::from(asn));
    spawn(settings, NetSettings { listen: vec![address] })
}

async fn join(
    handle: &Handle,
    local: SocketAddr,
    remote: SocketAddr,
    asn: u32,
) -> Result<(), Box<dyn std::error::Error>> {
    let config = PeerConfig { local_address: Some(local.ip()), ..PeerConfig::new(RemoteAsn::Is(Asn(asn))) };
    handle.command(Command::PutPeer(PeerKey::from_socket(remote), config)).await?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (a, b): (SocketAddr, SocketAddr) = (A.parse()?, B.parse()?);
    let (speaker_a, speaker_b) = (speaker(65001, a)?, speaker(65002, b)?);
    let origination = Origination { next_hop: Some("192.0.2.1".parse()?), ..Origination::default() };
    speaker_a.command(Command::PutOrigination("203.0.113.0/24".parse()?, origination)).await?;
    speaker_a.command(Command::LoadingDone).await?;
    join(&speaker_a, a, b, 65002).await?;
    join(&speaker_b, b, a, 65001).await?;
    let mut changes = speaker_b.subscribe(FamilySet::UNICAST).await?;
    loop {
        for event in changes.take(100).await? {
            println!("{event:?}");
            if matches!(event, RibEvent::Change(_)) {
                speaker_a.shutdown(StopMode::Notify("that's all".into())).await;
                return Ok(());
            }
        }
    }
}
