//! `peregrine routes`.

mod new_file;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bgp_core::{Family, Nlri};
use clap::Args;
use http_body_util::BodyExt;

use super::output::{CommandError, ago, colours, run as run_command};
use super::table::{Cell, Column, Layout, Tone};
use super::{Asking, Format};
use crate::inspect::answer::{Route, SrPolicy};
use crate::inspect::client::{AskError, open};
use crate::yaml::nearest;
use new_file::NewFile;

/// Routes of a table, streamed: the first ones appear while the last ones are still being read.
///
/// `*` marks the best path of a destination, `=` one that is used beside it (multipath), `x` one that may not become it;
/// `s` one that is kept for a neighbor which has gone away (graceful restart), `S` one that has been kept for so long that
/// it is a last resort (RFC 9494). A path of our own has `-` as its source and `self` as its next hop; `#7` behind a
/// neighbor is a path identifier. A long AS path is cut on the screen; JSON has all of it. Up to 500 routes are sorted.
///
/// With --mrt the table goes into a file (MRT, TABLE_DUMP_V2 of RFC 6396 and 8050) that other tools read, and `peregrine
/// check --routes`: of loc-rib every path that may be used, as import policy left it; of adj-rib-in every path as it came.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// TABLE, FAMILY and PREFIX in any order, each may be left out. TABLE: loc-rib (default), adj-rib-in or adj-rib-out,
    /// which are those of every neighbor unless --neighbor names one. FAMILY: ipv4-unicast (default), ipv6-unicast,
    /// ipv4-vpn, ipv6-vpn, ipv4-srpolicy, ipv6-srpolicy or all. PREFIX: only this one, and of its family; in a VPN behind
    /// its route distinguisher, as in 65000:100:10.0.0.0/8; an SR policy as DISTINGUISHER:COLOR:ENDPOINT.
    #[arg(value_name = "TABLE|FAMILY|PREFIX")]
    words: Vec<String>,
    /// The neighbor whose adj-rib-in or adj-rib-out is shown.
    #[arg(long, value_name = "ADDRESS")]
    neighbor: Option<String>,
    /// Write the table into this file instead of showing it, for its owner to read; `-` for standard output. Without FAMILY
    /// all of them. The file is there once it is whole.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    mrt: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

const TABLES: [&str; 3] = ["loc-rib", "adj-rib-in", "adj-rib-out"];

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    let question = match question(arguments) {
        Ok(question) => question,
        Err(error) => {
            eprintln!("peregrine routes: {error}");
            return ExitCode::from(2);
        }
    };
    let Asking { socket, output } = &arguments.asking;
    if let Some(path) = &arguments.mrt {
        return run_command(record(socket, &question, path));
    }
    run_command(async {
        let mut body = open(socket, &question).await?.into_body();
        let mut out = BufWriter::new(std::io::stdout().lock());
        let mut printer = match output {
            Format::Json => Printer::Json,
            Format::Table => Printer::Table(Routes {
                // Labels may come after the columns are settled.
                with_label: question.contains("-vpn"),
                ..Routes::default()
            }),
        };
        let mut rest = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(AskError::from)?;
            let Ok(data) = frame.into_data() else { continue };
            match &mut printer {
                Printer::Json => out.write_all(&data)?,
                Printer::Table(routes) => {
                    rest.extend_from_slice(&data);
                    let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
                    for line in rest.drain(..whole).as_slice().split(|byte| *byte == b'\n') {
                        routes.line(line, &mut out)?;
                    }
                    // What has arrived is shown before the rest is waited for.
                    if routes.layout.is_some() {
                        out.flush()?;
                    }
                }
            }
        }
        if let Printer::Table(routes) = &mut printer {
            routes.finish(&mut out)?;
        }
        Ok(out.flush()?)
    })
}

