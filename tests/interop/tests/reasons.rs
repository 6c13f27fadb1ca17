//! `peregrine peers -o json` tells in words why a session is down, whatever ended it. The neighbours are played by the test.

use interop::raw::{self, KEEPALIVE, Raw};
use interop::speaker::{ASN as OUR_ASN, Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};
use test_support::wait;

const ASN: u32 = 65_020;

/// What a neighbour does to end its session.
enum End {
    /// Nothing at all.
    Nothing,
    /// It says this instead of an OPEN.
    Instead(Vec<u8>),
    /// It says this after the OPENs.
    Unconfirmed(Vec<u8>),
    /// It says this when all is established.
    Established(Vec<u8>),
    /// It goes, orderly or not.
    Goes {
        /// By a reset.
        hard: bool,
    },
    /// It agrees on a hold time of three seconds and falls silent.
    Silent,
}

use End::{Established, Goes, Instead, Nothing, Silent, Unconfirmed};

/// Makes an OPEN for the neighbour with this last octet.
type Open = fn(u8) -> Vec<u8>;

/// A NOTIFICATION.
fn notification(code: u8, subcode: u8, data: &[u8]) -> Vec<u8> {
    raw::message(3, &[&[code, subcode], data].concat())
}

/// An OPEN of a neighbour, with some octets replaced: those of version 4, AS, hold time, identifier.
fn open_with(last: u8, at: usize, octets: &[u8]) -> Vec<u8> {
    let mut open = raw::open(ASN, 90, peer(last));
    open[19 + at..19 + at + octets.len()].copy_from_slice(octets);
    open
}

/// An OPEN with capabilities of its own.
fn open_offering(last: u8, capabilities: &[u8]) -> Vec<u8> {
    let mut body = vec![4];
    body.extend((ASN as u16).to_be_bytes());
    body.extend(90_u16.to_be_bytes());
    body.extend(peer(last).octets());
    body.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    body.extend(capabilities);
    raw::message(1, &body)
}

/// NOTIFICATIONs, and what they are called. Codes that no RFC names stand as numbers.
#[rustfmt::skip]
const NOTIFICATIONS: &[(u8, u8, &[u8], &str)] = &[
    (1, 1, &[], "Message Header Error: Connection Not Synchronized (1/1)"),
    (1, 2, &[], "Message Header Error: Bad Message Length (1/2)"),
    (1, 3, &[], "Message Header Error: Bad Message Type (1/3)"),
    (2, 1, &[], "OPEN Message Error: Unsupported Version Number (2/1)"),
    (2, 2, &[], "OPEN Message Error: Bad Peer AS (2/2)"),
    (2, 3, &[], "OPEN Message Error: Bad BGP Identifier (2/3)"),
    (2, 4, &[], "OPEN Message Error: Unsupported Optional Parameter (2/4)"),
    (2, 5, &[], "OPEN Message Error (2/5)"),
    (2, 6, &[], "OPEN Message Error: Unacceptable Hold Time (2/6)"),
    (2, 7, &[], "OPEN Message Error: Unsupported Capability (2/7)"),
    (2, 8, &[], "OPEN Message Error (2/8)"),
    (3, 1, &[], "UPDATE Message Error: Malformed Attribute List (3/1)"),
    (3, 2, &[], "UPDATE Message Error: Unrecognized Well-known Attribute (3/2)"),
    (3, 3, &[], "UPDATE Message Error: Missing Well-known Attribute (3/3)"),
    (3, 4, &[], "UPDATE Message Error: Attribute Flags Error (3/4)"),
    (3, 5, &[], "UPDATE Message Error: Attribute Length Error (3/5)"),
    (3, 6, &[], "UPDATE Message Error: Invalid ORIGIN Attribute (3/6)"),
    (3, 7, &[], "UPDATE Message Error (3/7)"),
    (3, 8, &[], "UPDATE Message Error: Invalid NEXT_HOP Attribute (3/8)"),
    (3, 9, &[], "UPDATE Message Error: Optional Attribute Error (3/9)"),
    (3, 10, &[], "UPDATE Message Error: Invalid Network Field (3/10)"),
    (3, 11, &[], "UPDATE Message Error: Malformed AS_PATH (3/11)"),
    (4, 0, &[], "Hold Timer Expired: no message within the hold time (4/0)"),
    (5, 0, &[], "Finite State Machine Error: Unspecific (5/0)"),
    (5, 1, &[], "Finite State Machine Error: Receive Unexpected Message in OpenSent State (5/1)"),
    (5, 2, &[], "Finite State Machine Error: Receive Unexpected Message in OpenConfirm State (5/2)"),
    (5, 3, &[], "Finite State Machine Error: Receive Unexpected Message in Established State (5/3)"),
    (6, 1, &[], "Cease: Maximum Number of Prefixes Reached (6/1)"),
    (6, 2, &[], "Cease: Administrative Shutdown (6/2)"),
    (6, 3, &[], "Cease: Peer De-configured (6/3)"),
    (6, 4, &[], "Cease: Administrative Reset (6/4)"),
    (6, 5, &[], "Cease: Connection Rejected (6/5)"),
    (6, 6, &[], "Cease: Other Configuration Change (6/6)"),
    (6, 7, &[], "Cease: Connection Collision Resolution (6/7)"),
    (6, 8, &[], "Cease: Out of Resources (6/8)"),
    (6, 9, &[], "Cease: Hard Reset (6/9)"),
    (6, 10, &[], "Cease: BFD Down (6/10)"),
    (7, 1, &[], "ROUTE-REFRESH Message Error: Invalid Message Length (7/1)"),
    (8, 0, &[], "Send Hold Timer Expired: the peer did not read within the send hold time (8/0)"),
    (77, 7, &[], "unknown error code (77/7)"),
    (6, 2, b"\x08at night", "Cease: Administrative Shutdown (6/2), \"at night\""),
    (6, 9, &[6, 4], "Cease: Hard Reset (6/9), Cease: Administrative Reset (6/4)"),
];

