//! What route selection and export want to know of an attribute set, read once.

use super::{Canonical, Community, Origin, code};
use crate::{asn::Asn, router_id::RouterId};

/// Facts that are there or not.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct FactFlags(pub u16);

impl FactFlags {
    /// Community NO_EXPORT.
    pub const NO_EXPORT: Self = Self(1);
    /// Community NO_ADVERTISE.
    pub const NO_ADVERTISE: Self = Self(2);
    /// Community NO_EXPORT_SUBCONFED.
    pub const NO_EXPORT_SUBCONFED: Self = Self(4);
    /// ATOMIC_AGGREGATE.
    pub const ATOMIC_AGGREGATE: Self = Self(8);
    /// Community GRACEFUL_SHUTDOWN.
    pub const GRACEFUL_SHUTDOWN: Self = Self(16);
    /// Community LLGR_STALE.
    pub const LLGR_STALE: Self = Self(32);
    /// Community NO_LLGR.
    pub const NO_LLGR: Self = Self(64);
    /// ONLY_TO_CUSTOMER.
    pub const ONLY_TO_CUSTOMER: Self = Self(128);
    /// Community NO_PEER.
    pub const NO_PEER: Self = Self(256);

    /// Whether every fact of `other` is there.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOrAssign for FactFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// What the ladder of route selection compares, so that it need not read octets again.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct AttrFacts {
    /// ORIGIN; a set without one counts as IGP.
    pub origin: Origin,
    /// What is there or not.
    pub flags: FactFlags,
    /// How many clusters the route passed.
    pub cluster_len: u16,
    /// Length of AS_PATH: a set counts as one, confederation segments not at all. An attribute holds less than 65536.
    pub as_path_len: u16,
    /// The neighbouring AS: the first one of a leading sequence.
    pub neighbor_as: Option<Asn>,
    /// LOCAL_PREF.
    pub local_pref: Option<u32>,
    /// MULTI_EXIT_DISC.
    pub med: Option<u32>,
    /// ORIGINATOR_ID.
    pub originator: Option<RouterId>,
}

impl AttrFacts {
    /// Reads a set.
    #[must_use]
    pub fn of(set: Canonical<'_>) -> Self {
        let mut facts = Self::default();
        for attr in set.attrs() {
            let number = || attr.value.try_into().ok().map(u32::from_be_bytes);
            match attr.code {
                code::ORIGIN => facts.origin = set.origin(),
                code::AS_PATH => {
                    let path = super::AsPath::new(attr.value);
                    facts.as_path_len = u16::try_from(path.length()).unwrap_or(u16::MAX);
                    facts.neighbor_as = path.neighbor();
                }
                code::MED => facts.med = number(),
                code::LOCAL_PREF => facts.local_pref = number(),
                code::ATOMIC_AGGREGATE => facts.flags |= FactFlags::ATOMIC_AGGREGATE,
                code::COMMUNITIES => {
                    for octets in attr.value.as_chunks::<4>().0 {
                        match Community(u32::from_be_bytes(*octets)) {
                            Community::NO_EXPORT => facts.flags |= FactFlags::NO_EXPORT,
                            Community::NO_ADVERTISE => facts.flags |= FactFlags::NO_ADVERTISE,
                            Community::NO_EXPORT_SUBCONFED => facts.flags |= FactFlags::NO_EXPORT_SUBCONFED,
                            Community::GRACEFUL_SHUTDOWN => facts.flags |= FactFlags::GRACEFUL_SHUTDOWN,
                            Community::LLGR_STALE => facts.flags |= FactFlags::LLGR_STALE,
                            Community::NO_PEER => facts.flags |= FactFlags::NO_PEER,
                            Community::NO_LLGR => facts.flags |= FactFlags::NO_LLGR,
                            _ => {}
                        }
                    }
                }
                code::ONLY_TO_CUSTOMER => facts.flags |= FactFlags::ONLY_TO_CUSTOMER,
                code::ORIGINATOR_ID => facts.originator = number().map(RouterId),
                // At most 16383 clusters: the attribute has a 16-bit length.
                code::CLUSTER_LIST => facts.cluster_len = (attr.value.len() / 4) as u16,
                _ => {}
            }
        }
        facts
    }
}
