//! Recorded files, which are not part of the project.
#![allow(dead_code, clippy::unwrap_used)]

use std::{fs, io::Read as _, path::Path};

use bgp_wire::mrt::{Body, Reader, RecordedMessage, TableAttrs};

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

/// The messages of sessions, as far as records can be read.
pub(crate) fn messages(data: &[u8]) -> impl Iterator<Item = RecordedMessage<'_>> {
    Reader::new(data).filter_map(Result::ok).filter_map(|record| match record.body {
        Body::Message(message) => Some(message),
        Body::PeerIndex(_) | Body::Rib(_) | Body::OldEntry(_) | Body::StateChange(_) | Body::Other { .. } => {
            None
        }
    })
}

/// The attributes of the routes of a table.
pub(crate) fn entries(data: &[u8]) -> Vec<TableAttrs<'_>> {
    let mut all = Vec::new();
    for record in Reader::new(data) {
        match record.unwrap().body {
            Body::Rib(rib) => all.extend(rib.entries().map(|entry| entry.attrs)),
            Body::OldEntry(entry) => all.push(entry.attrs),
            Body::PeerIndex(_) | Body::Message(_) | Body::StateChange(_) | Body::Other { .. } => {}
        }
    }
    all
}
