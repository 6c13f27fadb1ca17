//! `BGPPeer`: sessions that one node, some nodes or all nodes hold.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::value::{SecretKey, as_number, non_empty, secret_key, selector};
use crate::yaml::{Item, Mistake};

/// The spec of a BGPPeer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BgpPeer {
    /// `node`: the peering belongs to this node only.
    pub(crate) node: Option<String>,
    /// `nodeSelector`: the peering belongs to the nodes that match.
    pub(crate) node_selector: Option<String>,
    /// `peerIP`.
    pub(crate) peer_ip: Option<PeerIp>,
    /// `peerSelector`: the remote ends are the nodes that match.
    pub(crate) peer_selector: Option<String>,
    /// `localWorkloadSelector`: the remote ends are workloads of this node.
    pub(crate) local_workload_selector: Option<String>,
    /// `asNumber`; 0 counts as unset.
    pub(crate) as_number: Option<u32>,
    /// `localASNumber`; 0 counts as unset.
    pub(crate) local_as_number: Option<u32>,
    /// `reversePeering: Manual`.
    pub(crate) reverse_manual: bool,
    /// `filters`, in order.
    pub(crate) filters: Vec<String>,
    /// `password`.
    pub(crate) password: Option<SecretKey>,
    /// `sourceAddress: None`: let the kernel choose our address.
    pub(crate) any_source: bool,
    /// `maxRestartTime`.
    pub(crate) max_restart_time: Option<Duration>,
    /// `keepaliveTime`.
    pub(crate) keepalive_time: Option<Duration>,
    /// `numAllowedLocalASNumbers`.
    pub(crate) allowed_local_as: u8,
    /// `ttlSecurity` in hops; 0 is off.
    pub(crate) ttl_security: u8,
    /// `nextHopMode`, or `keepOriginalNextHop` in its deprecated form.
    pub(crate) next_hop: NextHopMode,
    /// `reachableBy`: a gateway through which the peer is reached.
    pub(crate) reachable_by: Option<IpAddr>,
}

/// `peerIP`: an address, `v4:port` or `[v6]:port`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerIp {
    /// The address.
    pub(crate) address: IpAddr,
    /// The port where one is given.
    pub(crate) port: Option<u16>,
}

/// `nextHopMode`.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum NextHopMode {
    /// By the kind of session.
    #[default]
    Auto,
    /// Always ourselves.
    SelfAddress,
    /// As received.
    Keep,
    /// `keepOriginalNextHop: true`: as received, on eBGP sessions only.
    KeepExternal,
}

impl PeerIp {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self { address, port: None });
        }
        let socket: SocketAddr = text.parse().ok()?;
        (socket.port() != 0).then_some(Self { address: socket.ip(), port: Some(socket.port()) })
    }
}

