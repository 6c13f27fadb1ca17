//! Adj-RIB-Out of a group that is told several paths of a destination (RFC 7911): one entry for each path, named by its
//! source, whose number is also the path identifier on the wire.
//!
//! A path that was withdrawn leaves a *trace* while a member may still believe in it: one that catches up has to be told
//! which identifiers are gone, and nothing else knows them. A trace may be dropped when no member is catching up and all
//! have read the chunk that told of the withdrawal. To withdraw a path once too often is harmless (RFC 7911 section 5:
//! what was not seen before is ignored); so is the use of an identifier for another path, which replaces the first.
//!
//! A path has one trace at the most, however often it comes and goes while somebody catches up: a member that does not
//! read must not cost more than there are paths.
//!
//! *Never:* takes memory in a group whose members are told one path.

use super::adj_out::{Origin, Told};
use crate::rib::{AttrId, AttrStore, DestId, Pages, SourceId};

#[derive(Copy, Clone, Default)]
struct Node {
    source: SourceId,
    /// Absent: a trace, or not in use.
    attr: Option<AttrId>,
    /// Of a trace: its number.
    origin: Origin,
    /// The next path of the destination, or the next free node: its number plus one, or 0.
    next: u32,
}

const _: () = assert!(size_of::<Node>() == 16);

/// A path that was withdrawn and is not announced again.
#[derive(Copy, Clone, Default)]
struct Trace {
    dest: usize,
    source: SourceId,
    /// Position of the ring that a member has to have reached, so that it has read of the withdrawal; [`UNTOLD`] until
    /// there is one.
    read: u64,
    /// The trace before this one: its number plus one, or 0.
    older: u32,
    /// The trace behind this one, or the next free place: its number plus one, or 0.
    newer: u32,
}

const UNTOLD: u64 = u64::MAX;

/// See the module's text.
#[derive(Default)]
pub(super) struct PathsOut {
    /// By destination: its first path, as its number plus one, or 0.
    heads: Pages<u32, 1024>,
    nodes: Pages<Node, 1024>,
    free: u32,
    /// A list in the order of the withdrawals, so that those that everyone has read of come first; each can be taken out.
    traces: Pages<Trace, 1024>,
    /// The first and the last of them: number plus one, or 0.
    oldest: u32,
    newest: u32,
    free_trace: u32,
}

/// Traces dropped in one go.
const TIDY_AT_ONCE: usize = 1024;

impl PathsOut {
    /// What was told of a destination: each path with its source; without attributes where it is a trace.
    pub(super) fn of(&self, dest: DestId) -> impl Iterator<Item = (SourceId, Option<Told>)> {
        let node = |at: u32| at.checked_sub(1).map(|at| &self.nodes[at as usize]);
        std::iter::successors(node(self.head(dest)), move |last| node(last.next)).map(|node| {
            let told = node.attr.map(|attr| Told { attr, origin: node.origin });
            (node.source, told)
        })
    }

    /// What was told of one path.
    pub(super) fn told(&self, dest: DestId, source: SourceId) -> Option<Told> {
        self.of(dest).find(|(of, _)| *of == source)?.1
    }

    /// Notes what is told of a path from now on; gives what was told before.
    pub(super) fn set(&mut self, dest: DestId, source: SourceId, told: Option<Told>) -> Option<Told> {
        let head = self.head(dest);
        let mut at = head;
        while at != 0 && self.nodes[at as usize - 1].source != source {
            at = self.nodes[at as usize - 1].next;
        }
        if at == 0 {
            let told = told?;
            let node = Node { source, attr: Some(told.attr), origin: told.origin, next: head };
            self.heads.extend_to(dest.index());
            self.heads[dest.index()] = self.push(node);
            return None;
        }
        let at = at as usize - 1;
        let Node { attr, origin, .. } = self.nodes[at];
        let before = attr.map(|attr| Told { attr, origin });
        match told {
            Some(told) => {
                if before.is_none() {
                    self.remove_trace(origin.number());
                }
                (self.nodes[at].attr, self.nodes[at].origin) = (Some(told.attr), told.origin);
            }
            None if before.is_some() => {
                let trace = self.push_trace(dest, source);
                (self.nodes[at].attr, self.nodes[at].origin) = (None, Origin::numbered(trace));
            }
            None => {}
        }
        before
    }

