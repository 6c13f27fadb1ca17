//! Which prefix conditions of a chain hold for a prefix, all found in one look.
//!
//! All that a chain can tell of a prefix is in which of its sets that is, and which VPN it is of. So prefixes with the same
//! [`Signature`] and the same attributes have the same verdict, however many statements there are; and a chain of a hundred
//! prefix rules looks a prefix up once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bgp_wire::{Nlri, RouteDistinguisher};
use ipnet::{IpNet, Ipv4Net};
use smallvec::SmallVec;

use super::program::{Cond, Program, Stmt, Then};
use super::sets::PrefixSet;
use crate::rib::trie::{Bits, Trie};

/// What a chain can tell of a prefix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// The sets that the prefix is in, by address, in order.
    sets: SmallVec<[usize; 6]>,
    rd: Option<RouteDistinguisher>,
}

impl Signature {
    /// Whether the prefix is in a set of the chain.
    pub(super) fn has(&self, set: &Arc<PrefixSet>) -> bool {
        match &*self.sets {
            [] => false,
            sets => sets.binary_search(&address(set)).is_ok(),
        }
    }
}

fn address(set: &Arc<PrefixSet>) -> usize {
    Arc::as_ptr(set).addr()
}

/// Which statements of a policy a prefix may match, by its signature: those that ask for a set that it is not in are
/// passed over together, and those that ask for a community are told apart by its sign.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    /// The statements that no set of prefixes has to hold for, in order, each with the sign of a community that has to be
    /// carried; 0 where none has.
    any: Box<[(u32, u64)]>,
    /// Whether one has.
    signs: bool,
    /// The others, by the address of a set that has to, in order.
    by_set: Box<[(usize, u32)]>,
}

impl Ways {
    /// Those through these statements.
    pub(super) fn new(stmts: &[Stmt]) -> Self {
        let (mut any, mut by_set) = (Vec::new(), Vec::new());
        for (stmt, at) in stmts.iter().zip(0..) {
            let of = |cond: &Cond| if let Cond::Prefix(set) = cond { Some(address(set)) } else { None };
            let wanted = stmt.when.iter().find_map(of);
            let community =
                |cond: &Cond| if let Cond::Community(wanted) = cond { Some(sign(*wanted)) } else { None };
            match wanted {
                Some(set) => by_set.push((set, at)),
                None => any.push((at, stmt.when.iter().find_map(community).unwrap_or_default())),
            }
        }
        by_set.sort_unstable();
        let signs = any.iter().any(|(_, sign)| *sign != 0);
        Self { any: any.into(), signs, by_set: by_set.into() }
    }

    /// Whether a statement is told apart by a sign.
    pub(super) const fn ask_for_signs(&self) -> bool {
        self.signs
    }

    /// The statements that a prefix of this signature may match, in order, each with the sign that has to be among those
    /// of the communities, if one has.
    pub(super) fn of(&self, signature: &Signature) -> impl Iterator<Item = (usize, Option<u64>)> {
        let mut some: SmallVec<[u32; 8]> = SmallVec::new();
        for set in &signature.sets {
            let first = self.by_set.partition_point(|(other, _)| other < set);
            let own = self.by_set[first..].iter().take_while(|(other, _)| other == set);
            some.extend(own.map(|(_, at)| *at));
        }
        some.sort_unstable();
        let (mut any, mut some) = (self.any.iter().copied().peekable(), some.into_iter().peekable());
        std::iter::from_fn(move || {
            let is_first = |(at, _): &(u32, u64)| some.peek().is_none_or(|other| at < other);
            let (at, sign) = any.next_if(is_first).or_else(|| some.next().map(|at| (at, 0)))?;
            Some((at as usize, Some(sign).filter(|sign| *sign != 0)))
        })
    }
}

/// One bit of 64 for each community: where a list lacks the bit it lacks the community, which is all there is to say to
/// most conditions of a long policy.
pub(super) const fn sign(community: u128) -> u64 {
    1 << ((community as u32).wrapping_mul(0x9e37_79b1) >> 26)
}

/// The prefix conditions of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct PrefixIndex {
    v4: Trie<Marks>,
    /// Which blocks of IPv4 have something in `v4`.
    blocks: Blocks,
    v6: Trie<Marks>,
    /// Sets too large to be written down once more.
    large: Vec<Arc<PrefixSet>>,
    /// Distinguishers count.
    rd: bool,
}

/// The lengths that a set wants below one prefix, and which set.
type Marks = SmallVec<[(u8, u8, usize); 1]>;

/// Ranges of a set that is asked by itself.
const LARGE: usize = 4096;

