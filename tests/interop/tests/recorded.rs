//! Tables of the world, recorded by route collectors, go through a speaker: what it says of them, and what it tells others, is
//! what went in. Without the recordings, which are no part of the project, nothing is tested.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use bgp_wire::attr::{self, Builder, Canonical, FactFlags};
use bgp_wire::mrt::{Body, Reader};
use bgp_wire::{
    Asn, EncodeOptions, FamilySet, Ipv4Prefix, Ipv6Prefix, Negotiated, NextHop, Nlri, NlriKey, PathId,
    UpdateView, UpdateWriter,
};
use bytes::BytesMut;
use interop::raw::{self, Message, Raw};
use interop::speaker::{ADDRESS, ASN, Speaker, neighbour, peer, socket};
use test_support::lab::Lab;
use test_support::programs::{IP, available};

/// What stands in a table, by peer, destination and path identifier: canonical attributes and next hop.
type Table = BTreeMap<(Ipv4Addr, Nlri, PathId), (Vec<u8>, NextHop)>;

/// The octets of a recorded file; `None` where there are none.
fn recording(name: &str) -> Option<Vec<u8>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora/mrt"));
    let Ok(packed) = fs::read(folder.join(name)) else {
        println!("nothing to replay: ../shared/corpora/mrt/{name} is absent");
        return None;
    };
    if !name.ends_with(".gz") {
        return Some(packed);
    }
    let mut octets = Vec::new();
    flate2::read::MultiGzDecoder::new(&*packed).read_to_end(&mut octets).expect("a whole file");
    Some(octets)
}

/// An internal session with 4-octet AS numbers.
fn internal(path_ids: bool) -> Negotiated {
    let add_path = if path_ids { FamilySet::UNICAST } else { FamilySet::EMPTY };
    Negotiated {
        families: FamilySet::UNICAST,
        four_octet: true,
        add_path_receive: add_path,
        add_path_send: add_path,
        max_message: 4096,
        ..Negotiated::default()
    }
}

/// What an UPDATE from a peer leads to.
fn apply(table: &mut Table, from: Ipv4Addr, body: &[u8], neg: &Negotiated) {
    let view = UpdateView::parse(body, neg).expect("recorded messages are well-formed");
    for (id, prefix) in view.withdrawn() {
        table.remove(&(from, prefix.into(), id));
    }
    for (id, prefix) in view.mp_withdrawn::<Ipv6Prefix>() {
        table.remove(&(from, prefix.into(), id));
    }
    if !view.has_reachable() {
        return;
    }
    let decoded = view.decode().expect("recorded messages are well-formed");
    let hop = |hop: Option<NextHop>| hop.filter(|_| decoded.treat_as_withdraw.is_none());
    let mut put = |nlri, id, hop: Option<NextHop>| match hop {
        Some(hop) => drop(table.insert((from, nlri, id), (decoded.canonical.clone(), hop))),
        None => drop(table.remove(&(from, nlri, id))),
    };
    view.announced().for_each(|(id, prefix)| put(prefix.into(), id, hop(decoded.next_hop)));
    let multiprotocol = view.mp_reach().map(|reach| reach.next_hop);
    view.mp_announced::<Ipv6Prefix>().for_each(|(id, prefix)| put(prefix.into(), id, hop(multiprotocol)));
}

