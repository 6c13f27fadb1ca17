//! How a destination is reached once its next hop and its kind of encapsulation are known: pure functions from facts
//! to objects.
//!
//! - `flat`: no encapsulation, a recursive route
//! - `ipip`: an IP-in-IP tunnel to the next hop's node
//!
//! *Absent on purpose:* memory, order, deletion, repair. What a provider no longer lists goes by itself.

mod flat;
mod ipip;

use std::net::IpAddr;

use crate::desired::{ObjectKey, Path};
use crate::model::{Hop, Node, RouteKey};

pub(crate) use flat::Flat;
pub(crate) use ipip::Ipip;

/// What providers may know.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Facts<'a> {
    /// Our own node.
    pub(crate) node: &'a Node,
}

/// What must exist so that a next hop can be used, and the path that uses it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DesiredSet {
    /// Objects.
    pub(crate) objects: Vec<ObjectKey>,
    /// Routes that go with them.
    pub(crate) routes: Vec<(RouteKey, Path)>,
    /// The paths of the destination itself.
    pub(crate) paths: Vec<Path>,
}

/// Why a provider cannot serve a next hop.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// Our node has no address of the next hop's IP version.
    NoLocalAddress(IpAddr),
}

/// A way of carrying traffic to a next hop.
pub(crate) trait Provider {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Lists everything that must exist for `hop`, and the destination's path through it.
    fn desired(&self, hop: Hop, facts: Facts<'_>, out: &mut DesiredSet) -> Result<(), Unserved>;
}
