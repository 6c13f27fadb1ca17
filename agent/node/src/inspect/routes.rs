//! `/v1/routes`: a table, family or prefix, page by page.
//!
//! The answer is a JSON array with one route a line, so that a reader can begin before the end and holds one line at a
//! time; with `format=mrt` it is a recorded table. Pages are read as fast as the reader takes them; what changes meanwhile
//! is seen before or after the change. An answer that has to end before it is whole breaks off.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use bgp_core::peer_key::PeerKey;
use bgp_core::query::{RouteEntry, RouteQuery, RouteTable};
use bgp_core::{Asn, Family, Nlri, RouterId};
use bgp_net::{Handle, RoutesError, Stopped};
use bgp_wire::NlriParseError;
use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use hyper::{Response, StatusCode};

use super::answer::Route;
use super::http::{Body, BrokenOff, JSON, chunks, failure};
use super::mrt::Recorder;

/// Chunks are sent when they have grown to this.
const CHUNK: usize = 32 << 10;

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Question {
    table: Table,
    families: Vec<Family>,
    prefix: Option<Nlri>,
    neighbor: Option<String>,
    mrt: bool,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Table {
    #[default]
    LocRib,
    AdjRibIn,
    AdjRibOut,
}

/// Answer a question, given as the query of a URI.
pub(super) async fn answer(speaker: &Handle, query: &str) -> Response<Body> {
    let question = match Question::parse(query) {
        Ok(question) => question,
        Err(error) => return failure(StatusCode::BAD_REQUEST, error),
    };
    let tables = match tables(speaker, &question).await {
        Ok(Ok(tables)) => tables,
        Ok(Err(error)) => return failure(StatusCode::BAD_REQUEST, error),
        Err(Stopped) => return super::stopped(),
    };
    let Ok(identity) = speaker.ask(|speaker, _| speaker.identity()).await else { return super::stopped() };
    let mut chunk = Vec::new();
    let (form, media_type) = if question.mrt {
        let Ok(neighbors) = speaker.peers().await else { return super::stopped() };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        // The format's time ends in 2106.
        let now = u32::try_from(now).unwrap_or(u32::MAX);
        match Recorder::begin(identity, &neighbors, now, &mut chunk) {
            Ok(recorder) => (Form::Mrt(recorder), "application/octet-stream"),
            Err(error) => return failure(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        }
    } else {
        (Form::Json(identity), JSON)
    };
    let (sender, body) = Channel::new(4);
    let stream = Stream { speaker: speaker.clone(), form, sender, chunk, any: false };
    tokio::spawn(stream.run(question, tables));
    chunks(media_type, body)
}

impl Question {
    fn parse(query: &str) -> Result<Self, String> {
        let mut question = Self::default();
        let (mut family, mut prefix) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decode(value);
            if value.is_empty() {
                continue;
            }
            match key {
                "table" => {
                    question.table = match &*value {
                        "loc-rib" => Table::LocRib,
                        "adj-rib-in" => Table::AdjRibIn,
                        "adj-rib-out" => Table::AdjRibOut,
                        _ => {
                            return Err(format!(
                                "no table \"{value}\": there are loc-rib, adj-rib-in and adj-rib-out"
                            ));
                        }
                    };
                }
                "family" => family = Some(value.into_owned()),
                "prefix" => prefix = Some(value),
                "neighbor" => question.neighbor = Some(value.into_owned()),
                "format" => {
                    question.mrt = match &*value {
                        "json" => false,
                        "mrt" => true,
                        _ => return Err(format!("no format \"{value}\": there are json and mrt")),
                    };
                }
                _ => {
                    return Err(format!(
                        "unknown parameter \"{key}\": there are table, family, prefix, neighbor and format"
                    ));
                }
            }
        }
        let in_words = |error: NlriParseError| error.to_string();
        question.families = match (family.as_deref(), prefix) {
            (None, None) => vec![Family::Ipv4Unicast],
            (Some("all"), None) => Family::ALL.to_vec(),
            (None | Some("all"), Some(prefix)) => {
                let prefix: Nlri = prefix.parse().map_err(in_words)?;
                question.prefix = Some(prefix);
                vec![prefix.family()]
            }
            (Some(name), prefix) => {
                let family: Family = name.parse().map_err(|error| format!("{error}"))?;
                question.prefix =
                    prefix.map(|prefix| Nlri::parse_as(family, &prefix)).transpose().map_err(in_words)?;
                vec![family]
            }
        };
        if question.table == Table::LocRib && question.neighbor.is_some() {
            return Err("loc-rib belongs to no neighbor: ask for adj-rib-in or adj-rib-out".into());
        }
        Ok(question)
    }
}

/// `%25` and the like.
pub(super) fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits =
            tail.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(octet) => {
                octets.push(octet);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                octets.push(*first);
                rest = tail;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&octets).into_owned())
}

/// The tables to read, each with the neighbour it belongs to.
async fn tables(
    speaker: &Handle,
    question: &Question,
) -> Result<Result<Vec<(RouteTable, Option<PeerKey>)>, String>, Stopped> {
    let make = match question.table {
        Table::LocRib => return Ok(Ok(vec![(RouteTable::LocRib, None)])),
        Table::AdjRibIn => RouteTable::AdjRibIn,
        Table::AdjRibOut => RouteTable::AdjRibOut,
    };
    let mut keys: Vec<PeerKey> = speaker.peers().await?.iter().map(|peer| peer.key).collect();
    keys.sort_unstable();
    if let Some(wanted) = &question.neighbor {
        let address: Option<IpAddr> = wanted.parse().ok();
        keys.retain(|key| address == Some(key.address) || *wanted == key.to_string());
        if keys.is_empty() {
            return Ok(Err(format!("no neighbor {wanted}: `peregrine peers` lists them")));
        }
    }
    Ok(Ok(keys.into_iter().map(|key| (make(key), Some(key))).collect()))
}

