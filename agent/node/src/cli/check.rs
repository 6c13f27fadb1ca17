//! `peregrine check`.

mod live;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Serialize;

use super::output::{colours, print};
use super::table::{Cell, Column, Tone, paragraph, table};
use super::vpp::describe;
use super::{DEFAULT_SOCKET, Format};
use crate::check::{Checked, check};
use crate::dry_run::{Outcome, Rule};
use crate::engine::problem;
use crate::inspect::answer::{Affected, PolicyChange, Problem};
use crate::recording::Recording;
use live::LiveTable;

/// Read manifests, the settings of an agent, or the file of a speaker, and report every problem with its file, line, object, field and remedy.
///
/// Nothing runs and nothing is changed. Ends with 0 where there is nothing to report, 1 where there are problems or
/// warnings, 2 where something could not be read.
///
/// With --routes or --live each BGPFilter, and each policy of a speaker's file, is tried on a table: what each of its rules
/// would accept, reject and change. On import a path is taken as its peer sent it, so that a table of adj-rib-in is wanted
/// (`peregrine routes adj-rib-in --mrt FILE`); what is told is taken as told to a neighbor in another AS. What no rule
/// decides is left to the session's next policy. Interfaces are not known, so that no rule about one matches.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Files, and folders of manifests as `datastore: directory:PATH` takes them. All manifests are looked at together.
    #[arg(required = true, value_name = "FILE-OR-DIR")]
    paths: Vec<PathBuf>,
    /// A table (MRT; may be packed by gzip or bzip2) that filters and policies are tried on.
    #[arg(long, value_name = "FILE", conflicts_with = "live")]
    routes: Option<PathBuf>,
    /// Try filters and policies on what the neighbors of the running process have sent; and say what would change at each
    /// neighbor if they took the place of those in force that have their names.
    #[arg(long)]
    live: bool,
    /// Show the prefixes that each rule decides; JSON always has them.
    #[arg(short, long)]
    verbose: bool,
    /// Unix socket of the running process, for --live.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// How to show the answer.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Format,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let checked = check(&arguments.paths);
    let problems: Vec<Problem> = checked.findings.problems.iter().map(problem).collect();
    let mut unreadable = checked.findings.unreadable;
    let tried = (arguments.routes.is_some() || arguments.live).then(|| try_routes(arguments, &checked));
    let mut text = match (arguments.output, &tried) {
        (Format::Json, None) => serde_json::to_string(&problems).unwrap_or_default() + "\n",
        (Format::Json, Some(Ok(tried))) => {
            let both = Both { problems: &problems, routes: &tried.outcomes, changes: &tried.changes };
            serde_json::to_string(&both).unwrap_or_default() + "\n"
        }
        (Format::Json, Some(Err(_))) => String::new(),
        (Format::Table, _) => problems.iter().map(|problem| describe(problem) + "\n").collect(),
    };
    match &tried {
        None => {}
        Some(Ok(tried)) => {
            if let Format::Table = arguments.output {
                text += if text.is_empty() { "" } else { "\n" };
                text += &show(&tried.outcomes, arguments.verbose, colours());
                text += &tried.changes.as_deref().map(show_changes).unwrap_or_default();
            }
            for said in &tried.said {
                eprintln!("peregrine check: {said}");
            }
            unreadable |= tried.flawed;
        }
        Some(Err(error)) => {
            eprintln!("peregrine check: {error}");
            unreadable = true;
        }
    }
    // Whoever reads may go away; the exit code says enough.
    let _ = print(&text);
    ExitCode::from(match (unreadable, problems.is_empty()) {
        (true, _) => 2,
        (false, false) => 1,
        (false, true) => 0,
    })
}

/// Problems, and what became of the routes.
#[derive(Debug, Serialize)]
struct Both<'a> {
    problems: &'a [Problem],
    routes: &'a [Outcome],
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: &'a Option<Vec<PolicyChange>>,
}

/// What a dry run has come to.
#[derive(Debug, Default)]
struct Tried {
    outcomes: Vec<Outcome>,
    /// What would change at the neighbours of the running process, where that was asked.
    changes: Option<Vec<PolicyChange>>,
    /// Something could not be read.
    flawed: bool,
    /// What a person should know.
    said: Vec<String>,
}

