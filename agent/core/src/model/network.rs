//! Networks beside the default one: each has a number, tables of its own, and pods that reach one another by VXLAN under that
//! number. Which network a route is of is said by its route distinguisher, whose number is the network's.

use std::sync::Arc;

use bgp_core::RouteDistinguisher;
use ipnet::IpNet;

use super::{TableId, Vni};

/// A Network object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its number: on the wire, in route distinguishers, and what its tables are called by.
    pub vni: Vni,
    /// Where addresses of its pods come from.
    pub range: IpNet,
    /// The uplinks that its traffic takes; those of the default network where there is none.
    pub physical: Option<Arc<str>>,
}

/// Tables of networks begin here; the rest of the number is the network's. The manager of VPP counts from the other end.
const FIRST: u32 = 1 << 24;

impl TableId {
    /// The table of a network, of each family: the same after every restart, and nobody else's.
    #[must_use]
    pub const fn of_network(vni: Vni) -> Self {
        Self(FIRST | vni.number())
    }

    /// The network whose table it is.
    #[must_use]
    pub const fn network(self) -> Option<Vni> {
        if self.0 & !(FIRST - 1) == FIRST { Vni::new(self.0 & (FIRST - 1)) } else { None }
    }
}

impl Vni {
    /// The network of a route with this distinguisher: the number that it assigns, whoever assigns it. `None` where it is none of
    /// the three types (RFC 4364 section 4.2), or the number is no network's.
    #[must_use]
    pub fn of_route(distinguisher: RouteDistinguisher) -> Option<Self> {
        let [_, _, _, _, octets @ ..] = distinguisher.octets();
        let number = u32::from_be_bytes(octets);
        let number = match distinguisher.kind() {
            0 => number,
            1 | 2 => number & 0xffff,
            _ => return None,
        };
        Self::new(number).filter(|vni| vni.number() != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_a_table_that_is_nobody_elses() {
        for number in [1, 4096, 0xff_ffff] {
            let vni = Vni::new(number).unwrap();
            assert_eq!(TableId::of_network(vni).network(), Some(vni));
        }
        for other in [0, 2, 0xff_ffff, 1 << 25, u32::MAX] {
            assert_eq!(TableId(other).network(), None);
        }
    }

    #[test]
    fn the_number_of_a_distinguisher_is_the_networks() {
        let of = |rd| Vni::of_route(rd).map(Vni::number);
        assert_eq!(of(RouteDistinguisher::two_octet_as(64512, 0x01_0203)), Some(0x01_0203));
        assert_eq!(of(RouteDistinguisher::ipv4("192.0.2.1".parse().unwrap(), 77)), Some(77));
        assert_eq!(of(RouteDistinguisher::four_octet_as(4_200_000_000, 78)), Some(78));
        assert_eq!(of(RouteDistinguisher::two_octet_as(64512, 0)), None);
        assert_eq!(of(RouteDistinguisher::two_octet_as(64512, 1 << 24)), None);
        assert_eq!(of(RouteDistinguisher::from_octets([0, 3, 0, 0, 0, 0, 0, 1])), None);
    }
}
