//! What IPAMBlock, BlockAffinity and IPAMHandle say, as far as a claim of one address needs it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use ipnet::Ipv6Net;

use crate::model::NodeName;

/// The version of an object as it was read (its `resourceVersion`): it is written only where it still has this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub Arc<str>);

/// By what an address is found again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(pub Arc<str>);

impl fmt::Display for HandleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An IPAMHandle: in which blocks its addresses are, and how many in each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handle {
    /// `spec.block`.
    pub blocks: BTreeMap<Ipv6Net, u32>,
}

/// A BlockAffinity of our own node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affinity {
    /// `spec.cidr`.
    pub cidr: Ipv6Net,
    /// `spec.state` is `confirmed`; otherwise an earlier claim of the block was not finished.
    pub confirmed: bool,
    /// `spec.deleted`, or another state: it is on its way out.
    pub leaving: bool,
    /// Its version.
    pub revision: Revision,
}

/// An IPAMBlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// `spec.cidr`.
    pub cidr: Ipv6Net,
    /// The node of `spec.affinity`; `None` for a block that belongs to nobody.
    pub node: Option<NodeName>,
    /// `spec.deleted`: it is on its way out.
    pub leaving: bool,
    /// For each address of the block who has it: `spec.allocations` looked up in `spec.attributes`. An address that somebody
    /// has without a handle has an empty one.
    pub allocations: Vec<Option<HandleId>>,
    /// `spec.unallocated`: addresses that are free, in the order in which they are given out, so that one that was given
    /// back is used again as late as possible.
    pub unallocated: Vec<u32>,
}

impl Block {
    /// Most addresses that a block may have.
    pub const MOST_ADDRESSES: u32 = 1 << 16;

    /// A block of a node in which every address is free.
    #[must_use]
    pub fn empty(cidr: Ipv6Net, node: &NodeName) -> Self {
        let size = 1u32.checked_shl(u32::from(128 - cidr.prefix_len())).unwrap_or(Self::MOST_ADDRESSES);
        let size = size.min(Self::MOST_ADDRESSES);
        Self {
            cidr,
            node: Some(node.clone()),
            leaving: false,
            allocations: vec![None; size as usize],
            unallocated: (0..size).collect(),
        }
    }

    /// The address that a handle has.
    #[must_use]
    pub fn address_of(&self, handle: &HandleId) -> Option<Ipv6Addr> {
        let at = self.allocations.iter().position(|has| has.as_ref() == Some(handle))?;
        Some(self.address(u32::try_from(at).ok()?))
    }

    /// Gives the next free address to a handle.
    pub fn allocate(&mut self, handle: &HandleId) -> Option<Ipv6Addr> {
        // What is no address of the block, or is taken after all, is nobody's to give.
        let free = |at: &u32| self.allocations.get(*at as usize).is_some_and(Option::is_none);
        let place = self.unallocated.iter().position(free)?;
        let at = self.unallocated.remove(place);
        *self.allocations.get_mut(at as usize)? = Some(handle.clone());
        Some(self.address(at))
    }

    fn address(&self, at: u32) -> Ipv6Addr {
        Ipv6Addr::from_bits(self.cidr.network().to_bits() | u128::from(at))
    }
}
