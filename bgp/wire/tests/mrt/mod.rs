//! Just enough MRT (RFC 6396, 8050) to get at the BGP messages and attributes in recorded files. Reads files
//! that are known to be good; a broken one ends the iteration.
#![allow(dead_code, clippy::unwrap_used)]

use std::{fs, io::Read as _, path::Path};

/// The octets of a file, unpacked if its name ends in `.gz`.
pub(crate) fn read(file: &Path) -> Vec<u8> {
    let data = fs::read(file).unwrap();
    if file.extension().is_some_and(|extension| extension == "gz") {
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(&data[..]).read_to_end(&mut unpacked).unwrap();
        return unpacked;
    }
    data
}

/// One BGP message of a session.
pub(crate) struct Recorded<'a> {
    /// The two ends are in different AS.
    pub(crate) external: bool,
    pub(crate) four_octet: bool,
    pub(crate) message: &'a [u8],
}

/// One route of a table dump.
pub(crate) struct Entry<'a> {
    pub(crate) four_octet: bool,
    pub(crate) attrs: &'a [u8],
}

struct Record<'a> {
    kind: u16,
    subtype: u16,
    body: &'a [u8],
}

fn u16_at(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

fn records(mut data: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let (head, rest) = data.split_first_chunk::<12>()?;
        let length = u32::from_be_bytes([head[8], head[9], head[10], head[11]]) as usize;
        let (body, rest) = rest.split_at_checked(length)?;
        data = rest;
        Some(Record { kind: u16_at(head, 4)?, subtype: u16_at(head, 6)?, body })
    })
}

/// The messages of BGP4MP and BGP4MP_ET records.
pub(crate) fn messages(data: &[u8]) -> impl Iterator<Item = Recorded<'_>> {
    records(data).filter_map(|record| {
        // ET records have microseconds before the rest.
        let body = match record.kind {
            16 => record.body,
            17 => record.body.get(4..)?,
            _ => return None,
        };
        let four_octet = match record.subtype {
            1 | 6 => false,
            4 | 7 => true,
            _ => return None,
        };
        let asns = if four_octet { 8 } else { 4 };
        let (peer, local) = body.get(..asns)?.split_at(asns / 2);
        let addresses = if u16_at(body, asns + 2)? == 1 { 8 } else { 32 };
        Some(Recorded { external: peer != local, four_octet, message: body.get(asns + 4 + addresses..)? })
    })
}

/// The attributes of the routes in TABLE_DUMP and TABLE_DUMP_V2 records.
pub(crate) fn entries(data: &[u8]) -> Vec<Entry<'_>> {
    let mut entries = Vec::new();
    for record in records(data) {
        let read = match (record.kind, record.subtype) {
            (12, 1) => dump_v1(record.body, 4, &mut entries),
            (12, 2) => dump_v1(record.body, 16, &mut entries),
            (13, 2..=5) => dump_v2(record.body, 0, &mut entries),
            (13, 8..=11) => dump_v2(record.body, 4, &mut entries),
            _ => Some(()),
        };
        assert!(read.is_some(), "a record of type {} is cut off", record.kind);
    }
    entries
}

fn dump_v1<'a>(body: &'a [u8], address: usize, entries: &mut Vec<Entry<'a>>) -> Option<()> {
    // View, sequence, prefix, its length, status, time, peer and its AS stand before the attributes.
    let at = 4 + address + 1 + 1 + 4 + address + 2;
    let length = usize::from(u16_at(body, at)?);
    entries.push(Entry { four_octet: false, attrs: body.get(at + 2..at + 2 + length)? });
    Some(())
}

fn dump_v2<'a>(body: &'a [u8], path_id: usize, entries: &mut Vec<Entry<'a>>) -> Option<()> {
    let prefix = usize::from(*body.get(4)?).div_ceil(8);
    let mut at = 5 + prefix + 2;
    for _ in 0..u16_at(body, at - 2)? {
        at += 2 + 4 + path_id;
        let length = usize::from(u16_at(body, at)?);
        entries.push(Entry { four_octet: true, attrs: body.get(at + 2..at + 2 + length)? });
        at += 2 + length;
    }
    Some(())
}
