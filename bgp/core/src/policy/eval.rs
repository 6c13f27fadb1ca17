//! Running a chain of policies over a path.
//!
//! The result says what is to change; nothing is copied or changed here. A path that is accepted without edits keeps
//! its attribute number, so the usual case costs nothing but the tests.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::Arc;

use bgp_wire::attr::{Community, SegmentKind, code};
use bgp_wire::{Asn, NextHop, Nlri};

use super::definition::{Default, Direction, Learned, Match, Otherwise, PeerType, PolicyName};
use super::edits::{Edits, NextHopEdit};
use super::pattern::Number;
use super::program::{Cond, Pipeline, Program, Then};
use super::sets::NumberSet;
use super::signature::{Signature, sign};
use crate::rib::AttrSet;

/// Names of the interfaces that lead to next hops, where the embedder has told them.
pub type Interfaces = BTreeMap<IpAddr, Arc<str>>;

/// What a policy sees.
#[derive(Copy, Clone, Debug)]
pub struct Route<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// The prefix.
    pub nlri: Nlri,
    /// The attributes: as received on import, as selected on export.
    pub attrs: &'a AttrSet,
    /// Where the path came from.
    pub learned: Learned,
    /// The neighbour of the session: on import the one that sent the path, on export the one to be told.
    pub neighbor: IpAddr,
    /// The type of that session.
    pub peer_type: PeerType,
    /// What will be put in front of the AS path whatever policy says: on export to an external neighbour our AS number.
    pub front: &'a [Asn],
    /// The interfaces of next hops.
    pub interfaces: Option<&'a Interfaces>,
}

/// What a chain of policies says of a path.
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart at once; a box would be an allocation each time"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<'p> {
    /// The path passes with these edits.
    Accept(Edits, Decider<'p>),
    /// It does not.
    Reject(Decider<'p>),
}

/// What decided about a path: a statement of a policy, the default of a policy, or what happens to what no policy
/// decides.
#[derive(Copy, Clone, Debug)]
pub struct Decider<'p> {
    program: Option<&'p Program>,
    statement: Option<usize>,
}

impl PartialEq for Decider<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.policy() == other.policy() && self.statement == other.statement
    }
}

impl Eq for Decider<'_> {}

impl<'p> Decider<'p> {
    /// No policy.
    pub(crate) const NONE: Self = Self { program: None, statement: None };

    /// The policy, unless none decided.
    #[must_use]
    pub fn policy(self) -> Option<&'p PolicyName> {
        self.program.map(Program::name)
    }

    /// Which of its statements, counted from 1; absent where its default decided.
    #[must_use]
    pub const fn statement(self) -> Option<usize> {
        self.statement
    }

    /// The statement's label.
    #[must_use]
    pub fn label(self) -> Option<&'p str> {
        self.program?.stmts.get(self.statement? - 1)?.label.as_deref()
    }
}

/// Runs a chain of policies over a path. Statements see what earlier ones changed.
#[must_use]
pub fn eval<'p>(pipeline: &'p Pipeline, route: &Route<'_>) -> Verdict<'p> {
    eval_signed(pipeline, route, &pipeline.signature(&route.nlri))
}

/// The same for a prefix whose signature is known.
pub(crate) fn eval_signed<'p>(
    pipeline: &'p Pipeline,
    route: &Route<'_>,
    signature: &Signature,
) -> Verdict<'p> {
    let view = View::new(route, signature);
    let mut edits = Edits::default();
    for program in &pipeline.programs {
        match run(program, &view, &mut edits, &mut |_, _| {}) {
            Some((true, decider)) => return Verdict::Accept(edits, decider),
            Some((false, decider)) => return Verdict::Reject(decider),
            None => {}
        }
    }
    match pipeline.otherwise {
        Otherwise::Accept => Verdict::Accept(edits, Decider::NONE),
        Otherwise::Reject => Verdict::Reject(Decider::NONE),
    }
}

