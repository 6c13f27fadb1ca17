//! The reference: what a BGP speaker must hold and tell, written for clarity. Nothing is kept that can be worked out:
//! every question goes over everything again.
//!
//! It knows what neighbours said last, what was configured last, and the rules; and nothing of how the speaker works.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use super::policy::{self, Learned, Made, NextHop, Policies, Range, Seen};
use super::route::{Attrs, Hop};

pub(super) const OUR_ASN: u32 = 65_000;
pub(super) const OUR_ID: u32 = 0x0aff_0064;
pub(super) const OUR_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);

pub(super) const NO_EXPORT: u32 = 0xffff_ff01;
pub(super) const NO_ADVERTISE: u32 = 0xffff_ff02;
pub(super) const NO_EXPORT_SUBCONFED: u32 = 0xffff_ff03;
pub(super) const GRACEFUL_SHUTDOWN: u32 = 0xffff_0000;
pub(super) const LLGR_STALE: u32 = 0xffff_0006;

/// A neighbour as configured, and what it has said.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: Ipv4Addr,
    pub(super) asn: u32,
    pub(super) id: u32,
    /// The AS number that it knows us by (RFC 7705).
    pub(super) local: u32,
    pub(super) up: bool,
    pub(super) import: Chain,
    pub(super) export: Chain,
    pub(super) next_hop: NextHopMode,
    pub(super) knobs: Knobs,
    /// Its routes are kept for a while when it goes away (RFC 4724).
    pub(super) graceful: bool,
    /// We are about to leave each other (RFC 8326).
    pub(super) leaving: bool,
    /// What counts of what it has said.
    pub(super) said: BTreeMap<Ipv4Net, Attrs>,
    /// What of that it has not said again since it went away.
    pub(super) stale: BTreeSet<Ipv4Net>,
}

/// Policies in order, and what becomes of a route that none of them decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) policies: Vec<&'static str>,
    pub(super) accepts: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NextHopMode {
    Default,
    Ours,
    Keep,
}

/// What else is configured of a neighbour.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Knobs {
    /// An internal neighbour is a client of ours.
    pub(super) client: bool,
    /// How often our AS number may stand in a path.
    pub(super) allow_own_as: u8,
    /// An external neighbour's paths must begin with its AS number.
    pub(super) enforce_first_as: bool,
    /// An external neighbour's own AS number gives way to ours.
    pub(super) as_override: bool,
    /// Where it knows us by another AS number: what it says does not get that in front.
    pub(super) no_prepend: bool,
    /// What it is told has that alone in front.
    pub(super) replace_as: bool,
    /// Private AS numbers are not told to an external neighbour: all of them, and with ours in their place.
    pub(super) remove_private: Option<(bool, bool)>,
}

/// How paths are compared where there is a choice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) always_compare_med: bool,
    pub(super) missing_med_worst: bool,
    pub(super) ignore_as_path_length: bool,
    /// How many paths are used at once.
    pub(super) multipath: usize,
    /// Whatever is in their AS paths.
    pub(super) relax: bool,
}

/// Why a path takes no part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Rejected {
    FirstAs,
    AsLoop,
    OriginatorLoop,
    ClusterLoop,
    OwnNextHop,
    Policy,
}

/// The rungs of the ladder that tell how good a path is, and those that tell equally good ones apart.
const UPPER: [&str; 8] = [
    "local origin",
    "long-lived stale",
    "local preference",
    "AS path length",
    "origin",
    "MED",
    "external over internal",
    "interior cost",
];
const LOWER: [&str; 3] = ["router id", "cluster list length", "neighbour address"];

/// Where a path came from: a neighbour by number; `None` for ourselves.
pub(super) type Source = Option<usize>;

/// All there is to know.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) peers: Vec<Peer>,
    pub(super) policies: Policies,
    /// Those that every route meets first, on the way in and on the way out.
    pub(super) global: [Vec<&'static str>; 2],
    pub(super) set: Vec<Range>,
    pub(super) originations: BTreeMap<Ipv4Net, Attrs>,
    /// Whether they stand for what is inside them.
    pub(super) aggregates: BTreeMap<Ipv4Net, bool>,
    /// What stands in the place of next hops.
    pub(super) via: BTreeMap<Ipv4Addr, Vec<Ipv4Addr>>,
    /// What is known about next hops: the cost, none where it cannot be reached.
    pub(super) next_hops: BTreeMap<Ipv4Addr, Option<u32>>,
    /// The cluster identifier that somebody chose.
    pub(super) cluster: Option<u32>,
    pub(super) decision: Decision,
}

