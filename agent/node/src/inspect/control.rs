//! `POST /v1/clear` and `/v1/peer`: what operators ask of neighbours.
//!
//! They change something, so they are for root and for the user whose process this is: the kernel says who connected
//! (SO_PEERCRED). A question about one neighbour that is refused is answered as a failure; of several, each has its own
//! answer.

use std::collections::BTreeSet;

use bgp_core::command::{Applied, Clear, Command, Refusal};
use bgp_core::peer_key::PeerKey;
use bgp_core::query::PeerStatus;
use bgp_net::{Handle, Stopped};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::de::DeserializeOwned;

use super::answer::{ClearQuestion, Done, PeerAction, PeerQuestion, Soft};
use super::http::{Body, Caller, failure, json};
use super::stopped;

/// More than any question has.
const LONGEST: usize = 64 * 1024;
/// Neighbours named in an error; the others are counted.
const NAMED: usize = 12;
/// Every neighbour.
const ALL: &str = "all";

/// `POST /v1/clear`.
pub(super) async fn clear(speaker: &Handle, request: Request<Incoming>) -> Response<Body> {
    let question: ClearQuestion = match read(request, LONGEST).await {
        Ok(question) => question,
        Err(refused) => return *refused,
    };
    if question.hard && question.soft.is_some() {
        return failure(StatusCode::BAD_REQUEST, "soft and hard exclude each other");
    }
    let make = |key| match (question.hard, question.soft) {
        (true, _) => vec![Command::ClearPeer(key, Clear::Hard)],
        (false, Some(Soft::In)) => vec![Command::ClearPeer(key, Clear::SoftIn)],
        (false, Some(Soft::Out)) => vec![Command::ClearPeer(key, Clear::SoftOut)],
        (false, None) => {
            vec![Command::ClearPeer(key, Clear::SoftIn), Command::ClearPeer(key, Clear::SoftOut)]
        }
    };
    let words = |applied| match (question.hard, question.soft, applied) {
        (true, _, Applied::SessionReset) => "reset; it is tried again at once",
        (true, ..) => "there was no session; it is tried at once",
        (false, _, Applied::Unchanged) => "there is no session, so nothing is to be refreshed",
        (false, Some(Soft::In), _) => {
            "its routes pass import policy again, and it is asked for them where it can be"
        }
        (false, Some(Soft::Out), _) => "it is sent every route again",
        (false, None, _) => "routes are exchanged again in both directions",
    };
    carry_out(speaker, &question.peer, make, words).await
}

/// `POST /v1/peer`.
pub(super) async fn peer(speaker: &Handle, request: Request<Incoming>) -> Response<Body> {
    let question: PeerQuestion = match read(request, LONGEST).await {
        Ok(question) => question,
        Err(refused) => return *refused,
    };
    let message = question.message.unwrap_or_default();
    if question.action != PeerAction::Disable && !message.is_empty() {
        return failure(StatusCode::BAD_REQUEST, "a message goes with disable only: nothing else carries it");
    }
    let make = |key| match question.action {
        PeerAction::Disable => vec![Command::DisablePeer(key, message.clone())],
        PeerAction::Enable => vec![Command::EnablePeer(key)],
        PeerAction::Gshut => vec![Command::GracefulShutdown(key)],
    };
    let words = |applied| match (question.action, applied) {
        (PeerAction::Disable, Applied::SessionReset) => "stopped",
        (PeerAction::Disable, Applied::Applied) => "stopped; there was no session",
        (PeerAction::Disable, Applied::Unchanged) => "it was stopped already",
        (PeerAction::Enable, Applied::Unchanged) => "nothing was keeping it",
        (PeerAction::Enable, _) => "started",
        (PeerAction::Gshut, Applied::Unchanged) => "it is in graceful shutdown already",
        (PeerAction::Gshut, _) => {
            "in graceful shutdown: both ends are to prefer other paths; disable it when they do"
        }
    };
    carry_out(speaker, &question.peer, make, words).await
}

