//! UPDATE as borrowed sections (RFC 4271 section 4.3 and 6.3, RFC 4760, RFC 7606).
//!
//! Building a view walks the whole structure once: section lengths, attribute headers, every prefix. After
//! that its accessors cannot fail. Attribute values are not looked at, save for the two multiprotocol ones;
//! that is [`UpdateView::decode`]'s part, and a receiver that has seen the same octets before
//! ([`UpdateView::attr_key`]) need not call it.

use std::hash::{Hash, Hasher};

use crate::{
    attr::{self, AttrIter, DecodeCtx, Decoded, MpReach, MpUnreach, RawAttr, code, mp_reach::Reach},
    capability::Negotiated,
    error::{AttrFault, AttrProblem, Consequence, Fault, WireError},
    family::Family,
    nlri::{self, Ipv4Prefix, NlriKey, Prefixes, SrPolicy4, SrPolicy6},
};

/// A received UPDATE.
///
/// How to use one: withdraw what [`withdrawn`](Self::withdrawn) and [`mp_withdrawn`](Self::mp_withdrawn)
/// name; then, if [`has_reachable`](Self::has_reachable), look up [`attr_key`](Self::attr_key) unless there
/// is a [`fault`](Self::fault), or [`decode`](Self::decode); announce what [`announced`](Self::announced) and
/// [`mp_announced`](Self::mp_announced) name, or withdraw it if the attributes say treat-as-withdraw. A
/// prefix that is both withdrawn and announced is announced (RFC 4271 section 4.3).
#[derive(Copy, Clone, Debug)]
pub struct UpdateView<'a> {
    withdrawn: &'a [u8],
    attrs: &'a [u8],
    nlri: &'a [u8],
    /// Where MP_REACH_NLRI and MP_UNREACH_NLRI stand in `attrs`, in their order; empty ranges where there is
    /// none.
    cuts: [(usize, usize); 2],
    reach: Option<MpReach<'a>>,
    unreach: Option<MpUnreach<'a>>,
    foreign: Option<(u16, u8)>,
    fault: Option<AttrFault>,
    /// IPv4 unicast was agreed, so that the UPDATE's own fields count.
    ipv4: bool,
    path_ids: bool,
    ctx: DecodeCtx,
}

impl<'a> UpdateView<'a> {
    /// Builds the view of an UPDATE's body: everything behind the header. Prefixes of families that the
    /// session did not agree on are passed over.
    ///
    /// # Errors
    /// Faults that end the session: section lengths beyond the message or a repeated multiprotocol attribute
    /// (3/1), a multiprotocol attribute that cannot be read (3/9 with the attribute), a bad prefix in the
    /// UPDATE's own fields (3/10), and, in an UPDATE that has attributes but announces nothing, every fault
    /// that would otherwise be treat-as-withdraw (3/1, RFC 7606 section 5.2).
    pub fn parse(body: &'a [u8], neg: &Negotiated) -> Result<Self, WireError> {
        let (withdrawn, attrs, nlri) =
            sections(body).ok_or_else(|| WireError::new(Fault::UpdateLengths, &[]))?;
        let path_ids = neg.add_path_receive.contains(Family::Ipv4Unicast);
        if !nlri::check::<Ipv4Prefix>(withdrawn, path_ids) || !nlri::check::<Ipv4Prefix>(nlri, path_ids) {
            return Err(WireError::new(Fault::Prefix(Family::Ipv4Unicast), &[]));
        }
        // Where IPv4 unicast was not agreed, its fields are still checked: their faults would mean lost
        // framing.
        let ipv4 = neg.families.contains(Family::Ipv4Unicast);
        let mut view = Self {
            withdrawn: if ipv4 { withdrawn } else { &[] },
            attrs,
            nlri: if ipv4 { nlri } else { &[] },
            cuts: [(0, 0); 2],
            reach: None,
            unreach: None,
            foreign: None,
            fault: None,
            ipv4,
            path_ids,
            ctx: DecodeCtx {
                four_octet: neg.four_octet,
                ebgp: neg.ebgp,
                reachable: !nlri.is_empty(),
                classic: ipv4 && !nlri.is_empty(),
                multiprotocol: false,
                sr_policy: false,
            },
        };
        if !attrs.is_empty() {
            view.walk(neg)?;
        }
        Ok(view)
    }

