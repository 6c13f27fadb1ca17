//! Fields that many messages share.
//!
//! What VPP would take and misunderstand (an address family it does not know, a text without its NUL, a path
//! type without its encapsulation) has no constructor; what comes from VPP is kept as it is and converted on
//! demand, with `None` for what cannot be understood.

mod address;
mod fib_path;
mod scalar;
mod secret;
mod shared;
mod text;

pub use address::{Address, AddressFamily, AddressUnion, Ip4Address, Ip6Address, Prefix};
pub use fib_path::{
    FibMplsLabel, FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType, FibTarget, MAX_LABELS,
    MAX_PATHS,
};
pub use scalar::{Bool, FibSourceId, Float, IpTable, Mac, SwIfIndex, TableId};
pub use secret::{SecretOctet, SecretOctets};
pub use shared::*;
pub use text::{FixedString, VarText};