/// The question, if whoever asks may ask it.
pub(super) async fn read<T: DeserializeOwned>(
    request: Request<Incoming>,
    longest: usize,
) -> Result<T, Box<Response<Body>>> {
    let refuse = |status, reason: String| Err(Box::new(failure(status, reason)));
    let own = rustix::process::geteuid().as_raw();
    if !may_change(request.extensions().get(), own) {
        let reason = format!("only root and the user of this process (uid {own}) may change anything");
        return refuse(StatusCode::FORBIDDEN, reason);
    }
    let body = match Limited::new(request.into_body(), longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return refuse(StatusCode::BAD_REQUEST, error.to_string()),
    };
    serde_json::from_slice(&body).or_else(|error| refuse(StatusCode::BAD_REQUEST, error.to_string()))
}

/// Whether whoever connected may change something. Nobody known, nobody allowed.
fn may_change(caller: Option<&Caller>, own: u32) -> bool {
    caller.is_some_and(|caller| caller.uid == 0 || caller.uid == own)
}

/// Gives the commands for each neighbour that is meant, and tells what became of them.
async fn carry_out(
    speaker: &Handle,
    whom: &str,
    make: impl Fn(PeerKey) -> Vec<Command>,
    words: impl Fn(Applied) -> &'static str,
) -> Response<Body> {
    let Ok(peers) = speaker.peers().await else { return stopped() };
    let keys = match select(whom, &peers) {
        Ok(keys) => keys,
        Err(reason) => return failure(StatusCode::NOT_FOUND, reason),
    };
    let mut done = Vec::with_capacity(keys.len());
    for key in keys {
        let answers = match speaker.commands(make(key)).await {
            Ok(answers) => answers,
            Err(Stopped) => return stopped(),
        };
        // What is done in two steps is told as the one that did most.
        let answer: Result<Option<Applied>, Refusal> = answers.into_iter().try_fold(None, |most, answer| {
            let answer = answer?;
            Ok(Some(if answer == Applied::Unchanged { most.unwrap_or(answer) } else { answer }))
        });
        match answer {
            Err(refusal) if whom != ALL => {
                return failure(StatusCode::CONFLICT, refusal.to_string());
            }
            Err(refusal) => done.push(Done::refused(key, &refusal)),
            Ok(applied) => {
                let applied = applied.unwrap_or(Applied::Unchanged);
                tracing::info!(peer = %key, ?applied, "{}", words(applied));
                done.push(Done::new(key, applied, words(applied)));
            }
        }
    }
    json(StatusCode::OK, &done)
}

/// The neighbours that a text means: `all`, an address that only one has, or an address and a port.
fn select(whom: &str, peers: &[PeerStatus]) -> Result<Vec<PeerKey>, String> {
    let keys: BTreeSet<PeerKey> = peers.iter().map(|peer| peer.key).collect();
    if keys.is_empty() {
        return Err("there are no neighbors".into());
    }
    if whom == ALL {
        return Ok(keys.into_iter().collect());
    }
    let text = whom.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let wanted: Option<PeerKey> = bare.parse().ok();
    // A port that was written out is part of the name, the usual one too.
    let with_port = wanted.is_some_and(|key| !is_address(bare, &key));
    let here = |key: &&PeerKey| match wanted {
        Some(wanted) if with_port => **key == wanted,
        Some(wanted) => (key.address, key.zone) == (wanted.address, wanted.zone),
        None => false,
    };
    let found: Vec<PeerKey> = keys.iter().filter(here).copied().collect();
    match found[..] {
        [] => Err(format!("no neighbor {whom:?}; there are {}", names(keys.iter().map(PeerKey::to_string)))),
        [_] => Ok(found),
        _ => Err(format!("{whom} is several neighbors: {}", names(found.iter().map(in_full)))),
    }
}

/// Whether a text that names a neighbour has no port.
fn is_address(text: &str, key: &PeerKey) -> bool {
    text == key.with_port(bgp_core::peer_key::BGP_PORT).to_string() || text.parse() == Ok(key.address)
}

