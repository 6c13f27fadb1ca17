//! The candidate path of an SR policy, as a tunnel of type 15 holds it (RFC 9830 section 2.4), read and written.
//!
//! Malformed is what has a length that its type does not allow (RFC 9830 section 5); what the fields say is the business
//! of whoever installs the path. Of a sub-TLV that may stand there once the first one counts, and the others are no fault
//! (section 2.4). Bits and octets that have no meaning are ignored.
//!
//! What is written is also what GoBGP 3 can take, which is less than the RFC allows: see [`CandidatePath::encode`].

use std::net::Ipv6Addr;

use super::{
    SR_POLICY, SubTlv, Tunnel, TunnelEncap,
    segment::{EndpointBehavior, Segment, SegmentList},
};

pub(super) mod kind {
    pub(crate) const PREFERENCE: u8 = 12;
    pub(crate) const BINDING_SID: u8 = 13;
    pub(crate) const ENLP: u8 = 14;
    pub(crate) const PRIORITY: u8 = 15;
    pub(crate) const SRV6_BINDING_SID: u8 = 20;
    pub(crate) const SEGMENT_LIST: u8 = 128;
    pub(crate) const CANDIDATE_PATH_NAME: u8 = 129;
    pub(crate) const POLICY_NAME: u8 = 130;
}

/// What one route says about one candidate path of an SR policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CandidatePath {
    /// Which of a policy's candidate paths is used: the greatest (RFC 9256 section 2.7).
    /// [`CandidatePath::DEFAULT_PREFERENCE`] where it is not said.
    pub preference: u32,
    /// The binding SID, in the sub-TLV that may hold a label or an SRv6 SID.
    pub binding_sid: Option<BindingSid>,
    /// SRv6 binding SIDs, in the sub-TLV made for them. There may be several.
    pub srv6_binding_sids: Vec<Srv6BindingSid>,
    /// Which explicit null label is pushed on packets that come without labels: 1 IPv4's, 2 IPv6's, 3 both, 4 none. Other
    /// values mean nothing and are not kept (RFC 9830 section 2.4.5).
    pub explicit_null: Option<u8>,
    /// In which order policies are computed again when the topology has changed: lowest first (RFC 9256 section 2.12),
    /// where it is not said 128.
    pub priority: Option<u8>,
    /// The candidate path's name, and that of its policy. Meant to be printable ASCII; other octets are replaced.
    pub name: Option<String>,
    /// The policy's name; likewise.
    pub policy_name: Option<String>,
    /// The segment lists, over which traffic is spread by their weights.
    pub segment_lists: Vec<SegmentList>,
    /// Sub-TLVs that nobody has defined for SR policies, in their order.
    pub unknown: Vec<UnknownSubTlv>,
}

/// A binding SID (RFC 9830 section 2.4.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct BindingSid {
    /// The S-Flag: the path is not valid unless it gets this very SID (RFC 9256 section 6.2.3).
    pub specified_only: bool,
    /// The I-Flag: while the policy has no valid path, what is sent to its SID is dropped (RFC 9256 section 8.2).
    pub drop_upon_invalid: bool,
    /// The SID; `None` where the headend shall choose.
    pub sid: Option<Sid>,
}

/// What a binding SID is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Sid {
    /// An MPLS label, below 2²⁰.
    Label(u32),
    /// An SRv6 SID.
    Srv6(Ipv6Addr),
}

/// An SRv6 binding SID (RFC 9830 section 2.4.3).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Srv6BindingSid {
    /// The S-Flag; see [`BindingSid::specified_only`].
    pub specified_only: bool,
    /// The I-Flag; see [`BindingSid::drop_upon_invalid`].
    pub drop_upon_invalid: bool,
    /// The SID; `::` where the headend shall choose one of this behaviour.
    pub sid: Ipv6Addr,
    /// What the SID does and how it is made up. The B-Flag says so when it is sent; when it is received the length does.
    pub behavior: Option<EndpointBehavior>,
}

/// A sub-TLV that we do not know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownSubTlv {
    /// Its type. Below 128 its length has one octet, from there on two.
    pub kind: u8,
    /// Its octets.
    pub value: Box<[u8]>,
}

/// Why a candidate path cannot be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum CandidatePathError {
    /// A label of more than 20 bits, or a reserved one (0 to 15) as binding SID (RFC 9830 section 2.4.2).
    #[error("{0} is no label that may stand here")]
    Label(u32),
    /// An MPLS traffic class of more than three bits.
    #[error("{0} is no MPLS traffic class (0 to 7)")]
    TrafficClass(u8),
    /// The parts of an SRv6 SID have more than 128 bits (RFC 9830 section 2.4.4.2.4).
    #[error("the parts of an SRv6 SID have {0} bits, which is more than 128")]
    SidStructure(u16),
    /// An explicit null policy other than 1 to 4.
    #[error("{0} is no explicit null label policy (1 to 4)")]
    ExplicitNull(u8),
    /// A name that is empty, has more than 255 octets, or other characters than printable ASCII (RFC 9830 sections 2.4.7
    /// and 2.4.8).
    #[error("a name is 1 to 255 printable ASCII characters")]
    Name,
    /// A sub-TLV, or all of them, that have more octets than their length can say.
    #[error("more octets than a tunnel can have")]
    TooLong,
}

