//! What VPP may hold and does not show: noted before it is asked for, so that whoever comes later can take it away.

use std::collections::BTreeSet;

use ipnet::IpNet;

/// Destinations that source NAT may have been told to leave alone.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    prefixes: BTreeSet<IpNet>,
    /// Counts changes.
    version: u64,
}

impl Noted {
    /// What an earlier run noted.
    pub(crate) fn recall(&mut self, prefixes: impl IntoIterator<Item = IpNet>) {
        self.prefixes.extend(prefixes);
    }

    /// VPP is about to be told.
    pub(crate) fn note(&mut self, prefix: IpNet) {
        self.version += u64::from(self.prefixes.insert(prefix));
    }

    /// VPP has it no more.
    pub(crate) fn strike(&mut self, prefix: &IpNet) {
        self.version += u64::from(self.prefixes.remove(prefix));
    }

    /// VPP has nothing.
    pub(crate) fn clear(&mut self) {
        self.version += u64::from(!self.prefixes.is_empty());
        self.prefixes.clear();
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<IpNet> {
        self.prefixes.iter().copied().collect()
    }

    /// Another number than before where something changed.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }
}