/// Have the table in a file.
async fn record(socket: &Path, question: &str, path: &Path) -> Result<(), CommandError> {
    let mut body = open(socket, question).await?.into_body();
    let mut file = if path == Path::new("-") { None } else { Some(NewFile::create(path)?) };
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(AskError::from)?.into_data() else { continue };
        match &mut file {
            Some(file) => file.write_all(&data)?,
            None => std::io::stdout().lock().write_all(&data)?,
        }
    }
    Ok(file.map_or_else(|| std::io::stdout().flush(), NewFile::keep)?)
}

enum Printer {
    Json,
    Table(Routes),
}

/// What is asked, as the query of a URI.
fn question(arguments: &Arguments) -> Result<String, String> {
    let Arguments { words, neighbor, mrt, .. } = arguments;
    let (mut table, mut family, mut prefix) = (None, None, None);
    for word in words {
        let (place, kind) = if TABLES.contains(&&**word) {
            (&mut table, "table")
        } else if word == "all" || word.parse::<Family>().is_ok() {
            (&mut family, "family")
        } else if word.contains('/') || word.parse::<Nlri>().is_ok() {
            (&mut prefix, "prefix")
        } else {
            let known = TABLES.into_iter().chain(Family::ALL.map(Family::name)).chain(["all"]);
            let hint = match nearest(word, known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if word.parse::<std::net::IpAddr>().is_ok() => {
                    "a prefix has a length, as in 10.0.0.0/8".into()
                }
                None => "see --help".into(),
            };
            return Err(format!("\"{word}\" is no table, family or prefix of this release; {hint}"));
        };
        if place.replace(word).is_some() {
            return Err(format!("only one {kind} at a time"));
        }
    }
    if let Some(prefix) = prefix {
        let family = family.and_then(|family| family.parse::<Family>().ok());
        let read = family.map_or_else(|| prefix.parse(), |family| Nlri::parse_as(family, prefix));
        read.map_err(|error| error.to_string())?;
    }
    let mut query = format!("/v1/routes?table={}", table.map_or(TABLES[0], String::as_str));
    let recorded = mrt.as_ref();
    let every = recorded.filter(|_| prefix.is_none()).map(|_| "all");
    for (key, value) in [
        ("family", family.map(String::as_str).or(every)),
        ("prefix", prefix.map(String::as_str)),
        ("neighbor", neighbor.as_deref()),
        ("format", recorded.map(|_| "mrt")),
    ] {
        if let Some(value) = value {
            query += &format!("&{key}={}", encode(value));
        }
    }
    Ok(query)
}

/// For the query of a URI.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

/// Routes are held back until there are so many, and then the columns' widths are settled. A table with fewer is sorted.
const SAMPLE: usize = 500;

/// The table as it grows.
#[derive(Default)]
struct Routes {
    held: Vec<Route>,
    layout: Option<Layout>,
    with_neighbor: bool,
    with_label: bool,
    last: (String, String),
}

impl Routes {
    fn line(&mut self, line: &[u8], out: &mut impl Write) -> Result<(), CommandError> {
        let line = line.strip_suffix(b",").unwrap_or(line);
        if !line.starts_with(b"{") {
            return Ok(());
        }
        let route: Route = serde_json::from_slice(line).map_err(AskError::from)?;
        self.with_neighbor |= !route.neighbor.is_empty();
        if self.layout.is_some() {
            return self.write(&route, out);
        }
        self.with_label |= route.paths.iter().any(|path| path.label.is_some());
        self.held.push(route);
        if self.held.len() >= SAMPLE {
            self.settle(true, out)?;
        }
        Ok(())
    }

    fn write(&mut self, route: &Route, out: &mut impl Write) -> Result<(), CommandError> {
        let rows = self.rows(route);
        match &self.layout {
            Some(layout) => print(layout, rows, out),
            None => Ok(()),
        }
    }

