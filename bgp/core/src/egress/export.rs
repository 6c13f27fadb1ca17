//! What changes on the way out: who may hear of a route at all, the next hop, and the attributes.
//!
//! The rules are those of RFC 4271 section 5 (which attribute goes where), section 9.1.3 and RFC 1997 (what is not
//! told), RFC 4456 (what goes from one internal peer to another), RFC 9494 section 4.3 (who hears of long-lived stale
//! routes), RFC 8326 section 4.2 (what is said before a session is shut down) and RFC 9234 section 5 (roles).
//!
//! What an internal peer is told of another's route is that route: its next hop, AS path, LOCAL_PREF and MED stay (RFC
//! 4456 section 10), unless the peer's configuration or policy says otherwise.
//!
//! Non-transitive extended communities end at the border of the AS (RFC 4360 section 6), such as the bandwidth of a link
//! inside. As with a MED, this is about those that a route had when it was selected, wherever it got them, import policy
//! too: what an own route says, and what export policy adds for a neighbour, is meant for that neighbour, one AS away.
//! What external neighbours send of the kind is kept, as RFC 4360 says nothing else: bandwidths of theirs are weights here.
//!
//! *Never:* looks at a prefix; that is policy's part.

use std::net::Ipv4Addr;
use std::num::NonZeroU8;

use bgp_wire::attr::{AttrFacts, AttrIter, Community, ExtCommunity, FactFlags, code};
use bgp_wire::{Asn, EncodeOptions, Family, FamilySet, NextHop, Role, RouterId};
use smallvec::SmallVec;

use super::adj_out::Origin;
use super::as_path::{self, PathRules};
use crate::command::NextHopMode;
use crate::policy::{Edits, Learned, NextHopEdit, PeerType};
use crate::session::role::{self, Egress};

/// Everything the export of a route depends on beside the route and policy: the part of a session that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) family: Family,
    /// The peer is in another AS.
    pub(crate) external: bool,
    /// The AS number that the peer knows us by.
    pub(crate) local_asn: Asn,
    /// What becomes of the AS paths of routes beside that; for external peers only.
    pub(crate) path: Option<PathRules>,
    /// The peer is a client of this route reflector (RFC 4456).
    pub(crate) client: bool,
    /// The cluster that this speaker reflects for; for internal peers only.
    pub(crate) cluster: Option<RouterId>,
    /// AS numbers are sent with four octets.
    pub(crate) four_octet: bool,
    /// The longest message the peer takes.
    pub(crate) max_message: u16,
    pub(crate) next_hop: NextHopMode,
    /// The peer takes IPv6 next hops for the family's IPv4 prefixes (RFC 8950).
    pub(crate) extended_next_hop: bool,
    /// Prefixes have path identifiers, and at most so many paths of one are told (RFC 7911); absent where one path is
    /// told, without.
    pub(crate) paths: Option<NonZeroU8>,
    /// Our own address as a next hop; absent where we have none of the family.
    pub(crate) own: Option<NextHop>,
    /// Our role towards the peer, where it counts (RFC 9234).
    pub(crate) role: Option<Role>,
    /// The peer knows what long-lived stale routes are: its OPEN had that capability (RFC 9494).
    pub(crate) long_lived: bool,
    /// We are about to leave this peer: it is to prefer any other path (RFC 8326).
    pub(crate) graceful_shutdown: bool,
}

/// LOCAL_PREF of a route without one, on the way to an internal peer (RFC 4271 section 5.1.5 demands one).
const DEFAULT_LOCAL_PREF: [u8; 7] = [0x40, code::LOCAL_PREF, 4, 0, 0, 0, 100];
const AS_SEQUENCE: u8 = 2;

/// Why a route may not be told to a peer, whatever policy says.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Barred {
    /// It came from an internal peer, and neither that one nor this one is a client of ours (RFC 4456 section 6).
    Internal,
    /// It is long-lived stale, and the peer does not know what that is (RFC 9494 section 4.3).
    LongLivedStale,
    /// It would be a route leak: it is only for customers (RFC 9234 section 5).
    RouteLeak,
    /// An SR policy of somebody else's does not leave the AS (RFC 9830 section 4.2.3).
    SrPolicy,
    /// It has the community NOPEER, and this is one by its role (RFC 3765).
    NoPeer,
    /// It has the community NO_ADVERTISE (RFC 1997).
    NoAdvertise,
    /// It has the community NO_EXPORT or NO_EXPORT_SUBCONFED, and the peer is in another AS (RFC 1997).
    NoExport,
}