impl Peer {
    /// It announces a route.
    pub(super) fn announce(&mut self, prefix: Ipv4Net, attrs: Attrs) {
        self.stale.remove(&prefix);
        self.said.insert(prefix, attrs);
    }

    /// It withdraws a route.
    pub(super) fn withdraw(&mut self, prefix: Ipv4Net) {
        self.stale.remove(&prefix);
        self.said.remove(&prefix);
    }

    /// The session ends. Whoever goes away for the second time before it has said everything again is not waited for any
    /// longer (RFC 4724 section 4.2).
    pub(super) fn down(&mut self) {
        self.up = false;
        self.end_of_rib();
        if self.graceful {
            self.stale = self.said.keys().copied().collect();
        } else {
            self.said.clear();
        }
    }

    /// It has said everything again, or the time for that is over.
    pub(super) fn end_of_rib(&mut self) {
        let stale = std::mem::take(&mut self.stale);
        self.said.retain(|prefix, _| !stale.contains(prefix));
    }

    fn is_external(&self) -> bool {
        self.asn != OUR_ASN
    }

    /// The path that an external neighbour is told: policy's numbers, ours, and the route's without what is not to be in it.
    fn path(&self, prepended: &[u32], path: &[Hop]) -> Vec<Hop> {
        let mut leading = true;
        let mut told = |asn: u32| -> Option<u32> {
            let private = (64_512..=65_534).contains(&asn) || (4_200_000_000..=4_294_967_294).contains(&asn);
            if asn == self.asn {
                leading = false;
                return Some(if self.knobs.as_override { self.local } else { asn });
            }
            leading &= private;
            match self.knobs.remove_private {
                Some((all, replace)) if private && (all || leading) => replace.then_some(self.local),
                _ => Some(asn),
            }
        };
        let mut out: Vec<Hop> = prepended.iter().chain(&self.front()).map(|asn| Hop::As(*asn)).collect();
        for hop in path {
            match hop {
                Hop::As(asn) => out.extend(told(*asn).map(Hop::As)),
                Hop::Set(asns) => {
                    let left: Vec<u32> = asns.iter().filter_map(|asn| told(*asn)).collect();
                    out.extend((!left.is_empty()).then_some(Hop::Set(left)));
                }
            }
        }
        out
    }

    /// What stands in front of whatever it is told.
    fn front(&self) -> Vec<u32> {
        let behind = self.local != OUR_ASN && !self.knobs.replace_as;
        [self.local].into_iter().chain(behind.then_some(OUR_ASN)).collect()
    }

    fn learned(&self) -> Learned {
        if self.is_external() { Learned::External } else { Learned::Internal }
    }
}

impl Reference {
    /// The cluster that we reflect for (RFC 4456 section 7), if we do.
    fn cluster(&self) -> Option<u32> {
        let has_clients = self.peers.iter().any(|peer| peer.knobs.client);
        self.cluster.or(has_clients.then_some(OUR_ID))
    }

    /// What the policies of a neighbour make of a route, on the way in or `out`.
    fn filter(
        &self,
        peer: usize,
        out: bool,
        learned: Learned,
        prefix: Ipv4Net,
        attrs: &Attrs,
    ) -> Option<Made> {
        let neighbour = &self.peers[peer];
        let external = neighbour.is_external();
        let seen = Seen {
            policies: &self.policies,
            prefix,
            neighbor: neighbour.address,
            external,
            learned,
            med: attrs.med,
            set: &self.set,
            out,
            front: if out && external { neighbour.front() } else { vec![] },
        };
        let Chain { policies, accepts } = if out { &neighbour.export } else { &neighbour.import };
        // A neighbour that is closed is not opened by what is meant for all (RFC 8212).
        if policies.is_empty() && !accepts {
            return None;
        }
        let chain = [&self.global[usize::from(out)][..], policies].concat();
        policy::run(&chain, *accepts, attrs, &seen)
    }

