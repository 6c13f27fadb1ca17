//! `peregrine vpp`.

mod objects;

use std::process::ExitCode;

use clap::Args;

use super::output::{colours, print, run as run_command};
use super::table::{Cell, Column, Tone, paragraph, table};
use super::{Asking, Format};
use crate::inspect::answer::{Audited, Problem, Vpp, VppObject, Wireguard, WireguardSession};
use crate::inspect::client::{ask, ask_text, post, read};

/// VPP: connection, version, and what the agent put into it: objects desired, present, pending and blocked, with reasons.
///
/// Below it, what is wrong with what was configured: file, line, object and field.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    asking: Asking,
    /// Read all that VPP holds now, compare it with what was put into it, repair the difference, and tell it. The agent
    /// does the same by itself every few minutes (`vpp.audit` in its settings).
    #[arg(long)]
    drift: bool,
    /// Show each object: whether it is wanted and there, its value, and where it can't come or go why, and when it is tried
    /// next. Routes are not among them; `peregrine explain` has them.
    #[arg(long, conflicts_with = "drift")]
    objects: bool,
}

/// So many of the objects that are on their way are shown.
const SHOWN: usize = 10;

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let Asking { socket, output } = &arguments.asking;
    run_command(async {
        if arguments.objects {
            let question = "/v1/vpp/objects";
            return match output {
                Format::Json => print(&(ask_text(socket, question).await? + "\n")),
                Format::Table => {
                    print(&objects::show(&ask::<Vec<VppObject>>(socket, question).await?, colours()))
                }
            };
        }
        match (output, arguments.drift) {
            (Format::Json, false) => print(&(ask_text(socket, "/v1/vpp").await? + "\n")),
            (Format::Json, true) => print(&(post(socket, "/v1/audit", String::new()).await? + "\n")),
            (Format::Table, false) => print(&show(&ask::<Vpp>(socket, "/v1/vpp").await?, colours())),
            (Format::Table, true) => {
                let vpp: Vpp = read(&post(socket, "/v1/audit", String::new()).await?)?;
                print(&(audited(&vpp) + "\n" + &show(&vpp, colours())))
            }
        }
    })
}

/// What the audit that was asked for found.
fn audited(vpp: &Vpp) -> String {
    let Some(Audited { number, found, again, disputed, objects }) = &vpp.audit else {
        return "No audit: VPP can't be read now.\n".into();
    };
    if *found == 0 {
        return format!("Audit {number}: VPP holds what was put into it.\n");
    }
    let mut out = format!("Audit {number}: not as they had been put, and put again: {found}\n");
    for object in objects {
        out += &paragraph(2, object);
    }
    if (objects.len() as u64) < *found {
        out += &paragraph(2, &format!("and {} more", *found - objects.len() as u64));
    }
    if *disputed > 0 {
        let text = format!(
            "{disputed} of them for the second time, changed anew after they had been put right: another client of VPP writes \
             them, too"
        );
        out += &paragraph(0, &text);
    }
    let again = again.saturating_sub(*disputed);
    if again > 0 {
        let text = format!(
            "{again} of them for the second time: most likely routes of somebody else's hide them, which VPP prefers"
        );
        out += &paragraph(0, &text);
    }
    out
}

