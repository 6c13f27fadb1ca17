//! Return values: 0 is success, negative is an error of the table below, the same in all supported releases.
//!
//! A few handlers answer with numbers of their own, negative or positive (SRv6, network policy); what those mean
//! is told by the message, not here.

use thiserror::Error;

use crate::layout::{Described, Shape};

/// The `retval` field of a reply.
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
pub struct Retval(zerocopy::big_endian::I32);

impl Retval {
    /// Success.
    pub const OK: Self = Self::new(0);

    /// From a number in host order.
    #[must_use]
    pub const fn new(value: i32) -> Self {
        Self(zerocopy::big_endian::I32::new(value))
    }

    /// The number in host order.
    #[must_use]
    pub const fn value(self) -> i32 {
        self.0.get()
    }

    /// `Ok` for 0, everything else is an error.
    ///
    /// # Errors
    /// The value, when it is not 0.
    pub const fn ok(self) -> Result<(), VppError> {
        match self.value() {
            0 => Ok(()),
            code => Err(VppError(code)),
        }
    }
}

impl From<zerocopy::big_endian::U32> for Retval {
    /// Two replies declare theirs without a sign.
    fn from(value: zerocopy::big_endian::U32) -> Self {
        Self::new(value.get().cast_signed())
    }
}

impl From<VppError> for Retval {
    fn from(error: VppError) -> Self {
        Self::new(error.0)
    }
}

impl std::fmt::Debug for Retval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.ok() {
            Ok(()) => f.write_str("Retval::OK"),
            Err(error) => write!(f, "Retval({error})"),
        }
    }
}

impl Described for Retval {
    const SHAPE: Shape = Shape::Signed(4);
}

/// What is to be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// May go well later, with nothing changed in the request: something it needs is missing, busy or full.
    Retry,
    /// Will fail until the request has other values.
    Rejected,
    /// Nobody knows whether it was carried out: the answer, or the connection, is gone.
    Lost,
}

/// A return value other than 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub struct VppError(i32);

impl VppError {
    /// From a return value; `None` for 0.
    #[must_use]
    pub const fn new(code: i32) -> Option<Self> {
        match code {
            0 => None,
            code => Some(Self(code)),
        }
    }

    /// The number.
    #[must_use]
    pub const fn code(self) -> i32 {
        self.0
    }

    /// VPP's name of it; `None` for a number that is not in VPP's table.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        // The table runs from -1 downwards.
        NAMES
            .binary_search_by(|(_, code)| self.0.cmp(code))
            .ok()
            .and_then(|at| NAMES.get(at))
            .map(|row| row.0)
    }

    /// What is to be done about it. A number nobody knows is worth another try.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::INVALID_VALUE
            | Self::INVALID_VALUE_2
            | Self::INVALID_VALUE_3
            | Self::INVALID_VALUE_4
            | Self::UNIMPLEMENTED
            | Self::UNSUPPORTED
            | Self::NO_PATHS_IN_ROUTE
            | Self::INVALID_SRC_ADDRESS
            | Self::INVALID_DST_ADDRESS
            | Self::ADDRESS_LENGTH_MISMATCH
            | Self::INVALID_PREFIX_LENGTH
            | Self::IP_PREFIX_INVALID
            | Self::INVALID_ARGUMENT
            | Self::INVALID_DECAP_NEXT
            | Self::SAME_SRC_DST
            | Self::INVALID_ADDRESS_FAMILY
            | Self::INVALID_PROTOCOL
            | Self::INVALID_ALGORITHM
            | Self::KEY_LENGTH
            | Self::ILLEGAL_NAME
            | Self::FIB_PATH_UNSUPPORTED_NH_PROTO => Class::Rejected,
            Self(_) => Class::Retry,
        }
    }
}

impl std::fmt::Debug for VppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for VppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "unknown return value {}", self.0),
        }
    }
}

macro_rules! errors {
    ($( $name:ident = $code:literal, )*) => {
        #[allow(missing_docs, reason = "VPP's names say all that is known")]
        impl VppError {
            $( pub const $name: Self = Self($code); )*
        }
        /// In falling order of the number.
        const NAMES: &[(&str, i32)] = &[ $( (stringify!($name), $code) ),* ];
    };
}

