//! Writing UPDATEs: one attribute set, as many prefixes as fit (RFC 4271 section 4.3, RFC 4760, RFC 7606
//! section 5.1).
//!
//! Every UPDATE holds one kind of section only: withdrawn prefixes, or MP_UNREACH_NLRI, or attributes with
//! prefixes, or attributes behind MP_REACH_NLRI, which comes first. Lengths are put in when a message is
//! full. Nothing is truncated: an attribute set that leaves no room for a prefix is an error.

use bytes::{BufMut, BytesMut};

use crate::{
    attr::{AttrFlags, NextHop, code},
    capability::Negotiated,
    family::{Family, FamilySet},
    frame::{HEADER_LEN, MAX_LEN, MessageType, put_header},
    nlri::{Ipv4Prefix, Label, NlriKey, PathId},
};

/// What the form of UPDATEs depends on.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EncodeOptions {
    /// The longest message, in octets, header included.
    pub max_message: u16,
    /// Families whose prefixes are sent with path identifiers.
    pub add_path: FamilySet,
}

impl EncodeOptions {
    /// What a session agreed on for what we send.
    #[must_use]
    pub const fn of(neg: &Negotiated) -> Self {
        Self { max_message: neg.max_message, add_path: neg.add_path_send }
    }
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { max_message: MAX_LEN as u16, add_path: FamilySet::EMPTY }
    }
}

/// What was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Packed {
    /// Messages.
    pub messages: usize,
    /// Prefixes in them.
    pub prefixes: usize,
}

/// Nothing could be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// The attributes leave no room for a prefix.
    #[error("attributes of {size} octets do not fit into a message of {max} with a prefix")]
    AttributesTooLong {
        /// Octets of the attributes, MP_REACH_NLRI without prefixes included.
        size: usize,
        /// The longest message.
        max: u16,
    },
}

/// Appends UPDATEs to a buffer.
///
/// Prefixes come with a path identifier, which is written where the family has them
/// ([`EncodeOptions::add_path`]) and otherwise has no effect. Where there are no prefixes, nothing is
/// written.
#[derive(Debug)]
pub struct UpdateWriter<'b> {
    out: &'b mut BytesMut,
    options: EncodeOptions,
}

/// Flags, code and a two-octet length: MP attributes always have the long form, as their length is not known
/// before.
const MP_HEAD: usize = 4;

impl<'b> UpdateWriter<'b> {
    /// Appends to `out`.
    #[must_use]
    pub const fn new(out: &'b mut BytesMut, options: EncodeOptions) -> Self {
        Self { out, options }
    }

    /// IPv4 prefixes in the UPDATE's own field. `attrs` are encoded ([`crate::attr::encode()`]), NEXT_HOP
    /// included.
    ///
    /// # Errors
    /// The attributes leave no room for a prefix; nothing has been written.
    pub fn announce_v4(
        &mut self,
        attrs: &[u8],
        prefixes: impl IntoIterator<Item = (PathId, Ipv4Prefix)>,
    ) -> Result<Packed, PackError> {
        self.fits::<Ipv4Prefix>(attrs.len())?;
        Ok(self.fill(None, prefixes, |message| {
            message.out.put_u16(0);
            message.out.put_u16(attrs.len() as u16);
            message.out.put_slice(attrs);
            None
        }))
    }

    /// Prefixes in MP_REACH_NLRI, of a family without labels. `attrs` are encoded ([`crate::attr::encode()`]), without
    /// NEXT_HOP.
    ///
    /// # Errors
    /// The attributes leave no room for a prefix; nothing has been written.
    pub fn announce_mp<K: NlriKey>(
        &mut self,
        attrs: &[u8],
        next_hop: NextHop,
        prefixes: impl IntoIterator<Item = (PathId, K)>,
    ) -> Result<Packed, PackError> {
        self.announce_labelled(attrs, next_hop, None, prefixes)
    }

    /// Prefixes in MP_REACH_NLRI with the label they have in common, which counts where the family has labels
    /// ([`NlriKey::LABELLED`]). `attrs` are encoded ([`crate::attr::encode()`]), without NEXT_HOP.
    ///
    /// # Errors
    /// The attributes leave no room for a prefix; nothing has been written.
    pub fn announce_labelled<K: NlriKey>(
        &mut self,
        attrs: &[u8],
        next_hop: NextHop,
        label: Option<Label>,
        prefixes: impl IntoIterator<Item = (PathId, K)>,
    ) -> Result<Packed, PackError> {
        let mut hop = [0; NextHop::LONGEST];
        let hop_len = next_hop.write(K::FAMILY, &mut hop);
        let hop = hop.get(..hop_len).unwrap_or_default();
        self.fits::<K>(MP_HEAD + 5 + hop_len + attrs.len())?;
        // MP_REACH_NLRI must come first and is the part that grows, so the other attributes are put behind
        // the prefixes.
        Ok(self.fill(label, prefixes, |message| {
            message.out.put_u16(0);
            message.out.put_u16(0);
            let value = message.put_mp_head(code::MP_REACH_NLRI, K::FAMILY);
            message.out.put_u8(hop_len as u8);
            message.out.put_slice(hop);
            message.out.put_u8(0);
            Some((value, attrs))
        }))
    }

    /// Withdraws IPv4 prefixes in the UPDATE's own field.
    pub fn withdraw_v4(&mut self, prefixes: impl IntoIterator<Item = (PathId, Ipv4Prefix)>) -> Packed {
        let mut prefixes = prefixes.into_iter().peekable();
        let mut packed = Packed::default();
        while prefixes.peek().is_some() {
            let mut message = Draft::begin(self.out, self.options, 2);
            message.out.put_u16(0);
            packed.prefixes += message.put_prefixes(None, &mut prefixes);
            let length = message.out.len() - message.start - HEADER_LEN - 2;
            message.patch(HEADER_LEN, length);
            message.out.put_u16(0);
            message.end();
            packed.messages += 1;
        }
        packed
    }

