//! `peregrine explain`.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use bgp_core::{Family, Nlri};
use clap::Args;

use super::output::{ago, colours, print, run as run_command};
use super::routes::{encode, next_hop};
use super::table::{Cell, Column, Layout, Tone, paragraph};
use super::{Asking, Format};
use crate::inspect::answer::{Life, Path, Received, Told};
use crate::inspect::client::{ask, ask_text};

const ANSWER: &str = r#"The answer as JSON; what does not apply is left out:

  asked, prefix, exact      what was asked for, what is explained, whether they are the same
  decided-by                the rung of the decision that chose the best path
  paths: [{ path,           after import, as `peregrine routes -o json` has it: best, multipath, and of
                            a path that lost, lost: { rung, own, better }; rejected: why it may not win
            import: { accepted, by: { reason, policy, statement, label }, changes: [...] } }]
  connectivity: { pool, pool-cidr, hops: [{ address, weight, provider, reason }] }
  vpp: [{ object, state,    present, pending, blocked, left-over, or unknown while VPP is away
          value, reason, paths: [...] }]
  peers: [{ peer, advertised,
            paths: [...],   as they are sent
            stopped-by: { reason, policy, statement, label } }]"#;

/// The whole life of a prefix on this node.
///
/// Every path received and what import policy did to it (object and rule), which rung of the decision chose the best one and
/// by what each other path lost; how the agent has its traffic carried and why, each object of VPP with its state or its
/// error; and for each neighbor whether it is advertised, as what, or which rule stops it.
///
/// Where PREFIX has no routes, the longest prefix that has some and holds it is explained, and that is said.
#[derive(Debug, Args)]
#[command(after_long_help = ANSWER)]
pub(super) struct Arguments {
    /// An address, or a prefix as `peregrine routes` shows it; in a VPN behind its route distinguisher, an SR policy as
    /// DISTINGUISHER:COLOR:ENDPOINT.
    #[arg(value_name = "PREFIX")]
    prefix: String,
    /// The family, where it does not follow from the prefix.
    #[arg(long, value_name = "FAMILY")]
    family: Option<Family>,
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Arguments { prefix, family, asking: Asking { socket, output } } = arguments;
    let read = match (prefix.parse::<std::net::IpAddr>().is_ok(), family) {
        (true, _) => Ok(()),
        (false, None) => prefix.parse::<Nlri>().map(drop),
        (false, Some(family)) => Nlri::parse_as(*family, prefix).map(drop),
    };
    if let Err(error) = read {
        eprintln!("peregrine explain: {error}");
        return ExitCode::from(2);
    }
    let mut question = format!("/v1/explain?prefix={}", encode(prefix));
    if let Some(family) = family {
        let _ = write!(question, "&family={family}");
    }
    run_command(async {
        match output {
            Format::Json => print(&(ask_text(socket, &question).await? + "\n")),
            Format::Table => print(&show(&ask::<Life>(socket, &question).await?, colours())),
        }
    })
}

/// Where text below a row begins.
const INDENT: usize = 5;

fn show(life: &Life, colours: bool) -> String {
    let mut out = String::new();
    if !life.exact {
        out += &paragraph(0, &format!("{} has no routes; the longest prefix that holds it has:", life.asked));
    }
    out.push_str(&life.prefix);
    match &life.decided_by {
        Some(rung) if life.paths.len() > 1 => out += &format!(", best path by {rung}\n"),
        Some(_) => out.push('\n'),
        None => out += ", no usable path\n",
    }
    out.push('\n');
    paths(life, colours, &mut out);
    connectivity(life, &mut out);
    vpp(life, colours, &mut out);
    peers(life, colours, &mut out);
    out
}

fn paths(life: &Life, colours: bool, out: &mut String) {
    let columns = [
        Column::text(""),
        Column::narrow("FROM", 21),
        Column::narrow("NEXT HOP", 16),
        Column::number("AGE"),
        Column::number("PREF"),
        Column::number("MED"),
        Column::cut("AS PATH, ORIGIN"),
    ];
    let rows: Vec<Vec<Cell>> = life.paths.iter().map(|received| row(&received.path)).collect();
    let layout = Layout::for_rows(&columns, &rows, colours);
    out.push_str(&layout.head());
    for (received, cells) in life.paths.iter().zip(&rows) {
        out.push_str(&layout.row(cells));
        for note in notes(received) {
            out.push_str(&paragraph(INDENT, &note));
        }
    }
}

