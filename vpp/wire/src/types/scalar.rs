//! Numbers and other small fields.

use super::FixedString;
use crate::layout::{Described, Shape};

/// One byte, 0 or 1. Anything but 0 from VPP counts as true.
#[derive(
    Clone,
    Copy,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// 1.
    pub const TRUE: Self = Self(1);
    /// 0.
    pub const FALSE: Self = Self(0);

    /// The truth of it.
    #[must_use]
    pub const fn is_true(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.is_true()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.is_true() == other.is_true()
    }
}

impl Eq for Bool {}

impl std::fmt::Debug for Bool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.is_true(), f)
    }
}

impl Described for Bool {
    const SHAPE: Shape = Shape::Bool;
}

/// A floating-point number in the byte order of the machine that VPP runs on, which is ours: the socket is local.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Float([u8; 8]);

impl Float {
    /// The number.
    #[must_use]
    pub const fn value(self) -> f64 {
        f64::from_ne_bytes(self.0)
    }
}

impl From<f64> for Float {
    fn from(value: f64) -> Self {
        Self(value.to_ne_bytes())
    }
}

impl std::fmt::Debug for Float {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.value(), f)
    }
}

impl Described for Float {
    const SHAPE: Shape = Shape::Float;
}

wire_int! {
    /// An interface, in VPP's numbering. Reused at once after deletion: held too long it names another one.
    pub struct SwIfIndex: u32 { }
    /// A routing table's number, chosen by who creates it; 0 is the default table and always there.
    pub struct TableId: u32 { }
    /// A route source as VPP numbers it: 0 stands for the API's, own ones come from `fib_source_add`.
    pub struct FibSourceId: u8 { }
}

impl SwIfIndex {
    /// No interface, or all of them.
    pub const NONE: Self = Self::new(u32::MAX);
}

impl TableId {
    /// The default table.
    pub const DEFAULT: Self = Self::new(0);
}

impl FibSourceId {
    /// What v2 route messages take for VPP's own source `API`, that of the v1 messages.
    pub const API: Self = Self::new(0);
}

/// An Ethernet address.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    zerocopy::FromBytes,
    zerocopy::IntoBytes,
    zerocopy::KnownLayout,
    zerocopy::Immutable,
    zerocopy::Unaligned,
)]
#[repr(transparent)]
pub struct Mac(pub [u8; 6]);

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl std::fmt::Debug for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Described for Mac {
    const SHAPE: Shape = Shape::Octets(6);
}

wire_struct! {
    /// A routing table of one family.
    pub struct IpTable {
        /// Its number.
        pub table_id: TableId,
        /// Whether it is the IPv6 one of that number.
        pub is_ip6: Bool,
        /// A name for people; VPP makes one up when it is empty. Ignored where a table is only referred to.
        pub name: FixedString<64>,
    }
}

impl IpTable {
    /// A reference to a table.
    #[must_use]
    pub fn of(table_id: TableId, is_ip6: bool) -> Self {
        Self { table_id, is_ip6: is_ip6.into(), name: FixedString::EMPTY }
    }
}
