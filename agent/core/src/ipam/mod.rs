//! One address of a pool, claimed in the way in which Calico hands out addresses: a node has an affinity for blocks of a pool,
//! writes down in a block who has which address of it, and in a handle of its own where to find that again.
//!
//! - `block`: what the three kinds of objects say
//! - `claim`: the steps from nothing, or from whatever an earlier run left, to an address, as a value: it says what is to be
//!   asked, and takes the answer
//!
//! Nodes share nothing but these objects, each of which is written only where it still is what it was when it was read. A
//! claim that is given up at any step, and begun anew, ends with the same address; what it had claimed it finds by its handle.
//!
//! *Absent on purpose:* sockets, waiting, and when to try again after a failure: whoever carries the requests out does that. An
//! address once claimed is never given back, as others may still send to it.

mod block;
mod claim;

pub use block::{Affinity, Block, Handle, HandleId, Revision};
pub use claim::{Answer, Claim, ClaimError, Request};

#[cfg(test)]
mod tests;
