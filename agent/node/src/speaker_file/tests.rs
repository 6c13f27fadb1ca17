use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use bgp_core::command::{Aggregate, Chain, LocalAsn, NextHopMode, RemovePrivateAs};
use bgp_core::limit::{LimitAction, PrefixLimit};
use bgp_core::outbox::Outbox;
use bgp_core::peer_key::InstanceName;
use bgp_core::policy::{Act, Condition, Default as Otherwise, Flow, Match, Members, StatementDef};
use bgp_core::session::{
    AddPath, GracefulRestart, HoldTime, LongLived, PeerRole, RemoteAsn, RestartTime, StaleTime,
};
use bgp_core::speaker::{Speaker, SpeakerSettings};
use bgp_core::time::Instant;
use bgp_wire::{Family, FamilySet, Role};

use super::*;

const HEAD: &str = "asn: 65000\nrouter-id: 192.0.2.1\n";

fn parse(rest: &str) -> SpeakerFile {
    SpeakerFile::parse(&format!("{HEAD}{rest}")).unwrap()
}

fn flaws(rest: &str) -> Vec<String> {
    let flaws = SpeakerFile::parse(&format!("{HEAD}{rest}")).unwrap_err();
    flaws.iter().map(ToString::to_string).collect()
}

const WHOLE: &str = r#"
listen: ["192.0.2.1:179", "[2001:db8::1]:179"]
require-policy: true
enforce-first-as: true
cluster-id: 192.0.2.9
multipath: 8
multipath-relax: true
always-compare-med: true
missing-med-worst: true
compare-router-id: false
ignore-as-path-length: true
api: /run/peregrine.sock
neighbors:
  - address: 192.0.2.2
    asn: 65010
    port: 1790
    passive: false
    local-address: 192.0.2.1
    local-asn: { asn: 65100, no-prepend: true, replace-as: true }
    families: [ipv4-unicast, ipv6-unicast]
    extended-messages: false
    extended-next-hop: true
    add-path: { receive: true, send: 4 }
    role: customer
    role-strict: true
    hold-time: 30
    connect-retry: 7
    local-port: 1179
    device: eth0
    multihop: 64
    ttl-security: 2
    enforce-first-as: false
    as-override: true
    remove-private-as: { remove: all, replace: true }
    next-hop: self
    next-hop-ipv4: 192.0.2.1
    next-hop-ipv6: "2001:db8::1"
    allow-own-as: 2
    delay-open: 5
    max-prefixes-out: { ipv4-unicast: 500 }
    max-prefixes: { ipv4-unicast: { limit: 1000000, action: reset, restart: 300 }, ipv6-unicast: { limit: 0, action: warn } }
    import: POLICY
    export: accept
  - { address: "2001:db8::2", asn: internal, ttl-security: 0, route-reflector-client: true }
  - { prefix: 198.51.100.0/24, asn: external, limit: 5, import: accept, export: accept }
originate:
  - { prefix: 203.0.113.0/24, next-hop: self, communities: ["65000:1", "65000:1:2"], med: 10 }
aggregate:
  - { prefix: 203.0.112.0/23, summary-only: true, communities: ["65000:1", "65000:1:2"] }
  - { prefix: "2001:db8::/32" }
sets:
  prefixes: { own: ["203.0.113.0/24 le 32"] }
  communities: { mark: ["65000:1", "65000:2"] }
policies:
  POLICY:
    statements:
      - { if: { prefixes: own, not: { community: mark } }, set: { local-pref: 200, prepend: { asn: 65000, count: 2 } }, then: accept }
      - { if: { community: mark }, then: reject }
    default: reject
"#;

