//! What an update group works with: the family's table and what all groups of the speaker share.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bgp_wire::attr::{Canonical, encode};
use bgp_wire::{Family, NextHop, Nlri, PathId, RouterId};
use bytes::{Bytes, BytesMut};

use super::adj_out::{Origin, Told};
use super::edit::edit;
use super::export::{Barred, Outgoing, Rules};
use super::field::ExportKey;
use super::group::GroupKey;
use super::queue::{Queue, Scope};
use super::summaries::Summaries;
use crate::command::{Audience, Origination};
use crate::policy::{
    Decider, Direction, Edits, Interfaces, Learned, Pipeline, Route, Signature, Verdict, eval_signed,
};
use crate::rib::{AttrSet, AttrStore, DestId, SourceId, Sources, Table};
use crate::stats::SpeakerStats;

/// What an update group works with.
pub(crate) struct Cx<'a, K: ExportKey> {
    pub(crate) table: &'a mut Table<K>,
    pub(crate) attrs: &'a mut AttrStore,
    pub(crate) sources: &'a Sources,
    pub(crate) originations: &'a BTreeMap<K, Origination>,
    /// What stands for all that is inside it.
    pub(crate) summaries: &'a Arc<Summaries>,
    pub(crate) scratch: &'a mut Scratch<K>,
    pub(crate) stats: &'a mut SpeakerStats,
}

/// Memory that is used again from batch to batch.
pub(crate) struct Scratch<K> {
    /// Prefixes, each with the identifier of its path where the group has such.
    pub(super) queue: Queue<(PathId, K)>,
    pub(super) forms: Forms,
    pub(super) buffer: BytesMut,
    pub(super) chunks: Vec<(Bytes, u32, Scope)>,
    pub(super) section: Section,
}

impl<K: Copy> Scratch<K> {
    /// No memory yet.
    pub(crate) fn new() -> Self {
        Self {
            queue: Queue::new(),
            forms: Forms::new(),
            buffer: BytesMut::new(),
            chunks: Vec::new(),
            section: Section::default(),
        }
    }

    /// Forgets a batch.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.forms.clear();
    }
}

/// The policies of one direction, ready to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Everything passes unchanged.
    #[default]
    Accept,
    /// Nothing passes.
    Reject,
    /// Own routes pass as by the filter inside, and no others.
    OwnOnly(Box<Self>),
    /// A chain of policies decides.
    Policies {
        /// The chain.
        pipeline: Arc<Pipeline>,
        /// What it may see of interfaces, where it looks at them.
        interfaces: Option<Arc<Interfaces>>,
    },
}

impl Filter {
    /// Whether the verdict may differ between prefixes of equal attributes.
    pub(crate) fn is_by_prefix(&self) -> bool {
        match self {
            Self::Accept | Self::Reject => false,
            Self::OwnOnly(filter) => filter.is_by_prefix(),
            Self::Policies { pipeline, .. } => pipeline.depends_on_prefix(),
        }
    }

    /// All that the filter can tell of a prefix. Prefixes of equal attributes for which that is the same are treated alike.
    #[inline]
    pub(crate) fn signature(&self, nlri: &Nlri) -> Signature {
        match self {
            Self::Accept | Self::Reject => Signature::default(),
            Self::OwnOnly(filter) => filter.signature(nlri),
            Self::Policies { pipeline, .. } => pipeline.signature(nlri),
        }
    }

    /// Whether one look says that the filter can tell nothing of a prefix: its signature is the empty one.
    #[inline]
    pub(crate) fn is_outside(&self, nlri: &Nlri) -> bool {
        match self {
            Self::Accept | Self::Reject => true,
            Self::OwnOnly(filter) => filter.is_outside(nlri),
            Self::Policies { pipeline, .. } => pipeline.is_outside(nlri),
        }
    }

    /// Runs the filter over a route whose prefix has this signature: no edits where nothing is to change.
    ///
    /// # Errors
    /// Why the route does not pass.
    pub(crate) fn run(
        &self,
        route: &Route<'_>,
        signature: &Signature,
    ) -> Result<Option<Edits>, Withheld<'_>> {
        self.run_with_reason(route, signature).map(|(edits, _)| edits)
    }

    /// The same, with what let the route pass.
    ///
    /// # Errors
    /// Why the route does not pass.
    pub(crate) fn run_with_reason(
        &self,
        route: &Route<'_>,
        signature: &Signature,
    ) -> Result<(Option<Edits>, Decider<'_>), Withheld<'_>> {
        match self {
            Self::Accept => Ok((None, Decider::NONE)),
            Self::Reject => Err(Withheld::Policy(Decider::NONE)),
            Self::OwnOnly(filter) if route.learned == Learned::Local => {
                filter.run_with_reason(route, signature)
            }
            Self::OwnOnly(_) => Err(Withheld::Deferred),
            Self::Policies { pipeline, interfaces } => {
                let route = Route { interfaces: interfaces.as_deref(), ..*route };
                match eval_signed(pipeline, &route, signature) {
                    Verdict::Accept(edits, by) => Ok((Some(edits).filter(|edits| !edits.is_empty()), by)),
                    Verdict::Reject(decider) => Err(Withheld::Policy(decider)),
                }
            }
        }
    }
}