fn row(path: &Path) -> Vec<Cell> {
    let mark = match (path.best, path.multipath, &path.rejected) {
        (true, _, _) => Cell::toned("*", Tone::Good),
        (false, true, _) => Cell::toned("=", Tone::Good),
        (false, false, Some(_)) => Cell::toned("x", Tone::Bad),
        (false, false, None) => Cell::default(),
    };
    let number = |value: Option<u32>| Cell::from(value.map_or_else(|| "-".into(), |value| value.to_string()));
    let from = path.source.clone().unwrap_or_else(|| "-".into());
    let from = path.path_id.map_or(from.clone(), |id| format!("{from} #{id}"));
    vec![
        mark,
        Cell::from(from),
        Cell::from(next_hop(&path.next_hop)),
        Cell::from(ago(Duration::from_nanos(path.age_nanoseconds))),
        number(path.local_pref),
        number(path.med),
        Cell::from(format!("{} {}", path.as_path, path.origin).trim_start().to_owned()),
    ]
}

/// What is to be said of a path: import, and how it fared.
fn notes(received: &Received) -> Vec<String> {
    let mut notes = Vec::new();
    let path = &received.path;
    if let Some(import) = &received.import {
        let verdict = if import.accepted { "accepted" } else { "rejected" };
        notes.push(format!("import: {verdict} by {}", import.by.reason));
        notes.extend(import.changes.iter().map(|change| format!("import: {change}")));
    }
    if let Some(lost) = &path.lost {
        notes.push(format!("lost by {}: {} against {}", lost.rung, lost.own, lost.better));
    } else if let Some(rejected) = &path.rejected
        && received.import.as_ref().is_none_or(|import| import.accepted)
    {
        notes.push(format!("not usable: {rejected}"));
    }
    if path.multipath && !path.best {
        notes.push("used beside the best path".to_owned());
    }
    notes
}

fn connectivity(life: &Life, out: &mut String) {
    let Some(connectivity) = &life.connectivity else { return };
    out.push_str("\nCARRIED\n");
    match (&connectivity.pool, &connectivity.pool_cidr) {
        (Some(pool), Some(cidr)) => *out += &paragraph(2, &format!("in IPPool {pool} ({cidr})")),
        _ => out.push_str("  in no IPPool\n"),
    }
    for hop in &connectivity.hops {
        let share =
            if connectivity.hops.len() > 1 { format!(", weight {}", hop.weight) } else { String::new() };
        let provider = hop.provider.as_deref().unwrap_or("not carried");
        *out += &paragraph(2, &format!("to {}{share}: {provider}: {}", hop.address, hop.reason));
    }
}

fn vpp(life: &Life, colours: bool, out: &mut String) {
    let Some(objects) = &life.vpp else { return };
    out.push_str("\nIN VPP\n");
    if objects.is_empty() {
        out.push_str("  nothing\n");
        return;
    }
    for object in objects {
        let tone = match object.state.as_str() {
            "present" => Tone::Good,
            "blocked" => Tone::Bad,
            _ => Tone::Plain,
        };
        let cells = vec![Cell::toned(object.state.clone(), tone), Cell::from(object.object.clone())];
        let columns = [Column::text("").at_least(9), Column::text("")];
        let layout = Layout::for_rows(&columns, std::slice::from_ref(&cells), colours);
        *out += &format!("  {}", layout.row(&cells));
        let said = [&object.value, &object.reason].into_iter().filter(|text| !text.is_empty());
        let notes = object.paths.iter().chain(said);
        for note in notes {
            *out += &paragraph(13, note);
        }
    }
}

fn peers(life: &Life, colours: bool, out: &mut String) {
    out.push_str("\nNEIGHBORS\n");
    if life.peers.is_empty() {
        out.push_str("  none\n");
    }
    let columns = [Column::narrow("", 21), Column::text("")];
    let rows: Vec<Vec<Cell>> = life
        .peers
        .iter()
        .map(|told| {
            let tone = if told.advertised { Tone::Good } else { Tone::Plain };
            let words = if told.advertised { "advertised" } else { "not advertised" };
            vec![Cell::from(told.peer.clone()), Cell::toned(words, tone)]
        })
        .collect();
    let layout = Layout::for_rows(&columns, &rows, colours);
    for (told, cells) in life.peers.iter().zip(&rows) {
        *out += &format!("  {}", layout.row(cells));
        for note in sent(told) {
            *out += &paragraph(INDENT, &note);
        }
    }
}