#[test]
fn the_whole_file() {
    let file = parse(WHOLE);
    assert_eq!(file.listen, ["192.0.2.1:179".parse().unwrap(), "[2001:db8::1]:179".parse().unwrap()]);
    assert_eq!(file.refused, []);
    let key: PeerKey = "192.0.2.2:1790".parse().unwrap();
    let mut expected = PeerConfig::new(RemoteAsn::Is(Asn(65010)));
    expected.local_address = Some("192.0.2.1".parse().unwrap());
    expected.local_asn = Some(LocalAsn::new(Asn(65100)));
    expected.families = FamilySet::UNICAST;
    expected.extended_messages = false;
    expected.extended_next_hop = true;
    expected.role = Some(PeerRole { role: Role::Customer, strict: true });
    expected.add_path = AddPath { receive: true, send: NonZeroU8::new(4) };
    expected.hold_time = HoldTime::new(30).unwrap();
    expected.connect_retry = Duration::from_secs(7);
    expected.local_port = NonZeroU16::new(1179);
    expected.device = Some("eth0".parse().unwrap());
    expected.multihop_ttl = Some(64);
    expected.ttl_security = NonZeroU8::new(2);
    expected.next_hop = NextHopMode::SelfAddress;
    expected.next_hop_v4 = "192.0.2.1".parse().ok();
    expected.next_hop_v6 = "2001:db8::1".parse().ok();
    expected.delay_open = Duration::from_secs(5);
    expected.max_prefixes_out = BTreeMap::from([(Family::Ipv4Unicast, 500)]);
    let action = LimitAction::Reset { restart: Some(Duration::from_secs(300)) };
    expected.max_prefixes = BTreeMap::from([
        (Family::Ipv4Unicast, PrefixLimit { limit: 1_000_000, action }),
        (Family::Ipv6Unicast, PrefixLimit { limit: 0, action: LimitAction::Warn }),
    ]);
    expected.import = Chain::named("POLICY");
    expected.allow_own_as = 2;
    expected.as_override = true;
    expected.remove_private_as = Some(RemovePrivateAs { all: true, replace: true });
    assert_eq!(file.peers[&key], expected);
    assert_eq!(file.cluster_id, Some("192.0.2.9".parse().unwrap()));

    let range = &file.ranges[&"198.51.100.0/24".parse().unwrap()];
    let usual = PeerConfig { enforce_first_as: true, ..PeerConfig::new(RemoteAsn::External) };
    let config = PeerConfig { passive: true, ..usual };
    assert_eq!(*range, PeerRange { config, limit: 5 });

    let inner = &file.peers[&"2001:db8::2".parse().unwrap()];
    assert_eq!(inner.ttl_security, None);
    assert!(inner.route_reflector_client);
    assert_eq!((&inner.import, &inner.export), (&Chain::ACCEPT, &Chain::ACCEPT));
    assert_eq!(inner.families, FamilySet::only(Family::Ipv4Unicast));

    let route = &file.originations[&"203.0.113.0/24".parse().unwrap()];
    assert_eq!(route.communities, [65000 << 16 | 1]);
    assert_eq!(route.large_communities, [(65000, 1, 2)]);
    assert_eq!((route.med, route.next_hop), (Some(10), None));

    let aggregate = &file.aggregates[&"203.0.112.0/23".parse().unwrap()];
    let expected = Aggregate {
        summary_only: true,
        communities: vec![65000 << 16 | 1],
        large_communities: vec![(65000, 1, 2)],
    };
    assert_eq!(*aggregate, expected);
    assert_eq!(file.aggregates[&"2001:db8::/32".parse().unwrap()], Aggregate::default());

    let mark = || {
        let marks = ["65000:1", "65000:2"].map(|text| text.parse().unwrap());
        Condition::Communities(Match::Any, Members::These(marks.to_vec()))
    };
    let policy = PolicyDef {
        statements: vec![
            StatementDef::new(
                vec![Condition::PrefixSet("own".into()), Condition::Not(Box::new(mark()))],
                vec![Act::SetLocalPref(200), Act::Prepend(Asn(65000), 2)],
                Flow::Accept,
            ),
            StatementDef::new(vec![mark()], vec![], Flow::Reject),
        ],
        default: Otherwise::Reject,
    };
    assert_eq!(file.policies[&"POLICY".into()], policy);
}

#[test]
fn prefix_limits_say_what_they_lack() {
    let said = |limits: &str| -> Vec<String> {
        let max = format!("max-prefixes: {{ {limits} }}");
        let file = parse(&format!("neighbors: [{{ address: 192.0.2.2, asn: 65010, {max} }}]\n"));
        file.refused.iter().flat_map(|refused| &refused.flaws).map(ToString::to_string).collect()
    };
    for (limits, field, words) in [
        ("ipv4-unicast: { limit: 5 }", "max-prefixes.ipv4-unicast.action", "is required"),
        ("ipv4-unicast: { action: warn }", "max-prefixes.ipv4-unicast.limit", "is required"),
        ("ipv4-unicast: { limit: -1, action: warn }", "limit", "a number of prefixes"),
        ("ipv4-unicast: { limit: 4294967296, action: warn }", "limit", "a number of prefixes"),
        ("ipv4-unicast: { limit: 5, action: stop }", "action", "discard"),
        ("ipv4-unicast: { limit: 5, action: warn, restart: 9 }", "restart", "for action: reset"),
        ("ipv4-unicast: { limit: 5, action: reset, restart: 0 }", "restart", "1 or more"),
        ("ipv4-unicast: { limit: 5, action: reset, after: 9 }", "after", "unknown field"),
        ("ipv4-unicats: { limit: 5, action: warn }", "ipv4-unicats", "did you mean \"ipv4-unicast\""),
    ] {
        let flaws = said(limits);
        assert!(
            flaws.len() == 1 && flaws[0].contains(field) && flaws[0].contains(words),
            "{limits}: {flaws:?}"
        );
    }
    let action = LimitAction::Reset { restart: None };
    let rest = "max-prefixes: { ipv6-unicast: { limit: 5, action: reset } }";
    let file = parse(&format!("neighbors: [{{ prefix: 192.0.2.0/24, asn: 65010, {rest} }}]\n"));
    let range = &file.ranges[&"192.0.2.0/24".parse().unwrap()];
    assert_eq!(range.config.max_prefixes[&Family::Ipv6Unicast], PrefixLimit { limit: 5, action });
}

#[test]
fn graceful_restart_is_for_every_neighbour() {
    let rest = "neighbors: [{ address: 192.0.2.2, asn: 65010 }]\n";
    let of = |keys: &str| {
        let file = parse(&format!("{keys}{rest}"));
        file.peers[&"192.0.2.2".parse().unwrap()].graceful_restart
    };
    assert_eq!(of(""), None);
    assert_eq!(of("graceful-restart: {}\n"), Some(GracefulRestart::USUAL));
    let kept = GracefulRestart {
        restart_time: RestartTime::new(60).unwrap(),
        forwarding: FamilySet::ALL,
        ..GracefulRestart::USUAL
    };
    let keys =
        "graceful-restart: { restart-time: 60, forwarding-preserved: true, long-lived-stale-time: 0 }\n";
    assert_eq!(of(keys), Some(kept));
    let long_lived = |families, secs| GracefulRestart {
        long_lived: LongLived::of(families, StaleTime::new(secs).unwrap()),
        ..GracefulRestart::USUAL
    };
    let everywhere = "graceful-restart: { long-lived-stale-time: 3600 }\n";
    assert_eq!(of(everywhere), Some(long_lived(FamilySet::ALL, 3600)));
    let one = "graceful-restart: { restart-time: 0, long-lived-stale-time: { ipv6-unicast: 16777215 } }\n";
    let v6 = FamilySet::only(Family::Ipv6Unicast);
    let expected = GracefulRestart { restart_time: RestartTime::ZERO, ..long_lived(v6, 16_777_215) };
    assert_eq!(of(one), Some(expected));
    for (wrong, field) in [
        ("restart-time: 4096", "restart-time"),
        ("restart-time: 0", "restart-time: 0 keeps nothing without a long-lived-stale-time"),
        ("long-lived-stale-time: 16777216", "long-lived-stale-time"),
        ("long-lived-stale-time: { ipv4-unicats: 5 }", "ipv4-unicast"),
    ] {
        let flaws = flaws(&format!("graceful-restart: {{ {wrong} }}\n{rest}"));
        assert!(flaws.len() == 1 && flaws[0].contains(field), "{flaws:?}");
    }
}

