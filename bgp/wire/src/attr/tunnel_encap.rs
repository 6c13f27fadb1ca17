//! TUNNEL_ENCAPSULATION: optional, transitive, tunnels as TLVs of sub-TLVs (RFC 9012 section 2; with tunnel type 15
//! it holds an SR policy, RFC 9830 section 2.2).
//!
//! Malformed is what cannot be walked to its last octet, and then the routes are withdrawn (RFC 9012 section 13). What
//! a sub-TLV holds is the business of who uses it: a tunnel type or sub-TLV that nobody knows is passed over, and all
//! of it is sent on as it came. On a route of an SR policy it is stricter: there is one tunnel, of type 15, and its
//! sub-TLVs have the lengths that they must have (RFC 9830 sections 2.2 and 5).

mod encode;
mod segment;
mod sr_policy;

pub use segment::{EndpointBehavior, Segment, SegmentFlags, SegmentList};
pub use sr_policy::{BindingSid, CandidatePath, CandidatePathError, Sid, Srv6BindingSid, UnknownSubTlv};

use super::DecodeCtx;
use crate::error::AttrProblem;

/// Tunnel type of an SR policy (RFC 9830).
pub const SR_POLICY: u16 = 15;

/// A Tunnel Encapsulation attribute, borrowed from a canonical attribute set. The default holds no tunnel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct TunnelEncap<'a>(&'a [u8]);

/// One tunnel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tunnel<'a> {
    /// Its type.
    pub kind: u16,
    octets: &'a [u8],
}

/// One property of a tunnel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SubTlv<'a> {
    /// Its type. Below 128 its length has one octet, from there on two.
    pub kind: u8,
    /// Its octets.
    pub value: &'a [u8],
}

impl<'a> TunnelEncap<'a> {
    /// The attribute of a canonical value. Octets that are no tunnel end it where they begin.
    #[must_use]
    pub const fn new(octets: &'a [u8]) -> Self {
        Self(octets)
    }

    /// Its octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.0
    }

    /// Its tunnels, in their order.
    pub fn tunnels(self) -> impl Iterator<Item = Tunnel<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let (tunnel, after) = Tunnel::split_first(rest)?;
            rest = after;
            Some(tunnel)
        })
    }
}

impl<'a> Tunnel<'a> {
    fn split_first(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[a, b, c, d], rest) = octets.split_first_chunk::<4>()?;
        let (octets, after) = rest.split_at_checked(usize::from(u16::from_be_bytes([c, d])))?;
        Some((Self { kind: u16::from_be_bytes([a, b]), octets }, after))
    }

    /// Its properties, in their order.
    pub fn sub_tlvs(self) -> impl Iterator<Item = SubTlv<'a>> {
        let mut rest = self.octets;
        std::iter::from_fn(move || {
            let (sub_tlv, after) = SubTlv::split_first(rest)?;
            rest = after;
            Some(sub_tlv)
        })
    }
}

impl<'a> SubTlv<'a> {
    fn split_first(octets: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[kind, high], rest) = octets.split_first_chunk::<2>()?;
        let (length, rest) = if kind < 128 {
            (usize::from(high), rest)
        } else {
            let (&low, rest) = rest.split_first()?;
            (usize::from(u16::from_be_bytes([high, low])), rest)
        };
        let (value, after) = rest.split_at_checked(length)?;
        Some((Self { kind, value }, after))
    }
}

/// RFC 9012 section 13: the last octet of the attribute is that of its last tunnel, and the last octet of a tunnel that
/// of its last sub-TLV.
pub(crate) fn check(value: &[u8], ctx: DecodeCtx) -> Result<(), AttrProblem> {
    let mut rest = value;
    while !rest.is_empty() {
        let (tunnel, after) = Tunnel::split_first(rest).ok_or(AttrProblem::Length)?;
        let mut octets = tunnel.octets;
        while !octets.is_empty() {
            octets = SubTlv::split_first(octets).ok_or(AttrProblem::Length)?.1;
        }
        rest = after;
    }
    if ctx.sr_policy { check_sr_policy(TunnelEncap::new(value)) } else { Ok(()) }
}