/// What the answer looks like.
enum Form {
    /// JSON, with who this speaker is.
    Json((Asn, RouterId)),
    Mrt(Recorder),
}

/// Why an answer ends early.
enum Ended {
    /// Nobody reads it any more.
    Unread,
    /// The speaker has stopped.
    Stopped,
}

/// An answer under way.
struct Stream {
    speaker: Handle,
    form: Form,
    sender: Sender<Bytes, BrokenOff>,
    chunk: Vec<u8>,
    any: bool,
}

impl Stream {
    async fn run(mut self, question: Question, tables: Vec<(RouteTable, Option<PeerKey>)>) {
        let ended = self.tables(&question, tables).await;
        if let Err(Ended::Stopped) = ended {
            self.sender.abort(BrokenOff);
        }
    }

    async fn tables(
        &mut self,
        question: &Question,
        tables: Vec<(RouteTable, Option<PeerKey>)>,
    ) -> Result<(), Ended> {
        for (table, neighbor) in tables {
            let name = neighbor.map(|key| key.to_string());
            for family in question.families.iter().copied() {
                let query = RouteQuery { table: table.clone(), family, prefix: question.prefix };
                let mut routes = self.speaker.routes(query);
                loop {
                    match routes.next().await {
                        Ok(Some(entry)) => self.put(neighbor, name.as_deref(), &entry)?,
                        // A peer that went away in the meantime has no routes.
                        Ok(None) | Err(RoutesError::Query(_)) => break,
                        Err(RoutesError::Stopped(Stopped)) => return Err(Ended::Stopped),
                    }
                    if self.chunk.len() >= CHUNK {
                        self.send().await?;
                    }
                }
            }
        }
        if let Form::Json(_) = self.form {
            self.chunk.extend_from_slice(if self.any { b"\n]\n" } else { b"[]\n" });
        }
        self.send().await
    }

    fn put(
        &mut self,
        neighbor: Option<PeerKey>,
        name: Option<&str>,
        entry: &RouteEntry,
    ) -> Result<(), Ended> {
        match &mut self.form {
            Form::Json(identity) => {
                self.chunk.extend_from_slice(if self.any { b",\n" } else { b"[\n" });
                self.any = true;
                let route = Route::new(*identity, name, entry);
                serde_json::to_writer(&mut self.chunk, &route).map_err(|_| Ended::Unread)
            }
            Form::Mrt(recorder) => {
                recorder.destination(neighbor, entry, &mut self.chunk);
                Ok(())
            }
        }
    }

    async fn send(&mut self) -> Result<(), Ended> {
        let full = std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK + CHUNK / 4));
        self.sender.send_data(full.into()).await.map_err(|_| Ended::Unread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions() {
        let parse = |text| Question::parse(text).unwrap();
        assert_eq!(parse("").families, [Family::Ipv4Unicast]);
        assert_eq!(parse("family=all").families, Family::ALL);
        assert_eq!(parse("prefix=2001:db8::/32").families, [Family::Ipv6Unicast]);
        assert_eq!(parse("family=all&prefix=10.0.0.0/8").families, [Family::Ipv4Unicast]);
        // What reads like an IPv6 prefix is one, unless the family says otherwise.
        assert_eq!(parse("prefix=1:2:3::/48").families, [Family::Ipv6Unicast]);
        let vpn = parse("family=ipv6-vpn&prefix=1:2:3::/48");
        assert_eq!(vpn.prefix.unwrap().prefix().unwrap().to_string(), "3::/48");
        assert_eq!(parse("prefix=65000:1:10.0.0.0/8").families, [Family::Ipv4Vpn]);
        let question = parse("table=adj-rib-out&neighbor=fe80::1%252&family=&prefix=");
        assert_eq!((question.table, question.neighbor.as_deref()), (Table::AdjRibOut, Some("fe80::1%2")));
    }

    #[test]
    fn bad_questions_are_answered_in_words() {
        let cases = [
            ("table=fib", "no table \"fib\": there are loc-rib, adj-rib-in and adj-rib-out"),
            (
                "family=ipv5",
                "unknown address family \"ipv5\" (known: ipv4-unicast, ipv6-unicast, ipv4-vpn, ipv6-vpn, ipv4-srpolicy, ipv6-srpolicy)",
            ),
            ("family=ipv4-vpn&prefix=10.0.0.0/8", "10.0.0.0/8 is not of family ipv4-vpn"),
            ("prefix=10.0.0.1/8", "10.0.0.1/8 has host bits set, did you mean 10.0.0.0/8?"),
            ("family=ipv6-unicast&prefix=10.0.0.0/8", "10.0.0.0/8 is not of family ipv6-unicast"),
            ("neighbor=192.0.2.1", "loc-rib belongs to no neighbor: ask for adj-rib-in or adj-rib-out"),
            (
                "neighbour=1",
                "unknown parameter \"neighbour\": there are table, family, prefix, neighbor and format",
            ),
            ("format=xml", "no format \"xml\": there are json and mrt"),
        ];
        for (query, expected) in cases {
            assert_eq!(Question::parse(query), Err(expected.to_owned()));
        }
    }

    #[test]
    fn percent_signs() {
        assert_eq!(decode("a%2Fb%"), "a/b%");
        assert_eq!(decode("%zz%4"), "%zz%4");
    }
}
