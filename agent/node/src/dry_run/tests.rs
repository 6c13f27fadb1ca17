use bgp_wire::attr::{Builder, Canonical, Origin};
use bgp_wire::mrt::{self, TableWriter};
use bgp_wire::{NextHop, PathId, RouterId};

use super::*;
use crate::check::check;

/// A table of a speaker in AS 65000 with an external neighbour, 192.0.2.2 in AS 65001, and an internal one, 192.0.2.3.
fn table() -> Vec<u8> {
    let peer = |address: &str, asn| Peer {
        router_id: RouterId(1),
        address: address.parse().unwrap(),
        asn: Asn(asn),
    };
    let peers = [peer("0.0.0.0", 65000), peer("192.0.2.2", 65001), peer("192.0.2.3", 65000)];
    let mut out = Vec::new();
    let mut writer = TableWriter::new(1);
    writer.peers(RouterId(1), "", &peers, &mut out).unwrap();
    let set = |asns: &[u32]| {
        let mut builder = Builder::new(Origin::Igp);
        for asn in asns.iter().rev() {
            builder.prepend(Asn(*asn), 1);
        }
        builder.build()
    };
    let hop = |text: &str| Some(NextHop::from(text.parse::<IpAddr>().unwrap()));
    for (prefix, peer, path, hop) in [
        ("0.0.0.0/0", 1, &[65001][..], hop("192.0.2.2")),
        ("10.0.0.0/8", 1, &[65001, 65002], hop("192.0.2.2")),
        ("10.1.0.0/16", 2, &[], hop("192.0.2.3")),
        ("10.244.1.0/26", 0, &[], None),
        ("2001:db8::/32", 1, &[65001], hop("2001:db8::1")),
    ] {
        let attrs = set(path);
        let path = mrt::TablePath {
            peer,
            originated: 0,
            path_id: None::<PathId>,
            label: None,
            next_hop: hop,
            attrs: Canonical(&attrs),
        };
        writer.destination(prefix.parse().unwrap(), &[path], &mut out).unwrap();
    }
    out
}

/// What the objects of a file would do to the table.
fn tried(name: &str, text: &str) -> Vec<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), text).unwrap();
    let checked = check(&[dir.path().to_owned()]);
    assert_eq!(checked.findings.problems, [], "{text}");
    let mut outcomes = Vec::new();
    for mut run in checked.dry_runs(true) {
        let recording = Recording::new(Box::new(std::io::Cursor::new(table())));
        let flaws = run.table(recording).unwrap();
        assert_eq!((flaws.records, flaws.paths, flaws.first), (0, 0, None));
        outcomes.extend(run.outcomes());
    }
    outcomes
}

fn rules(outcome: &Outcome) -> Vec<(&str, &str, u64, u64, String)> {
    outcome
        .rules
        .iter()
        .map(|rule| (&*rule.rule, &*rule.then, rule.paths, rule.changed, rule.prefixes.join(" ")))
        .collect()
}

fn head(outcome: &Outcome) -> (String, [u64; 5]) {
    let Outcome { object, direction, family, paths, accepted, rejected, undecided, changed, .. } = outcome;
    (format!("{object}, {direction}, {family}"), [*paths, *accepted, *rejected, *undecided, *changed])
}

#[test]
fn rules_of_a_filter_by_direction_and_family() {
    let filter = "\
apiVersion: projectcalico.org/v3
kind: BGPFilter
metadata: {name: f}
spec:
  importV4:
  - {action: Reject, cidr: 0.0.0.0/0, matchOperator: Equal}
  - {action: Accept, cidr: 10.0.0.0/8, matchOperator: In, peerType: eBGP, operations: [{addCommunity: {value: '65000:1'}}]}
  - {action: Reject, cidr: 192.168.0.0/16, matchOperator: In}
  exportV4:
  - {action: Reject, source: RemotePeers}
  exportV6:
  - {action: Accept, asPathPrefix: [65000, 65001]}
";
    let outcomes = tried("f.yaml", filter);
    let [import4, export4, export6] = &outcomes[..] else { panic!("{outcomes:?}") };
    // Own routes meet no import policy.
    assert_eq!(head(import4), ("BGPFilter f, import, ipv4-unicast".into(), [3, 1, 1, 1, 1]));
    assert_eq!(
        rules(import4),
        [
            ("BGPFilter f, importV4 rule 1", "reject", 1, 0, "0.0.0.0/0".into()),
            ("BGPFilter f, importV4 rule 2", "accept", 1, 1, "10.0.0.0/8".into()),
            ("BGPFilter f, importV4 rule 3", "reject", 0, 0, String::new()),
        ]
    );
    assert_eq!(head(export4), ("BGPFilter f, export, ipv4-unicast".into(), [4, 0, 3, 1, 0]));
    assert_eq!(
        rules(export4),
        [("BGPFilter f, exportV4 rule 1", "reject", 3, 0, "0.0.0.0/0 10.0.0.0/8 10.1.0.0/16".into())]
    );
    // As it will be sent, with our AS in front.
    assert_eq!(head(export6), ("BGPFilter f, export, ipv6-unicast".into(), [1, 1, 0, 0, 0]));
    assert_eq!(rules(export6), [("BGPFilter f, exportV6 rule 1", "accept", 1, 0, "2001:db8::/32".into())]);
}