impl std::fmt::Display for Barred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Internal => "learned from an internal neighbor, and neither is a route reflector client",
            Self::LongLivedStale => "long-lived stale, which this neighbor does not know of",
            Self::RouteLeak => "only for customers (ONLY_TO_CUSTOMER)",
            Self::SrPolicy => "SR policies of others do not leave the AS",
            Self::NoPeer => "community NOPEER",
            Self::NoAdvertise => "community NO_ADVERTISE",
            Self::NoExport => "community NO_EXPORT or NO_EXPORT_SUBCONFED",
        })
    }
}

/// What a route is on its way out, beside its attributes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) learned: Learned,
    /// The MED is our policy's.
    pub(crate) policy_med: bool,
    /// What is told in NEXT_HOP, where the family has it there.
    pub(crate) next_hop: Option<NextHop>,
    /// The route is reflected; this is its originator.
    pub(crate) reflected: Option<RouterId>,
    /// What policy puts before our AS number, in the order of its acts; for external peers only.
    pub(crate) prepends: &'a [(Asn, u8)],
    /// Extended communities that policy has added.
    pub(crate) added: &'a [ExtCommunity],
}

impl Rules {
    /// Whether a route from there and with these attributes may be told at all.
    ///
    /// # Errors
    /// Why it may not.
    #[inline]
    pub(crate) fn admit(&self, from: Origin, facts: &AttrFacts) -> Result<(), Barred> {
        let learned = from.learned();
        // RFC 4456 section 6: from a client to everyone, from other internal peers to external peers and clients.
        if learned == Learned::Internal && !self.external && !self.client && !from.is_client() {
            return Err(Barred::Internal);
        }
        // RFC 9494 section 4.3. Its section 4.6, by which internal peers may hear them all the same, is not used.
        if !self.long_lived && facts.flags.has(FactFlags::LLGR_STALE) {
            return Err(Barred::LongLivedStale);
        }
        let marked = facts.flags.has(FactFlags::ONLY_TO_CUSTOMER);
        if self.role.is_some_and(|role| role::egress(role, marked) == Egress::Withhold) {
            return Err(Barred::RouteLeak);
        }
        // RFC 9830 section 4.2.3: who receives an SR policy does not tell it to another AS.
        if self.external && learned != Learned::Local && self.family.is_sr_policy() {
            return Err(Barred::SrPolicy);
        }
        // RFC 1997 closes the way for what was received: own routes go out, and what they say counts for whoever hears of
        // them.
        if learned == Learned::Local {
            return Ok(());
        }
        // RFC 3765: not to those who are a peer of ours in so many words (RFC 9234).
        if self.role == Some(Role::Peer) && facts.flags.has(FactFlags::NO_PEER) {
            return Err(Barred::NoPeer);
        }
        if facts.flags.has(FactFlags::NO_ADVERTISE) {
            return Err(Barred::NoAdvertise);
        }
        // Without confederations the two of them end at the border of the AS.
        let closed = facts.flags.has(FactFlags::NO_EXPORT) || facts.flags.has(FactFlags::NO_EXPORT_SUBCONFED);
        if self.external && closed { Err(Barred::NoExport) } else { Ok(()) }
    }

    /// Adds to what policy makes of a route what the peer must know beside it.
    pub(crate) fn mark(&self, edits: &mut Option<Edits>) {
        if self.graceful_shutdown {
            let edits = edits.get_or_insert_default();
            // What is there is not written twice.
            edits.communities.add(Community::GRACEFUL_SHUTDOWN, std::iter::empty());
            // Without effect on external peers, which are told no LOCAL_PREF.
            edits.local_pref = Some(0);
        }
    }

    /// What stands in front of the AS path of whatever is told, whatever policy says.
    pub(crate) fn front(&self) -> SmallVec<[Asn; 8]> {
        if self.external { as_path::front(&[], self.local_asn, self.path.as_ref()) } else { SmallVec::new() }
    }

    /// The type of the session.
    pub(crate) const fn peer_type(&self) -> PeerType {
        if self.external { PeerType::External } else { PeerType::Internal }
    }

    /// The next hop that is told; `None` where there is none of the right family, so that the route cannot be told.
    /// `edit` is what policy wants.
    pub(crate) fn next_hop(
        &self,
        learned: Learned,
        edit: Option<NextHopEdit>,
        current: Option<NextHop>,
    ) -> Option<NextHop> {
        let keeps = match self.next_hop {
            NextHopMode::Default => !self.external || learned == Learned::Local || self.family.is_labelled(),
            NextHopMode::SelfAddress => false,
            NextHopMode::Keep => true,
        };
        let told = match edit {
            Some(NextHopEdit::To(next_hop)) => Some(next_hop),
            Some(NextHopEdit::Own) => self.own,
            None if keeps => current.or(self.own),
            None => self.own,
        };
        // An own IPv4 route may name an IPv6 next hop; who can't take it can still have the route.
        let own = (learned == Learned::Local).then_some(self.own).flatten();
        told.filter(|next_hop| self.can_tell(*next_hop)).or(own.filter(|own| self.can_tell(*own)))
    }