    /// Whoever stands at `position` of the ring has heard of all withdrawals so far.
    pub(super) fn read_at(&mut self, position: u64) {
        let mut at = self.newest;
        while let Some(ix) = at.checked_sub(1) {
            let trace = &mut self.traces[ix as usize];
            if trace.read != UNTOLD {
                return;
            }
            trace.read = position;
            at = trace.older;
        }
    }

    /// Whether [`PathsOut::tidy`] would drop something now.
    #[inline]
    pub(super) fn is_untidy(&self, position: u64) -> bool {
        self.oldest_read_at(position).is_some()
    }

    /// The oldest trace, if whoever stands at `position` has read of it.
    #[inline]
    fn oldest_read_at(&self, position: u64) -> Option<u32> {
        let oldest = self.oldest.checked_sub(1)?;
        let read = self.traces[oldest as usize].read;
        (read != UNTOLD && read <= position).then_some(oldest)
    }

    /// Everyone stands at `position` of the ring at least: drops some of the traces that nobody needs.
    pub(super) fn tidy(&mut self, position: u64) {
        for _ in 0..TIDY_AT_ONCE {
            let Some(oldest) = self.oldest_read_at(position) else { return };
            let Trace { dest, source, .. } = self.traces[oldest as usize];
            self.remove_trace(oldest);
            self.drop_node(dest, source);
        }
    }

    /// Forgets a path that has left a trace.
    fn drop_node(&mut self, dest: usize, source: SourceId) {
        let mut before = 0;
        let mut at = self.heads[dest];
        while at != 0 {
            let node = self.nodes[at as usize - 1];
            if node.source == source {
                debug_assert!(node.attr.is_none(), "a path that is announced has a trace");
                match before {
                    0 => self.heads[dest] = node.next,
                    before => self.nodes[before as usize - 1].next = node.next,
                }
                self.nodes[at as usize - 1] = Node { next: self.free, ..Node::default() };
                self.free = at;
                return;
            }
            (before, at) = (at, node.next);
        }
    }

    /// Adds a trace, the newest, and gives its number.
    fn push_trace(&mut self, dest: DestId, source: SourceId) -> u32 {
        let older = self.newest;
        let trace = Trace { dest: dest.index(), source, read: UNTOLD, older, newer: 0 };
        let number = match self.free_trace.checked_sub(1) {
            Some(at) => {
                self.free_trace = self.traces[at as usize].newer;
                self.traces[at as usize] = trace;
                at
            }
            None => self.traces.push(trace) as u32,
        };
        self.newest = number + 1;
        match older {
            0 => self.oldest = number + 1,
            older => self.traces[older as usize - 1].newer = number + 1,
        }
        number
    }

    /// Takes a trace out of the list.
    fn remove_trace(&mut self, number: u32) {
        let Trace { older, newer, .. } = self.traces[number as usize];
        match older {
            0 => self.oldest = newer,
            older => self.traces[older as usize - 1].newer = newer,
        }
        match newer {
            0 => self.newest = older,
            newer => self.traces[newer as usize - 1].older = older,
        }
        self.traces[number as usize] = Trace { newer: self.free_trace, ..Trace::default() };
        self.free_trace = number + 1;
    }

    /// Every path that somebody may believe in, by destination.
    pub(super) fn known(&self) -> Vec<(DestId, SourceId)> {
        let dests = (0..self.heads.len()).map(DestId::from_index);
        dests.flat_map(|dest| self.of(dest).map(move |(source, _)| (dest, source))).collect()
    }

    /// Gives back the references of up to `budget` paths, from `next` on, once nobody will ask again. True when there are
    /// none left.
    pub(super) fn release_step(&self, next: &mut usize, budget: usize, attrs: &mut AttrStore) -> bool {
        let end = self.nodes.len().min(*next + budget);
        for attr in (*next..end).filter_map(|at| self.nodes[at].attr) {
            attrs.release(attr, 1);
        }
        *next = end;
        end == self.nodes.len()
    }

    fn head(&self, dest: DestId) -> u32 {
        self.heads.get(dest.index()).copied().unwrap_or(0)
    }