/// Why a route is not told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Withheld<'a> {
    /// The rules of the session: see [`Rules::admit`].
    Rules(Barred),
    /// It is originated for others.
    Audience,
    /// Policy.
    Policy(Decider<'a>),
    /// Routes of others wait until a restart is over.
    Deferred,
    /// There is no next hop that could be told, or it would be the peer itself.
    NextHop,
}

/// What export makes of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) learned: Learned,
    /// It is reflected; this is its originator (RFC 4456).
    pub(crate) reflected: Option<RouterId>,
    pub(crate) edits: Option<Edits>,
}

/// The forms of one batch, by number. The first three are those without edits, one for each origin.
#[derive(Debug)]
pub(crate) struct Forms {
    list: Vec<Form>,
    /// Those that are reflected, by originator: there may be as many as a reflector has clients.
    reflected: Vec<(RouterId, u32)>,
    /// The verdict on the attribute set that came last: prefixes of one set come together.
    last: Option<(Told, Signature, Option<u32>)>,
}

const PLAIN: [Learned; 3] = [Learned::Local, Learned::External, Learned::Internal];

impl Forms {
    fn new() -> Self {
        Self {
            list: PLAIN.map(|learned| Form { learned, reflected: None, edits: None }).to_vec(),
            reflected: Vec::new(),
            last: None,
        }
    }

    /// The form of this number.
    pub(crate) fn form(&self, number: u32) -> Option<&Form> {
        self.list.get(number as usize)
    }

    fn number(&mut self, form: Form) -> u32 {
        let Some(originator) = form.reflected else {
            // Policies have few outcomes.
            return match self.list.iter().position(|known| *known == form) {
                Some(at) => at as u32,
                None => self.push(form),
            };
        };
        let first = self.reflected.partition_point(|(known, _)| *known < originator);
        let own = self.reflected[first..].iter().take_while(|(known, _)| *known == originator);
        let mut count = 0;
        for (_, at) in own {
            if self.form(*at) == Some(&form) {
                return *at;
            }
            count += 1;
        }
        let at = self.push(form);
        self.reflected.insert(first + count, (originator, at));
        at
    }

    fn push(&mut self, form: Form) -> u32 {
        self.list.push(form);
        self.list.len() as u32 - 1
    }

    /// Forgets the forms of a batch.
    fn clear(&mut self) {
        self.list.truncate(PLAIN.len());
        self.reflected.clear();
        self.last = None;
    }
}

/// An attribute section being made; kept for its memory.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// The attributes as they go into messages.
    pub(crate) bytes: Vec<u8>,
    four_octet: Vec<u8>,
}