    /// What is kept of a path that a neighbour said: some attributes mean nothing across the border of an AS.
    pub(super) fn received(&self, peer: usize, said: &Attrs) -> Attrs {
        let mut attrs = said.clone();
        if self.peers[peer].is_external() {
            (attrs.local_pref, attrs.originator) = (None, None);
            attrs.clusters.clear();
        }
        for (partial, _) in attrs.unknown.values_mut() {
            *partial = true;
        }
        attrs
    }

    /// The path behind import, or why it takes no part.
    pub(super) fn imported(&self, peer: usize, prefix: Ipv4Net) -> Result<Attrs, Rejected> {
        let neighbour = &self.peers[peer];
        let attrs = self.received(peer, &neighbour.said[&prefix]);
        let external = neighbour.is_external();
        if external && neighbour.knobs.enforce_first_as && attrs.neighbor_as() != Some(neighbour.asn) {
            return Err(Rejected::FirstAs);
        }
        let times = |own: u32| attrs.asns().into_iter().filter(|asn| *asn == own).count();
        if times(OUR_ASN).max(times(neighbour.local)) > usize::from(neighbour.knobs.allow_own_as) {
            return Err(Rejected::AsLoop);
        }
        if attrs.originator == Some(OUR_ID) {
            return Err(Rejected::OriginatorLoop);
        }
        if self.cluster().is_some_and(|own| attrs.clusters.contains(&own)) {
            return Err(Rejected::ClusterLoop);
        }
        if attrs.next_hop == Some(OUR_ADDRESS) {
            return Err(Rejected::OwnNextHop);
        }
        let leaving = external && attrs.communities.contains(&GRACEFUL_SHUTDOWN);
        let made = self.filter(peer, false, neighbour.learned(), prefix, &attrs).ok_or(Rejected::Policy)?;
        let mut attrs = made.attrs;
        if neighbour.local != OUR_ASN && !neighbour.knobs.no_prepend {
            attrs.path.insert(made.prepended.len(), Hop::As(neighbour.local));
        }
        if let NextHop::This(hop) = made.next_hop {
            attrs.next_hop = Some(hop);
        }
        let mut made = attrs;
        if leaving || neighbour.leaving {
            made.local_pref = Some(0);
        }
        made.communities.extend(neighbour.leaving.then_some(GRACEFUL_SHUTDOWN));
        Ok(made)
    }

    /// Every prefix that anybody has said.
    pub(super) fn prefixes(&self) -> BTreeSet<Ipv4Net> {
        let said = self.peers.iter().flat_map(|peer| peer.said.keys());
        said.chain(self.originations.keys()).chain(self.aggregates.keys()).copied().collect()
    }

    fn cost(&self, attrs: &Attrs) -> Option<u32> {
        attrs.next_hop.map_or(Some(0), |hop| self.next_hops.get(&hop).copied().unwrap_or(Some(0)))
    }

    /// The aggregate of this prefix, if there is something for it to stand for (RFC 4271 section 9.2.2.2): the worst ORIGIN,
    /// and a path of its own. Another aggregate adds nothing.
    fn aggregated(&self, prefix: Ipv4Net) -> Option<Attrs> {
        self.aggregates.get(&prefix)?;
        let inside = |of: &&Ipv4Net| prefix != **of && prefix.contains(*of);
        let prefixes = self.prefixes();
        let inside: Vec<Attrs> = prefixes
            .iter()
            .filter(inside)
            .filter_map(|prefix| {
                let (source, best, _) = self.best(*prefix)?;
                let is_aggregate = source.is_none() && !self.originations.contains_key(prefix);
                (!is_aggregate).then_some(best)
            })
            .collect();
        let mut attrs = Attrs { origin: inside.iter().map(|attrs| attrs.origin).max()?, ..Attrs::default() };
        if inside.iter().any(|attrs| !attrs.path.is_empty()) {
            attrs.unknown.insert(6, (false, vec![]));
        }
        let by = [OUR_ASN.to_be_bytes(), OUR_ID.to_be_bytes()].concat();
        attrs.unknown.insert(7, (false, by));
        Some(attrs)
    }

