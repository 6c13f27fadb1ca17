//! From the attributes of an UPDATE to their canonical form, in one pass (RFC 4271 section 6.3 as revised by
//! RFC 7606).

use super::{
    Aggregator, AttrFacts, AttrFlags, Canonical, Class, NextHop, RawAttr, as_path, code, row, unknown,
};
use crate::{
    asn::Asn,
    error::{AttrFault, AttrProblem, Consequence, WireError},
};

/// What decoding depends on besides the octets. Equal octets and an equal context decode to the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DecodeCtx {
    /// AS numbers have four octets.
    pub four_octet: bool,
    /// The peer is in another AS.
    pub ebgp: bool,
    /// The UPDATE announces prefixes, in its own field or in MP_REACH_NLRI, so that ORIGIN and AS_PATH are
    /// mandatory.
    pub reachable: bool,
    /// The UPDATE announces prefixes of an agreed family in its own field, so that NEXT_HOP is mandatory.
    pub classic: bool,
    /// The UPDATE announces prefixes of an agreed family in MP_REACH_NLRI. Changes nothing about the attributes,
    /// but tells apart keys ([`crate::update::AttrKey`]) that begin with a next hop from those that do not.
    pub multiprotocol: bool,
    /// Those prefixes are SR policies, so that TUNNEL_ENCAPSULATION is mandatory and must hold one (RFC 9830 section
    /// 4.2.1).
    pub sr_policy: bool,
}

impl DecodeCtx {
    /// The context as a small number, below 64, to mix into a hash.
    #[must_use]
    pub const fn tag(self) -> u8 {
        self.four_octet as u8
            | (self.ebgp as u8) << 1
            | (self.reachable as u8) << 2
            | (self.classic as u8) << 3
            | (self.multiprotocol as u8) << 4
            | (self.sr_policy as u8) << 5
    }
}

/// Decoded attributes.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Decoded {
    /// The canonical form, read with [`Canonical`]. Of no use when the routes are treated as withdrawn.
    pub canonical: Vec<u8>,
    /// NEXT_HOP: that of the prefixes in the UPDATE's own field. Those of MP_REACH_NLRI have their own.
    pub next_hop: Option<NextHop>,
    /// Why every prefix that the message announces counts as withdrawn: the first such fault.
    pub treat_as_withdraw: Option<AttrFault>,
    /// Attributes that were dropped for a fault. Those that must not be passed on, but are none, are not
    /// among them.
    pub discarded: Vec<AttrFault>,
    /// What route selection wants to know.
    pub facts: AttrFacts,
}

/// Decodes the attributes of an UPDATE. MP_REACH_NLRI and MP_UNREACH_NLRI are passed over: they are the
/// UPDATE's own business, like what stands behind the last whole attribute.
///
/// # Errors
/// An attribute that claims to be well-known and is not (3/2).
pub fn decode<'a>(
    attrs: impl IntoIterator<Item = RawAttr<'a>>,
    ctx: DecodeCtx,
) -> Result<Decoded, WireError> {
    let mut decoded = Decoded::default();
    let mut seen = Seen::default();
    let mut kept: Vec<RawAttr<'a>> = Vec::with_capacity(16);
    for attr in attrs {
        if matches!(attr.code, code::MP_REACH_NLRI | code::MP_UNREACH_NLRI) {
            continue;
        }
        if seen.insert(attr.code) {
            decoded.fault(attr.code, AttrProblem::Repeated, Consequence::DiscardAttribute);
            continue;
        }
        match row(attr.code) {
            Some(row) => match row.check(&attr, ctx) {
                Ok(()) => kept.push(RawAttr { flags: row.kept_flags(attr.flags), ..attr }),
                Err(AttrFault { code, what, consequence }) => decoded.fault(code, what, consequence),
            },
            None => kept.extend(unknown::keep(&attr)?.map(|flags| RawAttr { flags, ..attr })),
        }
    }
    for (code, mandatory) in [
        (code::ORIGIN, ctx.reachable),
        (code::AS_PATH, ctx.reachable),
        (code::NEXT_HOP, ctx.classic),
        (code::TUNNEL_ENCAP, ctx.sr_policy),
    ] {
        if mandatory && !seen.contains(code) {
            decoded.fault(code, AttrProblem::Missing, Consequence::TreatAsWithdraw);
        }
    }
    if decoded.treat_as_withdraw.is_none() {
        decoded.write(kept, ctx);
    }
    if decoded.treat_as_withdraw.is_none() {
        decoded.facts = Canonical(&decoded.canonical).facts();
    }
    Ok(decoded)
}

