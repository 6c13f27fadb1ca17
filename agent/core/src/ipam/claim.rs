//! The steps of a claim. See the folder's text.

use std::collections::VecDeque;
use std::fmt;
use std::net::Ipv6Addr;

use ipnet::Ipv6Net;

use super::block::{Affinity, Block, Handle, HandleId, Revision};
use crate::model::NodeName;

/// So many blocks of a pool are tried before it counts as full: others have them, and a pool may have more than can be tried.
const MOST_BLOCKS: u64 = 256;

/// What is to be asked of the datastore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read a handle. Answered by [`Answer::Handle`].
    ReadHandle(HandleId),
    /// List the affinities of our node. Answered by [`Answer::Affinities`].
    ListAffinities,
    /// Read a block. Answered by [`Answer::Block`].
    ReadBlock(Ipv6Net),
    /// Make an affinity of our node, pending. [`Answer::Done`], or [`Answer::Exists`].
    CreateAffinity(Ipv6Net),
    /// Make an affinity of ours confirmed. [`Answer::Done`], or [`Answer::Conflict`].
    ConfirmAffinity(Ipv6Net, Revision),
    /// Delete an affinity of ours. [`Answer::Done`], or [`Answer::Conflict`].
    DeleteAffinity(Ipv6Net, Revision),
    /// Make a block. [`Answer::Done`], or [`Answer::Exists`].
    CreateBlock(Block),
    /// Write a block. [`Answer::Done`], or [`Answer::Conflict`].
    UpdateBlock(Block, Revision),
    /// Make a handle, or write it where there is a version. [`Answer::Done`], or [`Answer::Conflict`].
    WriteHandle(HandleId, Handle, Option<Revision>),
}

/// What the datastore answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A handle; `None` where there is none.
    Handle(Option<(Handle, Revision)>),
    /// All affinities of our node.
    Affinities(Vec<Affinity>),
    /// A block; `None` where there is none.
    Block(Option<(Block, Revision)>),
    /// It is done, and the object has this version now.
    Done(Revision),
    /// There is one already.
    Exists,
    /// It isn't what it was when it was read, or it is gone.
    Conflict,
}

/// Why there can be no address.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The pool is smaller than one block, or its blocks are too large.
    #[error("the pool {0} has no room for a block of /{1}")]
    Pool(Ipv6Net, u8),
    /// All blocks that were tried belong to others, or are full.
    #[error("no block of the pool {0} has a free address for this node")]
    Full(Ipv6Net),
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadHandle(id) => write!(f, "read IPAMHandle {id}"),
            Self::ListAffinities => f.write_str("list BlockAffinities"),
            Self::ReadBlock(cidr) => write!(f, "read IPAMBlock {cidr}"),
            Self::CreateAffinity(cidr) => write!(f, "create BlockAffinity of {cidr}"),
            Self::ConfirmAffinity(cidr, _) => write!(f, "confirm BlockAffinity of {cidr}"),
            Self::DeleteAffinity(cidr, _) => write!(f, "delete BlockAffinity of {cidr}"),
            Self::CreateBlock(block) => write!(f, "create IPAMBlock {}", block.cidr),
            Self::UpdateBlock(block, _) => write!(f, "update IPAMBlock {}", block.cidr),
            Self::WriteHandle(id, ..) => write!(f, "write IPAMHandle {id}"),
        }
    }
}

/// The claim of one address. [`Claim::request`] says what is to be asked; where that fails it is asked again, later. Its
/// answer goes to [`Claim::answer`], until there is an [`Claim::outcome`].
#[derive(Clone, Debug)]
pub struct Claim {
    node: NodeName,
    pool: Ipv6Net,
    block_len: u8,
    id: HandleId,
    /// The handle as it was last read or written.
    handle: Option<(Handle, Revision)>,
    /// Blocks of ours that have not been looked at.
    candidates: VecDeque<Ipv6Net>,
    /// How many blocks of the pool have been tried.
    tried: u64,
    step: Step,
}

#[derive(Clone, Debug)]
enum Step {
    ReadHandle,
    /// Look for the address where the handle says that it is.
    Find(Ipv6Net),
    ListAffinities,
    /// Look for a free address in a block of ours.
    Look(Ipv6Net),
    /// Say in the handle where the address is going to be.
    Announce(Block, Revision, Ipv6Addr),
    /// Say in the block who has it.
    Allocate(Block, Revision, Ipv6Addr),
    /// Make a block ours: the affinity first, so that nobody has to guess whose a block is.
    Affinity(Ipv6Net),
    Create(Ipv6Net, Option<Revision>),
    /// There is a block already: whose?
    Whose(Ipv6Net, Option<Revision>),
    Confirm(Ipv6Net, Revision),
    /// Another node has the block.
    GiveUp(Ipv6Net, Revision),
    /// An affinity that is ours, of which we don't know the version.
    Reread(Ipv6Net),
    Over(Result<Ipv6Addr, ClaimError>),
}