fn show(vpp: &Vpp, colours: bool) -> String {
    let mut out = match vpp.state.as_str() {
        "off" => "VPP: none, this agent speaks BGP only\n".to_owned(),
        "up" | "reading" => {
            let version = if vpp.version.is_empty() { "of unknown release" } else { &vpp.version };
            let blocked: u64 = vpp.kinds.iter().map(|count| count.blocked).sum();
            let state = match (vpp.state.as_str(), vpp.converged) {
                ("reading", _) => "what it holds is being read".to_owned(),
                (_, true) => "it holds what it should".to_owned(),
                (_, false) if blocked > 0 => format!("{blocked} objects are blocked; see below"),
                (_, false) => "not yet as it shall be".to_owned(),
            };
            let waiting = match &vpp.waiting_for[..] {
                [] => String::new(),
                waiting => paragraph(2, &format!("waits for {}", waiting.join("; "))),
            };
            format!("VPP {version}, connection {}: {state}\n{waiting}", vpp.generation)
        }
        _ => {
            let error = vpp.last_error.as_deref().unwrap_or("not tried yet");
            paragraph(0, &format!("VPP: not connected ({error}); trying on"))
        }
    };
    if !vpp.kinds.is_empty() {
        let columns = [
            Column::text("OBJECTS"),
            Column::number("DESIRED"),
            Column::number("PRESENT"),
            Column::number("PENDING"),
            Column::number("BLOCKED"),
        ];
        let rows: Vec<Vec<Cell>> = vpp
            .kinds
            .iter()
            .map(|count| {
                let tone = if count.blocked > 0 { Tone::Bad } else { Tone::Plain };
                vec![
                    Cell::from(count.kind.clone()),
                    Cell::from(count.desired.to_string()),
                    Cell::from(count.present.to_string()),
                    Cell::from(count.pending.to_string()),
                    Cell::toned(count.blocked.to_string(), tone),
                ]
            })
            .collect();
        out.push('\n');
        out += &table(&columns, &rows, colours);
        // Tables and the uplink belong to whoever set VPP up.
        if vpp.kinds.iter().any(|count| count.present > count.desired) {
            out += "PRESENT also counts what others made and what is on its way out.\n";
        }
    }
    let of = |state| vpp.objects.iter().filter(move |object| object.state == state);
    if of("blocked").next().is_some() {
        out += "\nNot as they should be:\n";
        for object in of("blocked") {
            let next = objects::next_try(object.attempts, object.next_try_seconds);
            let name = objects::with_value(&object.object, &object.value);
            out += &paragraph(2, &format!("{name}: {}: {}{next}", object.state, object.reason));
        }
    }
    if of("pending").next().is_some() {
        out += "\nOn their way:\n";
        for object in of("pending").take(SHOWN) {
            let name = objects::with_value(&object.object, &object.value);
            out += &paragraph(2, &format!("{name} {}", object.reason));
        }
        let pending: u64 = vpp.kinds.iter().map(|count| count.pending).sum();
        let more = pending.saturating_sub(SHOWN as u64);
        if more > 0 {
            out += &paragraph(2, &format!("and {more} more"));
        }
    }
    if let Some(wireguard) = &vpp.wireguard {
        out += &encryption(wireguard, colours);
    }
    if !vpp.conditions.is_empty() {
        out += "\nConfiguration:\n";
        for problem in &vpp.conditions {
            out += &paragraph(2, &describe(problem));
        }
    }
    out
}

/// This node's keys, and the nodes that traffic goes to encrypted.
fn encryption(wireguard: &Wireguard, colours: bool) -> String {
    let key = |key: &Option<String>| key.clone().unwrap_or_else(|| "none".to_owned());
    let (ipv4, ipv6) = (key(&wireguard.public_key), key(&wireguard.public_key_v6));
    let mut out =
        format!("\nWireGuard keys of this node: IPv4 {ipv4}\n                             IPv6 {ipv6}\n");
    if wireguard.sessions.is_empty() {
        return out;
    }
    let columns = [Column::text("PEER"), Column::text("PUBLIC KEY"), Column::text("SESSION")];
    let row = |session: &WireguardSession| {
        // Idle peers have none: VPP makes one when there is something to send.
        let (state, tone) =
            if session.established { ("established", Tone::Good) } else { ("none now", Tone::Plain) };
        vec![
            Cell::from(session.peer.clone()),
            Cell::from(session.public_key.clone()),
            Cell::toned(state.to_owned(), tone),
        ]
    };
    let rows: Vec<Vec<Cell>> = wireguard.sessions.iter().map(row).collect();
    out += &table(&columns, &rows, colours);
    out
}