#[test]
fn policies_of_a_speakers_file_in_the_directions_in_which_they_are_used() {
    let file = "\
asn: 65000
router-id: 192.0.2.1
neighbors:
- {address: 192.0.2.2, asn: 65001, import: inward, export: outward}
sets:
  prefixes: {own: [10.0.0.0/8 le 32]}
policies:
  inward: {statements: [{if: {prefixes: own}, set: {local-pref: 200}, then: accept}], default: reject}
  outward: {statements: [{if: {prefixes: own}, then: accept}], default: reject}
  unused: {statements: [{then: reject}], default: accept}
  before: {statements: [{if: {med: 1}, then: reject}], default: next}
export: before
";
    let outcomes = tried("speaker.yaml", file);
    let heads: Vec<_> = outcomes.iter().map(head).collect();
    assert_eq!(
        heads,
        [
            ("policy before, export, ipv4-unicast".into(), [4, 0, 0, 4, 0]),
            ("policy before, export, ipv6-unicast".into(), [1, 0, 0, 1, 0]),
            ("policy inward, import, ipv4-unicast".into(), [3, 2, 1, 0, 2]),
            ("policy inward, import, ipv6-unicast".into(), [1, 0, 1, 0, 0]),
            ("policy outward, export, ipv4-unicast".into(), [4, 3, 1, 0, 0]),
            ("policy outward, export, ipv6-unicast".into(), [1, 0, 1, 0, 0]),
            ("policy unused, import, ipv4-unicast".into(), [3, 0, 3, 0, 0]),
            ("policy unused, import, ipv6-unicast".into(), [1, 0, 1, 0, 0]),
        ]
    );
    assert_eq!(
        rules(&outcomes[2]),
        [
            ("statement 1", "accept", 2, 2, "10.0.0.0/8 10.1.0.0/16".into()),
            ("default", "", 1, 0, "0.0.0.0/0".into()),
        ]
    );
}

#[test]
fn a_path_of_a_peer_that_the_table_does_not_have_is_no_own_route() {
    let mut out = Vec::new();
    let mut writer = TableWriter::new(1);
    writer.peers(RouterId(1), "", &[], &mut out).unwrap();
    let attrs = Builder::new(Origin::Igp).build();
    let hop = Some(NextHop::from("192.0.2.2".parse::<IpAddr>().unwrap()));
    let attrs = Canonical(&attrs);
    let path = mrt::TablePath { peer: 7, originated: 0, path_id: None, label: None, next_hop: hop, attrs };
    writer.destination("10.0.0.0/8".parse().unwrap(), &[path], &mut out).unwrap();
    let mut run = DryRun::new([], [], true);
    let flaws = run.table(Recording::new(Box::new(std::io::Cursor::new(out)))).unwrap();
    assert_eq!((flaws.records, flaws.paths), (0, 1));
    assert_eq!(flaws.first.as_deref(), Some("a path to 10.0.0.0/8: there is no peer 7 in the table"));
}

#[test]
fn nothing_to_try() {
    let pool =
        "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {name: p}\nspec: {cidr: 10.244.0.0/16}\n";
    assert_eq!(tried("pool.yaml", pool), []);
    let empty =
        "apiVersion: projectcalico.org/v3\nkind: BGPFilter\nmetadata: {name: f}\nspec: {importV4: []}\n";
    assert_eq!(tried("f.yaml", empty), []);
}
