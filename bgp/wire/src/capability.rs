//! Capabilities, and what two OPENs agree on (RFC 5492).
//!
//! A capability that we do not know, or whose content is not what its RFC says, is kept as its bare octets
//! and has no effect: it must never end a session (RFC 5492 section 3).

use bytes::{BufMut, BytesMut};
use std::fmt;

use crate::{
    asn::Asn,
    family::{Family, FamilySet},
    frame::{EXTENDED_MAX_LEN, MAX_LEN},
    open::Open,
    router_id::RouterId,
};

const MULTIPROTOCOL: u8 = 1;
const ROUTE_REFRESH: u8 = 2;
const EXTENDED_MESSAGE: u8 = 6;
const FOUR_OCTET_AS: u8 = 65;
const ADD_PATH: u8 = 69;
const ENHANCED_ROUTE_REFRESH: u8 = 70;

/// One capability of an OPEN.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Capability {
    /// A family, as AFI and SAFI: it may be one that we do not speak (RFC 4760).
    Multiprotocol(u16, u8),
    /// ROUTE-REFRESH (RFC 2918).
    RouteRefresh,
    /// Messages of up to 65535 octets (RFC 8654).
    ExtendedMessage,
    /// 4-octet AS numbers, and the sender's (RFC 6793).
    FourOctetAs(Asn),
    /// Path identifiers, for each family named (RFC 7911).
    AddPath(Vec<AddPath>),
    /// ROUTE-REFRESH with begin and end (RFC 7313).
    EnhancedRouteRefresh,
    /// Any other, or a malformed one.
    Unknown {
        /// Its code.
        code: u8,
        /// Its octets, at most 255.
        value: Box<[u8]>,
    },
}

/// One family of the path-identifier capability (RFC 7911 section 4).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddPath {
    /// Address Family Identifier.
    pub afi: u16,
    /// Subsequent Address Family Identifier.
    pub safi: u8,
    /// The sender can receive several paths for a prefix.
    pub receive: bool,
    /// The sender can send several paths for a prefix.
    pub send: bool,
}

impl Capability {
    /// The capability of a family that we speak.
    #[must_use]
    pub const fn family(family: Family) -> Self {
        Self::Multiprotocol(family.afi(), family.safi())
    }

    /// The capability's code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match self {
            Self::Multiprotocol(..) => MULTIPROTOCOL,
            Self::RouteRefresh => ROUTE_REFRESH,
            Self::ExtendedMessage => EXTENDED_MESSAGE,
            Self::FourOctetAs(_) => FOUR_OCTET_AS,
            Self::AddPath(_) => ADD_PATH,
            Self::EnhancedRouteRefresh => ENHANCED_ROUTE_REFRESH,
            Self::Unknown { code, .. } => *code,
        }
    }

    /// What a code and its octets say. Never fails: what is odd is [`Capability::Unknown`].
    #[must_use]
    pub fn parse(code: u8, value: &[u8]) -> Self {
        match (code, value) {
            (MULTIPROTOCOL, &[high, low, _, safi]) => {
                Self::Multiprotocol(u16::from_be_bytes([high, low]), safi)
            }
            (ROUTE_REFRESH, []) => Self::RouteRefresh,
            (EXTENDED_MESSAGE, []) => Self::ExtendedMessage,
            (FOUR_OCTET_AS, &[a, b, c, d]) => Self::FourOctetAs(Asn(u32::from_be_bytes([a, b, c, d]))),
            (ENHANCED_ROUTE_REFRESH, []) => Self::EnhancedRouteRefresh,
            (ADD_PATH, families) => match AddPath::parse_all(families) {
                Some(families) => Self::AddPath(families),
                None => Self::Unknown { code, value: value.into() },
            },
            _ => Self::Unknown { code, value: value.into() },
        }
    }

    /// Appends code, length and octets.
    pub(crate) fn encode(&self, out: &mut BytesMut) -> Result<(), TooLong> {
        let start = out.len();
        out.put_slice(&[self.code(), 0]);
        match self {
            Self::Multiprotocol(afi, safi) => {
                out.put_u16(*afi);
                out.put_slice(&[0, *safi]);
            }
            Self::RouteRefresh | Self::ExtendedMessage | Self::EnhancedRouteRefresh => {}
            Self::FourOctetAs(asn) => out.put_u32(asn.0),
            Self::AddPath(families) => {
                for family in families {
                    out.put_u16(family.afi);
                    out.put_slice(&[family.safi, u8::from(family.receive) | u8::from(family.send) << 1]);
                }
            }
            Self::Unknown { value, .. } => out.put_slice(value),
        }
        let length = u8::try_from(out.len() - start - 2).map_err(|_| TooLong)?;
        out[start + 1] = length;
        Ok(())
    }
}

/// A capability does not fit its one-octet length.
pub(crate) struct TooLong;

