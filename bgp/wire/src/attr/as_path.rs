//! AS_PATH and AS4_PATH (RFC 4271 sections 4.3 and 5.1.2; RFC 6793; RFC 5065 for confederation segments; RFC
//! 7606 section 7.2; RFC 7607 for AS 0).
//!
//! A path is kept and read with 4-octet AS numbers; the 2-octet form exists only in messages.

use std::fmt;

use super::DecodeCtx;
use crate::{asn::Asn, error::AttrProblem};

/// The kind of a path segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SegmentKind {
    /// AS_SET: unordered, counts as one.
    Set = 1,
    /// AS_SEQUENCE: ordered, the nearest AS first.
    Sequence = 2,
    /// AS_CONFED_SEQUENCE (RFC 5065): counts nothing.
    ConfedSequence = 3,
    /// AS_CONFED_SET (RFC 5065): counts nothing.
    ConfedSet = 4,
}

impl SegmentKind {
    const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Set),
            2 => Some(Self::Sequence),
            3 => Some(Self::ConfedSequence),
            4 => Some(Self::ConfedSet),
            _ => None,
        }
    }

    const fn is_confed(self) -> bool {
        matches!(self, Self::ConfedSequence | Self::ConfedSet)
    }
}

/// One segment of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Its kind.
    pub kind: SegmentKind,
    width: usize,
    octets: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Its AS numbers, one to 255 of them.
    pub fn asns(self) -> impl ExactSizeIterator<Item = Asn> + 'a {
        self.octets
            .chunks_exact(self.width)
            .map(|octets| Asn(octets.iter().fold(0, |number, octet| number << 8 | u32::from(*octet))))
    }

    /// What it adds to the length of the path (RFC 4271 section 9.1.2.2 (a), RFC 5065 section 5.3).
    #[must_use]
    pub fn length(self) -> u32 {
        match self.kind {
            SegmentKind::Set => 1,
            SegmentKind::Sequence => (self.octets.len() / self.width) as u32,
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
        }
    }
}

#[derive(Copy, Clone, Debug)]
struct Segments<'a> {
    rest: &'a [u8],
    width: usize,
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        let (&[kind, count], rest) = self.rest.split_first_chunk::<2>()?;
        let kind = SegmentKind::from_code(kind)?;
        let (octets, rest) = rest.split_at_checked(usize::from(count) * self.width)?;
        if octets.is_empty() {
            return None;
        }
        self.rest = rest;
        Some(Segment { kind, width: self.width, octets })
    }
}

/// A path of 4-octet AS numbers, borrowed from a canonical attribute set. The default is the empty path.
#[derive(Copy, Clone, PartialEq, Eq, Default)]
pub struct AsPath<'a>(&'a [u8]);

impl<'a> AsPath<'a> {
    /// A path from the value of a canonical AS_PATH. Octets that are no path end it where they begin.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Its octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.0
    }

    /// Whether it has no segment: the route comes from within the AS.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Its segments, the nearest first.
    pub fn segments(self) -> impl Iterator<Item = Segment<'a>> {
        Segments { rest: self.0, width: 4 }
    }

    /// All its AS numbers, those of sets and confederation segments included.
    pub fn asns(self) -> impl Iterator<Item = Asn> {
        self.segments().flat_map(Segment::asns)
    }

    /// The length that route selection compares: a set counts as one, confederation segments not at all.
    #[must_use]
    pub fn length(self) -> u32 {
        self.segments().map(Segment::length).sum()
    }

    /// Whether an AS number occurs anywhere: a loop, if it is our own.
    #[must_use]
    pub fn contains(self, asn: Asn) -> bool {
        self.asns().any(|other| other == asn)
    }

    /// The neighbouring AS, whose MED values compare with one another: the first AS of a leading sequence,
    /// behind confederation segments (RFC 4271 section 9.1.2.2 (c), RFC 5065 section 5.3).
    #[must_use]
    pub fn neighbor(self) -> Option<Asn> {
        let first = self.segments().find(|segment| !segment.kind.is_confed())?;
        if first.kind == SegmentKind::Sequence { first.asns().next() } else { None }
    }

    /// The originating AS: the last one of a final sequence.
    #[must_use]
    pub fn origin(self) -> Option<Asn> {
        let last = self.segments().last()?;
        if last.kind == SegmentKind::Sequence { last.asns().last() } else { None }
    }
}

impl fmt::Display for AsPath<'_> {
    /// AS numbers with blanks between them; a set in `{}`, a confederation sequence in `()`, a confederation
    /// set in `[]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, segment) in self.segments().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            let (open, between, close) = match segment.kind {
                SegmentKind::Sequence => ("", " ", ""),
                SegmentKind::Set => ("{", ",", "}"),
                SegmentKind::ConfedSequence => ("(", " ", ")"),
                SegmentKind::ConfedSet => ("[", ",", "]"),
            };
            f.write_str(open)?;
            for (place, asn) in segment.asns().enumerate() {
                if place > 0 {
                    f.write_str(between)?;
                }
                write!(f, "{asn}")?;
            }
            f.write_str(close)?;
        }
        Ok(())
    }
}

impl fmt::Debug for AsPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsPath({self})")
    }
}

pub(crate) fn check_as_path(value: &[u8], ctx: DecodeCtx) -> Result<(), AttrProblem> {
    let mut segments = Segments { rest: value, width: if ctx.four_octet { 4 } else { 2 } };
    for segment in segments.by_ref() {
        // RFC 5065 section 5: confederation segments from outside the confederation; RFC 7607 section 2: AS
        // 0.
        if (ctx.ebgp && segment.kind.is_confed()) || segment.asns().any(|asn| asn == Asn::ZERO) {
            return Err(AttrProblem::Value);
        }
    }
    if segments.rest.is_empty() { Ok(()) } else { Err(AttrProblem::Length) }
}

