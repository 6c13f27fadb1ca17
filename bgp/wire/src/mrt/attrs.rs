//! Attributes of a path in a table (RFC 6396 sections 4.2 and 4.3.4).

use crate::{
    attr::{self, Aggregator, AttrFlags, AttrIter, DecodeCtx, Decoded, NextHop, RawAttr, code},
    error::{AttrFault, AttrProblem, Consequence, WireError},
    family::Family,
};

/// Attributes of a path, as they stand in a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TableAttrs<'a> {
    pub(super) octets: &'a [u8],
    pub(super) family: Family,
    pub(super) four_octet: bool,
}

impl<'a> TableAttrs<'a> {
    /// Attributes of a path of a family. AS numbers have four octets, or two.
    #[must_use]
    pub const fn new(octets: &'a [u8], family: Family, four_octet: bool) -> Self {
        Self { octets, family, four_octet }
    }

    /// Their octets.
    #[must_use]
    pub const fn octets(self) -> &'a [u8] {
        self.octets
    }

    /// The attributes one by one, as recorded.
    #[must_use]
    pub const fn attrs(self) -> AttrIter<'a> {
        AttrIter::new(self.octets)
    }

    /// The next hop, be it in MP_REACH_NLRI or in NEXT_HOP. That of a route of the recorder's own may be the
    /// unspecified address. An IPv6 family has none in NEXT_HOP.
    #[must_use]
    pub fn next_hop(self) -> Option<NextHop> {
        let of = |code| self.attrs().find(|attr| attr.code == code).map(|attr| attr.value);
        let multiprotocol = of(code::MP_REACH_NLRI).and_then(|value| self.multiprotocol(value));
        let classic = || of(code::NEXT_HOP).filter(|_| self.family.is_ipv4()).and_then(NextHop::parse_ipv4);
        multiprotocol.or_else(classic)
    }

    /// The next hop in MP_REACH_NLRI: a length and the next hop, or all of what a message has. The latter begins with
    /// an AFI, whose first octet is 0, and no next hop has no octets.
    fn multiprotocol(self, value: &[u8]) -> Option<NextHop> {
        let octets = match *value.first()? {
            0 => {
                let length = usize::from(*value.get(3)?);
                value.get(4..4 + length)?
            }
            length => value.get(1..).filter(|octets| octets.len() == usize::from(length))?,
        };
        NextHop::parse(self.family, true, octets)
    }

    /// Checks and decodes them ([`attr::decode()`]), as from an internal peer, so that nothing is dropped for where it
    /// came from. A path without a next hop counts as withdrawn.
    ///
    /// # Errors
    /// An attribute that claims to be well-known and is not (3/2).
    pub fn decode(self) -> Result<Decoded, WireError> {
        let ctx = DecodeCtx {
            four_octet: self.four_octet,
            reachable: true,
            sr_policy: self.family.is_sr_policy(),
            ..DecodeCtx::default()
        };
        let mut iter = self.attrs();
        let (in_form, as4) = self.aggregator();
        let put_right = |attr: RawAttr<'a>| match &in_form {
            Some(value) if attr.code == code::AGGREGATOR => RawAttr { value, ..attr },
            _ => attr,
        };
        let all = iter.by_ref().filter(|attr| attr.code != code::NEXT_HOP).map(put_right);
        let as4 = as4.as_ref().map(|value| RawAttr {
            flags: AttrFlags(AttrFlags::OPTIONAL.0 | AttrFlags::TRANSITIVE.0),
            code: code::AS4_AGGREGATOR,
            value,
            raw: &[],
        });
        let mut decoded = attr::decode(all.chain(as4), ctx)?;
        let mut withdraw = |code, what| {
            let fault = AttrFault { code, what, consequence: Consequence::TreatAsWithdraw };
            decoded.treat_as_withdraw.get_or_insert(fault);
        };
        if let [flags, rest @ ..] = iter.rest() {
            withdraw(*rest.first().unwrap_or(flags), AttrProblem::Overrun);
        }
        decoded.next_hop = self.next_hop();
        if decoded.next_hop.is_none() {
            let classic = self.family == Family::Ipv4Unicast;
            let code = if classic { code::NEXT_HOP } else { code::MP_REACH_NLRI };
            let fault =
                AttrFault { code, what: AttrProblem::Missing, consequence: Consequence::TreatAsWithdraw };
            decoded.treat_as_withdraw.get_or_insert(fault);
        }
        Ok(decoded)
    }

    /// AGGREGATOR in the form that goes with the other attributes, where a recorder wrote it in the other one, as
    /// OpenBGPD does in TABLE_DUMP; and AS4_AGGREGATOR beside it where it is needed then.
    fn aggregator(self) -> (Option<Vec<u8>>, Option<[u8; 8]>) {
        let value = self.attrs().find(|attr| attr.code == code::AGGREGATOR).map(|attr| attr.value);
        let aggregator = value.and_then(|value| Some((value.len(), Aggregator::parse(value)?)));
        match (aggregator, self.four_octet) {
            (Some((6, aggregator)), true) => (Some(aggregator.octets().into()), None),
            (Some((8, aggregator)), false) => {
                let wide = (!aggregator.asn.is_2octet()).then(|| aggregator.octets());
                (Some(aggregator.octets_narrow().into()), wide)
            }
            _ => (None, None),
        }
    }
}