/// RFC 9830 section 2.2: one tunnel, and no other type.
fn check_sr_policy(attr: TunnelEncap<'_>) -> Result<(), AttrProblem> {
    if !attr.tunnels().map(|tunnel| tunnel.kind).eq([SR_POLICY]) {
        return Err(AttrProblem::Value);
    }
    attr.candidate_path().map(drop).ok_or(AttrProblem::Length)
}

#[cfg(test)]
mod tests {
    use super::super::decode::tests::{canonical_of, external, withdrawn_for};
    use super::*;

    /// What GoBGP 3 sends for a local SID: binding SID, a list of one segment of type B with behaviour and structure,
    /// preference, priority.
    fn sr_policy() -> Vec<u8> {
        let sid = [0xfc, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4];
        let segment = [&[13, 26, 0x20, 0], &sid[..], &[0, 19, 0, 0, 0, 0, 0, 0]].concat();
        let list = [&[0, 9, 6, 0, 0, 0, 0, 0, 12], &segment[..]].concat();
        let sub_tlvs = [
            &[13, 18, 0x80, 0][..],
            &sid,
            &[128, 0, list.len() as u8],
            &list,
            &[12, 6, 0, 0, 0, 0, 0, 11],
            &[15, 2, 10, 0],
        ]
        .concat();
        let tlv = [&[0, 15, 0, sub_tlvs.len() as u8], &sub_tlvs[..]].concat();
        [&[0xc0, 23, tlv.len() as u8], &tlv[..]].concat()
    }

    #[test]
    fn an_sr_policy_is_walked_and_kept_as_it_came() {
        let attr = sr_policy();
        let kept = canonical_of(external(), &attr);
        assert_eq!(kept.as_ref().attr(23).unwrap().raw, attr);
        let tunnels: Vec<_> = kept.as_ref().tunnel_encap().tunnels().collect();
        assert_eq!(tunnels.iter().map(|tunnel| tunnel.kind).collect::<Vec<_>>(), [SR_POLICY]);
        let shape: Vec<_> =
            tunnels[0].sub_tlvs().map(|sub_tlv| (sub_tlv.kind, sub_tlv.value.len())).collect();
        assert_eq!(shape, [(13, 18), (128, 37), (12, 6), (15, 2)]);
        assert_eq!(tunnels[0].sub_tlvs().last().unwrap().value, [10, 0]);
    }

    #[test]
    fn what_nobody_knows_is_kept() {
        // A tunnel type and two sub-TLVs that are not assigned, and a tunnel without any.
        let attr = [0xe0, 23, 15, 0x7f, 0xff, 0, 7, 99, 1, 7, 200, 0, 1, 8, 0, 8, 0, 0];
        let kept = canonical_of(external(), &attr);
        assert_eq!(kept.as_ref().attr(23).unwrap().raw, attr, "with Partial as it came");
        assert_eq!(kept.as_ref().tunnel_encap().tunnels().count(), 2);
        assert_eq!(canonical_of(external(), &[]).as_ref().tunnel_encap(), TunnelEncap::default());
    }

    #[test]
    fn what_cannot_be_walked_to_its_end_is_treat_as_withdraw() {
        let good = sr_policy();
        assert_eq!(good.len(), 79);
        for cut in 4..good.len() {
            let mut attr = good[..cut].to_vec();
            attr[2] = (cut - 3) as u8;
            assert_eq!(withdrawn_for(external(), &attr), Some((23, AttrProblem::Length)), "{cut}");
        }
        // A sub-TLV beyond its tunnel; one octet behind the last tunnel; half a sub-TLV.
        for attr in [
            &[0xc0, 23, 10, 0, 8, 0, 6, 4, 0xbd, 0xc6, 0, 0, 1][..],
            &[0xc0, 23, 5, 0, 8, 0, 0, 0],
            &[0xc0, 23, 5, 0, 8, 0, 1, 4],
            &[0xc0, 23, 6, 0, 8, 0, 2, 128, 0],
        ] {
            assert_eq!(withdrawn_for(external(), attr), Some((23, AttrProblem::Length)), "{attr:?}");
        }
    }
}
