//! WireGuard: interfaces, peers, and news of the sessions with them.
//!
//! VPP tells of a peer's sessions only who asked for this very peer, and forgets that with the peer; so it is asked for each new
//! one, and how the peer stands right after that, as its session may have been faster.

use std::time::Duration;

use agent_core::desired::{Tunnel, WireguardKey};
use agent_core::event::{DumpedPeer, DumpedTunnel, SwIfIndex};
use agent_core::model::PublicKey;
use agent_core::plan::{OpId, VppFailure, WireguardAction};
use vpp_client::wire::api::wireguard::{
    InterfaceCreate, PeerAdd, WantWireguardPeerEvents, WireguardInterfaceCreateReply,
    WireguardInterfaceDelete, WireguardInterfaceDeleteReply, WireguardInterfaceDetails,
    WireguardInterfaceDump, WireguardPeerAddReply, WireguardPeerFlags, WireguardPeerRemove,
    WireguardPeerRemoveReply, WireguardPeersDetails, WireguardPeersDump,
};
use vpp_client::wire::types::{SwIfIndex as WireInterface, TableId as WireTable};
use vpp_client::{CallError, Client, FromReply, Full, Pipeline};

use super::Wanted;
use super::dump::if_known;
use super::request::{Outcome, interface, named, refused};

/// A new peer that has no session after this long has none: three attempts have been made by then.
const HANDSHAKE: Duration = Duration::from_secs(15);
/// All peers, all interfaces.
const ALL: u32 = u32::MAX;

super::request::plain_replies!(WireguardInterfaceDeleteReply, WireguardPeerRemoveReply);

impl FromReply<WireguardInterfaceCreateReply> for Outcome {
    fn from_reply(reply: &WireguardInterfaceCreateReply) -> Self {
        Self::numbered(reply.retval, reply.sw_if_index.value())
    }
}

impl FromReply<WireguardPeerAddReply> for Outcome {
    fn from_reply(reply: &WireguardPeerAddReply) -> Self {
        Self::numbered(reply.retval, reply.peer_index.get())
    }
}

/// Put an operation into a request and send it.
///
/// # Errors
/// The operation can't be put into a request: VPP would be harmed by it.
pub(super) fn submit(
    pipeline: &Pipeline<(OpId, Wanted), Outcome>,
    id: OpId,
    action: &WireguardAction,
) -> Result<Result<(), Full<(OpId, Wanted)>>, VppFailure> {
    Ok(match action {
        WireguardAction::AddInterface { local, port, keys } => {
            let Ok(private) = keys.private().expose().try_into() else {
                return Err(named("a private key of the wrong length"));
            };
            let request = InterfaceCreate::new(*local, *port, private).map_err(refused)?;
            pipeline.submit(&request, (id, Wanted::Interface))
        }
        WireguardAction::DelInterface { index } => {
            pipeline.submit(&WireguardInterfaceDelete::new(interface(*index)), (id, Wanted::NoInterface))
        }
        WireguardAction::AddPeer { interface: of, public, peer } => {
            let request = PeerAdd::new(
                interface(*of),
                &public.0,
                peer.endpoint,
                peer.port,
                peer.keepalive,
                WireTable::DEFAULT,
                &peer.allowed,
            );
            pipeline.submit(&request.map_err(refused)?, (id, Wanted::Peer))
        }
        WireguardAction::DelPeer { index } => {
            pipeline.submit(&WireguardPeerRemove::new(*index), (id, Wanted::Absence))
        }
    })
}

/// Reads all interfaces. A VPP without the plugin has none.
pub(super) async fn interfaces(client: &Client) -> Result<Vec<DumpedTunnel>, CallError> {
    let dump = WireguardInterfaceDump::new(false, WireInterface::NONE);
    let read = |all: &mut Vec<DumpedTunnel>, details: &WireguardInterfaceDetails| {
        let of = &details.interface;
        let Some(local) = of.src_ip.ip() else { return };
        let key = WireguardKey { local, port: of.port.get(), key: PublicKey(of.public_key).id() };
        let index = SwIfIndex(of.sw_if_index.value());
        all.push(DumpedTunnel { index, tunnel: Tunnel::Wireguard(key) });
    };
    if_known(client.dump(&dump, Vec::new(), read).await)
}

/// Reads all peers, and asks for news of each.
pub(super) async fn peers(client: &Client) -> Result<Vec<DumpedPeer>, CallError> {
    watch(client, ALL).await;
    let read = |all: &mut Vec<DumpedPeer>, details: &WireguardPeersDetails| {
        let peer = &details.peer;
        let Some(endpoint) = peer.endpoint.ip() else { return };
        all.push(DumpedPeer {
            index: peer.peer_index.get(),
            interface: SwIfIndex(peer.sw_if_index.value()),
            public: PublicKey(peer.public_key),
            endpoint,
            port: peer.port.get(),
            keepalive: peer.persistent_keepalive.get(),
            allowed: peer.allowed_ips.iter().filter_map(|allowed| allowed.truncated()).collect(),
            established: is_established(peer.flags),
        });
    };
    if_known(client.dump(&WireguardPeersDump::new(ALL), Vec::new(), read).await)
}

/// A peer is new: ask for news of it, and how it stands. That there is no session yet means nothing at first.
pub(super) async fn follow(client: Client, peer: u32) -> Vec<(u32, bool)> {
    watch(&client, peer).await;
    let now = sessions(&client, peer).await;
    if now.iter().any(|(_, established)| *established) {
        return now;
    }
    tokio::time::sleep(HANDSHAKE).await;
    sessions(&client, peer).await
}

/// How all peers stand: news of them may have been missed.
pub(super) async fn look(client: Client) -> Vec<(u32, bool)> {
    sessions(&client, ALL).await
}

/// What VPP says of a peer.
pub(super) const fn is_established(flags: WireguardPeerFlags) -> bool {
    flags.value() & WireguardPeerFlags::ESTABLISHED.value() != 0
}

async fn watch(client: &Client, peer: u32) {
    let request = WantWireguardPeerEvents::new(WireInterface::NONE, peer, 1, std::process::id());
    // That it was asked for already is an error to VPP; what else can be wrong shows itself elsewhere.
    if let Err(error) = client.call(&request).await {
        tracing::debug!(%error, peer, "vpp tells nothing new of wireguard sessions");
    }
}

async fn sessions(client: &Client, peer: u32) -> Vec<(u32, bool)> {
    let read = |all: &mut Vec<(u32, bool)>, details: &WireguardPeersDetails| {
        all.push((details.peer.peer_index.get(), is_established(details.peer.flags)));
    };
    // A failure is that of the connection, which is told by itself.
    client.dump(&WireguardPeersDump::new(peer), Vec::new(), read).await.unwrap_or_default()
}