/// What `peregrine routes TABLE --mrt` writes.
fn dumped(speaker: &Speaker, table: &str) -> Table {
    let folder = tempfile::tempdir().expect("room for a file");
    let file: PathBuf = folder.path().join("table.mrt");
    speaker.tell(&["routes", table, "--mrt", &file.to_string_lossy()]);
    let octets = fs::read(&file).expect("the file is there");
    let mut peers = Vec::new();
    let mut all = Table::new();
    for record in Reader::new(&octets) {
        match record.expect("what we write can be read").body {
            Body::PeerIndex(index) => peers.extend(index.peers().map(|peer| peer.address)),
            Body::Rib(rib) => {
                for entry in rib.entries() {
                    let decoded = entry.attrs.decode().expect("what we write can be read");
                    assert_eq!(decoded.treat_as_withdraw, None, "{}", rib.nlri);
                    let std::net::IpAddr::V4(from) = peers[usize::from(entry.peer)] else {
                        panic!("{peers:?}")
                    };
                    let key = (from, rib.nlri, entry.path_id.unwrap_or_default());
                    let hop = decoded.next_hop.expect("every path has one");
                    assert_eq!(all.insert(key, (decoded.canonical, hop)), None, "{key:?} twice");
                }
            }
            Body::OldEntry(_) | Body::Message(_) | Body::StateChange(_) | Body::Other { .. } => {
                panic!("no table")
            }
        }
    }
    all
}

#[track_caller]
fn same(got: &Table, expected: &Table) {
    for (key, route) in expected {
        assert_eq!(got.get(key), Some(route), "{key:?}");
    }
    assert_eq!(got.len(), expected.len(), "{:?}", got.keys().find(|key| !expected.contains_key(key)));
}

/// Sends the UPDATEs of a file as they are, and says what they lead to.
fn replay(octets: &[u8], session: &mut Raw, from: Ipv4Addr) -> Table {
    let mut table = Table::new();
    let neg = internal(false);
    let mut batch = Vec::new();
    for record in Reader::new(octets) {
        let Ok(Body::Message(message)) = record.map(|record| record.body) else { continue };
        // From peers with 4-octet AS numbers; UPDATEs of a length that every session has.
        if !message.four_octet || message.octets.get(18) != Some(&2) || message.octets.len() > 4096 {
            continue;
        }
        apply(&mut table, from, &message.octets[19..], &neg);
        batch.extend_from_slice(message.octets);
        if batch.len() > 1 << 16 {
            session.say(&std::mem::take(&mut batch));
        }
    }
    session.say(&batch);
    table
}

fn count(table: &Table, from: Ipv4Addr, v4: bool) -> u64 {
    table.keys().filter(|(peer, nlri, _)| *peer == from && nlri.family().is_ipv4() == v4).count() as u64
}

/// Waits until a neighbour's routes are all there.
fn await_all(speaker: &Speaker, last: u8, table: &Table) {
    let wanted = [true, false].map(|v4| count(table, peer(last), v4));
    test_support::wait::until(&format!("{wanted:?} routes from {}", peer(last)), || {
        let families = speaker.neighbour(last)["families"].clone();
        let got = [0, 1].map(|place| families[place]["received"].as_u64().unwrap_or_default());
        if got == wanted { Ok(()) } else { Err(format!("{got:?}")) }
    });
}

/// What an external neighbour is told of a path: our AS in front, our address as the next hop, nothing that is for our own
/// AS only; `None` where it is not to leave our AS.
fn exported((attrs, _): &(Vec<u8>, NextHop)) -> Option<(Vec<u8>, NextHop)> {
    let set = Canonical(attrs);
    let flags = set.facts().flags;
    let kept = [FactFlags::NO_EXPORT, FactFlags::NO_ADVERTISE, FactFlags::NO_EXPORT_SUBCONFED];
    if kept.into_iter().any(|flag| flags.has(flag)) {
        return None;
    }
    let mut builder = Builder::from(set);
    builder.prepend(Asn(ASN), 1).med(None).local_pref(None);
    let octets = builder.build();
    // Nothing but reflection has these.
    let reflected = [attr::code::ORIGINATOR_ID, attr::code::CLUSTER_LIST];
    let octets = Canonical(&octets).attrs().filter(|attr| !reflected.contains(&attr.code));
    Some((octets.flat_map(|attr| attr.raw.to_vec()).collect(), ADDRESS.into()))
}

