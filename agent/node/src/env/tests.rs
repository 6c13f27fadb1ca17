use agent_core::config::Encrypted;

use super::*;
use crate::log::{LogFormat, LogLevel};

fn read(text: &str, variables: &[(&str, &str)]) -> (Option<Settings>, Vec<String>) {
    let mut draft = Draft::default();
    let mut faults = Vec::new();
    read_file("agent.yaml", text, &mut draft, &mut faults);
    let variables = variables.iter().map(|(name, text)| (OsString::from(name), OsString::from(text)));
    read_variables(variables, &mut draft, &mut faults);
    let complete = faults.iter().all(SettingsFault::is_warning);
    let settings = if complete { draft.finish(&mut faults) } else { None };
    (settings, faults.iter().map(ToString::to_string).collect())
}

const MINIMAL: &str = "node: node-a\ndatastore: directory:/m\n";

#[test]
fn the_whole_documented_file_is_accepted() {
    let text = r#"
node: node-a
datastore: directory:/etc/peregrine/manifests
namespace: calico-vpp-dataplane
vpp:
  socket: /var/run/vpp/vpp-api.sock
  uplink: host-eth0
  loss-grace: 7s
  audit: 90s
  info-file: /run/info
  stats: /run/stats
bgp:
  mode: v4-only
  route-priority: calico
  require-policy: false
  enforce-first-as: false
  router-id: 192.0.2.7
wireguard: { traffic: pods, or-drop: true }
api: /run/p.sock
state: /var/lib/p
health: "127.0.0.1:9091"
metrics: ":8888"
log: { level: debug, format: json }
features: { srv6: false, multinet: false, ipsec: true }
service-prefixes: 10.96.0.0/12, fd00:96::/112
ipsec: { psk: " swordfish", extra-addresses: 2, cross-tunnels: true, async-crypto-threads: 3 }
"#;
    let (settings, faults) = read(text, &[]);
    assert_eq!(faults, [""; 0]);
    let expected = Settings {
        node: "node-a".into(),
        manifests: "/etc/peregrine/manifests".into(),
        namespace: "calico-vpp-dataplane".into(),
        vpp: Some("/var/run/vpp/vpp-api.sock".into()),
        uplink: Some("host-eth0".into()),
        info_file: Some("/run/info".into()),
        stats: Some("/run/stats".into()),
        loss_grace: Duration::from_secs(7),
        audit: Some(Duration::from_secs(90)),
        mode: Mode::V4Only,
        priorities: RoutePriorities::Calico,
        encryption: Encryption { what: Encrypted::Pods, or_drop: true },
        service_prefixes: vec!["10.96.0.0/12".parse().unwrap(), "fd00:96::/112".parse().unwrap()],
        ipsec: Some(IpsecConfig {
            psk: Psk::new(b" swordfish".to_vec()),
            extra_addresses: 2,
            cross_tunnels: true,
            async_threads: 3,
        }),
        router_id: RouterIdChoice::Is(Ipv4Addr::new(192, 0, 2, 7)),
        api: "/run/p.sock".into(),
        state: "/var/lib/p".into(),
        health: Some("127.0.0.1:9091".parse().unwrap()),
        metrics: Some("[::]:8888".parse().unwrap()),
        log: LogSettings { level: LogLevel::parse("debug").unwrap(), format: LogFormat::Json },
        srv6: None,
        multinet: false,
        former_sids: None,
    };
    assert_eq!(settings, Some(expected));
}

#[test]
fn defaults() {
    let (settings, faults) = read(MINIMAL, &[]);
    assert_eq!(faults, [""; 0]);
    let settings = settings.unwrap();
    assert_eq!(settings.vpp, Some("/var/run/vpp/vpp-api.sock".into()));
    assert_eq!(settings.loss_grace, Duration::from_secs(5));
    assert_eq!(settings.audit, Some(Duration::from_secs(300)));
    assert_eq!(settings.health, Some("[::]:9090".parse().unwrap()));
    assert_eq!(settings.metrics, None);
    assert_eq!(settings.stats, Some("/var/run/vpp/stats.sock".into()));
    assert_eq!(settings.mode, Mode::DualStack);
}