/// Runs a chain, and tells which statements the path matched on its way, in order.
#[must_use]
pub fn trace<'p>(pipeline: &'p Pipeline, route: &Route<'_>) -> (Verdict<'p>, Vec<Decider<'p>>) {
    let signature = pipeline.signature(&route.nlri);
    let view = View::new(route, &signature);
    let (mut edits, mut passed) = (Edits::default(), Vec::new());
    let mut note = |program: &'p Program, at: usize| {
        passed.push(Decider { program: Some(program), statement: Some(at + 1) });
    };
    let decided = pipeline.programs.iter().find_map(|program| run(program, &view, &mut edits, &mut note));
    let (passes, decider) = decided.unwrap_or((pipeline.otherwise == Otherwise::Accept, Decider::NONE));
    let verdict = if passes { Verdict::Accept(edits, decider) } else { Verdict::Reject(decider) };
    (verdict, passed)
}

/// A route, and what many conditions look at in it, found once.
struct View<'a> {
    route: &'a Route<'a>,
    signature: &'a Signature,
    communities: OnceCell<&'a [[u8; 4]]>,
    /// The [signs](sign) of all of them.
    signs: OnceCell<u64>,
}

impl<'a> View<'a> {
    const fn new(route: &'a Route<'a>, signature: &'a Signature) -> Self {
        Self { route, signature, communities: OnceCell::new(), signs: OnceCell::new() }
    }

    /// The signs of all communities that may be carried, edits included.
    fn signs(&self, edits: &Edits) -> u64 {
        let all = |signs, own: Community| signs | sign(own.number());
        let own = *self.signs.get_or_init(|| self.communities().fold(0, all));
        edits.communities.added.iter().copied().fold(own, all)
    }

    /// The communities of the set, without what has been edited.
    fn communities(&self) -> impl Iterator<Item = Community> + Clone + use<'a> {
        let list = *self.communities.get_or_init(|| {
            let attr = self.route.attrs.view().attr(code::COMMUNITIES);
            attr.map(|attr| attr.value.as_chunks::<4>().0).unwrap_or_default()
        });
        list.iter().map(|octets| Community(u32::from_be_bytes(*octets)))
    }
}

/// Runs one policy; `None` where it does not decide. `passed` is told of each statement that the path matched.
fn run<'p>(
    program: &'p Program,
    view: &View<'_>,
    edits: &mut Edits,
    passed: &mut dyn FnMut(&'p Program, usize),
) -> Option<(bool, Decider<'p>)> {
    let by = |statement| Decider { program: Some(program), statement };
    // What no statement asks for need not be known.
    let signs = |edits: &Edits| if program.ways.ask_for_signs() { view.signs(edits) } else { 0 };
    let mut carried = signs(edits);
    for (at, wanted) in program.ways.of(view.signature) {
        if wanted.is_some_and(|wanted| wanted & carried == 0) {
            continue;
        }
        let Some(stmt) = program.stmts.get(at) else { break };
        if !stmt.when.iter().all(|cond| holds(cond, view, edits)) {
            continue;
        }
        passed(program, at);
        for change in &stmt.apply {
            edits.make(change, view.route.attrs, view.route.direction);
        }
        match &stmt.then {
            Then::Accept => return Some((true, by(Some(at + 1)))),
            Then::Reject => return Some((false, by(Some(at + 1)))),
            Then::Next => {}
            Then::Call(called) => {
                if let Some(decided) = run(called, view, edits, passed) {
                    return Some(decided);
                }
            }
        }
        carried = signs(edits);
    }
    match program.default {
        Default::Accept => Some((true, by(None))),
        Default::Reject => Some((false, by(None))),
        Default::Next => None,
    }
}