/// With its port in any case.
fn in_full(key: &PeerKey) -> String {
    let shown = key.to_string();
    match key.port {
        bgp_core::peer_key::BGP_PORT if key.address.is_ipv6() => format!("[{shown}]:{}", key.port),
        bgp_core::peer_key::BGP_PORT => format!("{shown}:{}", key.port),
        _ => shown,
    }
}

fn names(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let shown = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len().checked_sub(NAMED) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use bgp_core::peer_key::InstanceName;
    use bgp_core::session::RemoteAsn;
    use bgp_core::speaker::{Speaker, SpeakerSettings};
    use bgp_core::{Asn, RouterId, command::PeerConfig, outbox::Outbox, time::Instant};

    use super::*;

    /// Neighbours of these names.
    fn peers(names: &[&str]) -> Vec<PeerStatus> {
        let settings = SpeakerSettings::new(InstanceName::new("test"), Asn(65000), RouterId(1), 7);
        let mut speaker = Speaker::new(settings);
        for name in names {
            let config = PeerConfig { passive: true, ..PeerConfig::new(RemoteAsn::External) };
            let command = Command::PutPeer(name.parse().unwrap(), config);
            speaker.command(Instant::ZERO, command, &mut Outbox::new()).unwrap();
        }
        speaker.peers(Instant::ZERO)
    }

    #[test]
    fn neighbours_are_found_by_what_people_write() {
        let peers = peers(&[
            "192.0.2.2",
            "192.0.2.3",
            "192.0.2.3:1790",
            "192.0.2.4:1790",
            "2001:db8::1",
            "[2001:db8::2]:1790",
            "fe80::1%2",
        ]);
        let select = |whom| {
            select(whom, &peers).map(|keys| keys.iter().map(PeerKey::to_string).collect::<Vec<_>>().join(" "))
        };
        for (whom, found) in [
            ("192.0.2.2", "192.0.2.2"),
            (" 192.0.2.2 ", "192.0.2.2"),
            ("192.0.2.2:179", "192.0.2.2"),
            ("192.0.2.3:179", "192.0.2.3"),
            ("192.0.2.3:1790", "192.0.2.3:1790"),
            ("192.0.2.4", "192.0.2.4:1790"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:DB8:0::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:179", "2001:db8::1"),
            ("2001:db8::2", "[2001:db8::2]:1790"),
            ("fe80::1%2", "fe80::1%2"),
        ] {
            assert_eq!(select(whom), Ok(found.to_owned()), "{whom}");
        }
        assert_eq!(select("all").unwrap().split(' ').count(), 7);
        let several = "192.0.2.3 is several neighbors: 192.0.2.3:179, 192.0.2.3:1790";
        assert_eq!(select("192.0.2.3"), Err(several.to_owned()));
        for whom in ["192.0.2.9", "192.0.2.2:1790", "fe80::1", "tor", ""] {
            let reason = select(whom).unwrap_err();
            assert!(reason.starts_with(&format!("no neighbor {whom:?}; there are 192.0.2.2, ")), "{reason}");
        }
    }

    #[test]
    fn errors_stay_short() {
        let many: Vec<String> = (1..=20).map(|n| format!("192.0.2.{n}")).collect();
        let many = peers(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let reason = select("x", &many).unwrap_err();
        assert!(reason.ends_with("192.0.2.12 and 8 more"), "{reason}");
        assert_eq!(select("all", &[]).unwrap_err(), "there are no neighbors");
    }

    #[test]
    fn only_the_owner_and_root_may() {
        let caller = |uid| Some(Caller { uid });
        assert!(may_change(caller(0).as_ref(), 1000) && may_change(caller(1000).as_ref(), 1000));
        assert!(!may_change(caller(1001).as_ref(), 1000) && !may_change(caller(1000).as_ref(), 0));
        assert!(!may_change(None, 0), "not over TCP either");
    }
}
