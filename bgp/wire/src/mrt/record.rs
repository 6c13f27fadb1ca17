//! Records: a header with time, type and length, and what the type says (RFC 6396 sections 2 and 3).

use super::{
    MrtError, MrtFault, OldEntry, PeerIndex, Place, RecordedMessage, Rib, StateChange, message::Session,
    table,
};

/// A record as it stands in a file, not interpreted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Seconds since 1970.
    pub timestamp: u32,
    /// Its type.
    pub kind: u16,
    /// Its subtype.
    pub subtype: u16,
    /// What stands behind its header.
    pub body: &'a [u8],
}

/// TABLE_DUMP.
const TABLE_DUMP: u16 = 12;
/// TABLE_DUMP_V2.
pub(super) const TABLE_DUMP_V2: u16 = 13;
/// BGP4MP.
const BGP4MP: u16 = 16;
/// BGP4MP_ET.
const BGP4MP_ET: u16 = 17;

impl<'a> RawRecord<'a> {
    /// Octets of the header.
    pub const HEADER_LEN: usize = 12;
    /// The longest record that is read, without its header: far more than the largest real one, and little enough to
    /// keep in memory.
    pub const MAX_LEN: usize = 16 << 20;

    /// Takes one record off the front; `None` if more octets are needed for a whole one.
    ///
    /// # Errors
    /// [`MrtFault::TooLong`].
    pub fn split_first(octets: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, MrtFault> {
        let Some((&[a, b, c, d, e, f, g, h, i, j, k, l], rest)) = octets.split_first_chunk::<12>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([i, j, k, l]);
        if length as usize > Self::MAX_LEN {
            return Err(MrtFault::TooLong(length));
        }
        let Some((body, rest)) = rest.split_at_checked(length as usize) else { return Ok(None) };
        let timestamp = u32::from_be_bytes([a, b, c, d]);
        let (kind, subtype) = (u16::from_be_bytes([e, f]), u16::from_be_bytes([g, h]));
        Ok(Some((Self { timestamp, kind, subtype, body }, rest)))
    }

    /// How many octets the first record of a file takes, as far as that is known yet: those of its header if that is
    /// not whole.
    #[must_use]
    pub fn needed(octets: &[u8]) -> u64 {
        let length =
            octets.get(8..12).and_then(|octets| octets.try_into().ok()).map_or(0, u32::from_be_bytes);
        Self::HEADER_LEN as u64 + u64::from(length)
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is not what its type says.
    pub fn parse(self) -> Result<Record<'a>, MrtFault> {
        let Self { timestamp, kind, subtype, body } = self;
        let mut microseconds = None;
        let body = match kind {
            TABLE_DUMP => OldEntry::parse(subtype, body)?.map(Body::OldEntry),
            TABLE_DUMP_V2 if subtype == table::PEER_INDEX_TABLE => {
                Some(Body::PeerIndex(PeerIndex::parse(body)?))
            }
            TABLE_DUMP_V2 => Rib::parse(subtype, body)?.map(Body::Rib),
            BGP4MP => Session::parse(subtype, body)?.map(Into::into),
            BGP4MP_ET => {
                let (octets, body) = body.split_first_chunk::<4>().ok_or(MrtFault::Short)?;
                microseconds = Some(u32::from_be_bytes(*octets));
                Session::parse(subtype, body)?.map(Into::into)
            }
            _ => None,
        };
        Ok(Record { timestamp, microseconds, body: body.unwrap_or(Body::Other { kind, subtype }) })
    }
}

/// A record.
#[derive(Copy, Clone, Debug)]
pub struct Record<'a> {
    /// Seconds since 1970.
    pub timestamp: u32,
    /// Microseconds beyond them, where the record has such.
    pub microseconds: Option<u32>,
    /// What it says.
    pub body: Body<'a>,
}

/// What a record says.
#[derive(Copy, Clone, Debug)]
pub enum Body<'a> {
    /// The peers of the table that follows.
    PeerIndex(PeerIndex<'a>),
    /// A destination with its paths.
    Rib(Rib<'a>),
    /// A path, in a table of the old form.
    OldEntry(OldEntry<'a>),
    /// A message of a session.
    Message(RecordedMessage<'a>),
    /// A session's change of state.
    StateChange(StateChange),
    /// Something that is not read here.
    Other {
        /// Its type.
        kind: u16,
        /// Its subtype.
        subtype: u16,
    },
}

impl<'a> From<Session<'a>> for Body<'a> {
    fn from(session: Session<'a>) -> Self {
        match session {
            Session::Message(message) => Self::Message(message),
            Session::StateChange(change) => Self::StateChange(change),
        }
    }
}

/// The records of a file, in their order. A record that cannot be read is an error in its place; the last one that is
/// given is an error where the end of a record could not be found.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    place: Place,
}

impl<'a> Reader<'a> {
    /// Reads the octets of a whole file.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { rest: octets, place: Place { record: 1, offset: 0 } }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Record<'a>, MrtError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let place = self.place;
        let left = self.rest.len() as u64;
        let read = match RawRecord::split_first(self.rest) {
            Ok(Some((record, rest))) => {
                self.place.record += 1;
                self.place.offset += left - rest.len() as u64;
                self.rest = rest;
                record.parse()
            }
            Ok(None) => Err(MrtFault::Truncated { needed: RawRecord::needed(self.rest), left }),
            Err(fault) => Err(fault),
        };
        Some(read.map_err(|fault| {
            if fault.is_last() {
                self.rest = &[];
            }
            MrtError { place, fault }
        }))
    }
}

/// Takes fields off the front of a record.
#[derive(Copy, Clone, Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[octet]| octet)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }
}