#[test]
fn without_a_policy_external_neighbours_exchange_nothing_unless_told_so() {
    let neighbors = "neighbors: [{ address: 192.0.2.2, asn: 65010 }, { address: 192.0.2.3, asn: 65000 }]\n";
    let policies = |file: &SpeakerFile| -> Vec<Chain> {
        file.peers.values().flat_map(|peer| [peer.import.clone(), peer.export.clone()]).collect()
    };
    let (accept, reject) = (Chain::ACCEPT, Chain::REJECT);
    assert_eq!(policies(&parse(neighbors)), [reject.clone(), reject, accept.clone(), accept.clone()]);
    let open = parse(&format!("require-policy: false\n{neighbors}"));
    assert_eq!(policies(&open), vec![accept; 4]);
    // Policies of the speaker are none of its own: it stays closed.
    let global = "policies: { open: { default: accept } }\nimport: open\nexport: open\n";
    assert!(policies(&parse(&format!("{global}{neighbors}")))[..2].iter().all(Chain::is_closed));
    // Which is said, as nobody would look for it.
    let file = parse(neighbors);
    assert_eq!(file.doubtful.len(), 1);
    assert_eq!(
        file.doubtful[0].flaws[0].to_string(),
        "line 3: neighbors[0]: nothing is accepted from it or announced to it: an external neighbour needs import and \
         export (require-policy, RFC 8212)"
    );
    assert_eq!(open.doubtful, []);
}

#[test]
fn mistakes_about_the_whole_are_all_named() {
    let found = flaws(
        "lsten: []\nmultipath: 0\nenforce-first-as: perhaps\noriginate: [{prefix: 203.0.113.1/24}]\n\
         policies: {p: {statements: [{if: {prefixes: owm}, then: drop}], default: reject}}\n\
         sets: {prefixes: {own: [10.0.0.0/8 le 40, 10.0.0.0/8 ge 24 le 16, 10/8]}, as-paths: {a: ['_1(']}}\n",
    );
    assert_eq!(
        found,
        [
            "line 3: lsten: unknown field; did you mean \"listen\"?",
            "line 4: multipath: must be a number of paths, 1 to 255, not \"0\"",
            "line 5: enforce-first-as: must be true or false, not \"perhaps\"",
            "line 6: originate[0].prefix: must be a prefix such as 203.0.113.0/24 without host bits, not \"203.0.113.1/24\"",
            "line 7: policies.p.statements[0].if.prefixes: there is no \"owm\"; did you mean \"own\"?",
            "line 7: policies.p.statements[0].then: must be accept, reject or next, not \"drop\"",
            "line 8: sets.prefixes.own[0]: 10.0.0.0/8: lengths from 8 to 40 are wanted, and what is inside has lengths from 8 \
             to 32",
            "line 8: sets.prefixes.own[1]: 10.0.0.0/8: no length is from 24 to 16; exchange the two",
            "line 8: sets.prefixes.own[2]: must be a prefix with bounds of lengths if need be, such as 10.0.0.0/8 or \
             10.0.0.0/8 ge 16 le 24, not \"10/8\"",
            "line 8: sets.as-paths.a[0]: not a pattern of AS paths: \"_1(\": unclosed group",
        ]
    );
    let nothing: Vec<_> = SpeakerFile::parse("").unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(nothing, ["line 1: asn: is required"]);
    let syntax = SpeakerFile::parse("asn: [").unwrap_err();
    assert_eq!(syntax.len(), 1);
}

#[test]
fn routes_of_vpns() {
    let file = parse(
        "neighbors: [{ address: 192.0.2.2, asn: 65010, families: [ipv4-vpn, ipv6-vpn] }]\noriginate:\n\
         - { prefix: 10.0.0.0/8, rd: 65000:100, label: 16, communities: [rt:65000:100, soo:192.0.2.1:7, \"65000:1\"] }\n\
         - { prefix: 10.0.0.0/8, rd: 192.0.2.1:7, label: 1048575, next-hop: 198.51.100.1 }\n\
         - { prefix: 10.0.0.0/8 }\n- { prefix: \"3::/48\", rd: \"1:2\", label: 0 }\n",
    );
    let families: FamilySet = [Family::Ipv4Vpn, Family::Ipv6Vpn].into_iter().collect();
    assert_eq!(file.peers[&"192.0.2.2".parse().unwrap()].families, families);
    let keys: Vec<String> = file.originations.keys().map(ToString::to_string).collect();
    assert_eq!(keys, ["10.0.0.0/8", "65000:100:10.0.0.0/8", "192.0.2.1:7:10.0.0.0/8", "1:2:3::/48"]);
    let own = &file.originations[&"65000:100:10.0.0.0/8".parse().unwrap()];
    let targets: Vec<String> = own.ext_communities.iter().map(ToString::to_string).collect();
    assert_eq!((own.label, own.communities.len()), (Label::new(16), 1));
    assert_eq!(targets, ["rt:65000:100", "soo:192.0.2.1:7"]);
    for (own, flaw) in [
        ("rd: 65000:100", "line 3: originate[0].label: is required"),
        ("label: 5", "line 3: originate[0].label: only a prefix of a VPN, with an rd, has a label"),
        (
            "rd: 65000:100, label: 1048576",
            "line 3: originate[0].label: must be a label, 0 to 1048575, not \"1048576\"",
        ),
        (
            "rd: 65000, label: 5",
            "line 3: originate[0].rd: must be a route distinguisher such as 65000:100, 192.0.2.1:100 or 4200000000:100, \
             not \"65000\"",
        ),
    ] {
        assert_eq!(flaws(&format!("originate: [{{ prefix: 10.0.0.0/8, {own} }}]\n")), [flaw]);
    }
}