    /// Withdraws prefixes in MP_UNREACH_NLRI.
    pub fn withdraw_mp<K: NlriKey>(&mut self, prefixes: impl IntoIterator<Item = (PathId, K)>) -> Packed {
        self.fill(None, prefixes, |message| {
            message.out.put_u16(0);
            message.out.put_u16(0);
            Some((message.put_mp_head(code::MP_UNREACH_NLRI, K::FAMILY), &[][..]))
        })
    }

    /// The End-of-RIB of a family (RFC 4724 section 2).
    pub fn end_of_rib(&mut self, family: Family) {
        match family {
            Family::Ipv4Unicast => {
                put_header(self.out, MessageType::Update, 4);
                self.out.put_u32(0);
            }
            Family::Ipv6Unicast
            | Family::Ipv4Vpn
            | Family::Ipv6Vpn
            | Family::Ipv4SrPolicy
            | Family::Ipv6SrPolicy => {
                put_header(self.out, MessageType::Update, 10);
                self.out.put_slice(&[0, 0, 0, 6, AttrFlags::OPTIONAL.0, code::MP_UNREACH_NLRI, 3]);
                self.out.put_u16(family.afi());
                self.out.put_u8(family.safi());
            }
        }
    }

    /// Whether a message with `attrs` octets of attributes has room for the longest prefix.
    fn fits<K: NlriKey>(&self, attrs: usize) -> Result<(), PackError> {
        let max = self.options.max_message;
        let path_id = if self.options.add_path.contains(K::FAMILY) { 4 } else { 0 };
        if HEADER_LEN + 4 + attrs + path_id + K::MAX_ENCODED > usize::from(max) {
            return Err(PackError::AttributesTooLong { size: attrs, max });
        }
        Ok(())
    }

    /// Writes message after message. `head` writes what stands before the prefixes, and says, where they
    /// stand inside an attribute, where its value begins and which attributes follow it.
    fn fill<'t, K: NlriKey>(
        &mut self,
        label: Option<Label>,
        prefixes: impl IntoIterator<Item = (PathId, K)>,
        head: impl Fn(&mut Draft<'_>) -> Option<(usize, &'t [u8])>,
    ) -> Packed {
        let mut prefixes = prefixes.into_iter().peekable();
        let mut packed = Packed::default();
        while prefixes.peek().is_some() {
            let mut message = Draft::begin(self.out, self.options, 0);
            let inside = head(&mut message);
            if let Some((_, behind)) = inside {
                message.limit -= behind.len();
            }
            packed.prefixes += message.put_prefixes(label, &mut prefixes);
            if let Some((value, behind)) = inside {
                let length = message.out.len() - message.start - value;
                message.patch(value - 2, length);
                message.out.put_slice(behind);
                let length = message.out.len() - message.start - HEADER_LEN - 4;
                message.patch(HEADER_LEN + 2, length);
            }
            message.end();
            packed.messages += 1;
        }
        packed
    }
}

/// A message being written.
struct Draft<'b> {
    out: &'b mut BytesMut,
    /// Where it begins in `out`.
    start: usize,
    /// Where prefixes must end in `out`.
    limit: usize,
    options: EncodeOptions,
}

impl<'b> Draft<'b> {
    /// Begins a message that needs `behind` octets after its prefixes.
    fn begin(out: &'b mut BytesMut, options: EncodeOptions, behind: usize) -> Self {
        let start = out.len();
        // A message of more octets grows as it is filled; most have fewer even where they may have more.
        out.reserve(usize::from(options.max_message).min(MAX_LEN));
        put_header(out, MessageType::Update, 0);
        Self { out, start, limit: start + usize::from(options.max_message) - behind, options }
    }

    /// Begins a multiprotocol attribute; gives where its value begins, from the start of the message.
    fn put_mp_head(&mut self, code: u8, family: Family) -> usize {
        self.out.put_slice(&[AttrFlags::OPTIONAL.0 | AttrFlags::EXTENDED.0, code, 0, 0]);
        let value = self.out.len() - self.start;
        self.out.put_u16(family.afi());
        self.out.put_u8(family.safi());
        value
    }

    /// Writes prefixes until none is left or the next one might not fit; at least one, and no more where each wants a
    /// message of its own.
    fn put_prefixes<K: NlriKey>(
        &mut self,
        label: Option<Label>,
        prefixes: &mut std::iter::Peekable<impl Iterator<Item = (PathId, K)>>,
    ) -> usize {
        let mut octets = [0; 32];
        let mut count = 0;
        let path_ids = self.options.add_path.contains(K::FAMILY);
        let most = self.limit.saturating_sub(K::MAX_ENCODED + if path_ids { 4 } else { 0 });
        while count == 0 || !K::ALONE && self.out.len() <= most {
            let Some((id, key)) = prefixes.next() else { break };
            if path_ids {
                self.out.put_u32(id.0);
            }
            let len = key.write(label, &mut octets);
            self.out.put_slice(octets.get(..len).unwrap_or_default());
            count += 1;
        }
        count
    }

    /// Puts a length in, `at` octets from the start of the message.
    fn patch(&mut self, at: usize, length: usize) {
        let at = self.start + at;
        if let Some(place) = self.out.get_mut(at..at + 2) {
            place.copy_from_slice(&(length as u16).to_be_bytes());
        }
    }

    fn end(mut self) {
        let length = self.out.len() - self.start;
        self.patch(16, length);
    }
}

#[cfg(test)]
mod tests;