/// Each neighbour, what it does, and what is told of it.
fn causes() -> Vec<(u8, End, String)> {
    let established: [(Vec<u8>, &str); 6] = [
        (
            vec![0; 19],
            "message marker is not all ones; sent Message Header Error: Connection Not Synchronized (1/1)",
        ),
        (raw::message(9, &[]), "unknown message type 9; sent Message Header Error: Bad Message Type (1/3)"),
        (
            raw::message(2, &[0]),
            "UPDATE message of impossible length; sent Message Header Error: Bad Message Length (1/2)",
        ),
        (
            raw::update(&[], &[0, 0, 0], &[raw::nth(1)]),
            "unrecognized well-known attribute 0; sent UPDATE Message Error: Unrecognized Well-known Attribute (3/2)",
        ),
        (
            raw::message(5, &[0, 1, 0]),
            "ROUTE-REFRESH message of impossible length; sent Message Header Error: Bad Message Length (1/2)",
        ),
        (
            raw::open(ASN, 90, peer(1)),
            "sent Finite State Machine Error: Receive Unexpected Message in Established State (5/3): OPEN",
        ),
    ];
    let mut list = vec![
        (Nothing, "no session yet".to_owned()),
        (Goes { hard: false }, "the neighbour closed the connection".to_owned()),
        (Goes { hard: true }, "the connection failed: connection reset".to_owned()),
        (Silent, "sent Hold Timer Expired: no message within the hold time (4/0)".to_owned()),
        (
            Instead(KEEPALIVE.to_vec()),
            "sent Finite State Machine Error: Receive Unexpected Message in OpenSent State (5/1): KEEPALIVE"
                .to_owned(),
        ),
        (
            Unconfirmed(raw::update(&[], &[], &[])),
            "sent Finite State Machine Error: Receive Unexpected Message in OpenConfirm State (5/2): UPDATE"
                .to_owned(),
        ),
    ];
    list.extend(NOTIFICATIONS.iter().map(|(code, subcode, data, told)| {
        (Established(notification(*code, *subcode, data)), format!("received {told}"))
    }));
    list.extend(established.into_iter().map(|(octets, told)| (Established(octets), told.to_owned())));
    let mut list: Vec<_> = list.into_iter().zip(20..).map(|((end, told), last)| (last, end, told)).collect();
    let opens: [(Open, &str); 7] = [
        (
            |last| open_with(last, 0, &[5]),
            "BGP version 5 in OPEN; sent OPEN Message Error: Unsupported Version Number (2/1)",
        ),
        (
            |last| open_with(last, 3, &[0, 1]),
            "hold time of 1 s in OPEN; sent OPEN Message Error: Unacceptable Hold Time (2/6)",
        ),
        (
            |last| open_with(last, 5, &[0; 4]),
            "BGP identifier 0.0.0.0 in OPEN; sent OPEN Message Error: Bad BGP Identifier (2/3)",
        ),
        (|last| open_with(last, 1, &[0, 0]), "AS 0 in OPEN; sent OPEN Message Error: Bad Peer AS (2/2)"),
        (
            |last| open_offering(last, &[1, 4, 0, 1, 0, 1, 65, 4, 0, 0, 0, 0]),
            "AS 0 in OPEN; sent OPEN Message Error: Bad Peer AS (2/2)",
        ),
        (
            |last| raw::open(ASN + 1, 90, peer(last)),
            "the neighbour is in AS 65021; sent OPEN Message Error: Bad Peer AS (2/2)",
        ),
        (
            |last| open_offering(last, &[1, 4, 0, 25, 0, 65, 65, 4, 0, 0, 0xfd, 0xfc]),
            "no address family in common; sent OPEN Message Error: Unsupported Capability (2/7)",
        ),
    ];
    let next = 20 + list.len() as u8;
    list.extend(
        opens.iter().zip(next..).map(|((open, told), last)| (last, Instead(open(last)), (*told).to_owned())),
    );
    list
}