#[test]
fn a_bad_neighbour_does_not_stop_the_others() {
    let file = parse(
        "neighbors:\n- { address: 192.0.2.2, asn: 65010 }\n- { address: 192.0.2.300, asn: 65010 }\n\
         - { address: 192.0.2.4 }\n- { address: 192.0.2.5, asn: 65010, md5-password-file: /nowhere/key, import: NONE, hold-tme: 9 }\n\
         - { address: 192.0.2.2, asn: 65011 }\n- { address: 192.0.2.6, asn: 65010, hold-time: 2, families: [ipv4-flowspec] }\n",
    );
    assert_eq!(file.peers.len(), 1);
    let refused: Vec<(&str, Vec<String>)> = file
        .refused
        .iter()
        .map(|refused| (&*refused.address, refused.flaws.iter().map(ToString::to_string).collect()))
        .collect();
    let expected: [(&str, &[&str]); 5] = [
        (
            "192.0.2.300",
            &[
                "line 5: neighbors[1].address: must be an address such as 192.0.2.2, or fe80::1%2 with the index of an \
             interface, not \"192.0.2.300\"",
            ],
        ),
        ("192.0.2.4", &["line 6: neighbors[2].asn: is required"]),
        (
            "192.0.2.5",
            &[
                "line 7: neighbors[3].md5-password-file: \"/nowhere/key\": No such file or directory (os error 2)",
                "line 7: neighbors[3].import: there is no \"NONE\"",
                "line 7: neighbors[3].hold-tme: unknown field; did you mean \"hold-time\"?",
            ],
        ),
        ("192.0.2.2", &["line 8: neighbors[4]: another neighbour has this address and port (line 4)"]),
        (
            "192.0.2.6",
            &[
                "line 9: neighbors[5].families[0]: must be a family: ipv4-unicast, ipv6-unicast, ipv4-vpn, ipv6-vpn, ipv4-srpolicy or ipv6-srpolicy, not \"ipv4-flowspec\"",
                "line 9: neighbors[5].hold-time: must be seconds: 0, or 3 to 65535, not \"2\"",
            ],
        ),
    ];
    for ((address, flaws), (expected_address, expected_flaws)) in refused.iter().zip(expected) {
        assert_eq!(*address, expected_address);
        assert_eq!(flaws, expected_flaws);
    }
    assert_eq!(refused.len(), expected.len());
}

#[test]
fn commands_say_only_what_changed_in_an_order_that_works() {
    let old = parse(WHOLE);
    let all = old.commands_since(None);
    let kinds: Vec<_> =
        all.iter().map(|command| format!("{command:?}").split('(').next().unwrap().to_owned()).collect();
    assert_eq!(
        kinds,
        [
            "PutClusterId",
            "PutDecision",
            "PutSet",
            "PutPolicy",
            "PutOrigination",
            "PutAggregate",
            "PutAggregate",
            "PutPeer",
            "PutPeer",
            "PutPeerRange"
        ]
    );
    assert_eq!(old.commands_since(Some(&old)), []);

    let mut new = old.clone();
    let (gone, kept) = (*new.peers.keys().next().unwrap(), *new.peers.keys().last().unwrap());
    new.peers.remove(&gone);
    let peer = new.peers.get_mut(&kept).unwrap();
    peer.passive = true;
    let peer = peer.clone();
    new.ranges.clear();
    new.policies.clear();
    new.prefix_sets.clear();
    new.router_id = RouterId(7);
    new.decision.multipath_relax = false;
    let ipv6 = "2001:db8::/32".parse().unwrap();
    new.aggregates.remove(&ipv6);
    assert_eq!(
        new.commands_since(Some(&old)),
        [
            Command::DeletePeer(gone),
            Command::DeletePeerRange("198.51.100.0/24".parse().unwrap()),
            Command::PutIdentity { asn: Asn(65000), router_id: RouterId(7) },
            Command::PutDecision(new.decision),
            Command::PutPeer(kept, peer),
            Command::DeleteAggregate(ipv6),
            Command::DeletePolicy("POLICY".into()),
            Command::DeleteSet(SetKind::Prefixes, "own".into()),
        ]
    );
}

/// A speaker in AS 65000 with this file, and the file.
fn told(rest: &str) -> (Speaker, SpeakerFile) {
    let file = parse(rest);
    let settings = SpeakerSettings::new(InstanceName::new("test"), file.asn, file.router_id, 0);
    let mut speaker = Speaker::new(settings);
    for command in file.commands_since(None) {
        speaker.command(Instant::ZERO, command, &mut Outbox::new()).unwrap();
    }
    (speaker, file)
}

