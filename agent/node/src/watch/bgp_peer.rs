//! BGPPeer objects → `Event::Peer`.

use agent_core::event::{Change, Event};
use agent_core::model::{NextHopChoice, PeerEndpoint, PeerName, PeerPort, PeerSpec, SourceAddress};
use bgp_core::Asn;

use crate::crd::{BgpPeer, NextHopMode, ObjectName};

pub(super) fn key(name: &ObjectName) -> PeerName {
    name.as_str().into()
}

pub(super) fn value(peer: &BgpPeer) -> PeerSpec {
    PeerSpec {
        node: peer.node.as_deref().map(Into::into),
        node_selector: peer.node_selector.clone(),
        peer_ip: peer.peer_ip.map(|ip| PeerEndpoint { address: ip.address, port: ip.port.map(PeerPort) }),
        peer_selector: peer.peer_selector.clone(),
        local_workload_selector: peer.local_workload_selector.clone(),
        asn: peer.as_number.map(Asn),
        local_asn: peer.local_as_number.map(Asn),
        filters: peer.filters.iter().map(|name| name.as_str().into()).collect(),
        password: peer.password.is_some(),
        source_address: if peer.any_source { SourceAddress::Any } else { SourceAddress::UseNodeIp },
        max_restart_time: peer.max_restart_time,
        keepalive_time: peer.keepalive_time,
        allowed_local_asns: u32::from(peer.allowed_local_as),
        ttl_security: peer.ttl_security,
        next_hop: match peer.next_hop {
            NextHopMode::Auto => NextHopChoice::Auto,
            NextHopMode::SelfAddress => NextHopChoice::SelfAddress,
            NextHopMode::Keep => NextHopChoice::Keep,
            NextHopMode::KeepExternal => NextHopChoice::KeepExternal,
        },
        reachable_by: peer.reachable_by,
        manual_reverse: peer.reverse_manual,
    }
}

pub(super) fn event(change: Change<PeerName, PeerSpec>) -> Event {
    Event::Peer(change)
}