fn try_routes(arguments: &Arguments, checked: &Checked) -> Result<Tried, String> {
    let named = arguments.verbose || matches!(arguments.output, Format::Json);
    let mut tried = Tried::default();
    let runs = checked.dry_runs(named);
    let nothing_to_try = runs.is_empty();
    for mut run in runs {
        let (name, recording) = match &arguments.routes {
            Some(path) => (path.display().to_string(), Recording::open(path)),
            None => {
                let table = LiveTable::open(&arguments.socket);
                ("the running process".to_owned(), Ok(Recording::new(Box::new(table))))
            }
        };
        let flaws = recording.and_then(|recording| run.table(recording));
        let flaws = flaws.map_err(|error| format!("{name}: {error}"))?;
        if flaws.records + flaws.paths > 0 && tried.said.is_empty() {
            tried.said.push(format!(
                "{name}: {} records and {} paths cannot be read; the first: {}",
                flaws.records,
                flaws.paths,
                flaws.first.unwrap_or_default()
            ));
            tried.flawed |= flaws.records > 0;
        }
        tried.outcomes.extend(run.outcomes());
    }
    if arguments.live {
        tried.changes =
            Some(live::changes(&arguments.socket, checked, named).map_err(|error| error.to_string())?);
    }
    if nothing_to_try {
        tried.said.push("there is no BGPFilter with a rule and no policy to try".into());
    } else if tried.outcomes.iter().all(|outcome| outcome.paths == 0) {
        let said = if arguments.live {
            "the neighbors of the running process have sent no route to try them on"
        } else {
            "there is no route to try them on; of a recording the table counts, not the messages"
        };
        tried.said.push(said.into());
    }
    Ok(tried)
}

/// What would change at the neighbours, as text.
fn show_changes(changes: &[PolicyChange]) -> String {
    if changes.is_empty() {
        return "\nAt the neighbors of the running process nothing would change.\n".into();
    }
    let mut out = String::from("\nAt the neighbors of the running process:\n");
    for change in changes {
        let PolicyChange { neighbor, direction, family, paths, accepted, rejected, changed } = change;
        out += &paragraph(
            2,
            &format!(
                "{neighbor}, {direction}, {family}: of {paths} paths {} more would be accepted, {} rejected, {} changed",
                accepted.paths, rejected.paths, changed.paths
            ),
        );
        let listed = |what: &str, affected: &Affected| match affected.prefixes.is_empty() {
            true => String::new(),
            false => paragraph(4, &format!("{what}: {}", affected.prefixes.join(" "))),
        };
        out += &listed("accepted", accepted);
        out += &listed("rejected", rejected);
        out += &listed("changed", changed);
    }
    out
}

/// What became of the routes, as text.
fn show(outcomes: &[Outcome], named: bool, colours: bool) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        if !out.is_empty() {
            out.push('\n');
        }
        let Outcome { object, direction, family, paths, accepted, rejected, undecided, changed, .. } =
            outcome;
        out += &paragraph(
            0,
            &format!(
                "{object}, {direction}, {family}: {paths} paths, {accepted} accepted, {rejected} rejected, \
                 {undecided} undecided; {changed} changed"
            ),
        );
        let row = |rule: &Rule| {
            let tone = match (rule.paths, rule.then.as_str()) {
                (0, _) => Tone::Plain,
                (_, "reject") => Tone::Bad,
                _ => Tone::Good,
            };
            let number = |number: u64| Cell::from(number.to_string());
            vec![
                Cell::toned(rule.then.clone(), tone),
                number(rule.paths),
                number(rule.changed),
                Cell::from(rule.rule.clone()),
            ]
        };
        let columns =
            [Column::text("THEN"), Column::number("PATHS"), Column::number("CHANGED"), Column::text("RULE")];
        let rows: Vec<Vec<Cell>> = outcome.rules.iter().map(row).collect();
        out += &table(&columns, &rows, colours);
        if named {
            for rule in outcome.rules.iter().filter(|rule| !rule.prefixes.is_empty()) {
                out += &paragraph(2, &format!("{}: {}", rule.rule, rule.prefixes.join(" ")));
            }
        }
    }
    out
}