#[test]
fn why_a_session_is_down_stands_in_words() {
    if !available("interop reasons", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let causes = causes();
        let (refused, unbound, twin, changed) = (210, 211, 212, 213);
        let mut file = "neighbors:\n".to_owned();
        for (last, end, _) in &causes {
            let more = if matches!(end, Silent) { ", hold-time: 3" } else { "" };
            file += &neighbour(*last, ASN, more);
        }
        file += &format!("  - {{ address: {}, asn: {ASN} }}\n", peer(refused));
        file += &format!("  - {{ address: {}, asn: {ASN}, local-address: 203.0.113.1 }}\n", peer(unbound));
        file += &neighbour(twin, OUR_ASN, "");
        let changing = neighbour(changed, ASN, "");
        let lasts: Vec<u8> = causes.iter().map(|(last, ..)| *last).chain([refused, twin, changed]).collect();
        let mut speaker = Speaker::start(lab, lasts, &(file.clone() + &changing));

        let mut open_connections = Vec::new();
        for (last, end, _) in &causes {
            if matches!(end, Nothing) {
                continue;
            }
            let mut connection = Raw::connect(peer(*last), socket());
            match end {
                Nothing => {}
                Instead(octets) => connection.say(octets),
                Unconfirmed(octets) => {
                    connection.say(&raw::open(ASN, 90, peer(*last)));
                    connection.hear();
                    connection.say(octets);
                }
                Established(octets) => {
                    connection.establish(&raw::open(ASN, 90, peer(*last)));
                    connection.say(octets);
                }
                Goes { hard } => {
                    connection.establish(&raw::open(ASN, 90, peer(*last)));
                    if *hard {
                        connection.reset();
                        continue;
                    }
                    connection.finish();
                }
                Silent => connection.establish(&raw::open(ASN, 90, peer(*last))),
            }
            open_connections.push(connection);
        }
        let mut same = Raw::connect(peer(twin), socket());
        same.say(&raw::open(OUR_ASN, 90, interop::speaker::ADDRESS));
        let mut settled = Raw::connect(peer(changed), socket());
        settled.establish(&raw::open(ASN, 90, peer(changed)));
        speaker.await_state(changed, "established");
        speaker.reload(&(file + &changing.replace("passive: true", "passive: true, hold-time: 30")));

        let more = [
            (refused, "can't connect: connection refused"),
            (unbound, "can't connect from the local address: address not available"),
            (
                twin,
                "the neighbour has our router id 192.0.2.10; sent OPEN Message Error: Bad BGP Identifier (2/3)",
            ),
            (changed, "the configuration changed"),
        ];
        let expected = causes.iter().map(|(last, _, told)| (*last, told.as_str())).chain(more);
        let mut wrong = Vec::new();
        for (last, told) in expected {
            let reason = wait::until(&format!("the session with {} is down", peer(last)), || {
                let peer = speaker.neighbour(last);
                let reason = peer["state-reason"].as_str().map(str::to_owned);
                let reason = reason.filter(|reason| told == "no session yet" || reason != "no session yet");
                reason.ok_or_else(|| peer.to_string())
            });
            if reason != told {
                wrong.push(format!("{last}: {reason:?} instead of {told:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}