#[test]
fn a_whole_table_comes_out_as_it_went_in() {
    let Some(octets) = recording("updates-2015-10-23-ibgp-et.gz") else { return };
    if !available("recorded tables", &[IP]) {
        return;
    }
    Lab::run(move |lab| {
        let file = format!("neighbors:\n{}{}", neighbour(101, ASN, ""), neighbour(102, 65030, ""));
        let speaker = Speaker::start(lab, [101, 102], &file);
        let mut sender = Raw::connect(peer(101), socket());
        sender.establish(&raw::open(ASN, 0, peer(101)));
        let table = replay(&octets, &mut sender, peer(101));
        // 577,706 destinations are announced; 3 are taken back, 4 by attributes that are at fault.
        assert_eq!(table.len(), 577_699);
        await_all(&speaker, 101, &table);
        same(&dumped(&speaker, "adj-rib-in"), &table);
        let best = dumped(&speaker, "loc-rib");
        // What is not in it may not be used: our own address as a next hop, say.
        assert!(best.len() + 10 > table.len(), "{}", best.len());
        assert!(best.iter().all(|(key, route)| table.get(key) == Some(route)));
        // What one who comes now is told.
        let mut receiver = Raw::connect(peer(102), socket());
        receiver.establish(&raw::open(65030, 0, peer(102)));
        let expected: Table = best
            .iter()
            .filter_map(|((_, nlri, id), route)| Some(((peer(102), *nlri, *id), exported(route)?)))
            .collect();
        let neg = Negotiated { ebgp: true, ..internal(false) };
        let mut told = Table::new();
        while told.len() < expected.len() {
            let Message { kind, body } = receiver.hear();
            if kind == 2 {
                apply(&mut told, peer(102), &body, &neg);
            }
        }
        same(&told, &expected);
        same(&dumped(&speaker, "adj-rib-out"), &expected);
    });
}

#[test]
fn updates_of_both_families_come_out_as_they_went_in() {
    if !available("recorded tables", &[IP]) {
        return;
    }
    for (name, counts) in [("updates-2019-01-01.gz", [18_153, 238]), ("updates-2016-08-11.gz", [1576, 90])] {
        let Some(octets) = recording(name) else { continue };
        Lab::run(move |lab| {
            let speaker = Speaker::start(lab, [101], &format!("neighbors:\n{}", neighbour(101, ASN, "")));
            let mut sender = Raw::connect(peer(101), socket());
            sender.establish(&raw::open(ASN, 0, peer(101)));
            let table = replay(&octets, &mut sender, peer(101));
            assert_eq!([true, false].map(|v4| count(&table, peer(101), v4)), counts, "{name}");
            await_all(&speaker, 101, &table);
            same(&dumped(&speaker, "adj-rib-in"), &table);
        });
    }
}

/// An OPEN with path identifiers in both families.
fn open_with_path_ids(router_id: Ipv4Addr) -> Vec<u8> {
    let mut body = vec![4];
    body.extend((ASN as u16).to_be_bytes());
    body.extend([0, 0]);
    body.extend(router_id.octets());
    let mut capabilities = vec![1, 4, 0, 1, 0, 1, 1, 4, 0, 2, 0, 1, 69, 8, 0, 1, 1, 3, 0, 2, 1, 3, 65, 4];
    capabilities.extend(ASN.to_be_bytes());
    body.extend([capabilities.len() as u8 + 2, 2, capabilities.len() as u8]);
    body.extend(capabilities);
    raw::message(1, &body)
}

