//! Attributes as they stand in a message: flags, code, length, octets (RFC 4271 section 4.3).

use std::fmt;

/// Attribute flags.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct AttrFlags(pub u8);

impl AttrFlags {
    /// Optional, as opposed to well-known.
    pub const OPTIONAL: Self = Self(0x80);
    /// Transitive.
    pub const TRANSITIVE: Self = Self(0x40);
    /// Partial: someone on the way did not know it.
    pub const PARTIAL: Self = Self(0x20);
    /// The length has two octets.
    pub const EXTENDED: Self = Self(0x10);

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Optional and Transitive alone.
    #[inline]
    pub(crate) const fn kind(self) -> Self {
        Self(self.0 & (Self::OPTIONAL.0 | Self::TRANSITIVE.0))
    }
}

/// One attribute, not interpreted.
#[derive(Copy, Clone, PartialEq, Eq)]
pub struct RawAttr<'a> {
    /// Its flags.
    pub flags: AttrFlags,
    /// Its type code.
    pub code: u8,
    /// Its value.
    pub value: &'a [u8],
    /// All of it, header included.
    pub raw: &'a [u8],
}

impl<'a> RawAttr<'a> {
    /// How many octets a value may have.
    pub(crate) const LONGEST: usize = u16::MAX as usize;

    /// Takes one attribute off the front of a section; `None` if it runs past the end.
    #[inline]
    pub(crate) fn split_first(section: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[flags, code, short], rest) = section.split_first_chunk::<3>()?;
        let flags = AttrFlags(flags);
        let (head, length, rest) = if flags.has(AttrFlags::EXTENDED) {
            let (&low, rest) = rest.split_first()?;
            (4, usize::from(u16::from_be_bytes([short, low])), rest)
        } else {
            (3, usize::from(short), rest)
        };
        let (value, after) = rest.split_at_checked(length)?;
        let raw = section.get(..head + length)?;
        Some((Self { flags, code, value, raw }, after))
    }

    /// Appends an attribute with the shortest header that its value allows. A value has at most 65535 octets,
    /// as it comes from a message or fits into one.
    pub(crate) fn write(out: &mut Vec<u8>, flags: AttrFlags, code: u8, value: &[u8]) {
        Self::write_head(out, flags, code, value.len());
        out.extend_from_slice(value);
    }

    /// Appends the header of an attribute of `len` octets.
    pub(crate) fn write_head(out: &mut Vec<u8>, flags: AttrFlags, code: u8, len: usize) {
        let flags = flags.0 & !AttrFlags::EXTENDED.0;
        match u8::try_from(len) {
            Ok(len) => out.extend_from_slice(&[flags, code, len]),
            Err(_) => {
                let [high, low] = (len as u16).to_be_bytes();
                out.extend_from_slice(&[flags | AttrFlags::EXTENDED.0, code, high, low]);
            }
        }
    }
}

impl fmt::Debug for RawAttr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02x} ", super::name(self.code), self.flags.0)?;
        self.value.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Iterates over the attributes of a section; ends where no whole attribute is left.
#[derive(Copy, Clone, Debug)]
pub struct AttrIter<'a> {
    rest: &'a [u8],
}

impl<'a> AttrIter<'a> {
    /// The attributes of `section`.
    #[must_use]
    pub const fn new(section: &'a [u8]) -> Self {
        Self { rest: section }
    }

    /// What has not been read: empty at the end, unless the last attribute ran past it.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for AttrIter<'a> {
    type Item = RawAttr<'a>;

    #[inline]
    fn next(&mut self) -> Option<RawAttr<'a>> {
        let (attr, rest) = RawAttr::split_first(self.rest)?;
        self.rest = rest;
        Some(attr)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_headers() {
        let section = [0x40, 1, 1, 0, 0x50, 2, 0, 2, 7, 8, 0x80, 4, 4, 0, 0];
        let mut attrs = AttrIter::new(&section);
        let first = attrs.next().unwrap();
        assert_eq!((first.flags.0, first.code, first.value, first.raw), (0x40, 1, &[0][..], &section[..4]));
        let second = attrs.next().unwrap();
        assert_eq!(
            (second.flags.0, second.code, second.value, second.raw),
            (0x50, 2, &[7, 8][..], &section[4..10])
        );
        assert_eq!(attrs.next(), None);
        assert_eq!(attrs.rest(), &section[10..]);
        for rest in [&[0x40][..], &[0x40, 1], &[0x50, 1, 0], &[0x40, 1, 1]] {
            assert_eq!(AttrIter::new(rest).next(), None);
        }
    }

    #[test]
    fn writes_the_shortest_header() {
        let mut out = Vec::new();
        RawAttr::write(&mut out, AttrFlags(0xd0), 8, &[1; 255]);
        RawAttr::write(&mut out, AttrFlags(0xc0), 8, &[1; 256]);
        assert_eq!((&out[..3], &out[258..262]), (&[0xc0, 8, 255][..], &[0xd0, 8, 1, 0][..]));
        assert_eq!(AttrIter::new(&out).count(), 2);
    }
}
