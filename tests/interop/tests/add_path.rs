//! Several paths of a prefix on one session (RFC 7911), with BIRD 2: IPv4 prefixes over IPv4 and IPv6 prefixes over IPv6,
//! both directions, with changes and withdrawals. FRR, which offers to receive them without being asked, hears ours too.
//!
//! Three BIRDs each announce a path of one prefix. A fourth, `tor`, with whom several paths were agreed on, hears of them
//! from us, and sends us several of another prefix itself.

use std::collections::BTreeSet;

use interop::{OUR_IPV4, OUR_IPV6, PEER_IPV4, PEER_IPV6};
use serde_json::Value;
use test_support::bird::Bird;
use test_support::frr::Frr;
use test_support::lab::{Host, Lab};
use test_support::programs::{BIRD, FRR, IP, available};
use test_support::speaker::Speaker;
use test_support::wait;

const TIMES: &str = "connect delay time 1; connect retry time 1; error wait time 1, 2;";

/// What differs between the IP versions.
struct Version {
    /// As BIRD names it.
    channel: &'static str,
    family: &'static str,
    ours: &'static str,
    sut: &'static str,
    /// The addresses of the three.
    others: [&'static str; 3],
    /// What the three announce.
    passed_on: &'static str,
    /// What `sut` announces.
    received: &'static str,
}

const IPV4: Version = Version {
    channel: "ipv4",
    family: "ipv4-unicast",
    ours: OUR_IPV4,
    sut: PEER_IPV4,
    others: ["192.0.2.11", "192.0.2.12", "192.0.2.13"],
    passed_on: "203.0.113.0/24",
    received: "198.51.100.0/24",
};

const IPV6: Version = Version {
    channel: "ipv6",
    family: "ipv6-unicast",
    ours: OUR_IPV6,
    sut: PEER_IPV6,
    others: ["2001:db8:1::11", "2001:db8:1::12", "2001:db8:1::13"],
    passed_on: "2001:db8:f::/48",
    received: "2001:db8:e::/48",
};

impl Version {
    /// The address as an interface has it.
    fn net(&self, address: &str) -> String {
        format!("{address}/{}", if self.channel == "ipv4" { 24 } else { 64 })
    }

    fn hosts(&self, lab: &Lab) -> (Host, Host) {
        (lab.host("sut", &[&self.net(self.ours)]), lab.host("tor", &[&self.net(self.sut)]))
    }

    /// The three.
    fn others(&self, lab: &Lab) -> [Bird; 3] {
        let Self { channel, ours, passed_on, .. } = self;
        [0, 1, 2].map(|n| {
            let (address, asn) = (self.others[n], 65011 + n);
            let host = lab.host(["one", "two", "three"][n], &[&self.net(address)]);
            let config = format!(
                "log stderr all;\nrouter id 192.0.2.{id};\nprotocol device {{ }}\n\
                 protocol static own {{ {channel}; route {passed_on} blackhole; }}\n\
                 protocol bgp sut {{ local {address} as {asn}; neighbor {ours} as 65010; {TIMES}\n\
                 \x20 {channel} {{ import none; export where source = RTS_STATIC; }}; }}\n",
                id = 11 + n
            );
            Bird::start(&host, &config)
        })
    }

    fn speaker(&self, add_path: &str) -> String {
        let neighbor = |address: &str, asn: usize, more: &str| {
            format!(
                "  - {{ address: \"{address}\", asn: {asn}, connect-retry: 1, families: [{}]{more} }}\n",
                self.family
            )
        };
        let others = self.others.iter().enumerate().map(|(n, other)| neighbor(other, 65011 + n, ""));
        format!(
            "asn: 65010\nrouter-id: {OUR_IPV4}\nlisten: [\"[::]:179\"]\nrequire-policy: false\nneighbors:\n{}{}",
            neighbor(self.sut, 65001, &format!(", add-path: {add_path}")),
            others.collect::<String>()
        )
    }