    /// Stores a node and gives its number plus one.
    fn push(&mut self, node: Node) -> u32 {
        match self.free.checked_sub(1) {
            Some(at) => {
                self.free = self.nodes[at as usize].next;
                self.nodes[at as usize] = node;
                at + 1
            }
            None => self.nodes.push(node) as u32 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer_key::PeerIx;
    use crate::rib::{PeerSource, Sources};
    use bgp_wire::attr::AttrFacts;
    use bgp_wire::{PathId, RouterId};

    /// So many sources of one neighbour.
    fn sources(count: u32) -> Vec<SourceId> {
        let mut sources = Sources::new();
        let address = [192, 0, 2, 1].into();
        sources.peer_up(
            PeerIx(0),
            PeerSource { external: true, router_id: RouterId(1), address, client: false },
        );
        (0..count).map(|id| sources.intern(PeerIx(0), PathId(id)).unwrap()).collect()
    }

    fn told() -> Option<Told> {
        let attr = AttrStore::new(0).intern(&[], None, AttrFacts::default);
        Some(Told { attr, origin: Origin::LOCAL })
    }

    fn dest(ix: usize) -> DestId {
        DestId::from_index(ix)
    }

    #[test]
    fn a_withdrawn_path_leaves_a_trace_until_everyone_has_read_of_it() {
        let (sources, mut out) = (sources(3), PathsOut::default());
        assert_eq!(out.set(dest(5), sources[0], None), None);
        for source in &sources {
            assert_eq!(out.set(dest(5), *source, told()), None);
        }
        assert_eq!(out.set(dest(5), sources[1], None), told());
        assert_eq!(out.told(dest(5), sources[1]), None);
        let gone: Vec<_> = out.of(dest(5)).filter(|(_, told)| told.is_none()).collect();
        assert_eq!(gone, [(sources[1], None)]);
        assert!(!out.is_untidy(u64::MAX), "no chunk tells of it yet");
        out.read_at(3);
        assert!(!out.is_untidy(2) && out.is_untidy(3));
        out.tidy(3);
        assert_eq!(out.of(dest(5)).count(), 2);
        assert_eq!(out.known().len(), 2);
        // Its place is used again.
        out.set(dest(0), sources[2], told());
        assert_eq!((out.nodes.len(), out.of(dest(0)).count()), (3, 1));
    }

    #[test]
    fn a_path_that_was_withdrawn_again_keeps_its_second_trace() {
        let (sources, mut out) = (sources(1), PathsOut::default());
        out.set(dest(0), sources[0], told());
        out.set(dest(0), sources[0], None);
        out.read_at(1);
        out.set(dest(0), sources[0], told());
        out.set(dest(0), sources[0], None);
        out.read_at(2);
        out.tidy(1);
        assert_eq!(out.of(dest(0)).count(), 1);
        out.tidy(2);
        assert_eq!(out.of(dest(0)).count(), 0);
        assert_eq!((out.oldest, out.newest), (0, 0));
    }

    #[test]
    fn a_path_that_comes_and_goes_has_one_trace() {
        let (sources, mut out) = (sources(3), PathsOut::default());
        for round in 0..100 {
            for source in &sources {
                out.set(dest(0), *source, told());
            }
            // In another order each time, so that traces go from the middle and from both ends.
            for n in 0..3 {
                out.set(dest(0), sources[(round + n) % 3], None);
            }
            out.read_at(round as u64);
        }
        assert_eq!((out.traces.len(), out.nodes.len()), (3, 3));
        out.set(dest(0), sources[1], told());
        out.tidy(98);
        assert_eq!(out.of(dest(0)).count(), 3, "the last withdrawals have not been read of");
        out.tidy(99);
        assert_eq!(out.known(), [(dest(0), sources[1])]);
        assert_eq!((out.oldest, out.newest), (0, 0));
    }

    #[test]
    fn a_path_that_is_back_is_no_trace() {
        let (sources, mut out) = (sources(1), PathsOut::default());
        out.set(dest(0), sources[0], told());
        out.set(dest(0), sources[0], None);
        out.read_at(1);
        out.set(dest(0), sources[0], told());
        out.tidy(1);
        assert_eq!(out.told(dest(0), sources[0]), told());
    }

    #[test]
    fn references_are_given_back_for_what_stands_there() {
        let (sources, mut out, mut attrs) = (sources(2), PathsOut::default(), AttrStore::new(0));
        let attr = attrs.intern(&[], None, AttrFacts::default);
        for source in &sources {
            out.set(dest(0), *source, Some(Told { attr, origin: Origin::LOCAL }));
            attrs.retain(attr, 1);
        }
        attrs.release(attr, 1);
        out.set(dest(0), sources[0], None);
        attrs.release(attr, 1);
        let mut next = 0;
        assert!(!out.release_step(&mut next, 1, &mut attrs));
        assert!(out.release_step(&mut next, 1, &mut attrs));
        assert!(attrs.is_empty());
    }
}