pub(crate) fn check_as4_path(value: &[u8], _: DecodeCtx) -> Result<(), AttrProblem> {
    if value.is_empty() {
        // RFC 6793 section 6: an attribute of less than six octets is malformed.
        return Err(AttrProblem::Length);
    }
    // Confederation segments are allowed here and left out when the path is used.
    check_as_path(value, DecodeCtx { four_octet: true, ebgp: false, ..DecodeCtx::default() })
}

/// Writes a path segment by segment, and joins sequences that follow one another.
struct PathWriter {
    octets: Vec<u8>,
    /// Where the head of the last segment stands, if it is a sequence that may grow.
    open: Option<usize>,
}

impl PathWriter {
    const fn new() -> Self {
        Self { octets: Vec::new(), open: None }
    }

    fn segment(&mut self, kind: SegmentKind, asns: impl Iterator<Item = Asn>) {
        if kind != SegmentKind::Sequence {
            self.open = None;
        }
        let mut head = self.open;
        for asn in asns {
            let at = match head {
                Some(at) if self.octets[at + 1] < u8::MAX => at,
                _ => {
                    let at = self.octets.len();
                    self.octets.extend_from_slice(&[kind as u8, 0]);
                    head = Some(at);
                    at
                }
            };
            self.octets[at + 1] += 1;
            self.octets.extend_from_slice(&asn.0.to_be_bytes());
        }
        self.open = if kind == SegmentKind::Sequence { head } else { None };
    }
}

/// The canonical path of a 2-octet AS_PATH and the AS4_PATH beside it (RFC 6793 section 4.2.3): the leading
/// part of the one, as much as it is longer, before the other. An AS4_PATH that is the longer one is not
/// used. Both were checked.
pub(crate) fn widen(two_octet: &[u8], as4_path: Option<&[u8]>) -> Vec<u8> {
    let short = Segments { rest: two_octet, width: 2 };
    let long = Segments { rest: as4_path.unwrap_or_default(), width: 4 };
    let (short_len, long_len): (u32, u32) =
        (short.map(Segment::length).sum(), long.map(Segment::length).sum());
    if long_len == 0 || short_len < long_len {
        let mut octets = Vec::with_capacity(2 * two_octet.len());
        for segment in short {
            octets.extend_from_slice(&[segment.kind as u8, segment.asns().len() as u8]);
            segment.asns().for_each(|asn| octets.extend_from_slice(&asn.0.to_be_bytes()));
        }
        return octets;
    }
    let mut merged = PathWriter::new();
    let mut missing = short_len - long_len;
    for segment in short {
        let length = segment.length();
        match segment.kind {
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => {
                merged.segment(segment.kind, segment.asns());
            }
            _ if missing == 0 => break,
            SegmentKind::Set => merged.segment(segment.kind, segment.asns()),
            SegmentKind::Sequence => merged.segment(segment.kind, segment.asns().take(missing as usize)),
        }
        missing = missing.saturating_sub(length);
    }
    for segment in long.filter(|segment| !segment.kind.is_confed()) {
        merged.segment(segment.kind, segment.asns());
    }
    merged.octets
}

/// The 2-octet AS_PATH of a path, and the AS4_PATH that must go beside it if a number does not fit (RFC 6793
/// section 4.2.2).
pub(crate) fn narrow(path: AsPath<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut octets = Vec::with_capacity(path.0.len() / 2 + 2);
    let mut fits = true;
    for segment in path.segments() {
        octets.extend_from_slice(&[segment.kind as u8, segment.asns().len() as u8]);
        for asn in segment.asns() {
            fits &= asn.is_2octet() || segment.kind.is_confed();
            octets.extend_from_slice(&asn.to_2octet().to_be_bytes());
        }
    }
    if fits {
        return (octets, None);
    }
    let mut as4_path = Vec::with_capacity(path.0.len());
    for segment in path.segments().filter(|segment| !segment.kind.is_confed()) {
        as4_path.extend_from_slice(&[segment.kind as u8, segment.asns().len() as u8]);
        as4_path.extend_from_slice(segment.octets);
    }
    (octets, Some(as4_path))
}

/// A path with `asn` before it, `times` times (RFC 4271 section 5.1.2).
pub(crate) fn prepend(path: AsPath<'_>, asn: Asn, times: u8) -> Vec<u8> {
    let mut octets = Vec::with_capacity(path.0.len() + 2 + 4 * usize::from(times));
    if times == 0 {
        octets.extend_from_slice(path.0);
        return octets;
    }
    // The numbers join a leading sequence as far as it has room; what does not fit stands in a sequence
    // before it.
    let (room, rest) = match path.0 {
        [kind, count, rest @ ..] if *kind == SegmentKind::Sequence as u8 => (Some(*count), rest),
        all => (None, all),
    };
    let joined = room.map_or(0, |count| times.min(u8::MAX - count));
    if joined < times {
        octets.extend_from_slice(&[SegmentKind::Sequence as u8, times - joined]);
        (joined..times).for_each(|_| octets.extend_from_slice(&asn.0.to_be_bytes()));
    }
    if let Some(count) = room {
        octets.extend_from_slice(&[SegmentKind::Sequence as u8, count + joined]);
        (0..joined).for_each(|_| octets.extend_from_slice(&asn.0.to_be_bytes()));
    }
    octets.extend_from_slice(rest);
    octets
}

#[cfg(test)]
mod tests;
