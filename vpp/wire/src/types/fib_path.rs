//! One path of a route.
//!
//! VPP dies of a path type that needs an encapsulation it does not have, and takes unknown types without a word,
//! so a path can only be made in the shapes below, and is read back as one of them.

use std::net::IpAddr;

use zerocopy::big_endian::U32;

use super::address::AddressUnion;
use super::{AddressFamily, SwIfIndex, TableId};
use crate::message::Refused;

/// VPP forwards over no more paths of one route than this, though it accepts 255.
pub const MAX_PATHS: usize = 228;

/// Labels one path can carry.
pub const MAX_LABELS: usize = 16;

wire_int! {
    /// What a path does with a packet.
    pub struct FibPathType: u32 {
        /// Send it on.
        NORMAL = 0,
        /// VPP itself is the destination.
        LOCAL = 1,
        /// Drop it.
        DROP = 2,
        /// Answer with ICMP unreachable.
        ICMP_UNREACH = 5,
        /// Answer with ICMP prohibited.
        ICMP_PROHIBIT = 6,
    }
    /// How a path is resolved.
    pub struct FibPathFlags: u32 {
        /// Nothing special.
        NONE = 0,
        /// Only through an attached route.
        RESOLVE_VIA_ATTACHED = 1,
        /// Only through a host route.
        RESOLVE_VIA_HOST = 2,
    }
    /// The protocol of a path's next hop.
    pub struct FibPathNhProto: u32 {
        /// IPv4.
        IP4 = 0,
        /// IPv6.
        IP6 = 1,
    }
}

impl From<AddressFamily> for FibPathNhProto {
    fn from(family: AddressFamily) -> Self {
        Self::new(u32::from(family.value()))
    }
}

wire_struct! {
    /// One MPLS label.
    pub struct FibMplsLabel {
        /// Uniform (1) or pipe (0) mode.
        pub is_uniform: u8,
        /// The label, 20 bits.
        pub label: U32,
        /// Time to live, for pipe mode.
        pub ttl: u8,
        /// Traffic class, for pipe mode.
        pub exp: u8,
    }
    /// The next hop of a path; which member counts is told by the path's type and protocol.
    pub struct FibPathNh {
        address: AddressUnion,
        via_label: U32,
        obj_id: U32,
        classify_table_index: U32,
    }
    /// One path of a route.
    pub struct FibPath {
        sw_if_index: SwIfIndex,
        table_id: TableId,
        rpf_id: U32,
        weight: u8,
        preference: u8,
        r#type: FibPathType,
        flags: FibPathFlags,
        proto: FibPathNhProto,
        nh: FibPathNh,
        n_labels: u8,
        label_stack: [FibMplsLabel; MAX_LABELS],
    }
}

/// Where a path leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FibTarget {
    /// To a neighbour on an interface.
    Via(SwIfIndex, IpAddr),
    /// Out of an interface: a subnet, or a tunnel with one far end.
    Attached(SwIfIndex),
    /// To wherever the address leads in that table.
    Recursive(TableId, IpAddr),
    /// Looked up again in that table.
    Lookup(TableId),
    /// Nowhere.
    Drop,
    /// Nowhere, with ICMP unreachable.
    Unreachable,
    /// Nowhere, with ICMP prohibited.
    Prohibited,
    /// To VPP itself.
    Local,
}

impl FibPath {
    /// A path to `target`, of weight 1 and preference 0. `family` is that of the route's prefix; the next hop's
    /// own family counts where there is a next hop.
    ///
    /// # Errors
    /// [`Refused::NoInterface`], [`Refused::NextHop`]: with either missing VPP takes the path for another kind.
    pub fn new(target: FibTarget, family: AddressFamily) -> Result<Self, Refused> {
        let none = (SwIfIndex::NONE, TableId::DEFAULT, None);
        let (kind, (sw_if_index, table_id, next_hop)) = match target {
            FibTarget::Via(interface, hop) => {
                (FibPathType::NORMAL, (some(interface)?, TableId::DEFAULT, Some(real(hop)?)))
            }
            FibTarget::Attached(interface) => {
                (FibPathType::NORMAL, (some(interface)?, TableId::DEFAULT, None))
            }
            FibTarget::Recursive(table, hop) => {
                (FibPathType::NORMAL, (SwIfIndex::NONE, table, Some(real(hop)?)))
            }
            FibTarget::Lookup(table) => (FibPathType::NORMAL, (SwIfIndex::NONE, table, None)),
            FibTarget::Drop => (FibPathType::DROP, none),
            FibTarget::Unreachable => (FibPathType::ICMP_UNREACH, none),
            FibTarget::Prohibited => (FibPathType::ICMP_PROHIBIT, none),
            FibTarget::Local => (FibPathType::LOCAL, none),
        };
        Ok(Self {
            sw_if_index,
            table_id,
            rpf_id: U32::ZERO,
            weight: 1,
            preference: 0,
            r#type: kind,
            flags: FibPathFlags::NONE,
            proto: next_hop.map_or(family, AddressFamily::of).into(),
            nh: FibPathNh {
                address: next_hop.map_or(AddressUnion::ZERO, AddressUnion::new),
                via_label: U32::ZERO,
                obj_id: U32::ZERO,
                classify_table_index: U32::ZERO,
            },
            n_labels: 0,
            label_stack: [FibMplsLabel { is_uniform: 0, label: U32::ZERO, ttl: 0, exp: 0 }; MAX_LABELS],
        })
    }

