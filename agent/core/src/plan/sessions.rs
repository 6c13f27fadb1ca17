//! Sessions with WireGuard peers, as VPP tells of them: nothing here is asked for or repaired, it is only known.

use std::collections::BTreeSet;

use crate::desired::Actual;
use crate::event::Dump;

/// The peers, by VPP's numbers, that there is a session with.
#[derive(Debug, Default)]
pub(super) struct Sessions(BTreeSet<u32>);

impl Sessions {
    /// All of VPP has been read.
    pub(super) fn read(&mut self, dump: &Dump) {
        self.0 = dump.wireguard.iter().filter(|peer| peer.established).map(|peer| peer.index).collect();
    }

    /// VPP says so. What it says of a peer that it is about to give a number may come before the number.
    pub(super) fn heard(&mut self, peer: u32, established: bool) {
        if established {
            self.0.insert(peer);
        } else {
            self.0.remove(&peer);
        }
    }

    /// A peer went, and its number with it; or came, perhaps with a session by now.
    pub(super) fn peer_changed(&mut self, before: Actual, now: Actual) {
        if let Actual::Index(index) = before
            && before != now
        {
            self.0.remove(&index);
        }
    }

    /// There is a session.
    pub(super) fn is_up(&self, peer: u32) -> bool {
        self.0.contains(&peer)
    }
}