impl PrefixIndex {
    /// The conditions of these policies and of those that they call.
    pub(super) fn new(programs: &[Arc<Program>]) -> Self {
        let mut found = Found::default();
        programs.iter().for_each(|program| found.program(program));
        let mut index = Self { rd: found.rd, ..Self::default() };
        for (at, set) in found.sets {
            if set.len() > LARGE {
                index.large.push(set);
                continue;
            }
            set.each_range(|is_ipv4, prefix, (min, max)| {
                let trie = if is_ipv4 { &mut index.v4 } else { &mut index.v6 };
                let mut marks = trie.remove(prefix).unwrap_or_default();
                marks.push((min, max, at));
                trie.insert(prefix, marks);
            });
        }
        index.blocks = Blocks::new(index.v4.iter().map(|(prefix, _)| prefix));
        index
    }

    /// Whether a chain can tell nothing of a prefix, where one look says so. Its signature is the empty one then.
    #[inline]
    pub(super) fn is_outside(&self, nlri: &Nlri) -> bool {
        let outside = match nlri.prefix() {
            Some(IpNet::V4(net)) => !self.blocks.may_hold(net),
            Some(IpNet::V6(_)) | None => false,
        };
        outside && self.large.is_empty() && !self.rd
    }

    /// What the chain can tell of a prefix.
    #[inline]
    pub(super) fn signature(&self, nlri: &Nlri) -> Signature {
        let mut signature = Signature { sets: SmallVec::new(), rd: nlri.rd().filter(|_| self.rd) };
        let Some(net) = nlri.prefix() else { return signature };
        let (trie, inside) = match net {
            IpNet::V4(net) => (&self.v4, self.blocks.may_hold(net)),
            IpNet::V6(_) => (&self.v6, true),
        };
        if inside && !trie.is_empty() {
            let wanted = Bits::from(net);
            for (_, marks) in trie.covering(wanted) {
                let hold = marks.iter().filter(|(min, max, _)| (*min..=*max).contains(&wanted.len()));
                signature.sets.extend(hold.map(|(_, _, set)| *set));
            }
        }
        let large = self.large.iter().filter(|set| set.contains(nlri));
        signature.sets.extend(large.map(address));
        if signature.sets.len() > 1 {
            signature.sets.sort_unstable();
            signature.sets.dedup();
        }
        signature
    }
}

/// How many leading bits say which block a prefix is in.
const BLOCK_BITS: u8 = 16;
/// Words of 64 bits, one bit for each block.
const WORDS: usize = 1 << (BLOCK_BITS - 6);

/// Which blocks of IPv4, a /16 each, overlap with some prefix of a set: 8 KiB that spare most prefixes the way through a
/// trie. Absent where all do.
#[derive(Clone, Debug, Default)]
struct Blocks(Option<Box<[u64]>>);

impl Blocks {
    fn new(prefixes: impl Iterator<Item = Bits>) -> Self {
        let mut words = vec![0_u64; WORDS].into_boxed_slice();
        for prefix in prefixes {
            let first = prefix.first(BLOCK_BITS) as usize;
            for block in first..first + (1 << BLOCK_BITS.saturating_sub(prefix.len())) {
                words[block / 64] |= 1 << (block % 64);
            }
        }
        Self(words.iter().any(|word| *word != u64::MAX).then_some(words))
    }

    /// False for a prefix that is certainly in none of the sets.
    fn may_hold(&self, net: Ipv4Net) -> bool {
        let Some(words) = self.0.as_ref().filter(|_| net.prefix_len() >= BLOCK_BITS) else { return true };
        let block = net.addr().to_bits() >> (32 - BLOCK_BITS);
        words[block as usize / 64] >> (block % 64) & 1 == 1
    }
}

/// Sets found in programs, by address; each program is looked at once.
#[derive(Default)]
struct Found {
    sets: BTreeMap<usize, Arc<PrefixSet>>,
    seen: BTreeSet<usize>,
    rd: bool,
}

impl Found {
    fn program(&mut self, program: &Arc<Program>) {
        if !self.seen.insert(Arc::as_ptr(program).addr()) {
            return;
        }
        for stmt in &program.stmts {
            stmt.when.iter().for_each(|cond| self.cond(cond));
            if let Then::Call(called) = &stmt.then {
                self.program(called);
            }
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match cond {
            Cond::Prefix(set) => {
                self.sets.insert(address(set), Arc::clone(set));
            }
            Cond::Rd(_) => self.rd = true,
            Cond::Not(inner) => self.cond(inner),
            Cond::Any(inner) | Cond::All(inner) => inner.iter().for_each(|cond| self.cond(cond)),
            Cond::Neighbor(_)
            | Cond::Learned(_)
            | Cond::PeerType(_)
            | Cond::Family(_)
            | Cond::Community(_)
            | Cond::LargeCommunity(_)
            | Cond::ExtCommunity(_)
            | Cond::Communities(..)
            | Cond::LargeCommunities(..)
            | Cond::ExtCommunities(..)
            | Cond::Interface(_)
            | Cond::NextHop(_)
            | Cond::Origin(_)
            | Cond::AsPathLength(_)
            | Cond::AsPath(_)
            | Cond::AsPathPrefix(_)
            | Cond::LocalPref(_)
            | Cond::Med(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