    /// The paths that take part in the decision.
    fn candidates(&self, prefix: Ipv4Net) -> Vec<(Source, Attrs)> {
        let own = self.originations.get(&prefix).cloned().or_else(|| self.aggregated(prefix));
        let own = own.map(|attrs| (None, attrs));
        let heard = (0..self.peers.len())
            .filter(|peer| self.peers[*peer].said.contains_key(&prefix))
            .filter_map(|peer| Some((Some(peer), self.imported(peer, prefix).ok()?)));
        own.into_iter().chain(heard).filter(|(_, attrs)| self.cost(attrs).is_some()).collect()
    }

    /// The best path, and the rung of the ladder that left it alone (RFC 4271 section 9.1).
    pub(super) fn best(&self, prefix: Ipv4Net) -> Option<(Source, Attrs, &'static str)> {
        let left = self.candidates(prefix);
        if let [(source, attrs)] = &left[..] {
            return Some((*source, attrs.clone(), "only path"));
        }
        let (left, decided) = self.climb(left, &[&UPPER[..], &LOWER].concat());
        assert!(left.len() < 2, "two paths of one neighbour: {left:?}");
        let (source, attrs) = left.into_iter().next()?;
        Some((source, attrs, decided?))
    }

    /// The next hops that packets are spread over; those of our own routes are nowhere.
    pub(super) fn next_hops_used(&self, prefix: Ipv4Net) -> BTreeSet<Ipv4Addr> {
        let Some((source, best, _)) = self.best(prefix) else { return BTreeSet::new() };
        if source.is_none() {
            return BTreeSet::new();
        }
        let (mut equal, _) = self.climb(self.candidates(prefix), &UPPER);
        equal.retain(|(_, attrs)| self.decision.relax || attrs.path == best.path);
        let mut used = BTreeSet::new();
        // The best one of those that are left, and so on.
        while used.len() < self.decision.multipath && !equal.is_empty() {
            let (first, _) = self.climb(equal.clone(), &LOWER);
            equal.retain(|(source, _)| *source != first[0].0);
            used.extend(first[0].1.next_hop);
        }
        let stands_for = |hop: Ipv4Addr| self.via.get(&hop).cloned().unwrap_or(vec![hop]);
        used.into_iter().flat_map(stands_for).collect()
    }