    /// Finds the multiprotocol attributes and what runs past the end.
    fn walk(&mut self, neg: &Negotiated) -> Result<(), WireError> {
        let mut others = false;
        let (mut reach_seen, mut unreach_seen) = (false, false);
        let mut iter = self.attrs();
        let mut at = 0;
        for attr in iter.by_ref() {
            let end = at + attr.raw.len();
            match attr.code {
                code::MP_REACH_NLRI => {
                    once(&mut reach_seen, attr)?;
                    self.cut(at, end, unreach_seen);
                    match MpReach::parse(&attr, neg)? {
                        Reach::Ours(reach) => {
                            // Without prefixes it says nothing, whatever its next hop.
                            if !reach.is_empty() {
                                self.ctx.reachable = true;
                                self.ctx.multiprotocol = true;
                                self.ctx.sr_policy = reach.family.is_sr_policy();
                                if !reach.next_hop.is_host() {
                                    self.fault
                                        .get_or_insert(treat_as_withdraw(attr.code, AttrProblem::Value));
                                }
                            }
                            self.reach = Some(reach);
                        }
                        Reach::Foreign(afi, safi, any) => {
                            self.ctx.reachable |= any;
                            self.foreign = Some((afi, safi));
                        }
                    }
                    others = true;
                }
                code::MP_UNREACH_NLRI => {
                    once(&mut unreach_seen, attr)?;
                    self.cut(at, end, reach_seen);
                    match MpUnreach::parse(&attr, neg)? {
                        Ok(unreach) => self.unreach = Some(unreach),
                        Err(pair) => self.foreign = Some(pair),
                    }
                }
                _ => others = true,
            }
            at = end;
        }
        if let [code, ..] = *iter.rest() {
            // The first octet of the rest is its flags, the second, if there is one, its code.
            let code = iter.rest().get(1).copied().unwrap_or(code);
            self.fault.get_or_insert(treat_as_withdraw(code, AttrProblem::Overrun));
            others = true;
        }
        if others && !self.ctx.reachable { self.refuse_without_prefixes() } else { Ok(()) }
    }

    fn cut(&mut self, start: usize, end: usize, second: bool) {
        self.cuts[usize::from(second)] = (start, end);
    }

    /// RFC 7606 section 5.2: if attributes are at fault and nothing is announced, perhaps the prefixes were
    /// lost.
    #[cold]
    fn refuse_without_prefixes(&self) -> Result<(), WireError> {
        match self.decode()?.treat_as_withdraw {
            Some(fault) => Err(WireError::new(Fault::NothingToWithdraw(fault.code), &[])),
            None => Ok(()),
        }
    }

    /// The agreed family whose End-of-RIB this is (RFC 4724 section 2).
    #[must_use]
    pub fn end_of_rib(&self) -> Option<Family> {
        if !self.withdrawn.is_empty() || !self.nlri.is_empty() {
            return None;
        }
        if self.attrs.is_empty() {
            return self.ipv4.then_some(Family::Ipv4Unicast);
        }
        let alone = self.cuts[0] == (0, self.attrs.len());
        self.unreach.filter(|unreach| alone && unreach.is_empty()).map(|unreach| unreach.family)
    }

    /// Prefixes in the UPDATE's own withdrawn field.
    #[inline]
    #[must_use]
    pub const fn withdrawn(&self) -> Prefixes<'a, Ipv4Prefix> {
        Prefixes::new(self.withdrawn, self.path_ids)
    }

    /// Prefixes in the UPDATE's own field of reachable ones; their next hop is NEXT_HOP.
    #[inline]
    #[must_use]
    pub const fn announced(&self) -> Prefixes<'a, Ipv4Prefix> {
        Prefixes::new(self.nlri, self.path_ids)
    }

    /// Prefixes of MP_UNREACH_NLRI, if they are of the family of `K`.
    #[inline]
    #[must_use]
    pub fn mp_withdrawn<K: NlriKey>(&self) -> Prefixes<'a, K> {
        self.unreach.map_or(Prefixes::empty(), |unreach| unreach.prefixes())
    }

    /// Prefixes of MP_REACH_NLRI, if they are of the family of `K`; their next hop is the one in it.
    #[inline]
    #[must_use]
    pub fn mp_announced<K: NlriKey>(&self) -> Prefixes<'a, K> {
        self.reach.map_or(Prefixes::empty(), |reach| reach.prefixes())
    }

    /// How many NLRIs are passed over for a length that their family does not have (RFC 9830 section 5).
    #[must_use]
    pub fn passed_over(&self) -> usize {
        fn both<K: NlriKey>(view: &UpdateView<'_>) -> usize {
            view.mp_announced::<K>().passed_over() + view.mp_withdrawn::<K>().passed_over()
        }
        both::<SrPolicy4>(self) + both::<SrPolicy6>(self)
    }

    /// MP_REACH_NLRI, if its family was agreed.
    #[inline]
    #[must_use]
    pub const fn mp_reach(&self) -> Option<&MpReach<'a>> {
        self.reach.as_ref()
    }

    /// MP_UNREACH_NLRI, if its family was agreed.
    #[inline]
    #[must_use]
    pub const fn mp_unreach(&self) -> Option<&MpUnreach<'a>> {
        self.unreach.as_ref()
    }

    /// AFI and SAFI of a multiprotocol attribute that was passed over, as its family was not agreed.
    #[must_use]
    pub const fn foreign(&self) -> Option<(u16, u8)> {
        self.foreign
    }

    /// Whether any prefix of an agreed family is announced, so that attributes matter.
    #[inline]
    #[must_use]
    pub const fn has_reachable(&self) -> bool {
        self.ctx.classic || self.ctx.multiprotocol
    }

    /// A fault of structure: everything announced is to be treated as withdrawn. [`decode`](Self::decode)
    /// says so too, and may find worse.
    #[inline]
    #[must_use]
    pub const fn fault(&self) -> Option<AttrFault> {
        self.fault
    }

    /// The attribute section as received.
    #[inline]
    #[must_use]
    pub const fn attr_bytes(&self) -> &'a [u8] {
        self.attrs
    }

    /// The attributes one by one, as received.
    #[inline]
    #[must_use]
    pub const fn attrs(&self) -> AttrIter<'a> {
        AttrIter::new(self.attrs)
    }

    /// What decoding depends on besides the octets.
    #[inline]
    #[must_use]
    pub const fn decode_ctx(&self) -> DecodeCtx {
        self.ctx
    }

    /// The octets that decide what [`decode`](Self::decode) gives, so that equal ones need be decoded only
    /// once.
    #[inline]
    #[must_use]
    pub fn attr_key(&self) -> AttrKey<'a> {
        let [(a, b), (c, d)] = self.cuts;
        let part = |from: usize, to: usize| self.attrs.get(from..to).unwrap_or_default();
        let end = self.attrs.len();
        let parts = match (b, d) {
            (0, _) => [self.attrs, &[], &[]],
            (_, 0) => [part(0, a), part(b, end), &[]],
            _ => [part(0, a), part(b, c), part(d, end)],
        };
        let head = self.reach.as_ref().filter(|reach| !reach.is_empty()).map_or(&[][..], MpReach::head);
        AttrKey { ctx: self.ctx, head, parts }
    }

    /// Checks and decodes the attributes (see [`attr::decode()`]).
    ///
    /// # Errors
    /// An attribute that claims to be well-known and is not (3/2).
    pub fn decode(&self) -> Result<Decoded, WireError> {
        let mut decoded = attr::decode(self.attrs(), self.ctx)?;
        if let Some(fault) = self.fault {
            decoded.treat_as_withdraw.get_or_insert(fault);
        }
        Ok(decoded)
    }
}

