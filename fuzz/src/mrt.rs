//! What must hold for any octets that someone calls a recorded file. The fuzz target calls it, and an ordinary test of
//! `bgp-wire` replays its corpus through it.
// Everyone who includes this file uses a part of it.
#![allow(dead_code)]

use bgp_wire::{
    Message,
    attr::Canonical,
    mrt::{Body, MrtError, RawRecord, Reader, Record, Rib, TablePath, TableWriter},
    parse_message, split_message,
};

/// Octets as a recorded file.
pub(crate) fn mrt(octets: &[u8]) {
    let mut records = 0;
    let mut last = None;
    for record in Reader::new(octets) {
        records += 1;
        assert!(last.is_none(), "nothing is read behind a lost end");
        match record {
            Ok(record) => check(&record),
            Err(MrtError { place, fault }) => {
                assert_eq!(place.record, records);
                assert!(place.offset < octets.len() as u64);
                last = fault.is_last().then_some(fault);
            }
        }
    }
    assert!(records <= (octets.len() / RawRecord::HEADER_LEN + 1) as u64);
}

fn check(record: &Record<'_>) {
    match record.body {
        Body::PeerIndex(index) => {
            let peers: Vec<_> = index.peers().collect();
            let mut out = Vec::new();
            if let Ok(view) = std::str::from_utf8(index.view) {
                TableWriter::new(record.timestamp)
                    .peers(index.collector, view, &peers, &mut out)
                    .expect("as many as were read");
                let Some(Ok(Record { body: Body::PeerIndex(again), .. })) = Reader::new(&out).next() else {
                    panic!("what was written can be read");
                };
                assert!(again.collector == index.collector && again.view == index.view);
                assert!(again.peers().eq(peers));
            }
        }
        Body::Rib(rib) => check_rib(&rib),
        Body::OldEntry(entry) => {
            if let Ok(decoded) = entry.attrs.decode() {
                assert!(decoded.treat_as_withdraw.is_some() || decoded.next_hop.is_some());
            }
        }
        Body::Message(message) => {
            if let Ok(Some(frame)) = split_message(message.octets, 65535)
                && let Ok(Message::Update(view)) = parse_message(frame, &message.negotiated())
            {
                drop(view.decode());
            }
        }
        Body::StateChange(_) | Body::Other { .. } => {}
    }
}

/// What can be decoded of a destination is read again as it was written.
fn check_rib(rib: &Rib<'_>) {
    let decoded: Vec<_> = rib
        .entries()
        .filter_map(|entry| Some((entry, entry.attrs.decode().ok()?)))
        .filter(|(_, decoded)| decoded.treat_as_withdraw.is_none())
        .collect();
    let paths: Vec<_> = decoded
        .iter()
        .map(|(entry, decoded)| TablePath {
            peer: entry.peer,
            originated: entry.originated,
            path_id: entry.path_id,
            label: rib.label,
            next_hop: decoded.next_hop,
            attrs: Canonical(&decoded.canonical),
        })
        .collect();
    let mut out = Vec::new();
    // Attributes may become too long by the next hop.
    if TableWriter::new(0).destination(rib.nlri, &paths, &mut out).is_err() {
        return;
    }
    let mut expected = paths.iter();
    for record in Reader::new(&out) {
        let Ok(Record { body: Body::Rib(again), .. }) = record else {
            panic!("what was written can be read")
        };
        assert_eq!((again.nlri, again.label), (rib.nlri, rib.label));
        for entry in again.entries() {
            let path = expected.next().expect("nothing is made up");
            assert_eq!((entry.peer, entry.path_id), (path.peer, path.path_id));
            let decoded = entry.attrs.decode().expect("what was written can be read");
            assert_eq!(decoded.treat_as_withdraw, None);
            assert_eq!((decoded.next_hop, &decoded.canonical[..]), (path.next_hop, path.attrs.octets()));
        }
    }
    assert_eq!(expected.next().map(|path| path.peer), None);
}