#[test]
fn unknown_keys_name_the_nearest_known_one_with_file_and_line() {
    let text = "nod: a\nvpp:\n  sockt: /x\n  loss-grace: fast\nsocket: /y\nbgp: classic\napi: [1]\nfeatures: {x: 1}\n";
    let (settings, faults) = read(text, &[]);
    assert_eq!(settings, None);
    assert_eq!(
        faults,
        [
            "agent.yaml:1: nod: unknown field; did you mean \"node\"?",
            "agent.yaml:3: vpp.sockt: unknown field; did you mean \"socket\"?",
            "agent.yaml:4: vpp.loss-grace: must be a time such as 5s, 1m30s or 250ms, not \"fast\"",
            "agent.yaml:5: socket: unknown field; did you mean \"vpp.socket\"?",
            "agent.yaml:6: bgp: must be a map, not a single value",
            "agent.yaml:7: api: must be a single value, not a list",
            "agent.yaml:8: features.x: unknown field",
        ]
    );
}

#[test]
fn what_is_missing_says_how_to_give_it() {
    let (settings, faults) = read("", &[("NODENAME", "a")]);
    assert_eq!(settings, None);
    assert_eq!(
        faults,
        ["datastore is required: set it in the configuration file, or set PEREGRINE_DATASTORE"]
    );
}