impl BgpPeer {
    /// Read the `spec`. Mistakes go to the flaws of the item.
    pub(crate) fn decode(spec: &Item<'_>) -> Option<Self> {
        let mut fields = spec.fields()?;
        let mut peer = Self {
            node: fields.take("node").and_then(|item| non_empty(&item)),
            node_selector: fields.take("nodeSelector").and_then(|item| selector(&item)),
            ..Self::default()
        };
        if let Some(item) = fields.take("peerIP").filter(|item| item.text() != Some("")) {
            let wanted =
                "an address, with a port if need be: 192.0.2.1, 192.0.2.1:1790 or [2001:db8::1]:1790";
            peer.peer_ip = item.parse_with(wanted, PeerIp::parse);
        }
        let has_peer_ip = fields.take("peerIP").is_some_and(|item| item.text() != Some(""));
        peer.peer_selector = fields.take("peerSelector").and_then(|item| selector(&item));
        peer.local_workload_selector = fields.take("localWorkloadSelector").and_then(|item| selector(&item));
        peer.as_number = fields.take("asNumber").and_then(|item| as_number(&item)).filter(|asn| *asn != 0);
        peer.local_as_number =
            fields.take("localASNumber").and_then(|item| as_number(&item)).filter(|asn| *asn != 0);
        peer.reverse_manual =
            fields.take("reversePeering").and_then(|item| item.word(&["Auto", "Manual"])) == Some(1);
        if let Some(item) = fields.take("filters") {
            peer.filters = item.list().iter().filter_map(non_empty).collect();
        }
        peer.password = fields.take("password").and_then(|item| secret_key(&item));
        peer.any_source =
            fields.take("sourceAddress").and_then(|item| item.word(&["UseNodeIP", "None"])) == Some(1);
        peer.max_restart_time = fields.take("maxRestartTime").and_then(|item| item.duration());
        peer.keepalive_time = fields.take("keepaliveTime").and_then(|item| item.duration());
        let count = fields.take("numAllowedLocalASNumbers");
        peer.allowed_local_as =
            count.and_then(|item| item.number("a number, 0 to 255", 0..=255)).unwrap_or(0);
        let hops = fields.take("ttlSecurity");
        peer.ttl_security =
            hops.and_then(|item| item.number("a number of hops, 0 to 255", 0..=255)).unwrap_or(0);
        let mode = fields.take("nextHopMode").and_then(|item| item.word(&["Auto", "Self", "Keep"]));
        let keep = fields.take("keepOriginalNextHop").and_then(|item| item.boolean()).unwrap_or(false);
        peer.next_hop = match mode {
            Some(1) => NextHopMode::SelfAddress,
            Some(2) => NextHopMode::Keep,
            Some(_) => NextHopMode::Auto,
            None if keep => NextHopMode::KeepExternal,
            None => NextHopMode::Auto,
        };
        peer.reachable_by = fields
            .take("reachableBy")
            .filter(|item| item.text() != Some(""))
            .and_then(|item| item.parse("an address, such as 192.0.2.1"));
        for rule in peer.broken_rules(has_peer_ip, mode.is_some() && keep) {
            fields.flaw(Mistake::Conflict { rule });
        }
        fields.finish();
        Some(peer)
    }

    /// What the resource's own validation forbids.
    fn broken_rules(&self, has_peer_ip: bool, two_next_hops: bool) -> Vec<&'static str> {
        let by_selector = self.peer_selector.is_some();
        let workload = self.local_workload_selector.is_some();
        let family = |address: &IpAddr| address.is_ipv4();
        let other_family = match (&self.peer_ip, &self.reachable_by) {
            (Some(peer), Some(gateway)) => family(&peer.address) != family(gateway),
            _ => false,
        };
        [
            (self.node.is_some() && self.node_selector.is_some(), "node and nodeSelector exclude each other"),
            (has_peer_ip && by_selector, "peerIP and peerSelector exclude each other"),
            (by_selector && self.as_number.is_some(), "peerSelector excludes asNumber"),
            (
                workload && (has_peer_ip || by_selector),
                "localWorkloadSelector excludes peerIP and peerSelector",
            ),
            (workload && self.as_number.is_none(), "localWorkloadSelector needs asNumber"),
            (self.reachable_by.is_some() && !has_peer_ip, "reachableBy needs peerIP"),
            (other_family, "reachableBy and peerIP must be of one address family"),
            (two_next_hops, "keepOriginalNextHop and nextHopMode exclude each other"),
            (
                !has_peer_ip && !by_selector && !workload,
                "one of peerIP, peerSelector or localWorkloadSelector is required",
            ),
        ]
        .into_iter()
        .filter_map(|(broken, rule)| broken.then_some(rule))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Object;
    use super::super::object::tests::{one, problems};
    use super::*;

    const HEAD: &str = "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata:\n  name: tor\nspec:\n";

    fn peer(spec: &str) -> BgpPeer {
        let (_, object) = one(&format!("{HEAD}{spec}"));
        let Object::BgpPeer(peer) = object else { panic!("{object:?}") };
        peer
    }

