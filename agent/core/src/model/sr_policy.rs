//! SR policies (RFC 9256) as this agent uses them: which candidate path leads to which node, what it can carry, and why one
//! can't be used.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use bgp_core::Family;
use bgp_core::rib::{Originator, SrPolicyPath};
use bgp_core::tunnel_encap::{
    BindingSid, CandidatePath, EndpointBehavior, Segment, SegmentFlags, SegmentList, Sid,
};

/// What a route of the SR policy family is known by. Shown as `0:4:2001:db8::2`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SrKey {
    /// Where the policy leads to: a node's address.
    pub endpoint: Ipv6Addr,
    /// What it is for. Among Calico's nodes 4 for IPv4 and 6 for IPv6; nothing depends on that.
    pub color: u32,
    /// Makes candidate paths differ that have the rest in common.
    pub distinguisher: u32,
}

impl fmt::Display for SrKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.distinguisher, self.color, self.endpoint)
    }
}

/// What the last segment of a policy does, of which its traffic depends (RFC 8986).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SrBehavior {
    /// End.DT4: takes IPv4 packets out and looks them up.
    Dt4,
    /// End.DT6: takes IPv6 packets out and looks them up.
    Dt6,
}

impl SrBehavior {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Dt4, Self::Dt6];

    /// The one that traffic of a family needs.
    #[must_use]
    pub const fn of(family: Family) -> Self {
        if family.is_ipv4() { Self::Dt4 } else { Self::Dt6 }
    }

    /// The code point in BGP (RFC 8986 section 10.2).
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Dt4 => 19,
            Self::Dt6 => 18,
        }
    }

    /// The color by which Calico's nodes mark policies of this behaviour.
    #[must_use]
    pub const fn color(self) -> u32 {
        match self {
            Self::Dt4 => 4,
            Self::Dt6 => 6,
        }
    }

    /// The family of the packets that come out.
    #[must_use]
    pub const fn family(self) -> Family {
        match self {
            Self::Dt4 => Family::Ipv4Unicast,
            Self::Dt6 => Family::Ipv6Unicast,
        }
    }

    const fn coded(code: u16) -> Option<Self> {
        match code {
            19 => Some(Self::Dt4),
            18 => Some(Self::Dt6),
            _ => None,
        }
    }
}

impl fmt::Display for SrBehavior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dt4 => "End.DT4",
            Self::Dt6 => "End.DT6",
        })
    }
}

/// A SID of this node, and the binding SID of the policy by which others reach it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnSid {
    /// The local SID.
    pub sid: Ipv6Addr,
    /// The binding SID that other nodes know the policy by.
    pub bsid: Ipv6Addr,
}

/// The SIDs of this node.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sids {
    /// For IPv4.
    pub dt4: OwnSid,
    /// For IPv6.
    pub dt6: OwnSid,
}

impl Sids {
    /// The one of a behaviour.
    #[must_use]
    pub const fn of(&self, behavior: SrBehavior) -> OwnSid {
        match behavior {
            SrBehavior::Dt4 => self.dt4,
            SrBehavior::Dt6 => self.dt6,
        }
    }
}

impl OwnSid {
    /// The candidate path that tells others of it, as Calico's nodes word it: one list of one segment.
    #[must_use]
    pub fn candidate_path(self, behavior: SrBehavior) -> CandidatePath {
        let ends_in = EndpointBehavior { code: behavior.code(), ..EndpointBehavior::default() };
        // The flag that GoBGP's library sets where a behaviour follows.
        let segment = Segment::Srv6 { flags: SegmentFlags::S, sid: self.sid, behavior: Some(ends_in) };
        CandidatePath {
            preference: 11,
            priority: Some(10),
            binding_sid: Some(BindingSid {
                specified_only: true,
                drop_upon_invalid: false,
                sid: Some(Sid::Srv6(self.bsid)),
            }),
            segment_lists: vec![SegmentList { weight: 12, segments: vec![segment] }],
            ..CandidatePath::default()
        }
    }
}

/// An explicit list of segments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SidList {
    /// Its share of the traffic against the other lists; at least 1.
    pub weight: u32,
    /// The SIDs, the first one first: 1 to [`SidList::MOST_SIDS`].
    pub sids: Arc<[Ipv6Addr]>,
}

impl SidList {
    /// Most SIDs that VPP takes; of more it reads what stands behind them.
    pub const MOST_SIDS: usize = 16;
}

impl fmt::Display for SidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, sid) in self.sids.iter().enumerate() {
            write!(f, "{}{sid}", if at == 0 { "" } else { " " })?;
        }
        if self.weight == 1 { Ok(()) } else { write!(f, ", weight {}", self.weight) }
    }
}

/// A candidate path that can be put into VPP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrCandidate {
    /// The greatest is used.
    pub preference: u32,
    /// Who made it; of equal preferences the lowest is used.
    pub originator: Originator,
    /// The SID that the policy is known by in VPP.
    pub bsid: Ipv6Addr,
    /// What it can carry: all lists end in this behaviour.
    pub behavior: SrBehavior,
    /// The lists, ordered, of which there is at least one.
    pub lists: Arc<[SidList]>,
}