impl Default for CandidatePath {
    fn default() -> Self {
        Self {
            preference: Self::DEFAULT_PREFERENCE,
            binding_sid: None,
            srv6_binding_sids: Vec::new(),
            explicit_null: None,
            priority: None,
            name: None,
            policy_name: None,
            segment_lists: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

impl CandidatePath {
    /// The preference of a path that does not name one (RFC 9256 section 2.7).
    pub const DEFAULT_PREFERENCE: u32 = 100;

    /// Reads the tunnel of an SR policy; `None` if a sub-TLV is malformed.
    pub(super) fn parse(tunnel: Tunnel<'_>) -> Option<Self> {
        let mut path = Self::default();
        let mut preference = None;
        for sub_tlv in tunnel.sub_tlvs() {
            let SubTlv { kind, value } = sub_tlv;
            match kind {
                kind::PREFERENCE => first(&mut preference, read_preference(value)?),
                kind::BINDING_SID => first(&mut path.binding_sid, read_binding_sid(value)?),
                kind::ENLP => {
                    let &[_, _, policy] = value else { return None };
                    if (1..=4).contains(&policy) {
                        first(&mut path.explicit_null, policy);
                    }
                }
                kind::PRIORITY => {
                    let &[priority, _] = value else { return None };
                    first(&mut path.priority, priority);
                }
                kind::SRV6_BINDING_SID => path.srv6_binding_sids.push(read_srv6_binding_sid(value)?),
                kind::SEGMENT_LIST => path.segment_lists.push(SegmentList::parse(value)?),
                kind::CANDIDATE_PATH_NAME => first(&mut path.name, read_name(value)?),
                kind::POLICY_NAME => first(&mut path.policy_name, read_name(value)?),
                // RFC 9830 section 2.3: these of RFC 9012 mean nothing here, and are ignored.
                1..=11 => {}
                _ => path.unknown.push(UnknownSubTlv { kind, value: value.into() }),
            }
        }
        path.preference = preference.unwrap_or(Self::DEFAULT_PREFERENCE);
        Some(path)
    }

    /// Whether every part of it is known and supported, segment types A and B that is. One that has other parts should not
    /// be used (RFC 9830 section 4.2.2), and is passed on all the same.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        let known = |segment: &Segment| match segment {
            Segment::Mpls { .. } | Segment::Srv6 { .. } => true,
            Segment::Unknown(_) => false,
        };
        self.unknown.is_empty() && self.segment_lists.iter().all(|list| list.segments.iter().all(known))
    }
}

fn first<T>(place: &mut Option<T>, value: T) {
    place.get_or_insert(value);
}

fn read_preference(value: &[u8]) -> Option<u32> {
    let &[_, _, a, b, c, d] = value else { return None };
    Some(u32::from_be_bytes([a, b, c, d]))
}

fn read_binding_sid(value: &[u8]) -> Option<BindingSid> {
    let (&[flags, _], sid) = value.split_first_chunk::<2>()?;
    let sid = match sid.len() {
        0 => None,
        // The label is followed by bits that an MPLS header has there, and that mean nothing here.
        4 => Some(Sid::Label(u32::from_be_bytes(sid.try_into().ok()?) >> 12)),
        16 => Some(Sid::Srv6(<[u8; 16]>::try_from(sid).ok()?.into())),
        _ => return None,
    };
    Some(BindingSid { specified_only: flags & S != 0, drop_upon_invalid: flags & I != 0, sid })
}

fn read_srv6_binding_sid(value: &[u8]) -> Option<Srv6BindingSid> {
    let (&[flags, _], rest) = value.split_first_chunk::<2>()?;
    let (sid, behavior) = EndpointBehavior::after_sid(rest)?;
    Some(Srv6BindingSid { specified_only: flags & S != 0, drop_upon_invalid: flags & I != 0, sid, behavior })
}

fn read_name(value: &[u8]) -> Option<String> {
    let (_, name) = value.split_first()?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// The flags of binding SIDs. The last is for the sub-TLV that SRv6 has for itself.
pub(super) const S: u8 = 0x80;
pub(super) const I: u8 = 0x40;
pub(super) const B: u8 = 0x20;

impl TunnelEncap<'_> {
    /// The candidate path it holds: `None` unless it is one tunnel, of type 15, and nothing in it is malformed. The
    /// attribute of an SR policy route that was accepted always holds one.
    #[must_use]
    pub fn candidate_path(self) -> Option<CandidatePath> {
        let mut tunnels = self.tunnels();
        let tunnel = tunnels.next().filter(|tunnel| tunnel.kind == SR_POLICY)?;
        if tunnels.next().is_some() { None } else { CandidatePath::parse(tunnel) }
    }
}

#[cfg(test)]
mod tests;