#[test]
fn another_as_number_comes_with_neighbours_that_contradict_the_old_file() {
    let (kept, of_before) = ("192.0.2.2", "address: 192.0.2.2, asn: 65010, role: customer");
    for neighbors in [
        // Gone, beside one that comes.
        "[{ address: 192.0.2.3, asn: 65010 }]",
        // Changed.
        "[{ address: 192.0.2.2, asn: 65000, role: customer }, { address: 192.0.2.3, asn: 65010 }]",
        // With a mistake, so that it would stay as it was.
        "[{ address: 192.0.2.2, asn: 65010, role: customer }, { address: 192.0.2.3, asn: 65010 }]",
    ] {
        let (mut speaker, old) = told(&format!(
            "neighbors: [{{ {of_before} }}, {{ prefix: 198.51.100.0/24, asn: 65010, role: peer }}]\n"
        ));
        let text = format!("asn: 65010\nrouter-id: 192.0.2.1\nneighbors: {neighbors}\n");
        let mut new = SpeakerFile::parse(&text).unwrap();
        new.keep_from(&old);
        for command in new.commands_since(Some(&old)) {
            let shown = format!("{command:?}");
            let answer = speaker.command(Instant::ZERO, command, &mut Outbox::new());
            assert!(answer.is_ok(), "{neighbors}: {shown}: {answer:?}");
        }
        let keys: Vec<_> = new.peers.keys().map(|key| key.address.to_string()).collect();
        let stays = neighbors.contains("asn: 65000");
        assert_eq!(keys.contains(&kept.to_owned()), stays, "{keys:?}");
        assert!(new.refused.iter().all(|refused| refused.standing == Standing::Stopped));
        assert!(new.ranges.is_empty());
    }
}

#[test]
fn what_was_refused_is_asked_for_again() {
    let (old, new) = (parse(WHOLE), parse(""));
    let (first, rest) = {
        let mut commands = new.commands_since(Some(&old));
        (commands.remove(0), commands)
    };
    let file = new.clone().in_force(Some(old.clone()), rest);
    assert_eq!(new.commands_since(Some(&file)), [first]);
    // Nothing of it done, and all of it.
    let all = new.commands_since(Some(&old));
    let file = new.clone().in_force(Some(old.clone()), Vec::new());
    assert_eq!(new.commands_since(Some(&file)), all);
    assert_eq!(new.clone().in_force(Some(old), all), new);
    // A first file has nothing before it.
    let all = parse(WHOLE).commands_since(None);
    assert_eq!(parse(WHOLE).in_force(None, all), parse(WHOLE));
}

#[test]
fn passwords_come_from_files_and_are_never_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let neighbors = |path: &str| {
        format!("neighbors: [{{ address: 192.0.2.2, asn: 65010, md5-password-file: {path} }}]\n")
    };
    let key = file("key", b"correct horse\n");
    let read = parse(&neighbors(&key));
    let password = read.peers.values().next().unwrap().password.clone().unwrap();
    assert_eq!(password.expose(), b"correct horse");
    let shown = format!("{read:?} {:?}", read.commands_since(None));
    assert!(!shown.contains("horse") && shown.contains("(secret)"), "{shown}");
    // The same file with other content is another configuration.
    file("key", b"battery staple\n");
    let again = parse(&neighbors(&key));
    assert_eq!(again.commands_since(Some(&read)).len(), 1);

    let long = file("long", &[b'x'; 9000]);
    for (path, reason) in [
        (file("empty", b"\n"), "the password is empty"),
        (long, "the password has 4096 octets; at most 80 fit"),
        (dir.path().display().to_string(), "Is a directory (os error 21)"),
    ] {
        let refused = parse(&neighbors(&path)).refused;
        assert!(refused[0].flaws[0].to_string().ends_with(reason), "{refused:?}");
    }
}

#[test]
fn neighbours_that_contradict_one_another_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let key = |name: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, name).unwrap();
        path.display().to_string()
    };
    let (a, b) = (key("a"), key("b"));
    let rest = format!(
        "neighbors:\n\
         - {{ address: 192.0.2.2, asn: 65010, md5-password-file: {a} }}\n\
         - {{ address: 192.0.2.2, port: 1179, asn: 65010, md5-password-file: {b} }}\n\
         - {{ address: 192.0.2.2, port: 1180, asn: 65010, md5-password-file: {a} }}\n\
         - {{ prefix: 198.51.100.0/24, asn: external, md5-password-file: {a} }}\n\
         - {{ prefix: 198.51.100.0/24, asn: external }}\n\
         - {{ address: 198.51.100.1, asn: 65010 }}\n\
         - {{ address: 198.51.100.2, asn: 65010, md5-password-file: {b} }}\n\
         - {{ address: 203.0.113.1, asn: 65010 }}\n\
         - {{ prefix: 203.0.113.0/24, asn: external, md5-password-file: {a} }}\n\
         - {{ prefix: 10.0.0.1/24, asn: external }}\n\
         - {{ prefix: 10.0.0.0/24, asn: external, address: 10.0.0.1, passive: false, port: 1, local-port: 2, limit: 0 }}\n"
    );
    let file = parse(&rest);
    let refused: Vec<String> =
        file.refused.iter().flat_map(|refused| &refused.flaws).map(ToString::to_string).collect();
    assert_eq!(
        refused,
        [
            "line 5: neighbors[1]: another neighbour has this address and another md5-password-file (line 4)",
            "line 8: neighbors[4]: another neighbour has this prefix (line 7)",
            "line 9: neighbors[5]: without md5-password-file it contradicts a prefix that holds it and has one (line 7)",
            "line 12: neighbors[8]: its md5-password-file contradicts a neighbour of the prefix that has none (line 11)",
            "line 13: neighbors[9].prefix: must be a prefix such as 192.0.2.0/24 without host bits, not \"10.0.0.1/24\"",
            "line 14: neighbors[10].address: address and prefix exclude each other",
            "line 14: neighbors[10].port: port and prefix exclude each other: neighbours of a prefix connect to us",
            "line 14: neighbors[10].local-port: local-port and prefix exclude each other: neighbours of a prefix connect to us",
            "line 14: neighbors[10].passive: passive: false and prefix exclude each other: neighbours of a prefix connect to us",
            "line 14: neighbors[10].limit: must be a number of neighbours, 1 to 1000000, not \"0\"",
        ]
    );
    assert_eq!((file.peers.len(), file.ranges.len()), (4, 1));
}

