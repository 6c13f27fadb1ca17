//! The BGP Role capability (RFC 9234 section 4): what the sender is to the receiver.

use std::{fmt, str::FromStr};

use crate::{
    capability::{Capability, ROLE},
    notification::{Notification, Reason},
    open::Open,
};

/// What an AS is to its neighbour.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Role {
    /// A transit provider of the other AS.
    Provider = 0,
    /// The route server that the other AS is a client of.
    RouteServer = 1,
    /// A client of the other AS, which is a route server.
    RouteServerClient = 2,
    /// A transit customer of the other AS.
    Customer = 3,
    /// A lateral peer.
    Peer = 4,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 5] =
        [Self::Provider, Self::RouteServer, Self::RouteServerClient, Self::Customer, Self::Peer];

    /// The role that a value stands for, where it is assigned.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.code() == code)
    }

    /// The role's value.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The only role that the neighbour may have (RFC 9234 table 2).
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Provider => Self::Customer,
            Self::RouteServer => Self::RouteServerClient,
            Self::RouteServerClient => Self::RouteServer,
            Self::Customer => Self::Provider,
            Self::Peer => Self::Peer,
        }
    }

    /// The name in texts and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Provider => "provider",
            Self::RouteServer => "rs",
            Self::RouteServerClient => "rs-client",
            Self::Customer => "customer",
            Self::Peer => "peer",
        }
    }

    /// Holds the roles of two OPENs against one another (RFC 9234 section 4.2). Nothing is asked of the peer
    /// where we name no role. With `strict` it must name one. A role that nobody has assigned fits none.
    ///
    /// # Errors
    /// They do not fit, or the peer names several that differ: 2/11.
    pub fn agree(ours: &Open, theirs: &Open, strict: bool) -> Result<(), Notification> {
        let Some(wanted) = ours.role().map(Self::opposite) else { return Ok(()) };
        let mut named = theirs.capabilities.iter().filter_map(|capability| {
            if let Capability::Role(role) = capability {
                Some(role.code())
            } else if let Capability::Unknown { code: ROLE, value } = capability {
                <[u8; 1]>::try_from(&**value).ok().map(|[code]| code)
            } else {
                None
            }
        });
        let fits = match named.next() {
            Some(first) => first == wanted.code() && named.all(|code| code == first),
            None => !strict,
        };
        if fits { Ok(()) } else { Err(Notification::new(Reason::RoleMismatch)) }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown role \"{0}\" (known: provider, rs, rs-client, customer, peer)")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{asn::Asn, router_id::RouterId};

    fn open(capabilities: Vec<Capability>) -> Open {
        Open::new(Asn(1), 90, RouterId(1), capabilities)
    }

    fn of(role: Role) -> Open {
        open(vec![Capability::Role(role)])
    }

    #[test]
    fn each_role_has_a_name_and_one_that_it_fits() {
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(Role::from_code(role.code()), Some(role));
            assert_eq!(role.opposite().opposite(), role);
            for other in Role::ALL {
                assert_eq!(Role::agree(&of(role), &of(other), false).is_ok(), other == role.opposite());
            }
        }
        assert_eq!(Role::from_code(5), None);
        assert!("transit".parse::<Role>().is_err());
    }

    #[test]
    fn silence_is_allowed_unless_strict() {
        assert_eq!(Role::agree(&of(Role::Customer), &open(vec![]), false), Ok(()));
        let refused = Err(Notification::new(Reason::RoleMismatch));
        assert_eq!(Role::agree(&of(Role::Customer), &open(vec![]), true), refused);
        assert_eq!(Role::agree(&open(vec![]), &of(Role::Customer), true), Ok(()));
    }

    #[test]
    fn several_must_be_the_same() {
        let (provider, peer) = (Capability::Role(Role::Provider), Capability::Role(Role::Peer));
        let twice = open(vec![provider.clone(), provider.clone()]);
        assert_eq!(Role::agree(&of(Role::Customer), &twice, true), Ok(()));
        assert!(Role::agree(&of(Role::Customer), &open(vec![provider, peer]), false).is_err());
    }

    #[test]
    fn an_unassigned_role_fits_none_and_a_malformed_one_is_ignored() {
        let with = |value: &[u8]| open(vec![Capability::parse(ROLE, value)]);
        assert!(Role::agree(&of(Role::Customer), &with(&[5]), false).is_err());
        assert_eq!(Role::agree(&of(Role::Customer), &with(&[]), false), Ok(()));
        assert_eq!(Role::agree(&of(Role::Customer), &with(&[0, 0]), false), Ok(()));
    }
}
