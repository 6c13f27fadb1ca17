//! `peregrine peers`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::output::{ago, colours, print, run as run_command};
use super::table::{Cell, Column, Layout, Tone, paragraph};
use super::{Asking, Format};
use crate::inspect::answer::{Peer, PeerFamily};
use crate::inspect::client::{ask, ask_text};

/// Sessions: state, uptime, why down, families, prefixes received, accepted and advertised.
///
/// One line for each neighbor and family, sorted by our AS number and the neighbor's address. Where a session is not
/// established, a second line says why; others say what an operator has asked for, what is kept over a restart, and where a
/// family is at a limit.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    asking: Asking,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Asking { socket, output } = &arguments.asking;
    run_command(async {
        match output {
            Format::Json => print(&(ask_text(socket, "/v1/peers").await? + "\n")),
            Format::Table => print(&show(&ask::<Vec<Peer>>(socket, "/v1/peers").await?, colours())),
        }
    })
}

const COLUMNS: &[Column] = &[
    Column::narrow("PEER", 16),
    Column::number("AS"),
    Column::text("STATE"),
    Column::number("UPTIME"),
    Column::text("FAMILY"),
    Column::number("RECEIVED"),
    Column::number("ACCEPTED"),
    Column::number("ADVERTISED"),
];

fn show(peers: &[Peer], colours: bool) -> String {
    if peers.is_empty() {
        return "no neighbors\n".into();
    }
    let blocks: Vec<Vec<Vec<Cell>>> = peers.iter().map(rows).collect();
    let all: Vec<Vec<Cell>> = blocks.iter().flatten().cloned().collect();
    let layout = Layout::for_rows(COLUMNS, &all, colours);
    let mut out = layout.head();
    for (peer, rows) in peers.iter().zip(&blocks) {
        rows.iter().for_each(|row| out += &layout.row(row));
        out.extend(several_paths(peer).map(|words| paragraph(2, &words)));
        if let Some(reason) = &peer.state_reason {
            out += &paragraph(2, reason);
        }
        notes(peer).iter().for_each(|note| out += &paragraph(2, note));
        for family in &peer.families {
            if let Some(condition) = &family.condition {
                out += &paragraph(2, &format!("{}/{}: {condition}", family.afi, family.safi));
            }
        }
    }
    out
}

/// What an operator should not forget, or would miss.
fn notes(peer: &Peer) -> Vec<String> {
    let mut notes: Vec<String> = peer.configuration_error.iter().cloned().collect();
    if peer.graceful_shutdown {
        notes.push(
            "graceful shutdown: routes to and from it are the last choice until it is enabled".to_owned(),
        );
    }
    let stale = &peer.graceful_restart.stale_families;
    if peer.session_state == "established" && !stale.is_empty() {
        notes.push(format!("it has restarted and not said all again yet: {}", stale.join(", ")));
    }
    if !peer.missing_families.is_empty() {
        notes.push(format!("not offered by the neighbor: {}", peer.missing_families.join(", ")));
    }
    let nameless = |name: &&String| name.bytes().all(|octet| octet.is_ascii_digit());
    let nameless: Vec<&str> = peer.ignored_capabilities.iter().filter(nameless).map(String::as_str).collect();
    if !nameless.is_empty() {
        notes.push(format!("capabilities that we don't know, ignored: {}", nameless.join(", ")));
    }
    let (withdrawn, discarded) = (peer.updates_treated_as_withdraw, peer.attributes_discarded);
    if withdrawn + discarded > 0 {
        notes.push(format!(
            "faulty UPDATEs: {withdrawn} treated as withdrawals, {discarded} attributes discarded"
        ));
    }
    notes
}

fn rows(peer: &Peer) -> Vec<Vec<Cell>> {
    let up = peer.session_state == "established";
    let tone = if up { Tone::Good } else { Tone::Bad };
    let asn = if peer.peer_asn == 0 { "-".to_owned() } else { peer.peer_asn.to_string() };
    let uptime = peer.uptime_nanoseconds.map(|nanos| ago(Duration::from_nanos(nanos)));
    let first = [
        Cell::from(address(peer)),
        Cell::from(asn),
        Cell::toned(peer.session_state.clone(), tone),
        Cell::from(uptime.unwrap_or_else(|| "-".into())),
    ];
    let count = |value: u64| Cell::from(if up { value.to_string() } else { "-".into() });
    let mut families: Vec<Vec<Cell>> = peer
        .families
        .iter()
        .map(|family| {
            let name = Cell::from(format!("{}/{}", family.afi, family.safi));
            vec![name, count(family.received), count(family.accepted), count(family.advertised)]
        })
        .collect();
    if families.is_empty() {
        families.push(vec![Cell::from("-"); 4]);
    }
    let row = |(index, family): (usize, Vec<Cell>)| {
        let mut row = if index == 0 { first.to_vec() } else { vec![Cell::default(); first.len()] };
        row.extend(family);
        row
    };
    families.into_iter().enumerate().map(row).collect()
}