impl Claim {
    /// A claim of an address of a pool, whose blocks have this prefix length (`spec.blockSize`), for a node.
    #[must_use]
    pub fn new(node: NodeName, pool: Ipv6Net, block_len: u8, id: HandleId) -> Self {
        let pool = pool.trunc();
        let fits = (pool.prefix_len()..=128).contains(&block_len) && block_len >= 112;
        let step = if fits { Step::ReadHandle } else { Step::Over(Err(ClaimError::Pool(pool, block_len))) };
        Self { node, pool, block_len, id, handle: None, candidates: VecDeque::new(), tried: 0, step }
    }

    /// How the claim ended, once it has.
    #[must_use]
    pub const fn outcome(&self) -> Option<Result<Ipv6Addr, ClaimError>> {
        if let Step::Over(outcome) = self.step { Some(outcome) } else { None }
    }

    /// What is to be asked now; `None` once the claim has ended.
    #[must_use]
    pub fn request(&self) -> Option<Request> {
        Some(match &self.step {
            Step::ReadHandle => Request::ReadHandle(self.id.clone()),
            Step::Find(cidr) | Step::Look(cidr) | Step::Whose(cidr, _) => Request::ReadBlock(*cidr),
            Step::ListAffinities | Step::Reread(_) => Request::ListAffinities,
            Step::Announce(block, ..) => {
                let (handle, revision) = match &self.handle {
                    Some((handle, revision)) => (self.announced(handle, block.cidr), Some(revision.clone())),
                    None => (self.announced(&Handle::default(), block.cidr), None),
                };
                Request::WriteHandle(self.id.clone(), handle, revision)
            }
            Step::Allocate(block, revision, _) => Request::UpdateBlock(block.clone(), revision.clone()),
            Step::Affinity(cidr) => Request::CreateAffinity(*cidr),
            Step::Create(cidr, _) => Request::CreateBlock(Block::empty(*cidr, &self.node)),
            Step::Confirm(cidr, revision) => Request::ConfirmAffinity(*cidr, revision.clone()),
            Step::GiveUp(cidr, revision) => Request::DeleteAffinity(*cidr, revision.clone()),
            Step::Over(_) => return None,
        })
    }

    /// What was asked has been answered. An answer that doesn't fit begins the claim anew.
    pub fn answer(&mut self, answer: Answer) {
        let step = std::mem::replace(&mut self.step, Step::ReadHandle);
        self.step = match (step, answer) {
            (Step::ReadHandle, Answer::Handle(handle)) => self.handle_read(handle),
            (Step::Find(_), Answer::Block(block)) => {
                match block.and_then(|(block, _)| block.address_of(&self.id)) {
                    Some(address) => Step::Over(Ok(address)),
                    None => Step::ListAffinities,
                }
            }
            (Step::ListAffinities, Answer::Affinities(affinities)) => self.affinities_read(&affinities),
            (Step::Look(cidr), Answer::Block(block)) => self.looked(cidr, block),
            (Step::Announce(block, of_block, address), Answer::Done(revision)) => {
                let before = self.handle.take().map(|(handle, _)| handle).unwrap_or_default();
                self.handle = Some((self.announced(&before, block.cidr), revision));
                Step::Allocate(block, of_block, address)
            }
            (Step::Allocate(_, _, address), Answer::Done(_)) => Step::Over(Ok(address)),
            // Somebody else wrote into the block; perhaps it is still good.
            (Step::Allocate(block, ..), Answer::Conflict) => Step::Look(block.cidr),
            (Step::Affinity(cidr), Answer::Done(revision)) => Step::Create(cidr, Some(revision)),
            // Left by an earlier claim of this node: nobody else makes affinities of ours.
            (Step::Affinity(cidr), Answer::Exists) => Step::Create(cidr, None),
            (Step::Create(cidr, Some(affinity)), Answer::Done(_)) => Step::Confirm(cidr, affinity),
            (Step::Create(cidr, None), Answer::Done(_)) => Step::Reread(cidr),
            (Step::Create(cidr, affinity), Answer::Exists) => Step::Whose(cidr, affinity),
            (Step::Whose(cidr, affinity), Answer::Block(block)) => {
                let ours = block.is_some_and(|(block, _)| self.is_ours(&block));
                match affinity {
                    Some(affinity) if ours => Step::Confirm(cidr, affinity),
                    Some(affinity) => Step::GiveUp(cidr, affinity),
                    None if ours => Step::Reread(cidr),
                    None => self.next_block(),
                }
            }
            (Step::Confirm(cidr, _), Answer::Done(_)) => Step::Look(cidr),
            (Step::Confirm(cidr, _), Answer::Conflict) => Step::Reread(cidr),
            (Step::GiveUp(..), Answer::Done(_) | Answer::Conflict) => self.next_block(),
            (Step::Reread(cidr), Answer::Affinities(affinities)) => {
                match affinities.into_iter().find(|affinity| affinity.cidr == cidr && !affinity.leaving) {
                    Some(affinity) if affinity.confirmed => Step::Look(cidr),
                    Some(affinity) => Step::Confirm(cidr, affinity.revision),
                    None => self.next_block(),
                }
            }
            (Step::Over(outcome), _) => Step::Over(outcome),
            (_, _) => Step::ReadHandle,
        };
    }