    /// Whether a next hop is of an IP version that the neighbour takes in this family.
    const fn can_tell(&self, next_hop: NextHop) -> bool {
        match (self.family, next_hop) {
            (Family::Ipv4Unicast | Family::Ipv4Vpn, NextHop::V4(_))
            | (Family::Ipv6Unicast | Family::Ipv6Vpn, NextHop::V6 { .. })
            | (Family::Ipv4SrPolicy | Family::Ipv6SrPolicy, _) => true,
            (Family::Ipv4Unicast | Family::Ipv4Vpn, NextHop::V6 { .. }) => self.extended_next_hop,
            (Family::Ipv6Unicast | Family::Ipv6Vpn, NextHop::V4(_)) => false,
        }
    }

    /// What a route is reflected with as its originator (RFC 4456 section 8): who it says that is, or who told us of it.
    /// `None` for a route that is not reflected.
    pub(crate) fn reflected(
        &self,
        learned: Learned,
        facts: &AttrFacts,
        sender: impl FnOnce() -> Option<RouterId>,
    ) -> Option<RouterId> {
        let reflected = learned == Learned::Internal && !self.external;
        if reflected { facts.originator.or_else(sender) } else { None }
    }

    /// Writes the attributes of an UPDATE from a canonical set: all of them for IPv4 unicast with an IPv4 next hop, else
    /// all but MP_REACH_NLRI. AS numbers have four octets still.
    ///
    /// One pass, no allocation beyond `out` in the usual case; codes stay in ascending order.
    pub(crate) fn write(&self, canonical: &[u8], route: Outgoing<'_>, out: &mut Vec<u8>) {
        let mut missing = Missing {
            as_path: true,
            originator: route.reflected,
            cluster: self.cluster.filter(|_| route.reflected.is_some()),
            next_hop: match route.next_hop {
                Some(NextHop::V4(address)) if self.family == Family::Ipv4Unicast => Some(address),
                Some(_) | None => None,
            },
            local_pref: !self.external,
            only_to_customer: self.role.is_some_and(|role| role::egress(role, false) == Egress::Mark),
        };
        for attr in AttrIter::new(canonical) {
            missing.fill(attr.code, self, route.prepends, out);
            match attr.code {
                code::AS_PATH => {
                    missing.as_path = false;
                    if self.external {
                        self.prepend(attr.value, route.prepends, out);
                    } else {
                        out.extend_from_slice(attr.raw);
                    }
                }
                // RFC 4271 section 5.1.4: a MED that came from another AS does not leave ours.
                code::MED if self.external && route.learned != Learned::Local && !route.policy_med => {}
                // Sections 5.1.5 and RFC 4456 section 8: only inside the AS.
                code::LOCAL_PREF | code::ORIGINATOR_ID | code::CLUSTER_LIST if self.external => {}
                code::ORIGINATOR_ID => {
                    missing.originator = None;
                    out.extend_from_slice(attr.raw);
                }
                code::CLUSTER_LIST => match missing.cluster.take() {
                    Some(cluster) => cluster_list(cluster, attr.value, out),
                    None => out.extend_from_slice(attr.raw),
                },
                code::LOCAL_PREF => {
                    missing.local_pref = false;
                    out.extend_from_slice(attr.raw);
                }
                code::EXT_COMMUNITIES if self.external && route.learned != Learned::Local => {
                    leaving(attr.raw, attr.value, route.added, out);
                }
                // RFC 9234 section 5: once it has been set it stays as it is.
                code::ONLY_TO_CUSTOMER => {
                    missing.only_to_customer = false;
                    out.extend_from_slice(attr.raw);
                }
                _ => out.extend_from_slice(attr.raw),
            }
        }
        missing.fill(u8::MAX, self, route.prepends, out);
    }