/// Which codes have been met.
#[derive(Default)]
struct Seen([u64; 4]);

impl Seen {
    fn contains(&self, code: u8) -> bool {
        self.0[usize::from(code >> 6)] & 1 << (code & 63) != 0
    }

    /// Notes a code, and says whether it had been met before.
    fn insert(&mut self, code: u8) -> bool {
        let before = self.contains(code);
        self.0[usize::from(code >> 6)] |= 1 << (code & 63);
        before
    }
}

impl Decoded {
    fn fault(&mut self, code: u8, what: AttrProblem, consequence: Consequence) {
        let fault = AttrFault { code, what, consequence };
        match consequence {
            Consequence::TreatAsWithdraw => {
                self.treat_as_withdraw.get_or_insert(fault);
            }
            Consequence::DiscardAttribute => self.discarded.push(fault),
        }
    }

    fn write(&mut self, mut kept: Vec<RawAttr<'_>>, ctx: DecodeCtx) {
        // Speakers send them in order, nearly always.
        if !kept.is_sorted_by_key(|attr| attr.code) {
            kept.sort_unstable_by_key(|attr| attr.code);
        }
        let (as4_path, as4_aggregator) = if ctx.four_octet { (None, None) } else { as4_attributes(&kept) };
        let out = &mut self.canonical;
        out.reserve(kept.iter().map(|attr| attr.raw.len()).sum());
        for attr in kept {
            let flags = attr.flags;
            match attr.code {
                code::NEXT_HOP => self.next_hop = NextHop::parse_ipv4(attr.value),
                code::AS4_PATH | code::AS4_AGGREGATOR => {}
                code::AS_PATH if !ctx.four_octet => {
                    let path = as_path::widen(attr.value, as4_path);
                    // In an extended message (RFC 8654) it has room for more numbers than an attribute has that are twice
                    // as long.
                    if path.len() > RawAttr::LONGEST {
                        return self.fault(attr.code, AttrProblem::Length, Consequence::TreatAsWithdraw);
                    }
                    RawAttr::write(out, flags, attr.code, &path);
                }
                code::AGGREGATOR if !ctx.four_octet => {
                    if let Some(aggregator) = as4_aggregator.or_else(|| Aggregator::parse(attr.value)) {
                        RawAttr::write(out, flags, attr.code, &aggregator.octets());
                    }
                }
                code::LARGE_COMMUNITIES => write_once_each(out, flags, attr),
                _ => RawAttr::write(out, flags, attr.code, attr.value),
            }
        }
    }
}

/// AS4_PATH and AS4_AGGREGATOR, where they count: neither does if there is an AS4_AGGREGATOR beside an
/// AGGREGATOR that names another AS than AS_TRANS, for then a 2-octet speaker aggregated after they were
/// written (RFC 6793 section 4.2.3).
fn as4_attributes<'a>(kept: &[RawAttr<'a>]) -> (Option<&'a [u8]>, Option<Aggregator>) {
    let value = |code| kept.iter().find(|attr| attr.code == code).map(|attr| attr.value);
    let aggregator = value(code::AGGREGATOR).and_then(Aggregator::parse);
    let as4_aggregator = value(code::AS4_AGGREGATOR).and_then(Aggregator::parse);
    match (aggregator, as4_aggregator) {
        (Some(Aggregator { asn, .. }), Some(_)) if asn != Asn::TRANS => (None, None),
        _ => (value(code::AS4_PATH), as4_aggregator),
    }
}

/// RFC 8092 section 5: a receiver removes large communities that are there more than once.
fn write_once_each(out: &mut Vec<u8>, flags: AttrFlags, attr: RawAttr<'_>) {
    let all = attr.value.as_chunks::<12>().0;
    let first = |place: usize| all.iter().position(|other| *other == all[place]) == Some(place);
    let once = || (0..all.len()).filter(|place| first(*place));
    let count = once().count();
    RawAttr::write_head(out, flags, attr.code, 12 * count);
    once().for_each(|place| out.extend_from_slice(&all[place]));
}

impl super::Row {
    /// The flags an attribute is kept with: those of its type, and Partial where it may be set.
    fn kept_flags(&self, received: AttrFlags) -> AttrFlags {
        let partial = match self.class {
            Class::Transitive => received.0 & AttrFlags::PARTIAL.0,
            Class::WellKnown | Class::NonTransitive => 0,
        };
        AttrFlags(self.class.flags().0 | partial)
    }
}

#[cfg(test)]
pub(crate) mod tests;