    /// `marks`: the community of each path that `tor` sends.
    fn tor(&self, marks: [u32; 2]) -> String {
        let Self { channel, ours, sut, received, .. } = self;
        let mut text = format!("log stderr all;\nrouter id {PEER_IPV4};\nprotocol device {{ }}\n");
        for (n, mark) in marks.iter().enumerate() {
            text += &format!(
                "protocol static s{n} {{ {channel} {{ preference {}; }};\n  route {received} blackhole \
                 {{ bgp_community.add((65001, {mark})); }}; }}\n",
                200 + n
            );
        }
        text + &format!(
            "protocol bgp sut {{ local {sut} as 65001; neighbor {ours} as 65010; {TIMES}\n\
             \x20 {channel} {{ add paths on; import all; export where net = {received}; }}; }}\n"
        )
    }

    /// The AS paths and identifiers that we have told `sut`, as we believe.
    fn told(&self, sut: &Speaker) -> Result<Vec<Value>, String> {
        let words = ["routes", "adj-rib-out", self.family, self.passed_on, "--neighbor", self.sut];
        paths_of(&sut.try_ask(&words)?, self.passed_on)
    }

    /// Waits until BIRD holds just these AS paths of what is passed on, and we believe so too; gives what we sent, by AS
    /// path.
    #[track_caller]
    fn await_paths(&self, bird: &Bird, sut: &Speaker, wanted: &[&str]) -> Vec<(String, u64)> {
        let wanted: BTreeSet<String> = wanted.iter().map(|asn| format!("65010 {asn}")).collect();
        wait::until(&format!("BIRD holds {wanted:?}"), || {
            let answer = bird.ask("show route protocol sut all");
            let held = answer.lines().filter_map(|line| line.trim().strip_prefix("BGP.as_path: "));
            let held: Vec<String> = held.map(str::to_owned).collect();
            let same = held.len() == wanted.len() && held.into_iter().collect::<BTreeSet<_>>() == wanted;
            if same { Ok(()) } else { Err(answer) }
        });
        let told =
            if wanted.is_empty() { Vec::new() } else { self.told(sut).expect("what BIRD holds we told") };
        let text = |path: &Value| path["as-path"].as_str().unwrap_or_default().to_owned();
        let id = |path: &Value| path["path-id"].as_u64().expect("an identifier");
        let mut told: Vec<(String, u64)> = told.iter().map(|path| (text(path), id(path))).collect();
        told.sort();
        assert_eq!(told.iter().map(|(path, _)| path.clone()).collect::<BTreeSet<_>>(), wanted);
        told
    }

