//! Plain counters. Whoever owns the thing counted increments them; the embedder reads copies.
//!
//! *Absent on purpose:* atomics, registries, labels: publishing them is the embedder's affair.

use bgp_wire::MessageType;

/// Messages of one direction, by kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// OPEN messages.
    pub open: u64,
    /// UPDATE messages.
    pub update: u64,
    /// NOTIFICATION messages.
    pub notification: u64,
    /// KEEPALIVE messages.
    pub keepalive: u64,
    /// ROUTE-REFRESH messages.
    pub route_refresh: u64,
}

impl MessageCounts {
    /// Counts messages of one kind.
    pub(crate) fn count(&mut self, kind: MessageType, messages: u64) {
        *match kind {
            MessageType::Open => &mut self.open,
            MessageType::Update => &mut self.update,
            MessageType::Notification => &mut self.notification,
            MessageType::Keepalive => &mut self.keepalive,
            MessageType::RouteRefresh => &mut self.route_refresh,
        } += messages;
    }

    /// Messages of every kind.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.open + self.update + self.notification + self.keepalive + self.route_refresh
    }
}

/// What a speaker has done since it was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SpeakerStats {
    /// UPDATE messages that entered the RIB.
    pub updates_in: u64,
    /// Prefixes announced to us, counted as often as they were announced.
    pub prefixes_announced: u64,
    /// Prefixes withdrawn from us.
    pub prefixes_withdrawn: u64,
    /// UPDATE messages treated as withdrawals (RFC 7606 section 2).
    pub treated_as_withdraw: u64,
    /// Paths ignored since their neighbour had too many to one destination already (RFC 7911).
    pub paths_refused: u64,
    /// Attributes dropped from otherwise good messages (RFC 7606 section 2).
    pub attributes_discarded: u64,
    /// Destinations looked at, by walks, changes on their way out, subscribers and queries: the measure of how long a call
    /// takes. No call looks at more than some tens of thousands.
    pub looked_at: u64,
    /// Export runs: how often an attribute set was rewritten for an update group.
    pub exports: u64,
    /// Octets of UPDATE messages encoded, once per group however many members it has.
    pub encoded_octets: u64,
    /// Members that fell off the ring of their update group and had to walk.
    pub fell_behind: u64,
    /// Routes that could not be announced because their attributes do not fit into one message.
    pub too_large: u64,
}

/// How large the speaker's tables are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Destinations with at least one path, by family index.
    pub destinations: [u64; bgp_wire::Family::COUNT],
    /// Distinct attribute sets.
    pub attribute_sets: u64,
    /// Update groups.
    pub update_groups: u64,
    /// Octets of UPDATEs that are encoded and wait for neighbours to read them.
    pub waiting_octets: u64,
    /// Heap octets of destinations, paths, their index and the log of changes.
    pub table_octets: u64,
}