    /// With this share of the traffic; 0 counts as 1.
    #[must_use]
    pub const fn weighted(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// With this preference: only the paths of the lowest one are used.
    #[must_use]
    pub const fn preferred(mut self, preference: u8) -> Self {
        self.preference = preference;
        self
    }

    /// With these labels, outermost first.
    ///
    /// # Errors
    /// [`Refused::Labels`] for more than 16; VPP would read past them.
    pub fn labelled(mut self, labels: &[FibMplsLabel]) -> Result<Self, Refused> {
        self.label_stack
            .get_mut(..labels.len())
            .ok_or(Refused::Labels(labels.len()))?
            .copy_from_slice(labels);
        self.n_labels = u8::try_from(labels.len()).map_err(|_| Refused::Labels(labels.len()))?;
        Ok(self)
    }

    /// Where it leads; `None` for a kind of path this crate never makes.
    #[must_use]
    pub fn target(&self) -> Option<FibTarget> {
        let next_hop = match self.proto {
            FibPathNhProto::IP4 => IpAddr::V4(self.nh.address.v4()),
            FibPathNhProto::IP6 => IpAddr::V6(self.nh.address.v6()),
            _ => return None,
        };
        let attached = next_hop.is_unspecified();
        match self.r#type {
            FibPathType::NORMAL => Some(match (self.sw_if_index, attached) {
                (SwIfIndex::NONE, false) => FibTarget::Recursive(self.table_id, next_hop),
                (SwIfIndex::NONE, true) => FibTarget::Lookup(self.table_id),
                (interface, false) => FibTarget::Via(interface, next_hop),
                (interface, true) => FibTarget::Attached(interface),
            }),
            FibPathType::LOCAL => Some(FibTarget::Local),
            FibPathType::DROP => Some(FibTarget::Drop),
            FibPathType::ICMP_UNREACH => Some(FibTarget::Unreachable),
            FibPathType::ICMP_PROHIBIT => Some(FibTarget::Prohibited),
            _ => None,
        }
    }

    /// The interface field as it is, whatever the type.
    #[must_use]
    pub const fn sw_if_index(&self) -> SwIfIndex {
        self.sw_if_index
    }

    /// The table field as it is, whatever the type.
    #[must_use]
    pub const fn table_id(&self) -> TableId {
        self.table_id
    }

    /// The type field as it is, which may be a number without a name here.
    #[must_use]
    pub const fn kind(&self) -> FibPathType {
        self.r#type
    }

    /// The next hop's protocol.
    #[must_use]
    pub const fn proto(&self) -> FibPathNhProto {
        self.proto
    }

    /// Share of the traffic; 0 counts as 1.
    #[must_use]
    pub const fn weight(&self) -> u8 {
        self.weight
    }

    /// Only the paths of the lowest preference are used.
    #[must_use]
    pub const fn preference(&self) -> u8 {
        self.preference
    }

    /// The labels, outermost first.
    #[must_use]
    pub fn labels(&self) -> &[FibMplsLabel] {
        self.label_stack.get(..usize::from(self.n_labels)).unwrap_or(&self.label_stack)
    }
}

fn some(interface: SwIfIndex) -> Result<SwIfIndex, Refused> {
    if interface == SwIfIndex::NONE { Err(Refused::NoInterface) } else { Ok(interface) }
}

fn real(hop: IpAddr) -> Result<IpAddr, Refused> {
    if hop.is_unspecified() { Err(Refused::NextHop(hop)) } else { Ok(hop) }
}