impl AddPath {
    fn parse_all(value: &[u8]) -> Option<Vec<Self>> {
        let (families, []) = value.as_chunks::<4>() else { return None };
        families
            .iter()
            .map(|&[high, low, safi, mode]| {
                (1..=3).contains(&mode).then(|| Self {
                    afi: u16::from_be_bytes([high, low]),
                    safi,
                    receive: mode & 1 != 0,
                    send: mode & 2 != 0,
                })
            })
            .collect()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multiprotocol(afi, safi) => match Family::from_afi_safi(*afi, *safi) {
                Some(family) => write!(f, "multiprotocol {family}"),
                None => write!(f, "multiprotocol {afi}/{safi}"),
            },
            Self::RouteRefresh => f.write_str("route-refresh"),
            Self::ExtendedMessage => f.write_str("extended-message"),
            Self::FourOctetAs(asn) => write!(f, "4-octet-as {asn}"),
            Self::AddPath(families) => {
                f.write_str("add-path")?;
                families.iter().try_for_each(|family| {
                    let mode = match (family.receive, family.send) {
                        (true, true) => "both",
                        (true, false) => "receive",
                        (false, true) => "send",
                        (false, false) => "none",
                    };
                    match Family::from_afi_safi(family.afi, family.safi) {
                        Some(known) => write!(f, " {known}:{mode}"),
                        None => write!(f, " {}/{}:{mode}", family.afi, family.safi),
                    }
                })
            }
            Self::EnhancedRouteRefresh => f.write_str("enhanced-route-refresh"),
            Self::Unknown { code, value } => {
                write!(f, "capability {code}")?;
                if !value.is_empty() {
                    f.write_str(" ")?;
                }
                value.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
        }
    }
}

/// What both ends of a session agreed on: everything that parsing and writing its messages depends on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Families that both ends speak; IPv4 unicast where an end names none (RFC 4760 section 8).
    pub families: FamilySet,
    /// AS numbers have four octets in AS_PATH and AGGREGATOR (RFC 6793).
    pub four_octet: bool,
    /// The peer answers ROUTE-REFRESH, and so do we.
    pub route_refresh: bool,
    /// ROUTE-REFRESH has begin and end (RFC 7313).
    pub enhanced_refresh: bool,
    /// Families in which received prefixes have path identifiers (RFC 7911).
    pub add_path_receive: FamilySet,
    /// Families in which sent prefixes have path identifiers.
    pub add_path_send: FamilySet,
    /// The peer is in another AS.
    pub ebgp: bool,
    /// Hold time in seconds, the smaller of the two; 0 means no hold and no keepalive timer.
    pub hold_time: u16,
    /// Time between KEEPALIVEs in seconds: a third of the hold time, at least 1; 0 where that is 0 (RFC 4271
    /// section 4.4).
    pub keepalive: u16,
    /// Our AS number.
    pub local_asn: Asn,
    /// The peer's AS number.
    pub remote_asn: Asn,
    /// The peer's identifier.
    pub remote_router_id: RouterId,
    /// The longest message either end may send, in octets, header included: 4096, or 65535 (RFC 8654).
    pub max_message: u16,
}

impl Default for Negotiated {
    /// What holds before OPENs are exchanged: nothing optional.
    fn default() -> Self {
        Self {
            families: FamilySet::EMPTY,
            four_octet: false,
            route_refresh: false,
            enhanced_refresh: false,
            add_path_receive: FamilySet::EMPTY,
            add_path_send: FamilySet::EMPTY,
            ebgp: false,
            hold_time: 0,
            keepalive: 0,
            local_asn: Asn::ZERO,
            remote_asn: Asn::ZERO,
            remote_router_id: RouterId(0),
            max_message: MAX_LEN as u16,
        }
    }
}

impl Negotiated {
    /// What follows from the OPEN that we sent and the one that we received.
    #[must_use]
    pub fn agree(ours: &Open, theirs: &Open) -> Self {
        let both = |capability: &Capability| {
            ours.capabilities.contains(capability) && theirs.capabilities.contains(capability)
        };
        let families = families(ours).intersect(families(theirs));
        let (local_asn, remote_asn) = (ours.asn(), theirs.asn());
        let hold_time = ours.hold_time.min(theirs.hold_time);
        Self {
            families,
            four_octet: ours.has_four_octet() && theirs.has_four_octet(),
            route_refresh: both(&Capability::RouteRefresh),
            enhanced_refresh: both(&Capability::EnhancedRouteRefresh),
            add_path_receive: families
                .intersect(add_path(ours, |family| family.receive))
                .intersect(add_path(theirs, |family| family.send)),
            add_path_send: families
                .intersect(add_path(ours, |family| family.send))
                .intersect(add_path(theirs, |family| family.receive)),
            ebgp: local_asn != remote_asn,
            hold_time,
            keepalive: if hold_time == 0 { 0 } else { (hold_time / 3).max(1) },
            local_asn,
            remote_asn,
            remote_router_id: theirs.router_id,
            max_message: if both(&Capability::ExtendedMessage) {
                EXTENDED_MAX_LEN as u16
            } else {
                MAX_LEN as u16
            },
        }
    }
}

