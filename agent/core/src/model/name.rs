//! Names of objects. Each kind has its own type, so that one cannot be passed for another.

use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )+};
}

name! {
    /// Name of a node.
    NodeName,
    /// Name of a BGPFilter.
    FilterName,
    /// Name of a BGPPeer.
    PeerName,
    /// Name of an IPPool.
    PoolName,
    /// Name of a Network.
    NetworkName,
    /// Name of a BlockAffinity. The same block may stand in two objects, so the CIDR is no key.
    AffinityName,
}
