//! The return values that are answered here. `vpp_wire::retval` has the whole table.

/// Success.
pub(crate) const OK: i32 = 0;
/// Anything.
pub(crate) const UNSPECIFIED: i32 = -1;
/// No such interface, or of another kind.
pub(crate) const INVALID_SW_IF_INDEX: i32 = -2;
/// No such table.
pub(crate) const NO_SUCH_FIB: i32 = -3;
/// Absent.
pub(crate) const NO_SUCH_ENTRY: i32 = -6;
/// A field has no acceptable value.
pub(crate) const INVALID_VALUE: i32 = -7;
/// As -7, for another reason.
pub(crate) const INVALID_VALUE_2: i32 = -8;
/// As -2, for a second interface.
pub(crate) const INVALID_SW_IF_INDEX_2: i32 = -10;
/// The plugin was not set up yet.
pub(crate) const FEATURE_DISABLED: i32 = -30;
/// Subscribed twice, or instance in use.
pub(crate) const INVALID_REGISTRATION: i32 = -31;
/// A route without paths.
pub(crate) const NO_PATHS_IN_ROUTE: i32 = -52;
/// The interface of a path does not exist.
pub(crate) const NO_MATCHING_INTERFACE: i32 = -54;
/// Prefix length too large.
pub(crate) const ADDRESS_LENGTH_MISMATCH: i32 = -59;
/// No such address there.
pub(crate) const ADDRESS_NOT_FOUND_FOR_INTERFACE: i32 = -60;
/// The classifier table of a path does not exist.
pub(crate) const NO_SUCH_TABLE: i32 = -65;
/// No such node of the graph.
pub(crate) const NO_SUCH_NODE: i32 = -63;
/// As -63, for the second one named.
pub(crate) const NO_SUCH_NODE2: i32 = -64;
/// The VXLAN tunnel exists.
pub(crate) const TUNNEL_EXIST: i32 = -75;
/// Packets cannot go there.
pub(crate) const INVALID_DECAP_NEXT: i32 = -76;
/// The IPIP tunnel exists.
pub(crate) const IF_ALREADY_EXISTS: i32 = -79;
/// A tunnel with equal ends.
pub(crate) const SAME_SRC_DST: i32 = -82;
/// The address or one that overlaps is there.
pub(crate) const ADDRESS_IN_USE: i32 = -105;
/// The interface has addresses.
pub(crate) const ADDRESS_FOUND_FOR_INTERFACE: i32 = -114;
pub(crate) const UNEXPECTED_INTF_STATE: i32 = -74;
/// The peer is there.
pub(crate) const ENTRY_ALREADY_EXISTS: i32 = -116;
/// The instance number is taken.
pub(crate) const INSTANCE_IN_USE: i32 = -147;
/// Mixed families.
pub(crate) const INVALID_PROTOCOL: i32 = -153;
/// Prefix length of a route.
pub(crate) const INVALID_PREFIX_LENGTH: i32 = -171;
