//! A recorded file (MRT), plain or packed by gzip or bzip2, record by record: as much of it is in memory as one record takes.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use bgp_wire::mrt::{MrtError, MrtFault, Place, RawRecord, Record};

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A file being read.
pub(crate) struct Recording {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Where in `buffer` the next record begins.
    start: usize,
    place: Place,
    /// Nothing more will be read.
    ended: bool,
}

/// Why the next record can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    /// The file cannot be read, or is not packed as it claims.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The record is not what it claims.
    #[error(transparent)]
    Record(#[from] MrtError),
}

impl Recording {
    /// Opens a file. What it is packed by shows in its first octets, whatever its name.
    ///
    /// # Errors
    /// It cannot be opened or read.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = [0; 3];
        let mut known = 0;
        while known < head.len() {
            match file.read(&mut head[known..])? {
                0 => break,
                count => known += count,
            }
        }
        let head = head[..known].to_vec();
        let packed_by = |magic: &[u8]| head.starts_with(magic);
        let (gzip, bzip2) = (packed_by(&[0x1f, 0x8b]), packed_by(b"BZh"));
        let whole = BufReader::new(io::Cursor::new(head).chain(file));
        Ok(Self::new(if gzip {
            Box::new(flate2::bufread::MultiGzDecoder::new(whole))
        } else if bzip2 {
            Box::new(bzip2::bufread::MultiBzDecoder::new(whole))
        } else {
            Box::new(whole)
        }))
    }

    /// Reads octets that are not packed.
    pub(crate) fn new(input: Box<dyn Read>) -> Self {
        let place = Place { record: 1, offset: 0 };
        Self { input, buffer: Vec::new(), start: 0, place, ended: false }
    }

    /// The next record; `None` at the end. Behind a record that cannot be read the next one can, unless the file itself is at
    /// fault or its end could not be found.
    pub(crate) fn next(&mut self) -> Option<Result<Record<'_>, RecordingError>> {
        if self.ended {
            return None;
        }
        let (place, length) = match self.whole() {
            Ok(Some(length)) => (self.place, length),
            Ok(None) => {
                self.ended = true;
                return None;
            }
            Err(error) => {
                self.ended = true;
                return Some(Err(error));
            }
        };
        let at = self.start;
        self.start += length;
        self.place = Place { record: place.record + 1, offset: place.offset + length as u64 };
        let octets = self.buffer.get(at..at + length).unwrap_or_default();
        let record = match RawRecord::split_first(octets) {
            Ok(Some((record, _))) => record.parse(),
            Ok(None) => Err(MrtFault::Short),
            Err(fault) => Err(fault),
        };
        Some(record.map_err(|fault| MrtError { place, fault }.into()))
    }

    /// Reads until a whole record is there, and says how long it is; `None` at the end of the file.
    fn whole(&mut self) -> Result<Option<usize>, RecordingError> {
        loop {
            let left = self.buffer.get(self.start..).unwrap_or_default();
            let at_fault = |fault| MrtError { place: self.place, fault };
            if let Some((_, rest)) = RawRecord::split_first(left).map_err(at_fault)? {
                return Ok(Some(left.len() - rest.len()));
            }
            let (needed, have) = (RawRecord::needed(left), left.len() as u64);
            self.buffer.drain(..std::mem::take(&mut self.start));
            let before = self.buffer.len();
            self.buffer.resize(before + CHUNK, 0);
            let read = self.input.read(self.buffer.get_mut(before..).unwrap_or_default());
            self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) if have == 0 => return Ok(None),
                Ok(0) => {
                    let fault = MrtFault::Truncated { needed, left: have };
                    return Err(MrtError { place: self.place, fault }.into());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use bgp_wire::RouterId;
    use bgp_wire::mrt::{Body, TableWriter};

    use super::*;

    fn table(records: u32) -> Vec<u8> {
        let mut out = Vec::new();
        for at in 0..records {
            TableWriter::new(at).peers(RouterId(1), &"x".repeat(at as usize % 300), &[], &mut out).unwrap();
        }
        out
    }

    fn read(path: &Path) -> Vec<Result<u32, String>> {
        let mut recording = Recording::open(path).unwrap();
        let mut all = Vec::new();
        while let Some(record) = recording.next() {
            all.push(record.map(|record| record.timestamp).map_err(|error| error.to_string()));
        }
        all
    }

    #[test]
    fn plain_or_packed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        let octets = table(2000);
        assert!(octets.len() > 2 * CHUNK);
        let expected: Vec<_> = (0..2000).map(Ok).collect();
        std::fs::write(&path, &octets).unwrap();
        assert_eq!(read(&path), expected);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&octets).unwrap();
        std::fs::write(&path, gzip.finish().unwrap()).unwrap();
        assert_eq!(read(&path), expected);
        // Two streams in one file, as parallel packers write it.
        let mut packed = Vec::new();
        for half in [&octets[..1000], &octets[1000..]] {
            let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            bzip2.write_all(half).unwrap();
            packed.extend(bzip2.finish().unwrap());
        }
        std::fs::write(&path, &packed).unwrap();
        assert_eq!(read(&path), expected);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path), []);
    }

    #[test]
    fn faults_are_told_with_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table");
        let mut octets = table(2);
        let first = RawRecord::needed(&octets) as usize;
        // A name that is longer than the record.
        octets[first + 12 + 5] = 99;
        octets.extend_from_slice(&table(1));
        octets.extend_from_slice(&[0; 7]);
        std::fs::write(&path, &octets).unwrap();
        let end = octets.len() - 7;
        assert_eq!(
            read(&path),
            [
                Ok(0),
                Err(format!("record 2 at octet {first}: it is too short for its type")),
                Ok(0),
                Err(format!(
                    "record 4 at octet {end}: the file ends inside it: 12 octets are needed, 7 are left"
                )),
            ]
        );
        // Cut off inside its packing.
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(&table(2000)).unwrap();
        let packed = gzip.finish().unwrap();
        std::fs::write(&path, &packed[..packed.len() / 2]).unwrap();
        assert!(read(&path).last().unwrap().is_err());
    }

    #[test]
    fn a_record_that_claims_too_much_takes_no_memory() {
        let octets = [&[0, 0, 0, 0, 0, 13, 0, 1, 0xff, 0xff, 0xff, 0xff][..], &[0; 100]].concat();
        let mut recording = Recording::new(Box::new(io::Cursor::new(octets)));
        assert!(recording.next().is_some_and(|record| record.is_err()));
        assert!(recording.next().is_none() && recording.buffer.capacity() < 2 * CHUNK);
    }

    #[test]
    fn a_name_is_no_table() {
        let octets = table(1);
        let mut recording = Recording::new(Box::new(io::Cursor::new(octets)));
        let record = recording.next().unwrap().unwrap();
        assert!(matches!(record.body, Body::PeerIndex(index) if index.peers().count() == 0));
    }
}