    /// One row for each path, and the lines below it; what repeats is left out.
    fn rows(&mut self, route: &Route) -> Vec<(Vec<Cell>, Vec<String>)> {
        let mut rows = Vec::new();
        for path in &route.paths {
            let stale = match (path.stale, path.long_lived_stale) {
                (_, true) => "S",
                (true, false) => "s",
                (false, false) => "",
            };
            let mark = match (path.best, &path.rejected) {
                (true, _) => Cell::toned(format!("*{stale}"), Tone::Good),
                (false, None) if path.multipath => Cell::toned(format!("={stale}"), Tone::Good),
                (false, Some(_)) => Cell::toned(format!("x{stale}"), Tone::Bad),
                (false, None) => Cell::from(stale.to_owned()),
            };
            let here = (route.neighbor.clone(), route.prefix.clone());
            let prefix = if self.last == here { Cell::default() } else { Cell::from(route.prefix.clone()) };
            let number =
                |value: Option<u32>| Cell::from(value.map_or_else(|| "-".into(), |value| value.to_string()));
            let whom = if self.with_neighbor {
                &route.neighbor
            } else {
                path.source.as_ref().unwrap_or(&route.neighbor)
            };
            let whom = if whom.is_empty() { "-".to_owned() } else { whom.clone() };
            let whom = path.path_id.map_or(whom.clone(), |id| format!("{whom} #{id}"));
            let mut row = vec![mark, prefix, Cell::from(next_hop(&path.next_hop))];
            if self.with_label {
                row.push(number(path.label));
            }
            row.extend([
                Cell::from(whom),
                Cell::from(ago(Duration::from_nanos(path.age_nanoseconds))),
                number(path.local_pref),
                number(path.med),
                Cell::from(if path.as_path.is_empty() {
                    path.origin.clone()
                } else {
                    format!("{} {}", path.as_path, path.origin)
                }),
            ]);
            rows.push((row, path.sr_policy.as_ref().map(SrPolicy::lines).unwrap_or_default()));
            self.last = here;
        }
        rows
    }

    /// Settle the widths, with room for rows to come where there are `more`.
    fn settle(&mut self, more: bool, out: &mut impl Write) -> Result<(), CommandError> {
        let room = |columns: usize| if more { columns } else { 0 };
        let mut columns = vec![
            Column::text("").at_least(room(2)),
            Column::narrow("PREFIX", 20).at_least(room(18)),
            Column::narrow("NEXT HOP", 16).at_least(room(15)),
        ];
        columns.extend(self.with_label.then(|| Column::number("LABEL")));
        columns.extend([
            Column::narrow(if self.with_neighbor { "NEIGHBOR" } else { "FROM" }, 21).at_least(room(15)),
            Column::number("AGE"),
            Column::number("PREF"),
            Column::number("MED"),
            Column::cut("AS PATH, ORIGIN"),
        ]);
        let mut held = std::mem::take(&mut self.held);
        if !more {
            held.sort_by_cached_key(|route| (route.neighbor.clone(), route.prefix.parse::<Nlri>().ok()));
        }
        let rows: Vec<_> = held.iter().flat_map(|route| self.rows(route)).collect();
        let cells: Vec<Vec<Cell>> = rows.iter().map(|(row, _)| row.clone()).collect();
        let layout = Layout::for_rows(&columns, &cells, colours());
        out.write_all(layout.head().as_bytes())?;
        print(&layout, rows, out)?;
        self.layout = Some(layout);
        Ok(())
    }

    fn finish(&mut self, out: &mut impl Write) -> Result<(), CommandError> {
        match (&self.layout, self.held.is_empty()) {
            (None, true) => out.write_all(b"no routes\n")?,
            (None, false) => self.settle(false, out)?,
            (Some(_), _) => {}
        }
        Ok(())
    }
}

fn print(
    layout: &Layout,
    rows: Vec<(Vec<Cell>, Vec<String>)>,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    for (row, below) in rows {
        out.write_all(layout.row(&row).as_bytes())?;
        for line in below {
            writeln!(out, "     {line}")?;
        }
    }
    Ok(())
}