    #[test]
    fn every_field_is_read() {
        let read = peer(
            "  node: node-a\n  peerIP: \"[2001:db8::1]:1790\"\n  asNumber: \"6.10\"\n  localASNumber: 64600\n  \
             reversePeering: Manual\n  filters: [a, b]\n  password: {secretKeyRef: {key: k}}\n  sourceAddress: None\n  \
             maxRestartTime: 10s\n  keepaliveTime: 20s\n  numAllowedLocalASNumbers: 2\n  ttlSecurity: 1\n  \
             nextHopMode: Self\n  reachableBy: 2001:db8::2\n",
        );
        let expected = BgpPeer {
            node: Some("node-a".into()),
            peer_ip: Some(PeerIp { address: "2001:db8::1".parse().unwrap(), port: Some(1790) }),
            as_number: Some(6 * 65536 + 10),
            local_as_number: Some(64600),
            reverse_manual: true,
            filters: vec!["a".into(), "b".into()],
            password: Some(SecretKey { name: String::new(), key: "k".into() }),
            any_source: true,
            max_restart_time: Some(Duration::from_secs(10)),
            keepalive_time: Some(Duration::from_secs(20)),
            allowed_local_as: 2,
            ttl_security: 1,
            next_hop: NextHopMode::SelfAddress,
            reachable_by: Some("2001:db8::2".parse().unwrap()),
            ..BgpPeer::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn empty_strings_are_absent() {
        let read =
            peer("  peerIP: \"\"\n  peerSelector: all()\n  node: ''\n  asNumber: 0\n  reachableBy: ''\n");
        assert_eq!(read, BgpPeer { peer_selector: Some("all()".into()), ..BgpPeer::default() });
    }

    #[test]
    fn addresses_with_ports() {
        let ip = |text: &str| PeerIp::parse(text).map(|ip| (ip.address.to_string(), ip.port));
        assert_eq!(ip("192.0.2.1"), Some(("192.0.2.1".into(), None)));
        assert_eq!(ip("192.0.2.1:17"), Some(("192.0.2.1".into(), Some(17))));
        assert_eq!(ip("2001:db8::1"), Some(("2001:db8::1".into(), None)));
        assert_eq!(ip("[2001:db8::1]:17"), Some(("2001:db8::1".into(), Some(17))));
        for bad in ["192.0.2.1:0", "192.0.2.1:70000", "192.0.2", "tor.example", "[2001:db8::1]", ""] {
            assert_eq!(ip(bad), None, "{bad}");
        }
    }

    #[test]
    fn mistakes_and_broken_rules() {
        let cases = [
            (
                "  peerIP: 192.0.2.300\n  asNumber: 65000\n",
                "line 6: spec.peerIP: must be an address, with a port if need be: 192.0.2.1, 192.0.2.1:1790 or \
                 [2001:db8::1]:1790, not \"192.0.2.300\"",
            ),
            ("  peerIP: 192.0.2.1\n  asn: 65000\n", "line 7: spec.asn: unknown field"),
            (
                "  peerIP: 192.0.2.1\n  asNumbers: 65000\n",
                "line 7: spec.asNumbers: unknown field; did you mean \"asNumber\"?",
            ),
            (
                "  peerIP: 192.0.2.1\n  node: a\n  nodeSelector: all()\n",
                "line 6: spec: node and nodeSelector exclude each other",
            ),
            (
                "  asNumber: 1\n",
                "line 6: spec: one of peerIP, peerSelector or localWorkloadSelector is required",
            ),
            (
                "  peerIP: 192.0.2.1\n  reachableBy: fe80::1\n",
                "line 6: spec: reachableBy and peerIP must be of one address family",
            ),
        ];
        for (spec, expected) in cases {
            assert_eq!(problems(&format!("{HEAD}{spec}")), [expected]);
        }
    }
}