pub(super) fn describe(problem: &Problem) -> String {
    let place = match (&problem.file, problem.line) {
        (Some(file), Some(line)) => format!("{file}:{line}: "),
        (Some(file), None) => format!("{file}: "),
        (None, _) => String::new(),
    };
    let field = if problem.field.is_empty() { String::new() } else { format!(" {}", problem.field) };
    let remedy = if problem.remedy.is_empty() { String::new() } else { format!(" ({})", problem.remedy) };
    format!(
        "{}: {place}{} {}{field}: {}{remedy}",
        problem.severity, problem.kind, problem.name, problem.reason
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::answer::{Count, Unsettled};

    #[test]
    fn everything_is_shown() {
        let vpp = Vpp {
            state: "up".into(),
            version: "26.06-release".into(),
            generation: 3,
            waiting_for: vec!["1 objects on their way to VPP".into(), "what blocks 1 objects".into()],
            kinds: vec![
                Count { kind: "route".into(), desired: 1000, present: 998, pending: 1, blocked: 1 },
                Count { kind: "tunnel".into(), desired: 1, present: 1, ..Count::default() },
            ],
            objects: vec![
                Unsettled {
                    object: "route 10.0.0.0/8 table 0".into(),
                    state: "blocked".into(),
                    reason: "VPP answered -3 (NO_SUCH_FIB)".into(),
                    attempts: 2,
                    next_try_seconds: Some(7),
                    ..Unsettled::default()
                },
                Unsettled {
                    object: "mtu of ipip tunnel 192.0.2.1 to 192.0.2.2".into(),
                    value: "1480 octets".into(),
                    state: "pending".into(),
                    reason: "is being changed".into(),
                    ..Unsettled::default()
                },
            ],
            wireguard: Some(Wireguard {
                public_key: Some("hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=".into()),
                public_key_v6: None,
                sessions: vec![WireguardSession {
                    peer: "192.0.2.2".into(),
                    public_key: "3p7bfXt9wbTTW2HC7OQ1cz+DQ8hbeGdNre+8QYb4gk8=".into(),
                    established: true,
                }],
            }),
            conditions: vec![Problem {
                severity: "error".into(),
                kind: "BGPPeer".into(),
                name: "tor".into(),
                field: "spec.peerIP".into(),
                file: Some("/etc/peers.yaml".into()),
                line: Some(7),
                reason: "must be an address".into(),
                remedy: "its last good version stays in force".into(),
            }],
            ..Vpp::default()
        };
        assert_eq!(
            show(&vpp, false),
            "\
VPP 26.06-release, connection 3: 1 objects are blocked; see below
  waits for 1 objects on their way to VPP; what blocks 1 objects

OBJECTS  DESIRED  PRESENT  PENDING  BLOCKED
route       1000      998        1        1
tunnel         1        1        0        0

Not as they should be:
  route 10.0.0.0/8 table 0: blocked: VPP answered -3 (NO_SUCH_FIB); failed twice, tried again in 7 s

On their way:
  mtu of ipip tunnel 192.0.2.1 to 192.0.2.2 (1480 octets) is being changed

WireGuard keys of this node: IPv4 hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=
                             IPv6 none
PEER       PUBLIC KEY                                    SESSION
192.0.2.2  3p7bfXt9wbTTW2HC7OQ1cz+DQ8hbeGdNre+8QYb4gk8=  established

Configuration:
  error: /etc/peers.yaml:7: BGPPeer tor spec.peerIP: must be an address (its last good version stays
  in force)
"
        );
    }

    #[test]
    fn what_an_audit_found_is_shown() {
        let with = |audit| audited(&Vpp { audit, ..Vpp::default() });
        assert_eq!(with(None), "No audit: VPP can't be read now.\n");
        let mut audit = Audited { number: 2, ..Audited::default() };
        assert_eq!(with(Some(audit.clone())), "Audit 2: VPP holds what was put into it.\n");
        (audit.found, audit.again, audit.disputed) = (3, 2, 1);
        audit.objects = vec!["ipip tunnel 192.0.2.1 to 192.0.2.2".into(), "route 10.0.0.0/8 table 0".into()];
        assert_eq!(
            with(Some(audit)),
            "\
Audit 2: not as they had been put, and put again: 3
  ipip tunnel 192.0.2.1 to 192.0.2.2
  route 10.0.0.0/8 table 0
  and 1 more
1 of them for the second time, changed anew after they had been put right: another client of VPP
writes them, too
1 of them for the second time: most likely routes of somebody else's hide them, which VPP prefers
"
        );
    }

    #[test]
    fn no_connection() {
        let vpp =
            Vpp { state: "connecting".into(), last_error: Some("No such file".into()), ..Vpp::default() };
        assert_eq!(show(&vpp, false), "VPP: not connected (No such file); trying on\n");
        let off = Vpp { state: "off".into(), ..Vpp::default() };
        assert_eq!(show(&off, false), "VPP: none, this agent speaks BGP only\n");
    }
}
