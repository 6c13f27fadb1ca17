//! Everything a handler can cause.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::desired::{BgpKey, BgpObject, ObjectKey, Owner, Path, Spec, Territory, Uplink};
use crate::event::Event;
use crate::model::{Condition, RouteKey};

/// What one event leads to. The engine applies it after the handler returned.
#[derive(Debug, Default)]
pub struct Effects {
    /// Edits of what VPP shall hold.
    pub vpp: Vec<VppEdit>,
    /// Edits of what the speaker shall hold.
    pub bgp: Vec<BgpEdit>,
    /// What is wrong with which object.
    pub status: Vec<StatusPatch>,
    /// Events that follow, in order.
    pub then: VecDeque<Event>,
}

impl Effects {
    /// States everything that one origin finds wrong with one subject, replacing what it said before.
    pub fn conditions(&mut self, origin: Origin, subject: impl AsRef<str>, conditions: Vec<Condition>) {
        self.status.push(StatusPatch { origin, subject: subject.as_ref().into(), conditions });
    }
}

/// An edit of what VPP shall hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VppEdit {
    /// The owner wants the object.
    Want(Owner, ObjectKey),
    /// The object shall have this value, for whoever wants it; comes before the wish.
    Define(ObjectKey, Spec),
    /// The owner wants it no longer; it goes when nobody does.
    Release(Owner, ObjectKey),
    /// The owner wants a route with these paths, in place of the ones it wanted before.
    WantRoute(Owner, RouteKey, Arc<[Path]>),
    /// The owner wants the route no longer.
    ReleaseRoute(Owner, RouteKey),
    /// What belongs to the cluster.
    Territory(Territory),
    /// Where the uplink is to be found.
    Uplink(Option<Uplink>),
}

/// An edit of what the speaker shall hold.
#[derive(Clone, Debug, PartialEq)]
pub enum BgpEdit {
    /// The object shall be so.
    Put(BgpObject),
    /// The object shall not be.
    Delete(BgpKey),
}

/// All problems that one origin sees in one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPatch {
    /// Who says so.
    pub origin: Origin,
    /// What it is about; a name in the origin's own terms.
    pub subject: Arc<str>,
    /// The problems; empty clears them.
    pub conditions: Vec<Condition>,
}

/// Who reports a problem.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// A watcher, about what it read.
    Watcher,
    /// The peer handler.
    Peer,
    /// The routing handler.
    Routing,
    /// The handler of filters, pools and best paths.
    Bgp,
    /// The connectivity handler.
    Connectivity,
    /// The speaker, which refused something.
    Speaker,
    /// The plan for VPP, about others who write into it.
    Vpp,
    /// The embedder, about processes beside this one.
    Host,
}