errors! {
    UNSPECIFIED = -1,
    INVALID_SW_IF_INDEX = -2,
    NO_SUCH_FIB = -3,
    NO_SUCH_INNER_FIB = -4,
    NO_SUCH_LABEL = -5,
    NO_SUCH_ENTRY = -6,
    INVALID_VALUE = -7,
    INVALID_VALUE_2 = -8,
    UNIMPLEMENTED = -9,
    INVALID_SW_IF_INDEX_2 = -10,
    SYSCALL_ERROR_1 = -11,
    SYSCALL_ERROR_2 = -12,
    SYSCALL_ERROR_3 = -13,
    SYSCALL_ERROR_4 = -14,
    SYSCALL_ERROR_5 = -15,
    SYSCALL_ERROR_6 = -16,
    SYSCALL_ERROR_7 = -17,
    SYSCALL_ERROR_8 = -18,
    SYSCALL_ERROR_9 = -19,
    SYSCALL_ERROR_10 = -20,
    FEATURE_DISABLED = -30,
    INVALID_REGISTRATION = -31,
    NEXT_HOP_NOT_IN_FIB = -50,
    UNKNOWN_DESTINATION = -51,
    NO_PATHS_IN_ROUTE = -52,
    NEXT_HOP_NOT_FOUND_MP = -53,
    NO_MATCHING_INTERFACE = -54,
    INVALID_VLAN = -55,
    VLAN_ALREADY_EXISTS = -56,
    INVALID_SRC_ADDRESS = -57,
    INVALID_DST_ADDRESS = -58,
    ADDRESS_LENGTH_MISMATCH = -59,
    ADDRESS_NOT_FOUND_FOR_INTERFACE = -60,
    ADDRESS_NOT_DELETABLE = -61,
    IP6_NOT_ENABLED = -62,
    NO_SUCH_NODE = -63,
    NO_SUCH_NODE2 = -64,
    NO_SUCH_TABLE = -65,
    NO_SUCH_TABLE2 = -66,
    NO_SUCH_TABLE3 = -67,
    SUBIF_ALREADY_EXISTS = -68,
    SUBIF_CREATE_FAILED = -69,
    INVALID_MEMORY_SIZE = -70,
    INVALID_INTERFACE = -71,
    INVALID_VLAN_TAG_COUNT = -72,
    INVALID_ARGUMENT = -73,
    UNEXPECTED_INTF_STATE = -74,
    TUNNEL_EXIST = -75,
    INVALID_DECAP_NEXT = -76,
    RESPONSE_NOT_READY = -77,
    NOT_CONNECTED = -78,
    IF_ALREADY_EXISTS = -79,
    BOND_SLAVE_NOT_ALLOWED = -80,
    VALUE_EXIST = -81,
    SAME_SRC_DST = -82,
    IP6_MULTICAST_ADDRESS_NOT_PRESENT = -83,
    SR_POLICY_NAME_NOT_PRESENT = -84,
    NOT_RUNNING_AS_ROOT = -85,
    ALREADY_CONNECTED = -86,
    UNSUPPORTED_JNI_VERSION = -87,
    IP_PREFIX_INVALID = -88,
    INVALID_WORKER = -89,
    LISP_DISABLED = -90,
    CLASSIFY_TABLE_NOT_FOUND = -91,
    INVALID_EID_TYPE = -92,
    CANNOT_CREATE_PCAP_FILE = -93,
    INCORRECT_ADJACENCY_TYPE = -94,
    EXCEEDED_NUMBER_OF_RANGES_CAPACITY = -95,
    EXCEEDED_NUMBER_OF_PORTS_CAPACITY = -96,
    INVALID_ADDRESS_FAMILY = -97,
    INVALID_SUB_SW_IF_INDEX = -98,
    TABLE_TOO_BIG = -99,
    CANNOT_ENABLE_DISABLE_FEATURE = -100,
    BFD_EEXIST = -101,
    BFD_ENOENT = -102,
    BFD_EINUSE = -103,
    BFD_NOTSUPP = -104,
    ADDRESS_IN_USE = -105,
    ADDRESS_NOT_IN_USE = -106,
    QUEUE_FULL = -107,
    APP_UNSUPPORTED_CFG = -108,
    URI_FIFO_CREATE_FAILED = -109,
    LISP_RLOC_LOCAL = -110,
    BFD_EAGAIN = -111,
    INVALID_GPE_MODE = -112,
    LISP_GPE_ENTRIES_PRESENT = -113,
    ADDRESS_FOUND_FOR_INTERFACE = -114,
    SESSION_CONNECT = -115,
    ENTRY_ALREADY_EXISTS = -116,
    SVM_SEGMENT_CREATE_FAIL = -117,
    APPLICATION_NOT_ATTACHED = -118,
    BD_ALREADY_EXISTS = -119,
    BD_IN_USE = -120,
    BD_NOT_MODIFIABLE = -121,
    BD_ID_EXCEED_MAX = -122,
    SUBIF_DOESNT_EXIST = -123,
    L2_MACS_EVENT_CLINET_PRESENT = -124,
    INVALID_QUEUE = -125,
    UNSUPPORTED = -126,
    DUPLICATE_IF_ADDRESS = -127,
    APP_INVALID_NS = -128,
    APP_WRONG_NS_SECRET = -129,
    APP_CONNECT_SCOPE = -130,
    APP_ALREADY_ATTACHED = -131,
    SESSION_REDIRECT = -132,
    ILLEGAL_NAME = -133,
    NO_NAME_SERVERS = -134,
    NAME_SERVER_NOT_FOUND = -135,
    NAME_RESOLUTION_NOT_ENABLED = -136,
    NAME_SERVER_FORMAT_ERROR = -137,
    NAME_SERVER_NO_SUCH_NAME = -138,
    NAME_SERVER_NO_ADDRESSES = -139,
    NAME_SERVER_NEXT_SERVER = -140,
    APP_CONNECT_FILTERED = -141,
    ACL_IN_USE_INBOUND = -142,
    ACL_IN_USE_OUTBOUND = -143,
    INIT_FAILED = -144,
    NETLINK_ERROR = -145,
    BIER_BSL_UNSUP = -146,
    INSTANCE_IN_USE = -147,
    INVALID_SESSION_ID = -148,
    ACL_IN_USE_BY_LOOKUP_CONTEXT = -149,
    INVALID_VALUE_3 = -150,
    NON_ETHERNET = -151,
    BD_ALREADY_HAS_BVI = -152,
    INVALID_PROTOCOL = -153,
    INVALID_ALGORITHM = -154,
    RSRC_IN_USE = -155,
    KEY_LENGTH = -156,
    FIB_PATH_UNSUPPORTED_NH_PROTO = -157,
    API_ENDIAN_FAILED = -159,
    NO_CHANGE = -160,
    MISSING_CERT_KEY = -161,
    LIMIT_EXCEEDED = -162,
    IKE_NO_PORT = -163,
    UDP_PORT_TAKEN = -164,
    EAGAIN = -165,
    INVALID_VALUE_4 = -166,
    BUSY = -167,
    BUG = -168,
    FEATURE_ALREADY_DISABLED = -169,
    FEATURE_ALREADY_ENABLED = -170,
    INVALID_PREFIX_LENGTH = -171,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_unknown_numbers_kept() {
        assert!(NAMES.is_sorted_by(|a, b| a.1 > b.1));
        assert_eq!(VppError::IF_ALREADY_EXISTS.to_string(), "IF_ALREADY_EXISTS (-79)");
        assert_eq!(VppError(-40).to_string(), "unknown return value -40");
        assert_eq!(VppError(1).name(), None);
        assert_eq!(VppError(-40).class(), Class::Retry);
        assert_eq!(Retval::new(-6).ok(), Err(VppError::NO_SUCH_ENTRY));
        assert_eq!(Retval::OK.ok(), Ok(()));
    }
}
