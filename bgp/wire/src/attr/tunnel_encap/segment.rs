//! Segment lists and their segments (RFC 9830 section 2.4.4).

use std::{fmt, net::Ipv6Addr};

use super::{SubTlv, sr_policy::UnknownSubTlv};

pub(super) mod kind {
    pub(crate) const SEGMENT_TYPE_A: u8 = 1;
    pub(crate) const WEIGHT: u8 = 9;
    pub(crate) const SEGMENT_TYPE_B: u8 = 13;
}

/// One explicit list of segments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SegmentList {
    /// Its share of the traffic, among the lists of its candidate path. [`SegmentList::DEFAULT_WEIGHT`] where it is not
    /// said (RFC 9256 section 2.11).
    pub weight: u32,
    /// The segments, the first one first.
    pub segments: Vec<Segment>,
}

impl Default for SegmentList {
    fn default() -> Self {
        Self { weight: Self::DEFAULT_WEIGHT, segments: Vec::new() }
    }
}

/// One segment.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Type A: an MPLS label. Shown as `label 16001`.
    Mpls {
        /// The flags.
        flags: SegmentFlags,
        /// The label, below 2²⁰.
        label: u32,
        /// The traffic class, below 8; 0 where the headend shall choose.
        traffic_class: u8,
        /// The time to live; 255 where the headend shall choose.
        ttl: u8,
    },
    /// Type B: an SRv6 SID. Shown as `fc00::4 End.DT4`.
    Srv6 {
        /// The flags.
        flags: SegmentFlags,
        /// The SID; `::` where the headend shall choose one of this behaviour.
        sid: Ipv6Addr,
        /// What the SID does and how it is made up. Its length says whether it is there, not a flag: some speakers set
        /// others than the B-Flag.
        behavior: Option<EndpointBehavior>,
    },
    /// Another sub-TLV of the list: types C to K (RFC 9831), or one that nobody has defined.
    Unknown(UnknownSubTlv),
}

/// The flags of a segment (RFC 9830 section 2.4.4.2.3, RFC 9831 section 2.10).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct SegmentFlags(pub u8);

impl SegmentFlags {
    /// V-Flag: the headend shall verify the SID.
    pub const V: Self = Self(0x80);
    /// A-Flag: an SR algorithm is there, in types C, D, I, J and K.
    pub const A: Self = Self(0x40);
    /// S-Flag: a SID is there, in types C to K.
    pub const S: Self = Self(0x20);
    /// B-Flag: an SRv6 endpoint behaviour and SID structure is there.
    pub const B: Self = Self(0x10);
    /// The bits that have a meaning. Others are not sent.
    pub const DEFINED: Self = Self(0xf0);

    /// Whether every flag of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What an SRv6 SID does, and how many bits each of its parts has (RFC 9830 section 2.4.4.2.4, RFC 8986). Shown as
/// `End.DT4`, with its structure behind it unless all of it is 0: `End.DT4/32/16/16/0`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct EndpointBehavior {
    /// The behaviour's code point (RFC 8986 section 10.2).
    pub code: u16,
    /// Bits of the locator block.
    pub block: u8,
    /// Bits of the locator node.
    pub node: u8,
    /// Bits of the function.
    pub function: u8,
    /// Bits of the argument.
    pub argument: u8,
}

impl SegmentList {
    /// The weight of a list that does not name one.
    pub const DEFAULT_WEIGHT: u32 = 1;

    /// Reads the octets of a segment list; `None` if they are malformed.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let (_, mut rest) = value.split_first()?;
        let mut weight = None;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let (SubTlv { kind, value }, after) = SubTlv::split_first(rest)?;
            rest = after;
            match kind {
                kind::WEIGHT => {
                    let &[_, _, a, b, c, d] = value else { return None };
                    weight.get_or_insert(u32::from_be_bytes([a, b, c, d]));
                }
                kind::SEGMENT_TYPE_A => {
                    let &[flags, _, a, b, c, d] = value else { return None };
                    let entry = u32::from_be_bytes([a, b, c, d]);
                    segments.push(Segment::Mpls {
                        flags: SegmentFlags(flags),
                        label: entry >> 12,
                        traffic_class: (entry >> 9 & 7) as u8,
                        ttl: d,
                    });
                }
                kind::SEGMENT_TYPE_B => {
                    let (&[flags, _], rest) = value.split_first_chunk::<2>()?;
                    let (sid, behavior) = EndpointBehavior::after_sid(rest)?;
                    segments.push(Segment::Srv6 { flags: SegmentFlags(flags), sid, behavior });
                }
                _ => segments.push(Segment::Unknown(UnknownSubTlv { kind, value: value.into() })),
            }
        }
        Some(Self { weight: weight.unwrap_or(Self::DEFAULT_WEIGHT), segments })
    }
}

impl EndpointBehavior {
    /// Reads a SID, alone or with its behaviour and structure behind it.
    pub(super) fn after_sid(octets: &[u8]) -> Option<(Ipv6Addr, Option<Self>)> {
        let (sid, rest) = octets.split_first_chunk::<16>()?;
        let behavior = match *rest {
            [] => None,
            [high, low, _, _, block, node, function, argument] => {
                Some(Self { code: u16::from_be_bytes([high, low]), block, node, function, argument })
            }
            _ => return None,
        };
        Some(((*sid).into(), behavior))
    }

    /// How many bits of a SID its parts take.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.block as u16 + self.node as u16 + self.function as u16 + self.argument as u16
    }

    /// The code point of a behaviour without flavours by its name in RFC 8986.
    #[must_use]
    pub fn named(name: &str) -> Option<u16> {
        (1..=u8::MAX.into()).find(|code| Self { code: *code, ..Self::default() }.name() == Some(name))
    }

    /// The behaviour's name in RFC 8986, without its flavours; `None` for code points that are not listed here.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.code {
            1..=4 | 28..=31 => "End",
            5..=8 | 32..=35 => "End.X",
            9..=12 | 36..=39 => "End.T",
            14 => "End.B6.Encaps",
            15 => "End.BM",
            16 => "End.DX6",
            17 => "End.DX4",
            18 => "End.DT6",
            19 => "End.DT4",
            20 => "End.DT46",
            21 => "End.DX2",
            22 => "End.DX2V",
            23 => "End.DT2U",
            24 => "End.DT2M",
            27 => "End.B6.Encaps.Red",
            _ => return None,
        })
    }
}

impl fmt::Display for EndpointBehavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name)?,
            None => write!(f, "behavior-{}", self.code)?,
        }
        if self.bits() > 0 {
            write!(f, "/{}/{}/{}/{}", self.block, self.node, self.function, self.argument)?;
        }
        Ok(())
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpls { label, .. } => write!(f, "label {label}"),
            Self::Srv6 { sid, behavior: None, .. } => sid.fmt(f),
            Self::Srv6 { sid, behavior: Some(behavior), .. } => write!(f, "{sid} {behavior}"),
            Self::Unknown(UnknownSubTlv { kind, .. }) => write!(f, "type-{kind}"),
        }
    }
}