    fn handle_read(&mut self, handle: Option<(Handle, Revision)>) -> Step {
        self.candidates.clear();
        self.tried = 0;
        self.handle = handle;
        let blocks = self.handle.iter().flat_map(|(handle, _)| handle.blocks.keys());
        match blocks.copied().find(|cidr| self.pool.contains(cidr)) {
            Some(cidr) => Step::Find(cidr),
            None => Step::ListAffinities,
        }
    }

    fn affinities_read(&mut self, affinities: &[Affinity]) -> Step {
        let ours =
            affinities.iter().filter(|affinity| self.pool.contains(&affinity.cidr) && !affinity.leaving);
        let (confirmed, pending): (Vec<&Affinity>, Vec<&Affinity>) =
            ours.partition(|affinity| affinity.confirmed);
        self.candidates = confirmed.into_iter().map(|affinity| affinity.cidr).collect();
        // What was begun is finished before another block is taken.
        match (self.candidates.pop_front(), pending.first()) {
            (Some(cidr), _) => Step::Look(cidr),
            (None, Some(affinity)) => Step::Create(affinity.cidr, Some(affinity.revision.clone())),
            (None, None) => self.next_block(),
        }
    }

    fn looked(&mut self, cidr: Ipv6Net, found: Option<(Block, Revision)>) -> Step {
        let Some((mut block, revision)) = found else {
            // An affinity whose block is gone, or was never made.
            return Step::Create(cidr, None);
        };
        if self.is_ours(&block) {
            // The claim of an earlier run, written behind our back.
            if let Some(address) = block.address_of(&self.id) {
                return Step::Over(Ok(address));
            }
            if let Some(address) = block.allocate(&self.id) {
                let said = |(handle, _): &(Handle, Revision)| handle.blocks.get(&cidr) == Some(&1);
                return if self.handle.as_ref().is_some_and(said) {
                    Step::Allocate(block, revision, address)
                } else {
                    Step::Announce(block, revision, address)
                };
            }
        }
        match self.candidates.pop_front() {
            Some(cidr) => Step::Look(cidr),
            None => self.next_block(),
        }
    }

    /// The handle with one address, in this block. What it says of other pools stays.
    fn announced(&self, handle: &Handle, cidr: Ipv6Net) -> Handle {
        let mut handle = handle.clone();
        handle.blocks.retain(|other, _| !self.pool.contains(other));
        handle.blocks.insert(cidr, 1);
        handle
    }

    fn is_ours(&self, block: &Block) -> bool {
        !block.leaving && block.node.as_ref() == Some(&self.node)
    }

    /// The next block of the pool to try: nodes begin at places of their own, so that they seldom meet.
    fn next_block(&mut self) -> Step {
        let bits = u32::from(self.block_len - self.pool.prefix_len());
        let blocks = 1u128.checked_shl(bits).unwrap_or(u128::MAX);
        if u128::from(self.tried) >= blocks.min(u128::from(MOST_BLOCKS)) {
            return Step::Over(Err(ClaimError::Full(self.pool)));
        }
        let at = (u128::from(hash(self.node.as_str())) + u128::from(self.tried)) % blocks;
        self.tried += 1;
        let base = self.pool.network().to_bits() | (at << (128 - u32::from(self.block_len)));
        match Ipv6Net::new(Ipv6Addr::from_bits(base), self.block_len) {
            Ok(cidr) => Step::Affinity(cidr),
            Err(_) => Step::Over(Err(ClaimError::Full(self.pool))),
        }
    }
}

/// FNV-1a: the same on every run and every release.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