/// Where several paths of a prefix were agreed on, and in which direction.
fn several_paths(peer: &Peer) -> Option<String> {
    let family = |family: &PeerFamily| {
        let agreed = family.add_path.as_ref()?;
        let receives = agreed.receive.then(|| "receives".to_owned());
        let sends = agreed.send.map(|most| format!("sends up to {most}"));
        let words: Vec<String> = receives.into_iter().chain(sends).collect();
        Some(format!("{}/{} {}", family.afi, family.safi, words.join(" and ")))
    };
    let families: Vec<String> = peer.families.iter().filter_map(family).collect();
    (!families.is_empty()).then(|| format!("several paths of a prefix: {}", families.join(", ")))
}

fn address(peer: &Peer) -> String {
    match peer.peer_port {
        0 | 179 => peer.peer_address.clone(),
        port if peer.peer_address.contains(':') => format!("[{}]:{port}", peer.peer_address),
        port => format!("{}:{port}", peer.peer_address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::answer::{AddPath, GracefulRestart};

    fn family(afi: &str, received: u64) -> PeerFamily {
        PeerFamily {
            afi: afi.into(),
            safi: "unicast".into(),
            received,
            accepted: received,
            advertised: 2,
            ..PeerFamily::default()
        }
    }

    #[test]
    fn what_was_agreed_about_several_paths_is_told() {
        let agreed = |receive, send| Some(AddPath { receive, send });
        let families = vec![
            PeerFamily { add_path: agreed(true, Some(4)), ..family("ipv4", 1) },
            PeerFamily { add_path: agreed(false, Some(255)), ..family("ipv6", 1) },
        ];
        let peer = Peer { session_state: "established".into(), families, ..Peer::default() };
        let text = show(&[peer], false);
        let line = "several paths of a prefix: ipv4/unicast receives and sends up to 4, ipv6/unicast sends up to 255";
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" ").matches(line).count(), 1, "{text}");
    }

    #[test]
    fn a_table_of_peers() {
        let peers = [
            Peer {
                peer_address: "192.0.2.254".into(),
                peer_port: 179,
                peer_asn: 65000,
                session_state: "established".into(),
                uptime_nanoseconds: Some(83_000_000_000),
                families: vec![
                    PeerFamily {
                        condition: Some("1000000 prefixes, close to the limit of 1200000".into()),
                        ..family("ipv4", 1_000_000)
                    },
                    family("ipv6", 0),
                ],
                missing_families: vec!["ipv6-unicast".into()],
                ignored_capabilities: vec!["bfd".into(), "240".into()],
                updates_treated_as_withdraw: 3,
                ..Peer::default()
            },
            Peer {
                peer_address: "2001:db8:1111:2222:3333:4444:5555:6666".into(),
                peer_port: 1790,
                session_state: "active".into(),
                state_reason: Some("can't connect: connection refused".into()),
                families: vec![family("ipv6", 0)],
                ..Peer::default()
            },
        ];
        assert_eq!(
            show(&peers, false),
            "\
PEER                 AS  STATE        UPTIME  FAMILY        RECEIVED  ACCEPTED  ADVERTISED
192.0.2.254       65000  established   1m23s  ipv4/unicast   1000000   1000000           2
                                              ipv6/unicast         0         0           2
  not offered by the neighbor: ipv6-unicast
  capabilities that we don't know, ignored: 240
  faulty UPDATEs: 3 treated as withdrawals, 0 attributes discarded
  ipv4/unicast: 1000000 prefixes, close to the limit of 1200000
[2001:db8:1111:2222:3333:4444:5555:6666]:1790
                      -  active            -  ipv6/unicast         -         -           -
  can't connect: connection refused
"
        );
        assert_eq!(show(&[], false), "no neighbors\n");
        let graceful_restart =
            GracefulRestart { stale_families: vec!["ipv4-unicast".into()], ..GracefulRestart::default() };
        let leaving = Peer { graceful_shutdown: true, graceful_restart, ..peers[0].clone() };
        let text = show(&[leaving], false);
        for line in [
            "  graceful shutdown: routes to and from it are the last choice until it is enabled\n",
            "  it has restarted and not said all again yet: ipv4-unicast\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn the_widest_numbers_fit() {
        let peer = Peer {
            peer_address: "255.255.255.255".into(),
            peer_port: 65535,
            peer_asn: u32::MAX,
            session_state: "open_confirm".into(),
            uptime_nanoseconds: Some(u64::MAX),
            families: vec![family("ipv4", 100_000_000)],
            ..Peer::default()
        };
        assert!(show(&[peer], false).lines().all(|line| line.chars().count() <= 100));
    }
}