#[test]
fn several_paths_and_roles() {
    let neighbor = |more: &str| format!("neighbors:\n  - {{ address: 192.0.2.2, asn: 65010, {more} }}\n");
    let refused = |rest: &str| -> Vec<String> {
        let refused = parse(rest).refused;
        refused.iter().flat_map(|refused| &refused.flaws).map(ToString::to_string).collect()
    };
    let key: PeerKey = "192.0.2.2".parse().unwrap();
    let config = |more: &str| parse(&neighbor(more)).peers[&key].clone();
    for (text, receive, send) in [
        ("add-path: { receive: true }", true, None),
        ("add-path: { send: 255 }", false, Some(255)),
        ("add-path: { receive: false, send: 0 }", false, None),
        ("add-path: {}", false, None),
        ("port: 179", false, None),
    ] {
        assert_eq!(config(text).add_path, AddPath { receive, send: send.and_then(NonZeroU8::new) }, "{text}");
    }
    for role in Role::ALL {
        assert_eq!(config(&format!("role: {role}")).role, Some(PeerRole::new(role)));
        assert_eq!(
            config(&format!("role: {role}, role-strict: true")).role,
            Some(PeerRole { role, strict: true })
        );
    }
    assert_eq!(config("role-strict: false").role, None);
    for (text, expected) in [
        ("add-path: { send: 256 }", "send: must be paths of a prefix, 1 to 255, or 0 for the best one only"),
        ("add-path: { recieve: true }", "receive"),
        (
            "role: transit",
            "role: must be what we are to the neighbour: provider, customer, peer, rs or rs-client",
        ),
        ("role-strict: true", "role-strict: true asks for a role"),
    ] {
        let found = refused(&neighbor(text));
        assert!(found.len() == 1 && found[0].contains(expected), "{text}: {found:?}");
    }
    let inside = refused("neighbors:\n  - { address: 192.0.2.2, asn: internal, role: peer }\n");
    assert!(inside[0].contains("role and asn exclude each other"), "{inside:?}");
}

/// The mistakes of neighbours, without where they are.
fn refused(file: &SpeakerFile) -> Vec<String> {
    let flaws = file.refused.iter().flat_map(|refused| &refused.flaws);
    flaws.map(|flaw| flaw.to_string().split_once(": ").unwrap().1.to_owned()).collect()
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_both_named() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    std::fs::write(&key, "key").unwrap();
    let cases = [
        (
            "address: 192.0.2.2, asn: 65010, local-address: '2001:db8::1'",
            "local-address 2001:db8::1 and the neighbour's address 192.0.2.2 are of different IP versions",
        ),
        (
            "address: 192.0.2.2, asn: 65010, passive: true, local-port: 1179",
            "local-port 1179 and passive contradict each other: a passive neighbour is never connected to",
        ),
        (
            "address: 192.0.2.2, asn: internal, multihop: 64",
            "multihop 64 and an internal neighbour contradict each other: it may be any number of hops away",
        ),
        (
            "address: 192.0.2.2, asn: 65000, multihop: 64",
            "multihop 64 and an internal neighbour contradict each other: it may be any number of hops away",
        ),
        (
            "address: 192.0.2.2, asn: 65010, families: [ipv6-unicast], extended-next-hop: true",
            "extended-next-hop and families contradict each other: none of them has IPv4 prefixes",
        ),
        (
            "address: 192.0.2.2, asn: 65010, hold-time: 30, keepalive: 31",
            "the keepalive time (31 s) exceeds the hold time (30 s)",
        ),
        (
            "address: 192.0.2.2, asn: 65010, hold-time: 0, keepalive: 30",
            "the keepalive time (30 s) and a hold time of 0 contradict each other: no keepalives are sent then",
        ),
        (
            "address: 'fe80::1', asn: 65010",
            "the link-local address fe80::1 and no interface contradict each other: give it a zone, or set device",
        ),
        ("address: 192.0.2.1, asn: 65010", "its address and port contradict listen: we are there ourselves"),
        (
            "address: 192.0.2.2, asn: 65010, limit: 5",
            "limit: limit and address exclude each other: an address is one neighbour",
        ),
        (
            "prefix: 192.0.2.0/24, asn: internal, multihop: 64",
            "multihop 64 and an internal neighbour contradict each other: it may be any number of hops away",
        ),
        ("address: 224.0.0.5, asn: 65010", "224.0.0.5 cannot be a neighbour's address"),
        (
            "address: 192.0.2.2, asn: 65010, local-address: 255.255.255.255",
            "255.255.255.255 cannot be a local address",
        ),
    ];
    for (neighbor, reason) in cases {
        let file = parse(&format!(
            "listen: ['192.0.2.1:179']\nneighbors:\n- {{ {neighbor} }}\n- {{ address: 192.0.2.9, asn: 65010 }}\n"
        ));
        let found: Vec<_> = file.refused[0].flaws.iter().map(ToString::to_string).collect();
        let at = if reason.starts_with("limit") { "neighbors[0]." } else { "neighbors[0]: " };
        assert_eq!(found, [format!("line 5: {at}{reason}")], "{neighbor}");
        assert_eq!(file.peers.len() + file.ranges.len(), 1, "{neighbor}: the other runs");
    }
    let file = parse("neighbors: [{ address: 192.0.2.2, asn: 23456 }]\n");
    assert!(refused(&file)[0].contains("stands for those of four octets"), "{:?}", file.refused);
    // What tells a neighbour where it may be, and what is sent to it, go together.
    let file = parse("neighbors: [{ address: 192.0.2.2, asn: 65010, multihop: 64, ttl-security: 3 }]\n");
    assert_eq!(refused(&file), [""; 0]);
}