/// The routes of a recorded table as each of its peers would tell them, and what they lead to. The `n`th peer gets the
/// address 192.0.2.(20 + n).
fn told_by_peers(octets: &[u8]) -> (Vec<BytesMut>, Table) {
    let neg = internal(true);
    let mut said: Vec<BytesMut> = Vec::new();
    let mut known: Vec<(u16, std::net::IpAddr)> = Vec::new();
    let mut say =
        |by: (u16, std::net::IpAddr), nlri: Nlri, id: PathId, attrs: bgp_wire::mrt::TableAttrs<'_>| {
            let decoded = attrs.decode().expect("recorded attributes are well-formed");
            let (None, Some(hop)) = (decoded.treat_as_withdraw, decoded.next_hop) else { return };
            let place = known.iter().position(|peer| *peer == by).unwrap_or_else(|| {
                known.push(by);
                said.push(BytesMut::new());
                known.len() - 1
            });
            let set = Canonical(&decoded.canonical);
            let mut section = Vec::new();
            let mut writer = UpdateWriter::new(&mut said[place], EncodeOptions::of(&neg));
            let written = match (nlri, hop) {
                (Nlri::V4(prefix), NextHop::V4(hop)) => {
                    attr::encode(set, Some(hop), true, &mut section);
                    writer.announce_v4(&section, [(id, Ipv4Prefix::from(prefix))])
                }
                (Nlri::V6(_), hop) => {
                    attr::encode(set, None, true, &mut section);
                    writer.announce_mp(&section, hop, Ipv6Prefix::of(nlri).map(|prefix| (id, prefix)))
                }
                _ => return,
            };
            assert_eq!(written.expect("there is room").prefixes, 1);
        };
    for record in Reader::new(octets) {
        match record.expect("the file is whole").body {
            Body::Rib(rib) => {
                for (place, entry) in rib.entries().enumerate() {
                    let nobody = Ipv4Addr::UNSPECIFIED.into();
                    // Without path identifiers a peer may still be there twice; BIRD records like that.
                    let id = entry.path_id.unwrap_or(PathId(1000 + place as u32));
                    say((entry.peer, nobody), rib.nlri, id, entry.attrs);
                }
            }
            Body::OldEntry(entry) => say((0, entry.peer), entry.nlri, PathId(1), entry.attrs),
            Body::PeerIndex(_) | Body::Message(_) | Body::StateChange(_) | Body::Other { .. } => {}
        }
    }
    let mut table = Table::new();
    for (octets, last) in said.iter().zip(20..) {
        let mut rest = &octets[..];
        while let Ok(Some(frame)) = bgp_wire::split_message(rest, 4096) {
            apply(&mut table, peer(last), frame.body, &neg);
            rest = &rest[frame.raw.len()..];
        }
    }
    (said, table)
}

#[test]
fn recorded_tables_come_out_as_they_went_in() {
    if !available("recorded tables", &[IP]) {
        return;
    }
    for (name, routes) in [
        ("rib-2002-07-22-v1.gz", 115_521),
        // Two of its paths are there twice.
        ("rib-2016-addpath-ipv4.gz", 60),
        ("rib-2018-record-over-64k.gz", 23),
        ("bird-rib.mrt", 6),
        ("quagga-rib.mrt", 9),
        ("openbgpd-rib-v1.mrt", 31),
        ("openbgpd-rib-v2.mrt", 31),
    ] {
        let Some(octets) = recording(name) else { continue };
        let (said, table) = told_by_peers(&octets);
        assert_eq!(table.len(), routes, "{name}");
        Lab::run(move |lab| {
            let lasts = || (20..).take(said.len());
            let file: String =
                lasts().map(|last| neighbour(last, ASN, ", add-path: { receive: true }")).collect();
            let speaker = Speaker::start(lab, lasts(), &format!("neighbors:\n{file}"));
            let mut peers: Vec<Raw> = Vec::new();
            for (octets, last) in said.iter().zip(20..) {
                let mut session = Raw::connect(peer(last), socket());
                session.establish(&open_with_path_ids(peer(last)));
                session.say(octets);
                peers.push(session);
            }
            lasts().for_each(|last| await_all(&speaker, last, &table));
            same(&dumped(&speaker, "adj-rib-in"), &table);
        });
    }
}
