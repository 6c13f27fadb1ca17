//! MPLS labels as prefixes carry them (RFC 8277 section 2.2).

use std::{fmt, num::NonZeroU32, str::FromStr};

/// A label, 20 bits (RFC 3032).
///
/// Which label leads to a prefix is a property of the path, not of the prefix: two paths to one prefix have a label
/// each, and a withdrawal names none.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(
    /// One more than the label, so that an optional label takes no more room.
    NonZeroU32,
);

impl Label {
    /// The largest label.
    pub const MAX: u32 = (1 << 20) - 1;
    /// What stands in a withdrawal: it "SHOULD be set to 0x800000 on transmission" (RFC 8277 section 2.4).
    const WITHDRAWN: [u8; 3] = [0x80, 0, 0];

    /// The label of this value; `None` if it is greater than [`Label::MAX`].
    #[must_use]
    pub const fn new(value: u32) -> Option<Self> {
        if value > Self::MAX {
            return None;
        }
        match NonZeroU32::new(value + 1) {
            Some(one_more) => Some(Self(one_more)),
            None => None,
        }
    }

    /// Its value.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0.get() - 1
    }

    /// Reads the label of an announcement. The three reserved bits and the bottom-of-stack bit "MUST be ignored on
    /// reception": there is one label only, as we do not offer the Multiple Labels Capability.
    #[inline]
    pub(crate) const fn parse([high, middle, low]: [u8; 3]) -> Self {
        // 24 bits, so that one more is never 0.
        Self(NonZeroU32::MIN.saturating_add(u32::from_be_bytes([0, high, middle, low]) >> 4))
    }

    /// The octets of a label, or those of a withdrawal. Reserved bits are clear, the bottom-of-stack bit is set.
    #[inline]
    pub(crate) const fn octets(label: Option<Self>) -> [u8; 3] {
        match label {
            Some(label) => {
                let [_, high, middle, low] = (label.value() << 4 | 1).to_be_bytes();
                [high, middle, low]
            }
            None => Self::WITHDRAWN,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

/// A text that is no label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a label (0 to 1048575): \"{0}\"")]
pub struct LabelParseError(String);

impl FromStr for Label {
    type Err = LabelParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = text.parse().ok().filter(|_| text.bytes().all(|octet| octet.is_ascii_digit()));
        value.and_then(Self::new).ok_or_else(|| LabelParseError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_bits_and_the_bottom_of_the_stack() {
        for (value, octets) in
            [(0, [0, 0, 1]), (3, [0, 0, 0x31]), (Label::MAX, [0xff, 0xff, 0xf1]), (1 << 19, [0x80, 0, 1])]
        {
            let label = Label::new(value).unwrap();
            assert_eq!((label.value(), Label::octets(Some(label))), (value, octets));
            assert_eq!(Label::parse(octets), label);
            assert_eq!(label.to_string().parse(), Ok(label));
        }
        assert_eq!(Label::new(Label::MAX + 1), None);
        assert_eq!(Label::octets(None), [0x80, 0, 0]);
        assert_eq!(size_of::<Option<Label>>(), 4);
    }

    #[test]
    fn reserved_bits_and_the_bottom_of_the_stack_are_ignored_on_reception() {
        for low in 0..16 {
            assert_eq!(Label::parse([0x12, 0x34, 0x50 | low]), Label::new(0x1_2345).unwrap());
        }
    }

    #[test]
    fn what_is_no_label() {
        for text in ["", "-1", "+1", "1048576", "4294967296", "x"] {
            assert!(text.parse::<Label>().is_err(), "{text}");
        }
    }
}
