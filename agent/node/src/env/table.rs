//! The table of settings: every key, every variable, what it may hold.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use agent_core::config::{Encrypted, RoutePriorities};
use agent_core::model::Psk;
use ipnet::IpNet;

use super::{Draft, Mode, RouterIdChoice, srv6};
use crate::log::{LogFormat, LogLevel};
use crate::yaml::{Mistake, duration};

type Set = fn(&mut Draft, &str) -> Result<(), Mistake>;

/// One setting.
pub(super) struct Row {
    pub(super) key: &'static str,
    pub(super) variables: &'static [&'static str],
    pub(super) default: &'static str,
    pub(super) help: &'static str,
    /// Anything but the default has an effect.
    pub(super) in_force: bool,
    pub(super) set: Set,
}

impl Row {
    /// What is given must be shown nowhere, not even where it is wrong.
    pub(super) fn is_secret(&self) -> bool {
        self.key == "ipsec.psk"
    }
}

/// Every setting, with every variable that sets it.
pub(super) const ROWS: &[Row] = &[
    Row {
        key: "node",
        variables: &["NODENAME"],
        default: "",
        help: "name of this node; required",
        in_force: true,
        set: |draft, text| set(&mut draft.node, non_empty(text, "the name of this node")),
    },
    Row {
        key: "datastore",
        variables: &["PEREGRINE_DATASTORE"],
        default: "",
        help: "directory:PATH, a folder of manifests as kubectl takes them, watched; required",
        in_force: true,
        set: |draft, text| match text.strip_prefix("directory:") {
            _ if text == "kubernetes" => {
                Err(Mistake::Unsupported { remedy: "use directory:PATH, a folder of manifests" })
            }
            Some(path) if !path.is_empty() => set(&mut draft.manifests, Ok(path.into())),
            _ => Err(value("directory:PATH", text)),
        },
    },
    Row {
        key: "namespace",
        variables: &["NAMESPACE"],
        default: "calico-vpp-dataplane",
        help: "namespace of the Secrets with BGP passwords",
        in_force: true,
        set: |draft, text| set(&mut draft.namespace, non_empty(text, "a namespace")),
    },
    Row {
        key: "vpp.socket",
        variables: &["PEREGRINE_VPP_SOCKET"],
        default: "/var/run/vpp/vpp-api.sock",
        help: "VPP's API socket; none: speak BGP only",
        in_force: true,
        set: |draft, text| set(&mut draft.vpp, optional_path(text)),
    },
    Row {
        key: "vpp.uplink",
        variables: &["PEREGRINE_VPP_UPLINK"],
        default: "",
        help: "VPP interface of the node's address; found by the address when left out",
        in_force: true,
        set: |draft, text| set(&mut draft.uplink, non_empty(text, "the name of an interface of VPP")),
    },
    Row {
        key: "vpp.loss-grace",
        variables: &["PEREGRINE_VPP_LOSS_GRACE"],
        default: "5s",
        help: "VPP away longer than this: own prefixes are withdrawn until it is replayed",
        in_force: true,
        set: |draft, text| set(&mut draft.loss_grace, time(text)),
    },
    Row {
        key: "vpp.audit",
        variables: &["PEREGRINE_VPP_AUDIT"],
        default: "5m",
        help: "how often all that VPP holds is read and repaired, at least 10s; none turns it off",
        in_force: true,
        set: |draft, text| {
            let every = if text == "none" { None } else { Some(time(text)?) };
            if every.is_some_and(|every| every < Duration::from_secs(10)) {
                return Err(value("a time of 10s or more, or none", text));
            }
            set(&mut draft.audit, Ok(every))
        },
    },
    Row {
        key: "vpp.info-file",
        variables: &["PEREGRINE_VPP_INFO_FILE"],
        default: "/var/run/vpp/vppmanagerinfofile",
        help: "what VPP's manager wrote about interfaces to the host, where there is a manager; none: there isn't",
        in_force: true,
        set: |draft, text| set(&mut draft.info_file, optional_path(text)),
    },
    Row {
        key: "vpp.stats",
        variables: &["PEREGRINE_VPP_STATS"],
        default: "/var/run/vpp/stats.sock",
        help: "VPP's statistics socket, whose counters /metrics serves; none: without them",
        in_force: true,
        set: |draft, text| set(&mut draft.stats, optional_path(text)),
    },
    Row {
        key: "bgp.mode",
        variables: &["PEREGRINE_BGP_MODE", "CALICOVPP_BGP_SERVER_MODE"],
        default: "dual-stack",
        help: "dual-stack, v4-only or v6-only",
        in_force: true,
        set: |draft, text| {
            draft.mode = match text {
                "dual-stack" | "dualStack" => Mode::DualStack,
                "v4-only" | "v4Only" => Mode::V4Only,
                "v6-only" | "v6Only" => Mode::V6Only,
                _ => return Err(word(&["dual-stack", "v4-only", "v6-only"], text)),
            };
            Ok(())
        },
    },
    Row {
        key: "bgp.router-id",
        variables: &["PEREGRINE_BGP_ROUTER_ID", "CALICO_ROUTER_ID"],
        default: "the node's IPv4 address",
        help: "BGP Identifier: a dotted quad, or hash: made of the node's name",
        in_force: true,
        set: |draft, text| {
            draft.router_id = match text {
                "hash" => RouterIdChoice::Hash,
                _ => match text.parse() {
                    Ok(id) if id != Ipv4Addr::UNSPECIFIED => RouterIdChoice::Is(id),
                    Ok(_) | Err(_) => return Err(value("a dotted quad such as 192.0.2.1, or hash", text)),
                },
            };
            Ok(())
        },
    },
    Row {
        key: "bgp.route-priority",
        variables: &["PEREGRINE_BGP_ROUTE_PRIORITY"],
        default: "classic",
        help: "LOCAL_PREF of own routes: classic: 100; calico: 2147483647 less their priority, as Calico's BIRD sends",
        in_force: true,
        set: |draft, text| {
            draft.priorities = match text {
                "classic" => RoutePriorities::Classic,
                "calico" => RoutePriorities::Calico,
                _ => return Err(word(&["classic", "calico"], text)),
            };
            Ok(())
        },
    },
    Row {
        key: "wireguard.traffic",
        variables: &["PEREGRINE_WIREGUARD_TRAFFIC"],
        default: "encapsulated",
        help: "what WireGuard carries where Felix turns it on: encapsulated: what would be encapsulated otherwise, as Calico/VPP's \
               own agents do, which drop anything more; pods: all traffic to addresses of pools",
        in_force: true,
        set: |draft, text| {
            draft.encryption.what = match text {
                "encapsulated" => Encrypted::Encapsulated,
                "pods" => Encrypted::Pods,
                _ => return Err(word(&["encapsulated", "pods"], text)),
            };
            Ok(())
        },
    },
    Row {
        key: "wireguard.or-drop",
        variables: &["PEREGRINE_WIREGUARD_OR_DROP"],
        default: "false",
        help: "drop what WireGuard should carry and can't, as to nodes without a key, rather than send it in the clear",
        in_force: true,
        set: |draft, text| {
            draft.encryption.or_drop = boolean(text)?;
            Ok(())
        },
    },
    Row {
        key: "bgp.require-policy",
        variables: &["PEREGRINE_BGP_REQUIRE_POLICY"],
        default: "false",
        help: "an external neighbor without a policy exchanges nothing",
        in_force: false,
        set: |_, text| only_false(text),
    },
    Row {
        key: "bgp.enforce-first-as",
        variables: &["PEREGRINE_BGP_ENFORCE_FIRST_AS"],
        default: "false",
        help: "an external neighbor's own AS must come first in its paths",
        in_force: false,
        set: |_, text| only_false(text),
    },
    Row {
        key: "api",
        variables: &["PEREGRINE_API"],
        default: "/var/run/peregrine/peregrine.sock",
        help: "Unix socket that the query commands ask",
        in_force: true,
        set: |draft, text| set(&mut draft.api, path(text)),
    },
    Row {
        key: "state",
        variables: &["PEREGRINE_STATE"],
        default: "/var/lib/peregrine",
        help: "folder for what must outlive a restart; made when absent",
        in_force: true,
        set: |draft, text| set(&mut draft.state, path(text)),
    },
    Row {
        key: "health",
        variables: &["PEREGRINE_HEALTH"],
        default: ":9090",
        help: "address of /liveness, /readiness and /status; none turns it off",
        in_force: true,
        set: |draft, text| set(&mut draft.health, listen(text)),
    },
    Row {
        key: "metrics",
        variables: &["PEREGRINE_METRICS"],
        default: "none",
        help: "address of /metrics, such as :8888; none turns it off",
        in_force: true,
        set: |draft, text| set(&mut draft.metrics, listen(text)),
    },
    Row {
        key: "log.level",
        variables: &["PEREGRINE_LOG_LEVEL", "CALICOVPP_LOG_LEVEL"],
        default: "info",
        help: "error, warn, info, debug or trace; changes live on SIGHUP",
        in_force: true,
        set: |draft, text| {
            let level = LogLevel::parse(text);
            draft.log.level =
                level.ok_or_else(|| word(&["error", "warn", "info", "debug", "trace"], text))?;
            Ok(())
        },
    },
    Row {
        key: "log.format",
        variables: &["PEREGRINE_LOG_FORMAT", "CALICOVPP_LOG_FORMAT"],
        default: "text",
        help: "text or json",
        in_force: true,
        set: |draft, text| {
            draft.log.format = match text {
                "text" | "pretty" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return Err(word(&["text", "json"], text)),
            };
            Ok(())
        },
    },
    Row {
        key: "service-prefixes",
        variables: &["PEREGRINE_SERVICE_PREFIXES", "SERVICE_PREFIX"],
        default: "",
        help: "addresses of services, comma-separated, besides those of BGPConfiguration: never source-translated",
        in_force: true,
        set: |draft, text| {
            let prefix = |one: &str| {
                one.trim().parse::<IpNet>().map_err(|_| value("prefixes such as 10.96.0.0/12", one))
            };
            let prefixes: Result<Vec<IpNet>, Mistake> =
                text.split(',').filter(|one| !one.trim().is_empty()).map(prefix).collect();
            set(&mut draft.service_prefixes, prefixes)
        },
    },
    Row {
        key: "features.srv6",
        variables: &["PEREGRINE_FEATURES_SRV6"],
        default: "false",
        help: "segment routing over IPv6, which then carries all traffic to nodes that take part; needs srv6.*. Turned off, it \
               leaves nothing in VPP as long as the pools of srv6.* are still said",
        in_force: true,
        set: |draft, text| {
            draft.srv6.on = match text {
                "true" => true,
                "false" => false,
                _ => return Err(value("true or false", text)),
            };
            Ok(())
        },
    },
    Row {
        key: "srv6.localsid-pool",
        variables: &["PEREGRINE_SRV6_LOCALSID_POOL"],
        default: "",
        help: "pool of all nodes' local SIDs; its prefixes are routed, never encapsulated",
        in_force: true,
        set: |draft, text| {
            draft.srv6.localsid_pool = srv6::pool(text)?;
            Ok(())
        },
    },
    Row {
        key: "srv6.policy-pool",
        variables: &["PEREGRINE_SRV6_POLICY_POOL"],
        default: "",
        help: "pool of all nodes' binding SIDs; its prefixes are never installed",
        in_force: true,
        set: |draft, text| {
            draft.srv6.policy_pool = srv6::pool(text)?;
            Ok(())
        },
    },
    Row {
        key: "srv6.localsid-dt4",
        variables: &["PEREGRINE_SRV6_LOCALSID_DT4"],
        default: "",
        help: "this node's SID for IPv4 (End.DT4), of localsid-pool",
        in_force: true,
        set: |draft, text| {
            draft.srv6.localsid_dt4 = srv6::sid(text)?;
            Ok(())
        },
    },
    Row {
        key: "srv6.localsid-dt6",
        variables: &["PEREGRINE_SRV6_LOCALSID_DT6"],
        default: "",
        help: "this node's SID for IPv6 (End.DT6), of localsid-pool",
        in_force: true,
        set: |draft, text| {
            draft.srv6.localsid_dt6 = srv6::sid(text)?;
            Ok(())
        },
    },
    Row {
        key: "srv6.bsid-dt4",
        variables: &["PEREGRINE_SRV6_BSID_DT4"],
        default: "",
        help: "the binding SID that others know the policy to localsid-dt4 by, of policy-pool",
        in_force: true,
        set: |draft, text| {
            draft.srv6.bsid_dt4 = srv6::sid(text)?;
            Ok(())
        },
    },
    Row {
        key: "srv6.bsid-dt6",
        variables: &["PEREGRINE_SRV6_BSID_DT6"],
        default: "",
        help: "the binding SID that others know the policy to localsid-dt6 by, of policy-pool",
        in_force: true,
        set: |draft, text| {
            draft.srv6.bsid_dt6 = srv6::sid(text)?;
            Ok(())
        },
    },
    Row {
        key: "features.multinet",
        variables: &["PEREGRINE_FEATURES_MULTINET"],
        default: "false",
        help: "networks beside the default one, from Network objects, whose routes come as VPN routes",
        in_force: true,
        set: |draft, text| {
            draft.multinet = match text {
                "true" => true,
                "false" => false,
                _ => return Err(value("true or false", text)),
            };
            Ok(())
        },
    },
    Row {
        key: "features.ipsec",
        variables: &["PEREGRINE_FEATURES_IPSEC"],
        default: "false",
        help: "IPsec protects what would go through IPIP tunnels; needs ipsec.psk on every node",
        in_force: true,
        set: |draft, text| set(&mut draft.ipsec_on, boolean(text)),
    },
    Row {
        key: "ipsec.psk",
        variables: &["PEREGRINE_IPSEC_PSK", "CALICOVPP_IPSEC_IKEV2_PSK"],
        default: "",
        help: "key that all nodes share; better a variable from a Secret than this file. Never shown",
        in_force: true,
        // Taken as it is: the nodes must agree on every octet.
        set: |draft, text| {
            draft.psk = Psk::new(text.as_bytes().to_vec());
            Ok(())
        },
    },
    Row {
        key: "ipsec.extra-addresses",
        variables: &["PEREGRINE_IPSEC_EXTRA_ADDRESSES"],
        default: "0",
        help: "so many more addresses on each node, each with a tunnel of its own; at most 15",
        in_force: true,
        set: |draft, text| {
            let number = text.parse().ok().filter(|number| *number <= 15);
            set(&mut draft.ipsec.extra_addresses, number.ok_or_else(|| value("a number up to 15", text)))
        },
    },
    Row {
        key: "ipsec.cross-tunnels",
        variables: &["PEREGRINE_IPSEC_CROSS_TUNNELS"],
        default: "false",
        help: "tunnels from each address to each, rather than from each to its counterpart",
        in_force: true,
        set: |draft, text| set(&mut draft.ipsec.cross_tunnels, boolean(text)),
    },
    Row {
        key: "ipsec.async-crypto-threads",
        variables: &["PEREGRINE_IPSEC_ASYNC_CRYPTO_THREADS"],
        default: "0",
        help: "so many of VPP's workers do nothing but encrypt; 0: each encrypts what it forwards",
        in_force: true,
        set: |draft, text| {
            let number = text.parse().map_err(|_| value("a number", text));
            set(&mut draft.ipsec.async_threads, number)
        },
    },
];