    /// Goes down the rungs until one path is left; which one did that.
    fn climb(
        &self,
        mut left: Vec<(Source, Attrs)>,
        rungs: &[&'static str],
    ) -> (Vec<(Source, Attrs)>, Option<&'static str>) {
        for rung in rungs {
            let before = left.len();
            left = self.rung(rung, left);
            if before > 1 && left.len() == 1 {
                return (left, Some(rung));
            }
        }
        (left, None)
    }

    fn rung(&self, rung: &str, left: Vec<(Source, Attrs)>) -> Vec<(Source, Attrs)> {
        let peer = |source: Source| source.map(|peer| &self.peers[peer]);
        match rung {
            "local origin" => least(left, |(source, _)| source.is_some()),
            "long-lived stale" => least(left, |(_, attrs)| attrs.communities.contains(&LLGR_STALE)),
            "local preference" => least(left, |(_, attrs)| Reverse(attrs.local_pref.unwrap_or(100))),
            "AS path length" if self.decision.ignore_as_path_length => left,
            "AS path length" => least(left, |(_, attrs)| attrs.path.len()),
            "origin" => least(left, |(_, attrs)| attrs.origin),
            "MED" => {
                let missing = if self.decision.missing_med_worst { u32::MAX } else { 0 };
                let med = |attrs: &Attrs| attrs.med.unwrap_or(missing);
                let always = self.decision.always_compare_med;
                let all = left.clone();
                let beaten = |of: &Attrs| {
                    all.iter().any(|(_, other)| {
                        (always || other.neighbor_as() == of.neighbor_as()) && med(other) < med(of)
                    })
                };
                left.into_iter().filter(|(_, attrs)| !beaten(attrs)).collect()
            }
            "external over internal" => {
                least(left, |(source, _)| !peer(*source).is_some_and(Peer::is_external))
            }
            "interior cost" => least(left, |(_, attrs)| self.cost(attrs)),
            "router id" => {
                least(left, |(source, attrs)| attrs.originator.or(peer(*source).map(|peer| peer.id)))
            }
            "cluster list length" => least(left, |(_, attrs)| attrs.clusters.len()),
            "neighbour address" => least(left, |(source, _)| peer(*source).map(|peer| peer.address)),
            rung => panic!("no rung {rung}"),
        }
    }

    /// What a neighbour must have been told of a prefix.
    pub(super) fn told(&self, peer: usize, prefix: Ipv4Net) -> Option<Attrs> {
        let to = &self.peers[peer];
        let (source, best, _) = self.best(prefix)?;
        let learned = source.map_or(Learned::Local, |from| self.peers[from].learned());
        let external = to.is_external();
        let stands = |of: &Ipv4Net| *of != prefix && of.contains(&prefix);
        if self.aggregates.iter().any(|(of, summary)| *summary && stands(of)) {
            return None;
        }
        if source == Some(peer) {
            return None;
        }
        // RFC 4456 section 6: between internal neighbours only from and to clients.
        let reflects = |from: usize| to.knobs.client || self.peers[from].knobs.client;
        let reflected = source.filter(|_| learned == Learned::Internal && !external);
        if reflected.is_some_and(|from| !reflects(from)) {
            return None;
        }
        let carries = |community| best.communities.contains(&community);
        // RFC 1997 speaks of what was received.
        let closed =
            carries(NO_ADVERTISE) || external && (carries(NO_EXPORT) || carries(NO_EXPORT_SUBCONFED));
        if closed && source.is_some() {
            return None;
        }
        // Nobody here knows what long-lived stale routes are.
        if carries(LLGR_STALE) {
            return None;
        }
        let made = self.filter(peer, true, learned, prefix, &best)?;
        let mut attrs = made.attrs;
        if to.leaving {
            attrs.communities.insert(GRACEFUL_SHUTDOWN);
            attrs.local_pref = Some(0);
        }
        let keeps = match to.next_hop {
            NextHopMode::Default => !external || learned == Learned::Local,
            NextHopMode::Ours => false,
            NextHopMode::Keep => true,
        };
        attrs.next_hop = match made.next_hop {
            NextHop::AsItIs => Some(attrs.next_hop.filter(|_| keeps).unwrap_or(OUR_ADDRESS)),
            NextHop::Ours => Some(OUR_ADDRESS),
            NextHop::This(hop) => Some(hop),
        };
        // RFC 4271 section 5.1.3: nobody is sent to itself by a route of ours, unless policy wants that.
        if source.is_none() && made.next_hop == NextHop::AsItIs && attrs.next_hop == Some(to.address) {
            return None;
        }
        if external {
            attrs.path = to.path(&made.prepended, &best.path);
            (attrs.local_pref, attrs.originator) = (None, None);
            attrs.clusters.clear();
            if learned != Learned::Local {
                attrs.med = attrs.med.filter(|_| made.own_med);
                // RFC 4360 section 6: what is not transitive ends here, unless we add it for this neighbour.
                attrs.extended.retain(|one| one >> 62 & 1 == 0 || made.own_extended.contains(one));
            }
        } else {
            attrs.local_pref = Some(attrs.local_pref.unwrap_or(100));
        }
        if let Some(from) = reflected {
            attrs.originator = attrs.originator.or(Some(self.peers[from].id));
            attrs.clusters.splice(0..0, self.cluster());
        }
        Some(attrs)
    }

    /// Everything that a neighbour must have been told.
    pub(super) fn adj_out(&self, peer: usize) -> BTreeMap<Ipv4Net, Attrs> {
        let told = |prefix| Some((prefix, self.told(peer, prefix)?));
        self.prefixes().into_iter().filter_map(told).collect()
    }
}

/// Those with the least key.
fn least<T, K: Ord>(items: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let least = items.iter().map(&key).min();
    items.into_iter().filter(|item| Some(key(item)) == least).collect()
}
