//! Two speakers in one process: they announce two prefixes, we take one of them and follow what becomes of it.
//!
//! `cargo run -p bgp-net --example exchange`

use std::net::SocketAddr;

use bgp_core::command::{Chain, Command, Origination, PeerConfig, StopMode};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::policy::{Condition, Default as Otherwise, Flow, PolicyDef, StatementDef};
use bgp_core::rib::RibEvent;
use bgp_core::session::RemoteAsn;
use bgp_core::speaker::SpeakerSettings;
use bgp_core::{Asn, FamilySet, RouterId};
use bgp_net::{Handle, NetSettings, spawn};

fn speaker(asn: u32, address: SocketAddr) -> std::io::Result<Handle> {
    let name = InstanceName::new("example");
    // A real speaker takes its seed from the system.
    let settings = SpeakerSettings::new(name, Asn(asn), RouterId(asn), u64::from(asn));
    spawn(settings, NetSettings { listen: vec![address] })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (here, there): (SocketAddr, SocketAddr) = ("127.0.10.1:1790".parse()?, "127.0.10.2:1790".parse()?);
    let (ours, theirs) = (speaker(65001, here)?, speaker(65002, there)?);

    // They announce two prefixes, and wait for us.
    for prefix in ["203.0.113.0/24", "198.51.100.0/24"] {
        theirs.command(Command::PutOrigination(prefix.parse()?, Origination::default())).await?;
    }
    theirs.command(Command::LoadingDone).await?;
    let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::Is(Asn(65001))) };
    theirs.command(Command::PutPeer(PeerKey::from_socket(here), config)).await?;

    // We take what is inside 203.0.113.0/24 and nothing else. The policy comes first: a peer that names it needs it.
    let inside = vec![Condition::Prefix(vec!["203.0.113.0/24 le 32".parse()?])];
    let accept = StatementDef { label: None, when: inside, apply: vec![], then: Flow::Accept };
    let policy = PolicyDef { statements: vec![accept], default: Otherwise::Reject };
    ours.command(Command::PutPolicy("wanted".into(), policy)).await?;
    let import = Chain::named("wanted");
    let local_address = Some(here.ip());
    let config = PeerConfig { local_address, import, ..PeerConfig::new(RemoteAsn::External) };
    ours.command(Command::PutPeer(PeerKey::from_socket(there), config)).await?;

    // The change stream: the best path of every prefix as it is, and then whenever it changes.
    let mut changes = ours.subscribe(FamilySet::UNICAST).await?;
    loop {
        for event in changes.take(100).await? {
            let RibEvent::Change(change) = event else { continue };
            assert_eq!(change.nlri, "203.0.113.0/24".parse()?, "the other one isn't taken");
            if change.best.is_none() {
                println!("{} can't be reached any more", change.nlri);
                return Ok(());
            }
            println!("{} goes to {:?}", change.nlri, change.hops.members());
            // The last words go over the wire, and the routes go with the session.
            theirs.shutdown(StopMode::Notify("that's all".into())).await;
        }
    }
}