fn families(open: &Open) -> FamilySet {
    let mut named = false;
    let mut set = FamilySet::EMPTY;
    for capability in &open.capabilities {
        if let Capability::Multiprotocol(afi, safi) = capability {
            named = true;
            if let Some(family) = Family::from_afi_safi(*afi, *safi) {
                set.insert(family);
            }
        }
    }
    if named { set } else { FamilySet::only(Family::Ipv4Unicast) }
}

fn add_path(open: &Open, wanted: impl Fn(&AddPath) -> bool) -> FamilySet {
    let mut set = FamilySet::EMPTY;
    for capability in &open.capabilities {
        // RFC 7911 section 4: where the capability comes twice, only the last one counts.
        if let Capability::AddPath(families) = capability {
            set = families
                .iter()
                .filter(|family| wanted(family))
                .filter_map(|family| Family::from_afi_safi(family.afi, family.safi))
                .collect();
        }
    }
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(asn: u32, hold_time: u16, capabilities: &[Capability]) -> Open {
        Open::new(Asn(asn), hold_time, RouterId(asn), capabilities.to_vec())
    }

    #[test]
    fn odd_content_is_kept_and_has_no_effect() {
        for (code, value) in [
            (MULTIPROTOCOL, &[0, 1, 0][..]),
            (ROUTE_REFRESH, &[1]),
            (FOUR_OCTET_AS, &[0, 0, 1]),
            (ADD_PATH, &[0, 1, 1]),
            (ADD_PATH, &[0, 1, 1, 4]),
            (75, &[]),
            (75, &[0]),
            (75, &[9, b'x']),
        ] {
            let got = Capability::parse(code, value);
            assert_eq!(got, Capability::Unknown { code, value: value.into() });
            let agreed = Negotiated::agree(&open(1, 90, &[]), &open(2, 90, &[got]));
            assert_eq!(agreed, Negotiated::agree(&open(1, 90, &[]), &open(2, 90, &[])));
        }
    }

    #[test]
    fn families_are_what_both_name() {
        let (v4, v6) = (Capability::family(Family::Ipv4Unicast), Capability::family(Family::Ipv6Unicast));
        let evpn = Capability::Multiprotocol(25, 70);
        let agree =
            |a: &[Capability], b: &[Capability]| Negotiated::agree(&open(1, 90, a), &open(2, 90, b)).families;
        assert_eq!(
            agree(&[v4.clone(), v6.clone()], &[v6.clone(), evpn.clone()]),
            FamilySet::only(Family::Ipv6Unicast)
        );
        assert_eq!(agree(&[v4.clone(), v6.clone()], &[]), FamilySet::only(Family::Ipv4Unicast));
        assert_eq!(agree(std::slice::from_ref(&v6), &[]), FamilySet::EMPTY);
        assert_eq!(agree(&[v4.clone(), v6.clone()], &[evpn]), FamilySet::EMPTY);
        assert_eq!(agree(&[v4.clone(), v6.clone()], &[v4, v6]), FamilySet::ALL);
    }

    #[test]
    fn path_identifiers_need_a_sender_and_a_receiver() {
        let add_path = |receive, send| Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive, send }]);
        let v4 = FamilySet::only(Family::Ipv4Unicast);
        let agreed =
            Negotiated::agree(&open(1, 90, &[add_path(true, false)]), &open(2, 90, &[add_path(true, true)]));
        assert_eq!((agreed.add_path_receive, agreed.add_path_send), (v4, FamilySet::EMPTY));
        let agreed = Negotiated::agree(&open(1, 90, &[]), &open(2, 90, &[add_path(true, true)]));
        assert_eq!((agreed.add_path_receive, agreed.add_path_send), (FamilySet::EMPTY, FamilySet::EMPTY));
    }

    #[test]
    fn times_and_kinds() {
        let four = |asn| Capability::FourOctetAs(Asn(asn));
        let agreed = Negotiated::agree(&open(7, 90, &[four(7)]), &open(7, 30, &[four(7)]));
        assert_eq!(
            (agreed.hold_time, agreed.keepalive, agreed.ebgp, agreed.four_octet),
            (30, 10, false, true)
        );
        let agreed = Negotiated::agree(&open(7, 90, &[four(70_000)]), &open(7, 0, &[]));
        assert_eq!((agreed.hold_time, agreed.keepalive, agreed.ebgp, agreed.four_octet), (0, 0, true, false));
        assert_eq!(
            (agreed.local_asn, agreed.remote_asn, agreed.remote_router_id),
            (Asn(70_000), Asn(7), RouterId(7))
        );
        assert_eq!(agreed.max_message, 4096);
        let long = [Capability::ExtendedMessage];
        assert_eq!(Negotiated::agree(&open(1, 3, &long), &open(2, 3, &long)).max_message, 65535);
        assert_eq!(Negotiated::agree(&open(1, 3, &long), &open(2, 3, &[])).max_message, 4096);
    }
}
