//! How many connections of one neighbour may be saying goodbye at a time.
//!
//! A connection that is refused or ended lives on for up to two seconds, so that its NOTIFICATION arrives. A neighbour
//! that connects again and again, each time to be refused, would hold thousands of sockets that way, and nobody else
//! could connect. Beyond a handful its connections end at once; what it is told it has been told by the others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bgp_core::peer_key::ConnId;

/// More than anyone has who means well.
const AT_ONCE: usize = 16;

/// The connections that are saying goodbye, by neighbour.
#[derive(Debug, Default)]
pub(crate) struct Farewells(BTreeMap<IpAddr, BTreeSet<ConnId>>);

impl Farewells {
    /// Whether one more connection with `remote` may take its time to close. It counts from now on.
    pub(crate) fn begin(&mut self, conn: ConnId, remote: IpAddr) -> bool {
        let conns = self.0.entry(remote).or_default();
        conns.len() < AT_ONCE && conns.insert(conn)
    }

    /// A connection is gone, whether it had said goodbye or not.
    pub(crate) fn end(&mut self, conn: ConnId, remote: IpAddr) {
        if let Some(conns) = self.0.get_mut(&remote) {
            conns.remove(&conn);
            if conns.is_empty() {
                self.0.remove(&remote);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_has_so_many_farewells_and_no_more() {
        let (mut farewells, a, b) = (Farewells::default(), IpAddr::from([1; 4]), IpAddr::from([2; 4]));
        for n in 0..AT_ONCE as u64 {
            assert!(farewells.begin(ConnId::accepted(n), a));
        }
        assert!(!farewells.begin(ConnId::accepted(100), a));
        assert!(farewells.begin(ConnId::accepted(101), b), "others are not concerned");
        farewells.end(ConnId::accepted(100), a);
        assert!(!farewells.begin(ConnId::accepted(102), a), "that one did not count");
        farewells.end(ConnId::accepted(0), a);
        assert!(farewells.begin(ConnId::accepted(103), a));
        for n in 0..200 {
            farewells.end(ConnId::accepted(n), a);
            farewells.end(ConnId::accepted(n), b);
        }
        assert!(farewells.0.is_empty());
    }
}