#[test]
fn contradictions_of_the_whole_are_mistakes_of_the_whole() {
    let found = flaws(
        "listen: ['192.0.2.1:179', '0.0.0.0:179', '[::]:179', '192.0.2.1:179', '0.0.0.0:1179', '192.0.2.1:0']\n\
         originate:\n- { prefix: 203.0.113.0/24, next-hop: '2001:db8::1' }\n- { prefix: 203.0.113.0/24 }\n\
         policies:\n  p: { statements: [{ if: { neighbors: [192.0.2.2] }, set: { med: 1 }, then: reject }], default: reject }\n",
    );
    assert_eq!(
        found,
        [
            "line 3: listen[1]: this and another entry contradict each other: one of them is every address, at the same port",
            "line 3: listen[3]: another entry has this address and port",
            "line 6: originate[1]: this prefix or policy is originated twice",
        ]
    );
    let found = flaws(
        "originate:\n- { prefix: '2001:db8:1::/48', next-hop: 192.0.2.1 }\n\
         policies:\n  p: { statements: [{ if: { neighbors: [192.0.2.2] }, set: { med: 1 }, then: reject }], default: reject }\n",
    );
    assert_eq!(
        found,
        [
            "line 4: originate[0]: 192.0.2.1 cannot be the next hop of this prefix",
            "line 6: policies.p: policy p, statement 1: it changes a path and then rejects it; leave the changes out, or accept it",
        ]
    );
}

#[test]
fn a_neighbour_with_a_mistake_stays_as_it_was() {
    let old = parse(WHOLE);
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("nowhere");
    let broken = WHOLE
        .replace(
            "    device: eth0\n",
            &format!("    device: eth0\n    md5-password-file: {}\n", nowhere.display()),
        )
        .replace("limit: 5", "limit: 0")
        .replace("asn: internal", "asn: internl")
        .replace("  POLICY:\n", "  OTHER:\n")
        .replace("import: POLICY", "import: NONE")
        .replace("prefixes: own", "prefixes: mine")
        .replace("{ own:", "{ mine:");
    let mut new = parse(&broken);
    assert_eq!((new.peers.len(), new.ranges.len(), new.refused.len()), (0, 0, 3));
    new.keep_from(&old);
    assert_eq!((&new.peers, &new.ranges), (&old.peers, &old.ranges));
    assert!(new.refused.iter().all(|refused| refused.standing == Standing::Kept));
    // With what they need, so that nothing of it is taken away under them.
    let kinds: Vec<_> = new.commands_since(Some(&old)).iter().map(|command| format!("{command:?}")).collect();
    assert!(kinds.len() == 2 && kinds[0].contains("mine") && kinds[1].contains("OTHER"), "{kinds:?}");
    // Set right, it is told as it is; gone from the file, it is gone.
    assert_eq!(parse(WHOLE).commands_since(Some(&new)).len(), 2);
    let mut none = parse("");
    none.keep_from(&new);
    assert!(none.peers.is_empty() && none.ranges.is_empty());
}

#[test]
fn a_password_in_the_place_of_its_file_is_not_shown() {
    let shown = |path: &str| {
        let file =
            format!("neighbors: [{{ address: 192.0.2.2, asn: 65010, md5-password-file: \"{path}\" }}]\n");
        format!("{:?}", refused(&parse(&file)))
    };
    // Base64 has slashes.
    for password in ["hunter2", "s3c/retE", "hun/ter2==", "./hunter2", "hunter2/"] {
        let shown = shown(password);
        assert!(shown.contains("No such file") && shown.contains("(not shown)"), "{shown}");
        assert!(!shown.contains(password), "{shown}");
    }
    // What is certainly a path is shown, as its mistake is found by it. Tests run in the folder of the crate.
    for (path, reason) in [("/nowhere/key", "No such file"), ("src", "Is a directory")] {
        let shown = shown(path);
        assert!(shown.contains(path) && shown.contains(reason) && !shown.contains("(not shown)"), "{shown}");
    }
}