    /// Writes an AS_PATH with our AS number in front (RFC 4271 section 5.1.2 b).
    fn prepend(&self, path: &[u8], prepends: &[(Asn, u8)], out: &mut Vec<u8>) {
        if self.path.is_some() || !prepends.is_empty() || as_path::has_confederation(path) {
            let front = as_path::front(prepends, self.local_asn, self.path.as_ref());
            let mut value = Vec::new();
            as_path::write(&front, path, self.local_asn, self.path.as_ref(), &mut value);
            header(0x40, code::AS_PATH, value.len(), out);
            out.extend_from_slice(&value);
            return;
        }
        let asn = self.local_asn.0.to_be_bytes();
        let (joined, rest) = match path {
            [AS_SEQUENCE, count, rest @ ..] if *count < u8::MAX => (count + 1, rest),
            _ => (1, path),
        };
        header(0x40, code::AS_PATH, rest.len() + 6, out);
        out.extend_from_slice(&[AS_SEQUENCE, joined]);
        out.extend_from_slice(&asn);
        out.extend_from_slice(rest);
    }

    /// How messages to these peers are written.
    pub(crate) fn encoding(&self) -> EncodeOptions {
        let add_path = self.paths.map_or(FamilySet::EMPTY, |_| FamilySet::only(self.family));
        EncodeOptions { max_message: self.max_message, add_path }
    }
}

/// Writes the head of an attribute.
fn header(flags: u8, code: u8, len: usize, out: &mut Vec<u8>) {
    const EXTENDED: u8 = 0x10;
    match u8::try_from(len) {
        Ok(len) => out.extend_from_slice(&[flags, code, len]),
        Err(_) => {
            let [high, low] = (len as u16).to_be_bytes();
            out.extend_from_slice(&[flags | EXTENDED, code, high, low]);
        }
    }
}

/// Writes what of EXTENDED COMMUNITIES leaves the AS, nothing where that is none: transitive ones, and those just `added`.
fn leaving(raw: &[u8], value: &[u8], added: &[ExtCommunity], out: &mut Vec<u8>) {
    let list = value.as_chunks::<8>().0;
    let leaves = |octets: &&[u8; 8]| {
        let community = ExtCommunity::from(**octets);
        community.is_transitive() || added.contains(&community)
    };
    match list.iter().filter(leaves).count() {
        all if all == list.len() => out.extend_from_slice(raw),
        0 => {}
        count => {
            // The flags stay, but for that of a long length, which `header` decides.
            let flags = raw.first().map_or(0xc0, |flags| flags & 0xe0);
            header(flags, code::EXT_COMMUNITIES, 8 * count, out);
            out.extend(list.iter().filter(leaves).flatten());
        }
    }
}

/// Writes a CLUSTER_LIST with our cluster in front (RFC 4456 section 8).
fn cluster_list(cluster: RouterId, passed: &[u8], out: &mut Vec<u8>) {
    header(0x80, code::CLUSTER_LIST, passed.len() + 4, out);
    out.extend_from_slice(&cluster.octets());
    out.extend_from_slice(passed);
}

/// Attributes that the peer must get and the set does not hold, or not there.
struct Missing {
    as_path: bool,
    originator: Option<RouterId>,
    cluster: Option<RouterId>,
    next_hop: Option<Ipv4Addr>,
    local_pref: bool,
    only_to_customer: bool,
}

impl Missing {
    /// Writes those that belong before `code`.
    #[inline]
    fn fill(&mut self, code: u8, rules: &Rules, prepends: &[(Asn, u8)], out: &mut Vec<u8>) {
        if self.as_path && code > code::AS_PATH {
            self.as_path = false;
            if rules.external {
                rules.prepend(&[], prepends, out);
            } else {
                out.extend_from_slice(&[0x40, code::AS_PATH, 0]);
            }
        }
        if code > code::NEXT_HOP
            && let Some(address) = self.next_hop.take()
        {
            out.extend_from_slice(&[0x40, code::NEXT_HOP, 4]);
            out.extend_from_slice(&address.octets());
        }
        if self.local_pref && code > code::LOCAL_PREF {
            self.local_pref = false;
            out.extend_from_slice(&DEFAULT_LOCAL_PREF);
        }
        if code > code::ORIGINATOR_ID
            && let Some(originator) = self.originator.take()
        {
            header(0x80, code::ORIGINATOR_ID, 4, out);
            out.extend_from_slice(&originator.octets());
        }
        if code > code::CLUSTER_LIST
            && let Some(cluster) = self.cluster.take()
        {
            cluster_list(cluster, &[], out);
        }
        if self.only_to_customer && code > code::ONLY_TO_CUSTOMER {
            self.only_to_customer = false;
            out.extend_from_slice(&[0xc0, code::ONLY_TO_CUSTOMER, 4]);
            out.extend_from_slice(&rules.local_asn.0.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