fn treat_as_withdraw(code: u8, what: AttrProblem) -> AttrFault {
    AttrFault { code, what, consequence: Consequence::TreatAsWithdraw }
}

/// RFC 7606 section 3(g): each multiprotocol attribute at most once.
fn once(seen: &mut bool, attr: RawAttr<'_>) -> Result<(), WireError> {
    if std::mem::replace(seen, true) { Err(WireError::new(Fault::Repeated(attr.code), &[])) } else { Ok(()) }
}

/// Withdrawn prefixes, attributes, reachable prefixes; `None` if their lengths exceed the message.
#[inline]
fn sections(body: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = body.split_first_chunk::<2>()?;
    let (withdrawn, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (attrs, nlri) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((withdrawn, attrs, nlri))
}

/// What decides how the attributes of an UPDATE decode: the octets of all attributes but the multiprotocol
/// ones, in up to three parts, before them the next hop of MP_REACH_NLRI with its family, and the context.
///
/// Where two messages have the same context and the same octets, [`UpdateView::decode`] gives the same, and
/// so does the next hop of [`UpdateView::mp_reach`].
#[derive(Copy, Clone, Debug)]
pub struct AttrKey<'a> {
    ctx: DecodeCtx,
    head: &'a [u8],
    parts: [&'a [u8]; 3],
}

impl<'a> AttrKey<'a> {
    /// The context.
    #[must_use]
    pub const fn ctx(&self) -> DecodeCtx {
        self.ctx
    }

    /// The octets, piece by piece: AFI, SAFI, length of the next hop and next hop of MP_REACH_NLRI (empty
    /// without one), then the attributes. The first piece ends where its own length says, so that joining the
    /// pieces loses nothing.
    #[inline]
    #[must_use]
    pub const fn pieces(&self) -> [&'a [u8]; 4] {
        let [a, b, c] = self.parts;
        [self.head, a, b, c]
    }

    /// How many octets it has.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        let [a, b, c] = self.parts;
        self.head.len() + a.len() + b.len() + c.len()
    }

    /// Whether it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its octets are these, which [`AttrKey::copy_to`] gave.
    #[inline]
    #[must_use]
    pub fn is(&self, mut octets: &[u8]) -> bool {
        octets.len() == self.len()
            && self.pieces().into_iter().all(|piece| match octets.split_at_checked(piece.len()) {
                Some((own, rest)) => {
                    octets = rest;
                    own == piece
                }
                None => false,
            })
    }

    /// Appends its octets.
    pub fn copy_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len());
        self.pieces().into_iter().for_each(|piece| out.extend_from_slice(piece));
    }
}

impl Hash for AttrKey<'_> {
    /// Octets, then the context and the length of the first piece. Which pieces the octets came in makes no
    /// difference to the key, but it may to the hasher: [`AttrKey::pieces`] is for those to whom that
    /// matters.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.ctx.tag());
        state.write_usize(self.head.len());
        self.pieces().into_iter().for_each(|piece| state.write(piece));
    }
}

#[cfg(test)]
mod tests;