impl<K: ExportKey> Cx<'_, K> {
    /// The best path of a destination, as far as export cares.
    #[inline]
    pub(super) fn best(&self, dest: DestId) -> Option<Told> {
        let best = self.table.best(dest)?;
        Some(Told { attr: best.attrs, origin: self.origin(best.path.source()) })
    }

    #[inline]
    pub(super) fn origin(&self, source: SourceId) -> Origin {
        match (self.sources.peer(source), self.sources.facts(source)) {
            (Some(peer), Some(facts)) => Origin::from_peer(peer, facts.external, facts.client),
            _ => Origin::LOCAL,
        }
    }

    /// What becomes of a route on its way to a group, as a number of the batch's forms; `None` if it is not told.
    #[inline]
    pub(super) fn judge_in_batch(
        &mut self,
        filter: &Filter,
        group: &GroupKey,
        key: K,
        route: Told,
    ) -> Option<u32> {
        let signature = filter.signature(&key.into());
        if let Some((last, seen, verdict)) = &self.scratch.forms.last
            && last.attr == route.attr
            && *seen == signature
            && is_as_good(last.origin, route.origin, group)
        {
            return *verdict;
        }
        let verdict = self.judge_signed(filter, group, key, &signature, route).ok();
        let verdict = verdict.map(|form| self.scratch.forms.number(form));
        if route.origin != Origin::LOCAL {
            self.scratch.forms.last = Some((route, signature, verdict));
        }
        verdict
    }

    /// What becomes of a route on its way to a group.
    ///
    /// # Errors
    /// Why it is not told.
    pub(super) fn judge<'f>(
        &self,
        filter: &'f Filter,
        group: &GroupKey,
        key: K,
        told: Told,
    ) -> Result<Form, Withheld<'f>> {
        self.judge_signed(filter, group, key, &filter.signature(&key.into()), told)
    }

    fn judge_signed<'f>(
        &self,
        filter: &'f Filter,
        group: &GroupKey,
        key: K,
        signature: &Signature,
        told: Told,
    ) -> Result<Form, Withheld<'f>> {
        let attrs = self.attrs.set(told.attr);
        let learned = told.origin.learned();
        group.rules.admit(told.origin, attrs.facts()).map_err(Withheld::Rules)?;
        if learned == Learned::Local && !self.may_hear(group, key) {
            return Err(Withheld::Audience);
        }
        let route = Route {
            direction: Direction::Export,
            nlri: key.into(),
            attrs,
            learned,
            // Who is not alone has policies that do not ask.
            neighbor: group.alone.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address),
            peer_type: group.rules.peer_type(),
            front: &group.rules.front(),
            interfaces: None,
        };
        let mut edits = filter.run(&route, signature)?;
        group.rules.mark(&mut edits);
        let edit = edits.as_ref().and_then(|edits| edits.next_hop);
        let next_hop = group.rules.next_hop(learned, edit, attrs.next_hop()).ok_or(Withheld::NextHop)?;
        // RFC 4271 section 5.1.3: by an own route nobody is told to go to itself, unless policy wants that. Whoever one could
        // do that to is alone.
        let itself = group.alone.is_some_and(|peer| next_hop.address() == peer.address);
        if itself && learned == Learned::Local && edit.is_none() {
            return Err(Withheld::NextHop);
        }
        let sender = || Some(self.sources.peer_facts(told.origin.peer()?)?.router_id);
        let reflected = group.rules.reflected(learned, attrs.facts(), sender);
        Ok(Form { learned, reflected, edits })
    }

    fn may_hear(&self, group: &GroupKey, key: K) -> bool {
        match self.originations.get(&key).map(|origination| &origination.audience) {
            None | Some(Audience::All) => true,
            Some(Audience::Ebgp) => group.rules.external,
            Some(Audience::Ibgp) => !group.rules.external,
            Some(Audience::Peers(peers)) => group.alone.is_some_and(|peer| peers.contains(&peer)),
        }
    }
}

/// Whether export can't tell two origins apart: who an internal neighbour is, is told where its routes are reflected.
fn is_as_good(one: Origin, other: Origin, group: &GroupKey) -> bool {
    let any = one.learned() == Learned::External || group.rules.external;
    one == other || (any && one.learned() == other.learned())
}

/// Writes what a form makes of a route's attributes into `section`: all of them for IPv4 unicast with an IPv4 next hop,
/// else all but MP_REACH_NLRI. Gives the next hop; `None` where there is none to tell, or more than fits.
pub(crate) fn write_section(
    group: &GroupKey,
    form: &Form,
    set: &AttrSet,
    section: &mut Section,
) -> Option<NextHop> {
    let external = group.rules.external;
    let edits = form.edits.as_ref();
    let edited = match edits {
        Some(edits) => Some(edit(edits, set, !external)?),
        None => None,
    };
    let canonical = edited.as_deref().unwrap_or_else(|| set.canonical());
    let hop_edit = edits.and_then(|edits| edits.next_hop);
    let next_hop = group.rules.next_hop(form.learned, hop_edit, set.next_hop())?;
    let route = Outgoing {
        learned: form.learned,
        policy_med: edits.is_some_and(|edits| edits.med.is_some()),
        next_hop: Some(next_hop),
        reflected: form.reflected,
        prepends: edits.filter(|_| external).map_or(&[], |edits| &edits.prepend),
        added: edits.map_or(&[], |edits| &edits.ext_communities.added),
    };
    let Section { bytes, four_octet } = section;
    bytes.clear();
    if group.rules.four_octet {
        group.rules.write(canonical, route, bytes);
    } else {
        four_octet.clear();
        group.rules.write(canonical, Outgoing { next_hop: None, ..route }, four_octet);
        // Read again below, which what is longer than a message can't be.
        u16::try_from(four_octet.len()).ok()?;
        let own_field = match (group.rules.family, next_hop) {
            (Family::Ipv4Unicast, NextHop::V4(address)) => Some(address),
            (
                Family::Ipv4Unicast
                | Family::Ipv6Unicast
                | Family::Ipv4Vpn
                | Family::Ipv6Vpn
                | Family::Ipv4SrPolicy
                | Family::Ipv6SrPolicy,
                _,
            ) => None,
        };
        encode(Canonical(four_octet), own_field, false, bytes);
    }
    Some(next_hop)
}