/// Variables of the agent for Calico and VPP that hold JSON.
pub(super) const JSON_VARIABLES: &[(&str, &str)] = &[
    ("CALICOVPP_IPSEC", "crossIPSecTunnels, nbAsyncCryptoThreads and extraAddresses as ipsec.*"),
    (
        "CALICOVPP_FEATURE_GATES",
        "srv6Enabled, multinetEnabled and ipsecEnabled as features.*, prometheusEnabled as metrics; others are skipped",
    ),
    ("CALICOVPP_SRV6", "localsidPool and policyPool as srv6.localsid-pool and srv6.policy-pool"),
    (
        "CALICOVPP_INITIAL_CONFIG",
        "healthCheckPort as health, prometheusListenEndpoint as metrics where prometheusEnabled; others are skipped",
    ),
];

/// Variables that manifests of the agent for Calico and VPP set and that mean nothing to this one.
pub(super) const WITHOUT_EFFECT: &[&str] = &[
    "CALICOVPP_BGP_LOG_LEVEL",
    "CALICOVPP_CONFIG_TEMPLATE",
    "CALICOVPP_DEBUG",
    "CALICOVPP_GRACEFUL_SHUTDOWN_TIMEOUT",
    "CALICOVPP_INTERFACES",
    "CALICOVPP_STATS_SOCKET",
];

