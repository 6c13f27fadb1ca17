//! Capabilities that are a list of families: path identifiers (RFC 7911 section 4) and extended next hops
//! (RFC 8950 section 4).

use bytes::{BufMut, BytesMut};

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

impl AddPath {
    pub(super) fn parse_all(value: &[u8]) -> Option<Vec<Self>> {
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

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u16(self.afi);
        out.put_slice(&[self.safi, u8::from(self.receive) | u8::from(self.send) << 1]);
    }
}

/// One triple of the extended next hop capability (RFC 8950 section 4): prefixes of a family may come with
/// next hops of another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtendedNextHop {
    /// Address Family Identifier of the prefixes.
    pub afi: u16,
    /// Subsequent Address Family Identifier of the prefixes; it has two octets here.
    pub safi: u16,
    /// Address Family Identifier of the next hop.
    pub next_hop_afi: u16,
}

impl ExtendedNextHop {
    pub(super) fn parse_all(value: &[u8]) -> Option<Vec<Self>> {
        let (triples, []) = value.as_chunks::<6>() else { return None };
        let one = |&[a, b, c, d, e, f]: &[u8; 6]| Self {
            afi: u16::from_be_bytes([a, b]),
            safi: u16::from_be_bytes([c, d]),
            next_hop_afi: u16::from_be_bytes([e, f]),
        };
        Some(triples.iter().map(one).collect())
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u16(self.afi);
        out.put_u16(self.safi);
        out.put_u16(self.next_hop_afi);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_go_there_and_back() {
        let octets = [0, 1, 0, 1, 0, 2, 0, 1, 0, 128, 0, 2];
        let triples = ExtendedNextHop::parse_all(&octets).unwrap();
        assert_eq!(triples[0], ExtendedNextHop { afi: 1, safi: 1, next_hop_afi: 2 });
        let mut out = BytesMut::new();
        triples.iter().for_each(|triple| triple.encode(&mut out));
        assert_eq!(out[..], octets);
        assert_eq!(ExtendedNextHop::parse_all(&octets[..7]), None);
    }
}
