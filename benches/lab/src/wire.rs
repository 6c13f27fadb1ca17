//! The little BGP that senders and receivers need: OPEN, KEEPALIVE, UPDATEs of one unicast family with 4-octet AS
//! numbers.
//!
//! Written apart from our own codec, so that a fault there cannot hide here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::table::{Family, Prefix, Route};

/// The message type of OPEN.
pub(crate) const OPEN: u8 = 1;
/// The message type of UPDATE.
pub(crate) const UPDATE: u8 = 2;
/// The message type of KEEPALIVE.
pub(crate) const KEEPALIVE: u8 = 4;

/// Length of a message's header.
pub(crate) const HEADER: usize = 19;
/// The longest message.
const LONGEST: usize = 4096;

/// What a path's attributes say, whatever order they came in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Attributes {
    /// ORIGIN.
    pub(crate) origin: u8,
    /// AS path, all segments in a row.
    pub(crate) as_path: Vec<u32>,
    /// Next hop; of an IPv6 next hop the global one. `None` where there was none.
    pub(crate) next_hop: Option<IpAddr>,
    /// MULTI_EXIT_DISC.
    pub(crate) med: Option<u32>,
    /// LOCAL_PREF.
    pub(crate) local_pref: Option<u32>,
    /// Standard communities, ascending.
    pub(crate) communities: Vec<u32>,
    /// ORIGINATOR_ID.
    pub(crate) originator: Option<u32>,
    /// CLUSTER_LIST.
    pub(crate) cluster_list: Vec<u32>,
    /// Codes of other attributes.
    pub(crate) others: Vec<u8>,
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + HEADER).expect("at most 4096 octets");
    let mut bytes = vec![0xff; 16];
    bytes.extend(length.to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

/// A KEEPALIVE.
#[must_use]
pub(crate) fn keepalive() -> Vec<u8> {
    message(KEEPALIVE, &[])
}

/// An OPEN that offers one unicast family, 4-octet AS numbers and a hold time in seconds.
#[must_use]
pub(crate) fn open(asn: u32, router_id: u32, hold_time: u16, family: Family) -> Vec<u8> {
    let mut body = vec![4];
    body.extend(u16::try_from(asn).unwrap_or(23_456).to_be_bytes());
    body.extend(hold_time.to_be_bytes());
    body.extend(router_id.to_be_bytes());
    // The family, and 4-octet AS numbers.
    let mut capabilities = vec![1, 4, 0, afi(family), 0, 1, 65, 4];
    capabilities.extend(asn.to_be_bytes());
    let length = u8::try_from(capabilities.len()).expect("a dozen octets");
    body.extend([length + 2, 2, length]);
    body.extend(capabilities);
    message(OPEN, &body)
}

fn afi(family: Family) -> u8 {
    match family {
        Family::V4 => 1,
        Family::V6 => 2,
    }
}

/// Appends UPDATEs that announce `route`, packed as a daemon would pack them. LOCAL_PREF comes with a MED of 0.
pub(crate) fn announce(bytes: &mut Vec<u8>, route: &Route, next_hop: IpAddr, local_pref: Option<u32>) {
    let attributes = attributes(route, next_hop, local_pref);
    // MP_REACH_NLRI with its header: AFI, SAFI, next hop, reserved octet.
    let around = if next_hop.is_ipv6() { 4 + 3 + 17 + 1 } else { 0 };
    let room = LONGEST - HEADER - 4 - attributes.len() - around;
    packed(&route.prefixes, room, |nlri| {
        let mut body = vec![0, 0];
        match next_hop {
            IpAddr::V4(_) => {
                body.extend(length(attributes.len()));
                body.extend(&attributes);
                body.extend(nlri);
            }
            IpAddr::V6(next_hop) => {
                let reach = 3 + 17 + 1 + nlri.len();
                body.extend(length(attributes.len() + 4 + reach));
                body.extend(&attributes);
                body.extend([0x90, 14]);
                body.extend(length(reach));
                body.extend([0, 2, 1, 16]);
                body.extend(next_hop.octets());
                body.push(0);
                body.extend(nlri);
            }
        }
        bytes.extend(message(UPDATE, &body));
    });
}

/// All UPDATEs for `routes`.
#[must_use]
pub(crate) fn updates(routes: &[Route], next_hop: IpAddr, local_pref: Option<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for route in routes {
        announce(&mut bytes, route, next_hop, local_pref);
    }
    bytes
}

/// UPDATEs that withdraw every prefix of `routes`.
#[must_use]
pub(crate) fn withdrawals(family: Family, routes: &[Route]) -> Vec<u8> {
    let prefixes: Vec<Prefix> = routes.iter().flat_map(|route| &route.prefixes).copied().collect();
    let mut bytes = Vec::new();
    packed(&prefixes, LONGEST - HEADER - 4 - 7, |nlri| {
        let mut body = Vec::new();
        match family {
            Family::V4 => {
                body.extend(length(nlri.len()));
                body.extend(nlri);
                body.extend([0, 0]);
            }
            Family::V6 => {
                body.extend([0, 0]);
                body.extend(length(4 + 3 + nlri.len()));
                body.extend([0x90, 15]);
                body.extend(length(3 + nlri.len()));
                body.extend([0, 2, 1]);
                body.extend(nlri);
            }
        }
        bytes.extend(message(UPDATE, &body));
    });
    bytes
}

/// The End-of-RIB marker (RFC 4724 section 2).
#[must_use]
pub(crate) fn end_of_rib(family: Family) -> Vec<u8> {
    match family {
        Family::V4 => message(UPDATE, &[0, 0, 0, 0]),
        Family::V6 => message(UPDATE, &[0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1]),
    }
}

fn packed(prefixes: &[Prefix], room: usize, mut full: impl FnMut(&[u8])) {
    let mut nlri = Vec::new();
    for prefix in prefixes {
        if nlri.len() + 17 > room {
            full(&nlri);
            nlri.clear();
        }
        nlri.push(prefix.length);
        nlri.extend(&prefix.bits.to_be_bytes()[..usize::from(prefix.length.div_ceil(8))]);
    }
    if !nlri.is_empty() {
        full(&nlri);
    }
}

fn length(octets: usize) -> [u8; 2] {
    u16::try_from(octets).expect("less than a message").to_be_bytes()
}

fn attributes(route: &Route, next_hop: IpAddr, local_pref: Option<u32>) -> Vec<u8> {
    let mut bytes = vec![0x40, 1, 1, 0];
    let hops = u8::try_from(route.as_path.len()).expect("short");
    if hops == 0 {
        bytes.extend([0x40, 2, 0]);
    } else {
        bytes.extend([0x40, 2, 2 + 4 * hops, 2, hops]);
    }
    bytes.extend(route.as_path.iter().flat_map(|asn| asn.to_be_bytes()));
    if let IpAddr::V4(next_hop) = next_hop {
        bytes.extend([0x40, 3, 4]);
        bytes.extend(next_hop.octets());
    }
    if let Some(local_pref) = local_pref {
        // With the MED that some daemons add to a route within an AS that has none.
        bytes.extend([0x80, 4, 4, 0, 0, 0, 0]);
        bytes.extend([0x40, 5, 4]);
        bytes.extend(local_pref.to_be_bytes());
    }
    if !route.communities.is_empty() {
        bytes.extend([0xc0, 8, u8::try_from(4 * route.communities.len()).expect("short")]);
        bytes.extend(route.communities.iter().flat_map(|community| community.to_be_bytes()));
    }
    bytes
}

/// What stands in an UPDATE beside its attributes: the fields of withdrawn and of announced prefixes.
pub(crate) struct Fields<'a> {
    /// Withdrawn prefixes, in one field or the other.
    pub(crate) withdrawn: [&'a [u8]; 2],
    /// Announced prefixes, in one field or the other.
    pub(crate) announced: [&'a [u8]; 2],
}

/// Reads an UPDATE's body; what its attributes say goes to `seen`, whose room is used again. `None` when malformed.
#[must_use]
pub(crate) fn read_update<'a>(body: &'a [u8], seen: &mut Attributes) -> Option<Fields<'a>> {
    seen.as_path.clear();
    seen.communities.clear();
    seen.cluster_list.clear();
    seen.others.clear();
    (seen.next_hop, seen.med, seen.local_pref, seen.originator) = (None, None, None, None);
    let (withdrawn, rest) = counted(body)?;
    let (mut attributes, nlri) = counted(rest)?;
    let mut fields = Fields { withdrawn: [withdrawn, &[]], announced: [nlri, &[]] };
    while let [flags, code, rest @ ..] = attributes {
        let (length, rest) = if flags & 0x10 == 0 {
            rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?
        } else {
            (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().ok()?)), &rest[2..])
        };
        let (value, rest) = rest.split_at_checked(length)?;
        attributes = rest;
        match code {
            1 => seen.origin = *value.first()?,
            2 => read_as_path(value, &mut seen.as_path)?,
            3 => seen.next_hop = Some(IpAddr::V4(Ipv4Addr::from(word(value)?))),
            4 => seen.med = Some(word(value)?),
            5 => seen.local_pref = Some(word(value)?),
            8 => {
                read_words(value, &mut seen.communities);
                seen.communities.sort_unstable();
            }
            9 => seen.originator = Some(word(value)?),
            10 => read_words(value, &mut seen.cluster_list),
            14 => {
                let next_hop = value.get(4..4 + usize::from(*value.get(3)?))?;
                // A second, link-local address may follow.
                let global: [u8; 16] = next_hop.get(..16)?.try_into().ok()?;
                seen.next_hop = Some(IpAddr::V6(Ipv6Addr::from(global)));
                fields.announced[1] = value.get(4 + next_hop.len() + 1..)?;
            }
            15 => fields.withdrawn[1] = value.get(3..)?,
            other => seen.others.push(*other),
        }
    }
    Some(fields)
}