/// What a form makes of a route's attributes in canonical form, and the next hop: what the queries show.
pub(crate) fn canonical_form(group: &GroupKey, form: &Form, set: &AttrSet) -> Option<(Vec<u8>, NextHop)> {
    let mut section = Section::default();
    let shown = GroupKey { rules: Rules { four_octet: false, ..group.rules.clone() }, ..group.clone() };
    let next_hop = write_section(&shown, form, set, &mut section)?;
    Some((section.four_octet, next_hop))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Chain, NextHopMode};
    use crate::policy::MedEdit;
    use bgp_wire::Asn;
    use bgp_wire::attr::{AttrIter, Builder, Origin, code};

    fn group(four_octet: bool) -> GroupKey {
        let rules = Rules {
            family: Family::Ipv4Unicast,
            external: true,
            local_asn: Asn(4_200_000_000),
            path: None,
            client: false,
            cluster: None,
            four_octet,
            max_message: 4096,
            next_hop: NextHopMode::Default,
            extended_next_hop: false,
            paths: None,
            role: None,
            own: Some(NextHop::V4(Ipv4Addr::new(192, 0, 2, 1))),
            long_lived: false,
            graceful_shutdown: false,
        };
        GroupKey { rules, policy: Chain::ACCEPT, alone: None, max_prefixes: None }
    }

    #[test]
    fn a_peer_without_long_as_numbers_gets_both_paths() {
        let octets = Builder::new(Origin::Igp).prepend(Asn(65020), 1).build();
        let set = AttrSet::new(&octets, None, Canonical(&octets).facts());
        let form = Form { learned: Learned::External, reflected: None, edits: None };
        let mut section = Section::default();
        let codes =
            |section: &Section| AttrIter::new(&section.bytes).map(|attr| attr.code).collect::<Vec<_>>();
        write_section(&group(true), &form, &set, &mut section).unwrap();
        assert_eq!(codes(&section), [code::ORIGIN, code::AS_PATH, code::NEXT_HOP]);
        write_section(&group(false), &form, &set, &mut section).unwrap();
        assert_eq!(codes(&section), [code::ORIGIN, code::AS_PATH, code::NEXT_HOP, code::AS4_PATH]);
        let path = AttrIter::new(&section.bytes).nth(1).unwrap().value;
        assert_eq!(path, [2, 2, 0x5b, 0xa0, 0xfd, 0xfc], "AS_TRANS stands for what does not fit");
        let (shown, next_hop) = canonical_form(&group(false), &form, &set).unwrap();
        assert_eq!(Canonical(&shown).as_path().to_string(), "4200000000 65020");
        assert_eq!(next_hop.to_string(), "192.0.2.1");
    }

    #[test]
    fn forms_without_edits_need_no_search() {
        let mut forms = Forms::new();
        let edited = |med| {
            let edits = Some(Edits { med: Some(MedEdit::Set(med)), ..Edits::default() });
            Form { learned: Learned::Local, reflected: None, edits }
        };
        assert_eq!(forms.number(Form { learned: Learned::Internal, reflected: None, edits: None }), 2);
        assert_eq!((forms.number(edited(1)), forms.number(edited(2)), forms.number(edited(1))), (3, 4, 3));
        assert_eq!(forms.form(4), Some(&edited(2)));
        forms.clear();
        assert_eq!(forms.form(3), None);
        assert_eq!(forms.number(edited(2)), 3);
    }

    #[test]
    fn forms_of_many_originators_are_found_again() {
        let mut forms = Forms::new();
        let form = |originator, med: u32| Form {
            learned: Learned::Internal,
            reflected: Some(RouterId(originator)),
            edits: (med > 0).then(|| Edits { med: Some(MedEdit::Set(med)), ..Edits::default() }),
        };
        // In no order, and with several forms of each, in turn: a prefix goes with those like it all the same.
        let all: Vec<Form> = (0..60).map(|n| form(n * 37 % 20, n % 3)).collect();
        let numbers: Vec<u32> = all.iter().map(|form| forms.number(form.clone())).collect();
        assert_eq!(numbers, (3..63).collect::<Vec<_>>());
        for (form, number) in all.iter().zip(numbers).rev() {
            assert_eq!(forms.number(form.clone()), number);
            assert_eq!(forms.form(number), Some(form));
        }
        forms.clear();
        assert_eq!(forms.number(all[59].clone()), 3);
    }
}