#[test]
fn variables_win_over_the_file() {
    let variables = [
        ("NODENAME", "node-b"),
        ("PEREGRINE_VPP_SOCKET", "none"),
        ("CALICOVPP_LOG_LEVEL", "warning"),
        ("CALICOVPP_BGP_SERVER_MODE", "v6Only"),
        ("CALICO_ROUTER_ID", "hash"),
        ("CALICOVPP_INITIAL_CONFIG", r#"{"healthCheckPort": 9999, "corePattern": "x"}"#),
        ("CALICOVPP_FEATURE_GATES", r#"{"memifEnabled": true, "srv6Enabled": false}"#),
        ("CALICOVPP_INTERFACES", "{}"),
        ("PEREGRINE_HEALTH", ""),
        ("PATH", "/bin"),
    ];
    let (settings, faults) = read(MINIMAL, &variables);
    assert_eq!(faults, [""; 0]);
    let settings = settings.unwrap();
    assert_eq!(settings.node, "node-b");
    assert_eq!(settings.vpp, None);
    assert_eq!(settings.mode, Mode::V6Only);
    assert_eq!(settings.router_id, RouterIdChoice::Hash);
    assert_eq!(settings.health, Some("[::]:9999".parse().unwrap()));
    assert_eq!(settings.log.level, LogLevel::parse("warn").unwrap());
}

#[test]
fn metrics_are_switched_on_as_the_older_agent_does() {
    const GATE: &str = "CALICOVPP_FEATURE_GATES";
    const INITIAL: &str = "CALICOVPP_INITIAL_CONFIG";
    let metrics = |variables: &[(&str, &str)]| {
        let (settings, faults) = read(MINIMAL, variables);
        assert_eq!(faults, [""; 0]);
        settings.unwrap().metrics
    };
    let endpoint = (INITIAL, r#"{"prometheusListenEndpoint": ":8889"}"#);
    assert_eq!(metrics(&[endpoint]), None);
    assert_eq!(metrics(&[(GATE, r#"{"prometheusEnabled": false}"#), endpoint]), None);
    let on = (GATE, r#"{"prometheusEnabled": true}"#);
    assert_eq!(metrics(&[on]), Some("[::]:8888".parse().unwrap()));
    assert_eq!(metrics(&[on, endpoint]), Some("[::]:8889".parse().unwrap()));
    assert_eq!(metrics(&[on, endpoint, ("PEREGRINE_METRICS", "none")]), None);
}

#[test]
fn ipsec_is_read_from_the_variables_of_the_older_agent() {
    let variables = [
        ("CALICOVPP_FEATURE_GATES", r#"{"ipsecEnabled": true}"#),
        ("CALICOVPP_IPSEC", r#"{"crossIPSecTunnels": true, "nbAsyncCryptoThreads": 1, "extraAddresses": 4}"#),
        ("CALICOVPP_IPSEC_IKEV2_PSK", " key "),
        ("SERVICE_PREFIX", "10.96.0.0/12,"),
    ];
    let (settings, faults) = read(MINIMAL, &variables);
    assert_eq!(faults, [""; 0]);
    let settings = settings.unwrap();
    let ipsec = settings.ipsec.clone().unwrap();
    assert_eq!((ipsec.cross_tunnels, ipsec.async_threads, ipsec.extra_addresses), (true, 1, 4));
    assert_eq!(ipsec.psk, Psk::new(b" key ".to_vec()), "the nodes must agree on every octet");
    assert_eq!(settings.service_prefixes.len(), 1);
    assert!(!format!("{settings:?}").contains("key "), "a key is shown nowhere");
    let (settings, faults) = read(MINIMAL, &[variables[0], ("CALICOVPP_IPSEC_IKEV2_PSK", "")]);
    assert_eq!((settings.unwrap().ipsec, faults.len()), (Some(IpsecConfig::default()), 0));
    assert_eq!(read(MINIMAL, &[variables[2]]).0.unwrap().ipsec, None, "it is off");
}

#[test]
fn a_key_that_is_no_text_is_not_shown() {
    use std::os::unix::ffi::OsStringExt;
    let (mut draft, mut faults) = (Draft::default(), Vec::new());
    let bytes = OsString::from_vec(b"swordfish\xff".to_vec());
    read_variables([("CALICOVPP_IPSEC_IKEV2_PSK".into(), bytes)], &mut draft, &mut faults);
    assert_eq!(faults.len(), 1);
    assert!(!faults[0].to_string().contains("swordfish"), "{}", faults[0]);
}

#[test]
fn our_own_variable_wins_over_the_older_name() {
    let variables = [("CALICOVPP_LOG_LEVEL", "trace"), ("PEREGRINE_LOG_LEVEL", "error")];
    for variables in [variables, [variables[1], variables[0]]] {
        assert_eq!(read(MINIMAL, &variables).0.unwrap().log.level, LogLevel::parse("error").unwrap());
    }
}

#[test]
fn unknown_variables_are_warnings() {
    let variables = [("PEREGRINE_VPP_SOKET", "x"), ("CALICOVPP_NEW_THING", "x"), ("PEREGRINE_Q", "x")];
    let (settings, faults) = read(MINIMAL, &variables);
    assert!(settings.is_some());
    assert_eq!(
        faults,
        [
            "environment variable CALICOVPP_NEW_THING: is not used by this release",
            "environment variable PEREGRINE_Q is unknown",
            "environment variable PEREGRINE_VPP_SOKET is unknown; did you mean PEREGRINE_VPP_SOCKET?",
        ]
    );
    let (settings, faults) = read(MINIMAL, &[("CALICOVPP_FEATURE_GATES", "[")]);
    assert_eq!(settings, None);
    assert_eq!(faults, ["environment variable CALICOVPP_FEATURE_GATES: must be a JSON object, not \"[\""]);
}

#[test]
fn what_kubernetes_adds_for_services_is_no_mistake() {
    let links = [
        ("PEREGRINE_SERVICE_HOST", "10.96.7.7"),
        ("PEREGRINE_SERVICE_PORT", "9090"),
        ("PEREGRINE_SERVICE_PORT_HEALTH", "9090"),
        ("PEREGRINE_PORT", "tcp://10.96.7.7:9090"),
        ("PEREGRINE_PORT_9090_TCP", "tcp://10.96.7.7:9090"),
        ("PEREGRINE_PORT_9090_TCP_PROTO", "tcp"),
        ("PEREGRINE_PORT_9090_TCP_PORT", "9090"),
        ("PEREGRINE_PORT_9090_TCP_ADDR", "10.96.7.7"),
        ("PEREGRINE_HEALTH_PORT_53_UDP_ADDR", "10.96.7.7"),
    ];
    let (settings, faults) = read(MINIMAL, &links);
    assert!(settings.is_some());
    assert_eq!(faults, [""; 0]);
    for near_miss in [("PEREGRINE_PORT", "9090"), ("PEREGRINE_PORT_X_TCP", "x")] {
        assert_eq!(read(MINIMAL, &[near_miss]).1.len(), 1, "{near_miss:?}");
    }
}

#[test]
fn variables_may_be_no_text() {
    use std::os::unix::ffi::OsStringExt;
    let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let (mut draft, mut faults) = (Draft::default(), Vec::new());
    let foreign = [(bytes(b"LESS\xff"), bytes(b"x")), (bytes(b"LESSOPEN"), bytes(b"\xff"))];
    read_variables(foreign, &mut draft, &mut faults);
    assert_eq!(faults, []);
    read_variables([(bytes(b"NODENAME"), bytes(b"n\xff"))], &mut draft, &mut faults);
    assert_eq!(faults.len(), 1);
    assert_eq!(
        faults[0].to_string(),
        "environment variable NODENAME: must be text in UTF-8, not \"n\u{fffd}\""
    );
    assert!(!faults[0].is_warning());
}

#[test]
fn what_this_release_cannot_do_is_refused_in_words() {
    let cases = [
        (
            "datastore: kubernetes",
            "datastore: is not supported by this release; use directory:PATH, a folder of manifests",
        ),
        (
            "bgp: {require-policy: true}",
            "bgp.require-policy: is not supported by this release; leave it false",
        ),
        ("features: {srv6: perhaps}", "features.srv6: must be true or false, not \"perhaps\""),
        (
            "srv6: {localsid-pool: 10.0.0.0/8}",
            "srv6.localsid-pool: must be an IPv6 prefix such as fd00:a::/64, not \"10.0.0.0/8\"",
        ),
        (
            "srv6: {bsid-dt4: fd00::1/64}",
            "srv6.bsid-dt4: must be an IPv6 address such as fd00:a::1:4, not \"fd00::1/64\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text, &[]).1, [format!("agent.yaml:1: {expected}")]);
    }
}

#[test]
fn no_yaml_and_no_file() {
    let (_, faults) = read("a: [\n", &[]);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("agent.yaml:"), "{faults:?}");
    let loaded = load(Some(Path::new("/nonexistent/agent.yaml")), []);
    assert_eq!(
        loaded.faults[0].to_string(),
        "/nonexistent/agent.yaml: No such file or directory (os error 2)"
    );
}

#[test]
fn every_row_is_complete_and_unique() {
    let mut keys: Vec<_> = ROWS.iter().map(|row| row.key).collect();
    let mut variables: Vec<_> = ROWS.iter().flat_map(|row| row.variables.iter().copied()).collect();
    let (keys_before, variables_before) = (keys.len(), variables.len());
    keys.sort_unstable();
    keys.dedup();
    variables.sort_unstable();
    variables.dedup();
    assert_eq!((keys.len(), variables.len()), (keys_before, variables_before));
    for row in ROWS {
        assert!(!row.variables.is_empty() && !row.help.is_empty(), "{}", row.key);
        let derived = format!("PEREGRINE_{}", row.key.to_uppercase().replace(['.', '-'], "_"));
        let known = ["NODENAME", "NAMESPACE"].contains(&row.variables[0]) || row.variables[0] == derived;
        assert!(known, "{}", row.key);
        assert!(help().contains(row.key));
    }
}

const SRV6: &str = r#"
features: { srv6: true }
srv6:
  localsid-pool: fd00:a::/64
  policy-pool: fd00:b::/64
  localsid-dt4: fd00:a::1:4
  localsid-dt6: fd00:a::1:6
  bsid-dt4: fd00:b::1:4
  bsid-dt6: fd00:b::1:6
"#;

#[test]
fn srv6_is_whole_or_off() {
    let (settings, faults) = read(&format!("{MINIMAL}{SRV6}"), &[]);
    assert_eq!(faults, [""; 0]);
    let srv6 = settings.unwrap().srv6.unwrap();
    assert_eq!(srv6.localsid_pool, "fd00:a::/64".parse().unwrap());
    assert_eq!(srv6.sids.unwrap().dt6.bsid, "fd00:b::1:6".parse::<std::net::Ipv6Addr>().unwrap());
    // Off, whatever else is said.
    let off = SRV6.replace("srv6: true", "srv6: false");
    let (settings, faults) = read(&format!("{MINIMAL}{off}"), &[]);
    let settings = settings.unwrap();
    assert_eq!((faults, settings.srv6), (vec![], None));
    let (localsids, policies) = ("fd00:a::/64".parse().unwrap(), "fd00:b::/64".parse().unwrap());
    assert_eq!(settings.former_sids, Some(Srv6Pools { localsids, policies }));
    // Something missing, outside its pool, twice the same.
    for (from, to, reason) in [
        (
            "  bsid-dt6: fd00:b::1:6\n",
            "",
            "srv6.bsid-dt6 is required: set it in the configuration file, or set PEREGRINE_SRV6_BSID_DT6",
        ),
        (
            "bsid-dt4: fd00:b::1:4",
            "bsid-dt4: fd00:c::4",
            "srv6.bsid-dt4: fd00:c::4 is not in its pool fd00:b::/64",
        ),
        (
            "localsid-dt6: fd00:a::1:6",
            "localsid-dt6: fd00:a::1:4",
            "srv6.localsid-dt6: fd00:a::1:4 is srv6.localsid-dt4 already",
        ),
        (
            "policy-pool: fd00:b::/64",
            "policy-pool: fd00::/16",
            "srv6.policy-pool: fd00::/16 and srv6.localsid-pool fd00:a::/64 overlap",
        ),
    ] {
        let (settings, faults) = read(&format!("{MINIMAL}{}", SRV6.replace(from, to)), &[]);
        assert!(settings.is_none());
        assert_eq!(faults, [reason]);
    }
}

#[test]
fn the_go_agents_settings_of_srv6_are_read() {
    let text = SRV6.replace("features: { srv6: true }", "").replace("  localsid-pool: fd00:a::/64\n", "");
    let text = format!("{MINIMAL}{}", text.replace("  policy-pool: fd00:b::/64\n", ""));
    let gate = ("CALICOVPP_FEATURE_GATES", r#"{"srv6Enabled": true}"#);
    let pools = r#"{"localsidPool": "fd00:a::/64", "policyPool": "fd00:b::/64"}"#;
    let (settings, faults) = read(&text, &[gate, ("CALICOVPP_SRV6", pools)]);
    assert_eq!(faults, [""; 0]);
    assert_eq!(settings.unwrap().srv6.unwrap().policy_pool, "fd00:b::/64".parse().unwrap());
    // What ended that agent is said here.
    let bad = r#"{"localsidPool": "fd00:a::/640", "policyPool": ""}"#;
    let (settings, faults) = read(&text, &[gate, ("CALICOVPP_SRV6", bad)]);
    assert!(settings.is_none());
    assert_eq!(
        faults,
        [
            "environment variable CALICOVPP_SRV6: must be an IPv6 prefix such as fd00:a::/64, not \"fd00:a::/640\""
        ]
    );
}