    /// Waits until we hold just these communities of what `sut` sends; gives the identifiers.
    #[track_caller]
    fn await_received(&self, sut: &Speaker, wanted: &[&str]) -> Vec<u64> {
        wait::until(&format!("we hold {wanted:?}"), || {
            let words = ["routes", "adj-rib-in", self.family, self.received, "--neighbor", self.sut];
            let paths = paths_of(&sut.try_ask(&words)?, self.received).unwrap_or_default();
            let mark = |path: &Value| path["communities"][0].as_str().unwrap_or_default().to_owned();
            let mut marks: Vec<String> = paths.iter().map(mark).collect();
            marks.sort();
            let ids: Option<Vec<u64>> = paths.iter().map(|path| path["path-id"].as_u64()).collect();
            match ids {
                Some(mut ids) if marks == wanted => {
                    ids.sort_unstable();
                    Ok(ids)
                }
                _ => Err(format!("{paths:?}")),
            }
        })
    }
}

fn paths_of(answer: &Value, prefix: &str) -> Result<Vec<Value>, String> {
    let route = answer.as_array().into_iter().flatten().find(|route| route["prefix"] == prefix);
    route.and_then(|route| route["paths"].as_array().cloned()).ok_or_else(|| answer.to_string())
}

fn both_ways(version: &'static Version) {
    if !available("interop bird add-path", &[BIRD, IP]) {
        return;
    }
    Lab::run(move |lab| {
        let (ours, theirs) = version.hosts(lab);
        let bird = Bird::start(&theirs, &version.tor([1, 2]));
        let others = version.others(lab);
        let (on, off) = (|n: usize| others[n].ask("enable own"), |n: usize| others[n].ask("disable own"));
        let mut sut = Speaker::start(&ours, &version.speaker("{ receive: true, send: 2 }"));
        for peer in [version.sut].iter().chain(&version.others) {
            sut.await_established(peer);
        }
        let peer = sut.await_established(version.sut);
        assert_eq!(peer["families"][0]["add-path"]["receive"], true, "{peer}");
        assert_eq!(peer["families"][0]["add-path"]["send"], 2, "{peer}");
        assert!(sut.await_established(version.others[0])["families"][0]["add-path"].is_null());

        // What we send: the two best of three, the next one where one has gone, back again.
        let first = version.await_paths(&bird, &sut, &["65011", "65012"]);
        let _ = off(0);
        let second = version.await_paths(&bird, &sut, &["65012", "65013"]);
        assert_eq!(first[1], second[0], "a path keeps its identifier while it lives");
        let _ = on(0);
        version.await_paths(&bird, &sut, &["65011", "65012"]);
        let _ = others[1].ask("disable sut");
        version.await_paths(&bird, &sut, &["65011", "65013"]);
        let _ = others[1].ask("enable sut");
        version.await_paths(&bird, &sut, &["65011", "65012"]);
        // How many are sent changes while the session is up.
        sut.reload(&version.speaker("{ receive: true, send: 3 }"));
        version.await_paths(&bird, &sut, &["65011", "65012", "65013"]);
        sut.reload(&version.speaker("{ receive: true, send: 1 }"));
        version.await_paths(&bird, &sut, &["65011"]);
        sut.reload(&version.speaker("{ receive: true, send: 3 }"));
        version.await_paths(&bird, &sut, &["65011", "65012", "65013"]);

        // What we receive: both, changed, one, both again.
        let ids = version.await_received(&sut, &["65001:1", "65001:2"]);
        assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        bird.reconfigure(&version.tor([1, 7]));
        version.await_received(&sut, &["65001:1", "65001:7"]);
        let _ = bird.ask("disable s1");
        version.await_received(&sut, &["65001:1"]);
        let _ = bird.ask("enable s1");
        version.await_received(&sut, &["65001:1", "65001:7"]);
        // Everything again, both ways.
        for command in ["reload in sut", "reload out sut"] {
            let _ = bird.ask(command);
        }
        version.await_received(&sut, &["65001:1", "65001:7"]);
        version.await_paths(&bird, &sut, &["65011", "65012", "65013"]);
        for (n, left) in [(2, vec!["65011", "65012"]), (0, vec!["65012"])] {
            let _ = off(n);
            version.await_paths(&bird, &sut, &left);
        }
        let _ = off(1);
        bird.await_no_route(version.passed_on);
        wait::until("we know that", || match version.told(&sut) {
            Ok(told) => Err(format!("{told:?}")),
            Err(_) => Ok(()),
        });
        let peer = sut.await_established(version.sut);
        assert_eq!(peer["established-transitions"], 1, "{peer}");
    });
}

#[test]
fn ipv4_paths_both_ways() {
    both_ways(&IPV4);
}

#[test]
fn ipv6_paths_both_ways() {
    both_ways(&IPV6);
}

#[test]
fn who_only_sends_or_only_receives() {
    if !available("interop bird add-path one way", &[BIRD, IP]) {
        return;
    }
    for (theirs_has, receive, send) in [("rx", false, Some(3)), ("tx", true, None), ("off", false, None)] {
        Lab::run(move |lab| {
            let (ours, theirs) = IPV4.hosts(lab);
            let config = IPV4.tor([1, 2]).replace("add paths on", &format!("add paths {theirs_has}"));
            let bird = Bird::start(&theirs, &config);
            let _others = IPV4.others(lab);
            let sut = Speaker::start(&ours, &IPV4.speaker("{ receive: true, send: 3 }"));
            for other in IPV4.others {
                sut.await_established(other);
            }
            let peer = sut.await_established(IPV4.sut);
            let agreed = &peer["families"][0]["add-path"];
            assert_eq!(agreed["receive"].as_bool().unwrap_or_default(), receive, "{theirs_has} {peer}");
            assert_eq!(agreed["send"].as_u64(), send, "{theirs_has} {peer}");
            let expected = if receive { 2 } else { 1 };
            wait::until("we hold what was agreed", || {
                let answer = sut.try_ask(&["routes", "loc-rib", IPV4.family, IPV4.received])?;
                let paths = paths_of(&answer, IPV4.received)?;
                let named = paths.iter().filter(|path| path["path-id"].is_u64()).count();
                let right = paths.len() == expected && named == if receive { expected } else { 0 };
                if right { Ok(()) } else { Err(answer.to_string()) }
            });
            wait::until("BIRD holds what was agreed", || {
                let answer = bird.ask("show route protocol sut all");
                let held = answer.matches("BGP.as_path: 65010").count();
                if held as u64 == send.unwrap_or(1) { Ok(()) } else { Err(answer) }
            });
        });
    }
}

/// Waits until FRR holds just these AS paths of what is passed on; gives the identifiers under which they came.
#[track_caller]
fn await_in_frr(frr: &Frr, wanted: &[&str]) -> Vec<u64> {
    let wanted: BTreeSet<String> = wanted.iter().map(|asn| format!("65010 {asn}")).collect();
    wait::until(&format!("FRR holds {wanted:?}"), || {
        let answer = frr.ask(&format!("show bgp ipv4 unicast {} json", IPV4.passed_on))?;
        let paths: Vec<&Value> = answer["paths"].as_array().into_iter().flatten().collect();
        let held = paths.iter().filter_map(|path| path["aspath"]["string"].as_str().map(str::to_owned));
        let same = paths.len() == wanted.len() && held.collect::<BTreeSet<_>>() == wanted;
        if !same {
            return Err(answer.to_string());
        }
        let ids = paths.iter().map(|path| path["addpath"]["rxId"].as_u64().or(path["addpathRxId"].as_u64()));
        Ok(ids.flatten().collect())
    })
}

#[test]
fn frr_hears_several_paths() {
    if !available("interop frr add-path", &[FRR, BIRD, IP]) {
        return;
    }
    Lab::run(|lab| {
        let (ours, theirs) = IPV4.hosts(lab);
        let frr = Frr::start(
            &theirs,
            &format!(
                "log stdout informational\nrouter bgp 65001\n bgp router-id {PEER_IPV4}\n no bgp ebgp-requires-policy\n \
                 timers bgp 3 9\n neighbor {OUR_IPV4} remote-as 65010\n neighbor {OUR_IPV4} timers connect 1\n"
            ),
        );
        let others = IPV4.others(lab);
        let sut = Speaker::start(&ours, &IPV4.speaker("{ receive: true, send: 2 }"));
        frr.await_established(OUR_IPV4);
        let peer = sut.await_established(IPV4.sut);
        assert_eq!(peer["families"][0]["add-path"]["send"], 2, "{peer}");
        let ids = await_in_frr(&frr, &["65011", "65012"]);
        assert!(ids.is_empty() || ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
        let _ = others[0].ask("disable own");
        await_in_frr(&frr, &["65012", "65013"]);
        let _ = others[0].ask("enable own");
        await_in_frr(&frr, &["65011", "65012"]);
        for (other, left) in [(2, vec!["65011", "65012"]), (1, vec!["65011"])] {
            let _ = others[other].ask("disable own");
            await_in_frr(&frr, &left);
        }
        let _ = others[0].ask("disable own");
        frr.await_no_route("ipv4", IPV4.passed_on);
        let peer = sut.await_established(IPV4.sut);
        assert_eq!(peer["established-transitions"], 1, "{peer}");
    });
}