/// Takes the first prefix off `field`. `None` at its end, and where it is malformed.
#[must_use]
pub(crate) fn next_prefix(field: &mut &[u8]) -> Option<Prefix> {
    let (&length, rest) = field.split_first()?;
    let (address, rest) = rest.split_at_checked(usize::from(length.div_ceil(8)))?;
    let mut whole = [0; 16];
    whole.get_mut(..address.len())?.copy_from_slice(address);
    *field = rest;
    Some(Prefix { bits: u128::from_be_bytes(whole), length })
}

fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(usize::from(u16::from_be_bytes(length.try_into().ok()?)))
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

fn read_words(bytes: &[u8], words: &mut Vec<u32>) {
    words.extend(bytes.chunks_exact(4).filter_map(word));
}

fn read_as_path(mut bytes: &[u8], path: &mut Vec<u32>) -> Option<()> {
    while let [_, count, rest @ ..] = bytes {
        let (segment, rest) = rest.split_at_checked(4 * usize::from(*count))?;
        read_words(segment, path);
        bytes = rest;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let cases = [(Family::V4, "192.0.2.1"), (Family::V6, "2001:db8::1")];
        for (family, next_hop) in cases.map(|(family, hop)| (family, hop.parse().expect("an address"))) {
            let routes = crate::table::build(family, 3_000, 65_001, 0);
            let mut bytes = &updates(&routes, next_hop, Some(100))[..];
            let mut expected =
                routes.iter().flat_map(|route| route.prefixes.iter().map(move |p| (route, *p)));
            let mut seen = Attributes::default();
            while let [_, ..] = bytes {
                let (one, rest) = bytes.split_at(usize::from(u16::from_be_bytes([bytes[16], bytes[17]])));
                bytes = rest;
                let fields = read_update(&one[HEADER..], &mut seen).expect("well formed");
                assert_eq!(seen.next_hop, Some(next_hop));
                for mut field in fields.announced {
                    while let Some(prefix) = next_prefix(&mut field) {
                        let (route, wanted) = expected.next().expect("no more than was written");
                        assert_eq!((prefix, &seen.as_path), (wanted, &route.as_path));
                        assert_eq!(seen.communities, route.communities);
                    }
                }
            }
            assert!(expected.next().is_none());
        }
    }
}