fn holds(cond: &Cond, view: &View<'_>, edits: &Edits) -> bool {
    let route = view.route;
    let attrs = route.attrs;
    match cond {
        Cond::Prefix(set) => view.signature.has(set),
        Cond::Rd(rd) => route.nlri.rd() == Some(*rd),
        Cond::Neighbor(set) => set.contains(route.neighbor),
        Cond::Learned(learned) => route.learned == *learned,
        Cond::PeerType(peer_type) => route.peer_type == *peer_type,
        Cond::Family(families) => families.contains(route.nlri.family()),
        Cond::Community(wanted) => carries(edits.communities.numbers(view.communities()), *wanted),
        Cond::LargeCommunity(wanted) => {
            carries(edits.large_communities.numbers(attrs.view().large_communities()), *wanted)
        }
        Cond::ExtCommunity(wanted) => {
            carries(edits.ext_communities.numbers(attrs.view().ext_communities()), *wanted)
        }
        Cond::Communities(how, set) => matches(*how, set, edits.communities.numbers(view.communities())),
        Cond::LargeCommunities(how, set) => {
            matches(*how, set, edits.large_communities.numbers(attrs.view().large_communities()))
        }
        Cond::ExtCommunities(how, set) => {
            matches(*how, set, edits.ext_communities.numbers(attrs.view().ext_communities()))
        }
        Cond::Interface(glob) => {
            let interface = |hop: NextHop| route.interfaces?.get(&hop.address());
            next_hop(route, edits).and_then(interface).is_some_and(|name| glob.matches(name))
        }
        Cond::NextHop(nets) => {
            next_hop(route, edits).is_some_and(|hop| nets.iter().any(|net| net.contains(&hop.address())))
        }
        Cond::Origin(origin) => edits.origin.unwrap_or(attrs.facts().origin) == *origin,
        Cond::AsPathLength(lengths) => {
            let in_front = edits.prepended() + route.front.len() as u32;
            lengths.contains(&u32::from(attrs.facts().as_path_len).saturating_add(in_front))
        }
        Cond::AsPath(patterns) => {
            let text = path_text(route, edits);
            patterns.iter().any(|pattern| pattern.matches(&text))
        }
        Cond::AsPathPrefix(wanted) => path_begins(route, edits, wanted),
        Cond::LocalPref(wanted) => {
            edits.local_pref.or(attrs.facts().local_pref).is_some_and(|own| wanted.contains(&own))
        }
        Cond::Med(wanted) => {
            let own = attrs.facts().med;
            edits.med.map_or(own, |edit| edit.of(own)).is_some_and(|own| wanted.contains(&own))
        }
        Cond::Not(inner) => !holds(inner, view, edits),
        Cond::Any(inner) => inner.iter().any(|cond| holds(cond, view, edits)),
        Cond::All(inner) => inner.iter().all(|cond| holds(cond, view, edits)),
    }
}

fn carries(mut numbers: impl Iterator<Item = u128>, wanted: u128) -> bool {
    numbers.any(|own| own == wanted)
}

fn matches(how: Match, set: &NumberSet, mut numbers: impl Iterator<Item = u128> + Clone) -> bool {
    match how {
        Match::Any => numbers.any(|number| set.contains(number)),
        Match::All => set.is_covered_by(numbers),
    }
}

/// The next hop as it stands; `None` where it is ourselves.
fn next_hop(route: &Route<'_>, edits: &Edits) -> Option<NextHop> {
    match edits.next_hop {
        None => route.attrs.next_hop(),
        Some(NextHopEdit::Own) => None,
        Some(NextHopEdit::To(next_hop)) => Some(next_hop),
    }
}

/// What stands in front of the attribute's own path.
fn front<'a>(route: &Route<'a>, edits: &'a Edits) -> impl Iterator<Item = Asn> + 'a {
    let prepended = edits.prepend.iter().rev();
    prepended
        .flat_map(|(asn, times)| std::iter::repeat_n(*asn, (*times).into()))
        .chain(route.front.iter().copied())
}

fn path_text(route: &Route<'_>, edits: &Edits) -> String {
    let mut text = String::with_capacity(64);
    let path = route.attrs.view().as_path();
    for (at, asn) in front(route, edits).enumerate() {
        let blank = if at > 0 { " " } else { "" };
        let _ = write!(text, "{blank}{asn}");
    }
    if !path.is_empty() {
        let blank = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{blank}{path}");
    }
    text
}

fn path_begins(route: &Route<'_>, edits: &Edits, wanted: &[Asn]) -> bool {
    let path = route.attrs.view().as_path();
    let own = path.segments().take_while(|segment| segment.kind == SegmentKind::Sequence);
    let mut whole = front(route, edits).chain(own.flat_map(|segment| segment.asns()));
    wanted.iter().all(|asn| whole.next() == Some(*asn))
}

#[cfg(test)]
mod tests;