/// Everything that a policy may say, compiled by a speaker without a complaint.
#[test]
fn all_that_policies_can_say() {
    let file = parse(
        "import: [early]\nexport: early\nsets:\n  neighbors: { tor: [192.0.2.2] }\n  communities: { mark: ['65000:*', '65000:1:2'] }\n  \
         large-communities: { big: ['1:*:*'] }\n  ext-communities: { targets: ['rt:65000:*'] }\n  \
         as-paths: { bogus: ['_0_', '^64512'] }\npolicies:\n  \
         p:\n    statements:\n    \
         - { label: first, if: { neighbors: tor, community: [mark, targets, no-export], all-communities: [big], as-path: bogus,\n        \
             as-path-prefix: [65010], as-path-length: { max: 9 }, local-pref: 100, med: { min: 1, max: 5 },\n        \
             source: external, peer-type: external, family: [ipv4-unicast, ipv4-vpn],\n        \
             next-hop: [192.0.2.0/24, '2001:db8::1'], origin: igp, rd: '65000:1', any: [{ med: 1 }, { as-path: '^$' }] },\n        \
             set: { med: { add: -5 }, origin: incomplete, next-hop: 192.0.2.9, prepend: [65000, 65001],\n        \
             communities: { replace: ['1:1'], remove: mark, add: ['1:2', 'rt:1:1', '1:2:3'] } }, then: { call: late } }\n    \
         - { set: { med: remove }, then: next }\n    default: next\n  \
         late: { default: next }\n  early: { default: next }\n\
         neighbors: [{ address: 192.0.2.2, asn: 65010, import: [p, late, accept], export: p }]\n",
    );
    assert_eq!(file.refused, []);
    let peer = &file.peers[&"192.0.2.2".parse().unwrap()];
    assert_eq!(peer.import, Chain::new(["p", "late"], bgp_core::policy::Otherwise::Accept));
    assert_eq!(peer.export, Chain::named("p"));
    assert_eq!((&*file.global.import, &*file.global.export), (&["early".into()][..], &["early".into()][..]));
    let policy = &file.policies[&"p".into()];
    assert_eq!(policy.statements[0].label.as_deref(), Some("first"));
    assert_eq!((policy.statements[0].when.len(), policy.statements[0].apply.len()), (15, 12));
    assert_eq!(policy.statements[0].then, Flow::Call("late".into()));
    let commands = file.commands_since(None);
    let at = |wanted: &str| {
        commands.iter().position(|command| format!("{command:?}").starts_with(wanted)).unwrap()
    };
    assert!(
        at("PutPolicy(PolicyName(\"late\")") < at("PutPolicy(PolicyName(\"p\")"),
        "who is called comes first"
    );
    assert!(at("PutPolicy(PolicyName(\"early\")") < at("PutGlobalPolicies"));
    // And all of it goes again: chains before policies, who calls before who is called.
    let nothing = SpeakerFile::empty(file.asn, file.router_id);
    let settings = SpeakerSettings::new(InstanceName::new("test"), file.asn, file.router_id, 0);
    let (mut speaker, mut out) = (Speaker::new(settings), Outbox::new());
    for command in commands.into_iter().chain(nothing.commands_since(Some(&file))) {
        let answer = speaker.command(Instant::ZERO, command.clone(), &mut out);
        assert!(answer.is_ok(), "{command:?}: {answer:?}");
    }
}

#[test]
fn mistakes_in_policies_say_where_they_are() {
    let found = flaws(
        "import: nobody\nsets: { communities: { mark: ['65000:x'] }, large-communities: { mark: ['1:1:1'] } }\npolicies:\n  p:\n    statements:\n    \
         - { if: { community: mrak, as-path-length: { min: 5, max: 4 }, as-path: 'a(' }, then: { call: q } }\n    \
         - { if: { family: ipv6-unicast, prefixes: [10.0.0.0/8], not: { interface: 'eth*' } }, then: accept }\n    \
         - { set: { communities: { add: ['1:*'] }, med: { add: x } }, then: { cal: p } }\n    default: reject\n",
    );
    for (line, words) in [
        ("line 3: import:", "there is no \"nobody\""),
        ("line 4: sets.communities.mark[0]:", "with * for any number"),
        ("line 4: sets.large-communities.mark:", "need different names"),
        ("line 8: policies.p.statements[0].if.community:", "did you mean \"mark\"?"),
        ("line 8: policies.p.statements[0].if.as-path-length:", "min is above max"),
        ("line 8: policies.p.statements[0].if.as-path:", "unclosed group"),
        ("line 8: policies.p.statements[0].then.call:", "there is no \"q\""),
        (
            "line 9: policies.p.statements[1].if.not.interface:",
            "is not supported by this release; leave it out",
        ),
        ("line 10: policies.p.statements[2].set.communities.add[0]:", "a community such as"),
        ("line 10: policies.p.statements[2].set.med.add:", "a number"),
        ("line 10: policies.p.statements[2].then.cal:", "did you mean \"call\"?"),
    ] {
        assert!(
            found.iter().any(|flaw| flaw.starts_with(line) && flaw.contains(words)),
            "{line} {words}: {found:#?}"
        );
    }
    let found = flaws(
        "sets: { as-paths: { bogus: ['_0_'] } }\npolicies:\n  accept: { statements: [{ if: { as-path: bogsu }, then: reject }], default: next }\n  \
         p: { statements: [{ if: { as-path: [bogus, '_1_', '\\d'] }, then: reject }], default: next }\n",
    );
    assert_eq!(
        found,
        [
            "line 5: policies.accept: accept and reject have a meaning of their own; give the policy another name",
            "line 5: policies.accept.statements[0].if.as-path: there is no \"bogsu\"; did you mean \"bogus\"?",
            "line 6: policies.p.statements[0].if.as-path[0]: the name of a set stands alone, not in a list of patterns",
        ]
    );
    // What only a speaker knows: circles, and prefixes of another family.
    let found = flaws(
        "policies:\n  a: { statements: [{ then: { call: b } }], default: next }\n  \
         b: { statements: [{ label: back, then: { call: a } }], default: next }\n  \
         c: { statements: [{ if: { family: ipv6-unicast, prefixes: [10.0.0.0/8] }, then: accept }], default: next }\n",
    );
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(
        found
            .iter()
            .any(|flaw| flaw.starts_with("line 6: policies.c:") && flaw.contains("is never in ipv6-unicast"))
    );
}