/// An own route's next hop is our address of whichever session it is told on.
pub(super) fn next_hop(text: &str) -> String {
    if matches!(text, "0.0.0.0" | "::") { "self".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::answer::Path;

    fn asked(words: &str, neighbor: Option<&str>, mrt: Option<&str>) -> Arguments {
        Arguments {
            words: words.split_whitespace().map(str::to_owned).collect(),
            neighbor: neighbor.map(str::to_owned),
            mrt: mrt.map(PathBuf::from),
            asking: Asking { socket: PathBuf::new(), output: Format::Table },
        }
    }

    #[test]
    fn words_in_any_order() {
        let ask = |text, neighbor| question(&asked(text, neighbor, None)).unwrap();
        assert_eq!(ask("", None), "/v1/routes?table=loc-rib");
        assert_eq!(
            ask("10.0.0.0/8 adj-rib-in ipv4-unicast", Some("fe80::1%2")),
            "/v1/routes?table=adj-rib-in&family=ipv4-unicast&prefix=10.0.0.0/8&neighbor=fe80::1%252"
        );
        assert_eq!(ask("all adj-rib-out", None), "/v1/routes?table=adj-rib-out&family=all");
        let record = |text| question(&asked(text, None, Some("file"))).unwrap();
        assert_eq!(record(""), "/v1/routes?table=loc-rib&family=all&format=mrt");
        assert_eq!(record("ipv4-vpn"), "/v1/routes?table=loc-rib&family=ipv4-vpn&format=mrt");
        assert_eq!(record("10.0.0.0/8"), "/v1/routes?table=loc-rib&prefix=10.0.0.0/8&format=mrt");
    }

    #[test]
    fn wrong_words_are_answered_in_words() {
        let cases = [
            (
                "loc-rip",
                "\"loc-rip\" is no table, family or prefix of this release; did you mean \"loc-rib\"?",
            ),
            (
                "10.0.0.0",
                "\"10.0.0.0\" is no table, family or prefix of this release; a prefix has a length, as in 10.0.0.0/8",
            ),
            ("10.0.0.1/8", "10.0.0.1/8 has host bits set, did you mean 10.0.0.0/8?"),
            ("ipv4-vpn 10.0.0.0/8", "10.0.0.0/8 is not of family ipv4-vpn"),
            ("loc-rib adj-rib-in", "only one table at a time"),
        ];
        for (text, expected) in cases {
            assert_eq!(question(&asked(text, None, None)), Err(expected.to_owned()));
        }
    }

    #[test]
    fn a_route_of_a_vpn_has_its_label() {
        let labelled = Path { best: true, label: Some(100), ..path("192.0.2.2", Some("192.0.2.2"), "65000") };
        let plain = Path { best: true, ..path("192.0.2.3", Some("192.0.2.3"), "65000") };
        let route =
            |prefix: &str, path| Route { prefix: prefix.into(), paths: vec![path], ..Route::default() };
        let text = print(&[route("65000:1:10.0.0.0/8", labelled), route("10.0.0.0/8", plain)]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..4], ["PREFIX", "NEXT", "HOP", "LABEL"]);
        assert_eq!(lines[1][1..4], ["10.0.0.0/8", "192.0.2.3", "-"], "unicast first");
        assert_eq!(lines[2][1..4], ["65000:1:10.0.0.0/8", "192.0.2.2", "100"]);
        assert!(question(&asked("ipv6-vpn 1:2:3::/48", None, None)).is_ok());
    }

    fn print(routes: &[Route]) -> String {
        let mut out = Vec::new();
        let mut printer = Routes::default();
        for route in routes {
            let mut line = serde_json::to_vec(route).unwrap();
            line.push(b',');
            printer.line(&line, &mut out).unwrap();
        }
        printer.finish(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn path(next_hop: &str, source: Option<&str>, as_path: &str) -> Path {
        Path {
            next_hop: next_hop.into(),
            source: source.map(str::to_owned),
            as_path: as_path.into(),
            origin: "igp".into(),
            age_nanoseconds: 5_000_000_000,
            ..Path::default()
        }
    }

    #[test]
    fn a_table_of_routes() {
        let best =
            Path { best: true, local_pref: Some(100), ..path("192.0.2.2", Some("192.0.2.2"), "65000 65001") };
        let rejected =
            Path { rejected: Some("import policy".into()), ..path("192.0.2.3", Some("192.0.2.3"), "") };
        let own = Path { best: true, ..path("0.0.0.0", None, "") };
        let route = |prefix: &str, paths| Route { prefix: prefix.into(), paths, ..Route::default() };
        let text = print(&[
            route("2001:db8:1111:2222:3333:4444::/96", vec![own]),
            route("10.0.0.0/8", vec![best.clone(), rejected]),
        ]);
        assert_eq!(
            text,
            "   PREFIX                NEXT HOP   FROM       AGE  PREF  MED  AS PATH, ORIGIN
*  10.0.0.0/8            192.0.2.2  192.0.2.2   5s   100    -  65000 65001 igp
x                        192.0.2.3  192.0.2.3   5s     -    -  igp
*  2001:db8:1111:2222:3333:4444::/96
                         self       -           5s     -    -  igp
"
        );
        assert_eq!(print(&[]), "no routes\n");
        let stale = Path { stale: true, ..best };
        let long_lived = Path { long_lived_stale: true, best: false, ..stale.clone() };
        assert_eq!(
            print(&[route("10.0.0.0/8", vec![stale, long_lived])]),
            "    PREFIX      NEXT HOP   FROM       AGE  PREF  MED  AS PATH, ORIGIN
*s  10.0.0.0/8  192.0.2.2  192.0.2.2   5s   100    -  65000 65001 igp
S               192.0.2.2  192.0.2.2   5s   100    -  65000 65001 igp
"
        );
    }

    #[test]
    fn paths_of_one_neighbor_are_told_apart() {
        let with = |id, as_path| Path { path_id: Some(id), ..path("192.0.2.2", Some("192.0.2.2"), as_path) };
        let paths = vec![with(4_294_967_295, "65001"), with(0, "65002 65001")];
        let text = print(&[Route { prefix: "10.0.0.0/8".into(), paths, ..Route::default() }]);
        assert!(text.contains("192.0.2.2 #4294967295 ") && text.contains("192.0.2.2 #0 "), "{text}");
    }

    #[test]
    fn an_sr_policy_says_more_than_a_row_holds() {
        let sr_policy = serde_json::from_str(
            r#"{ "distinguisher": 1, "color": 100, "endpoint": "192.0.2.9", "preference": 100, "usable": true,
                 "segment-lists": [{ "weight": 1, "segments": [{ "text": "label 16001" }] }] }"#,
        );
        let best = path("192.0.2.2", Some("192.0.2.2"), "");
        let path = Path { best: true, sr_policy: Some(sr_policy.unwrap()), ..best };
        let text =
            print(&[Route { prefix: "1:100:192.0.2.9".into(), paths: vec![path], ..Route::default() }]);
        assert_eq!(
            text,
            "   PREFIX           NEXT HOP   FROM       AGE  PREF  MED  AS PATH, ORIGIN
*  1:100:192.0.2.9  192.0.2.2  192.0.2.2   5s     -    -  igp
     distinguisher 1, color 100, endpoint 192.0.2.9, preference 100
     weight 1: label 16001
"
        );
    }

    #[test]
    fn no_line_is_too_wide_however_many_there_are() {
        let long = "4200000001 ".repeat(30);
        let routes: Vec<Route> = (0..2000)
            .map(|index| Route {
                prefix: format!("10.{}.{}.0/24", index / 250, index % 250),
                paths: vec![path("192.0.2.254", Some("192.0.2.254:17900"), &long)],
                ..Route::default()
            })
            .collect();
        let text = print(&routes);
        assert_eq!(text.lines().count(), 2001);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{}", &text[..2000]);
    }
}