fn set<T>(place: &mut Option<T>, value: Result<T, Mistake>) -> Result<(), Mistake> {
    *place = Some(value?);
    Ok(())
}

pub(super) fn value(wanted: &'static str, found: &str) -> Mistake {
    Mistake::Value { wanted, found: found.to_owned() }
}

fn word(wanted: &'static [&'static str], found: &str) -> Mistake {
    Mistake::Word { wanted, found: found.to_owned() }
}

fn non_empty(text: &str, wanted: &'static str) -> Result<String, Mistake> {
    if text.trim().is_empty() { Err(value(wanted, text)) } else { Ok(text.to_owned()) }
}

fn path(text: &str) -> Result<PathBuf, Mistake> {
    non_empty(text, "a path").map(PathBuf::from)
}

fn optional_path(text: &str) -> Result<Option<PathBuf>, Mistake> {
    if text == "none" { Ok(None) } else { path(text).map(Some) }
}

fn time(text: &str) -> Result<Duration, Mistake> {
    duration(text).ok_or_else(|| value("a time such as 5s, 1m30s or 250ms", text))
}

fn boolean(text: &str) -> Result<bool, Mistake> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(value("true or false", text)),
    }
}

fn only_false(text: &str) -> Result<(), Mistake> {
    match text {
        "false" => Ok(()),
        "true" => Err(Mistake::Unsupported { remedy: "leave it false" }),
        _ => Err(value("true or false", text)),
    }
}

/// `:9090` on all addresses, `ADDRESS:PORT`, or `none`.
pub(super) fn listen(text: &str) -> Result<Option<SocketAddr>, Mistake> {
    match text {
        "none" => Ok(None),
        _ => match parse_listen(text) {
            Some(address) => Ok(Some(address)),
            None => Err(value("an address such as :9090 or 127.0.0.1:9090, or none", text)),
        },
    }
}

pub(super) fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix(':') {
        Some(port) => Some(SocketAddr::from(([0u16; 8], port.parse().ok()?))),
        None => text.parse().ok(),
    }
}