fn sent(told: &Told) -> Vec<String> {
    let stopped = told.stopped_by.iter().map(|rule| rule.reason.clone());
    let paths = told.paths.iter().map(|path| {
        let mut words = vec![format!("next hop {}", next_hop(&path.next_hop))];
        words.extend(path.path_id.map(|id| format!("path id {id}")));
        let as_path = if path.as_path.is_empty() { "empty" } else { &path.as_path };
        words.push(format!("AS path {as_path}"));
        words.extend(path.local_pref.map(|value| format!("local-pref {value}")));
        words.extend(path.med.map(|value| format!("MED {value}")));
        if !path.communities.is_empty() {
            words.push(format!("communities {}", path.communities.join(" ")));
        }
        words.join(", ")
    });
    paths.chain(stopped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::answer::Rule;

    #[test]
    fn a_life_fits_the_width_and_says_everything() {
        let life: Life = serde_json::from_str(
            r#"{ "asked": "10.0.0.7/32", "prefix": "10.0.0.0/24", "exact": false, "decided-by": "local preference",
              "paths": [
                { "path": { "best": true, "source": "192.0.2.2", "next-hop": "192.0.2.2", "local-pref": 200,
                    "as-path": "65010", "origin": "igp", "age-nanoseconds": 5000000000 },
                  "import": { "accepted": true, "changes": ["local-pref: none -> 200"],
                    "by": { "reason": "policy p, statement 1 (BGPFilter f, importV4 rule 1)" } } },
                { "path": { "source": "2001:db8:1111:2222:3333:4444:5555:6666", "next-hop": "2001:db8::1",
                    "as-path": "65020 65030", "origin": "incomplete",
                    "lost": { "rung": "local preference", "own": "100", "better": "200" } },
                  "import": { "accepted": true, "by": { "reason": "no policy" } } },
                { "path": { "source": "192.0.2.4", "next-hop": "192.0.2.4", "rejected": "import policy", "origin": "igp" },
                  "import": { "accepted": false, "by": { "reason": "policy q, its default" } } } ],
              "connectivity": { "pool": "pods", "pool-cidr": "10.0.0.0/16", "hops": [
                { "address": "192.0.2.2", "weight": 1, "provider": "ipip", "reason": "ipipMode is Always" } ] },
              "vpp": [ { "object": "mtu of ipip tunnel 192.0.2.1 to 192.0.2.2", "state": "present", "value": "1480 octets" },
                { "object": "route 10.0.0.0/24 table 0", "state": "blocked", "reason": "waits for uplink",
                "paths": ["into ipip tunnel 192.0.2.1 to 192.0.2.2"] } ],
              "peers": [
                { "peer": "192.0.2.2", "stopped-by": { "reason": "the best path came from there" } },
                { "peer": "192.0.2.9", "advertised": true, "paths": [ { "next-hop": "192.0.2.1", "as-path": "65000 65010" } ] } ] }"#,
        )
        .unwrap();
        let text = show(&life, false);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        for line in [
            "10.0.0.7/32 has no routes; the longest prefix that holds it has:",
            "10.0.0.0/24, best path by local preference",
            "     import: accepted by policy p, statement 1 (BGPFilter f, importV4 rule 1)",
            "     import: local-pref: none -> 200",
            "     lost by local preference: 100 against 200",
            "     import: rejected by policy q, its default",
            "  in IPPool pods (10.0.0.0/16)",
            "  to 192.0.2.2: ipip: ipipMode is Always",
            "  present    mtu of ipip tunnel 192.0.2.1 to 192.0.2.2",
            "             1480 octets",
            "  blocked    route 10.0.0.0/24 table 0",
            "             into ipip tunnel 192.0.2.1 to 192.0.2.2",
            "             waits for uplink",
            "  192.0.2.2  not advertised",
            "     the best path came from there",
            "  192.0.2.9  advertised",
            "     next hop 192.0.2.1, AS path 65000 65010",
        ] {
            assert!(text.lines().any(|shown| shown == line), "no {line:?} in\n{text}");
        }
        assert_eq!(
            life.peers[0].stopped_by,
            Some(Rule { reason: "the best path came from there".into(), ..Rule::default() })
        );
    }
}