/// Why a candidate path can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SrFlaw {
    /// It has no binding SID, or one of zeros.
    NoBindingSid,
    /// Its binding SID is an MPLS label.
    LabelBindingSid,
    /// There is no list, or all of them have weight 0.
    NoList,
    /// More lists than VPP can say that it has.
    TooManyLists(usize),
    /// A list is empty.
    EmptyList,
    /// A list has more SIDs than VPP takes.
    TooManySids(usize),
    /// A segment is no SRv6 SID.
    NotSrv6(String),
    /// A segment is the SID `::`, which stands for "any of that behaviour".
    ZeroSid,
    /// The last segment of a list doesn't say what it does.
    NoBehavior,
    /// The last segment of a list does something that gives neither IPv4 nor IPv6 packets.
    Behavior(u16),
    /// Lists end in different behaviours.
    MixedBehaviors,
}

impl fmt::Display for SrFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoBindingSid => f.write_str("it has no binding SID"),
            Self::LabelBindingSid => f.write_str("its binding SID is an MPLS label"),
            Self::NoList => f.write_str("it has no segment list"),
            Self::TooManyLists(count) => {
                write!(f, "it has {count} segment lists, more than {}", SrCandidate::MOST_LISTS)
            }
            Self::EmptyList => f.write_str("one of its segment lists is empty"),
            Self::TooManySids(count) => {
                write!(f, "one of its segment lists has {count} SIDs, more than {}", SidList::MOST_SIDS)
            }
            Self::NotSrv6(segment) => write!(f, "its segment {segment} is no SRv6 SID"),
            Self::ZeroSid => f.write_str("one of its SIDs is ::"),
            Self::NoBehavior => f.write_str("the last segment of a list doesn't say what it does"),
            Self::Behavior(code) => {
                write!(f, "it ends in behaviour {code}, which gives neither IPv4 nor IPv6 packets")
            }
            Self::MixedBehaviors => f.write_str("its segment lists end in different behaviours"),
        }
    }
}

impl SrCandidate {
    /// Most lists of a policy: VPP counts them in one octet, and a peer may send a thousand.
    pub const MOST_LISTS: usize = 64;

    /// Reads a candidate path.
    ///
    /// # Errors
    /// Why it can't be used. RFC 9256 section 5.1 would leave out a list that is empty; agents of this kind reject the
    /// whole path, so that all nodes have the same. A list of weight 0 is left out.
    pub fn new(found: &SrPolicyPath) -> Result<Self, SrFlaw> {
        let SrPolicyPath { path, originator } = found;
        let bsid = binding_sid(path)?;
        if path.segment_lists.len() > Self::MOST_LISTS {
            return Err(SrFlaw::TooManyLists(path.segment_lists.len()));
        }
        let mut behavior = None;
        let mut lists = Vec::with_capacity(path.segment_lists.len());
        for list in &path.segment_lists {
            let (sids, ends_in) = sids(list)?;
            if *behavior.get_or_insert(ends_in) != ends_in {
                return Err(SrFlaw::MixedBehaviors);
            }
            if list.weight > 0 {
                // All ones mean "not said" to VPP.
                lists.push(SidList { weight: list.weight.min(u32::MAX - 1), sids });
            }
        }
        let behavior = behavior.filter(|_| !lists.is_empty()).ok_or(SrFlaw::NoList)?;
        lists.sort_unstable();
        Ok(Self { preference: path.preference, originator: *originator, bsid, behavior, lists: lists.into() })
    }
}

/// The SID that was specified, in whichever of the two sub-TLVs.
fn binding_sid(path: &CandidatePath) -> Result<Ipv6Addr, SrFlaw> {
    let own_sub_tlv = path.srv6_binding_sids.first().map(|binding| binding.sid);
    let bsid = match path.binding_sid {
        Some(BindingSid { sid: Some(Sid::Srv6(sid)), .. }) => Some(sid),
        Some(BindingSid { sid: Some(Sid::Label(_)), .. }) if own_sub_tlv.is_none() => {
            return Err(SrFlaw::LabelBindingSid);
        }
        Some(BindingSid { sid: Some(Sid::Label(_)) | None, .. }) | None => own_sub_tlv,
    };
    bsid.filter(|sid| !sid.is_unspecified()).ok_or(SrFlaw::NoBindingSid)
}

/// The SIDs of a list, and what the last one does.
fn sids(list: &SegmentList) -> Result<(Arc<[Ipv6Addr]>, SrBehavior), SrFlaw> {
    if list.segments.len() > SidList::MOST_SIDS {
        return Err(SrFlaw::TooManySids(list.segments.len()));
    }
    let mut last = None;
    let sids: Result<Vec<Ipv6Addr>, SrFlaw> = list
        .segments
        .iter()
        .map(|segment| match segment {
            Segment::Srv6 { sid, .. } if sid.is_unspecified() => Err(SrFlaw::ZeroSid),
            Segment::Srv6 { sid, behavior, .. } => {
                last = Some(*behavior);
                Ok(*sid)
            }
            Segment::Mpls { .. } | Segment::Unknown(_) => Err(SrFlaw::NotSrv6(segment.to_string())),
        })
        .collect();
    let sids = sids?;
    let code = last.ok_or(SrFlaw::EmptyList)?.ok_or(SrFlaw::NoBehavior)?.code;
    Ok((sids.into(), SrBehavior::coded(code).ok_or(SrFlaw::Behavior(code))?))
}

#[cfg(test)]
mod tests;
