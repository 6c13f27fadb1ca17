//! VXLAN: a tunnel to each next hop, with IP packets inside.

use crate::row::{Carried, Row};

pub(crate) const ROW: Row = Row {
    ipv4: Carried {
        pool: "vxlanMode: Always",
        per_hop: &[
            "vxlan {local} -> {remote} vni 4096 port 4789: up, tagged peregrine vxlan {remote}, borrows loop0, gso, mtu 8950",
            HOST,
        ],
        per_destination: &[DESTINATION],
        through: "vxlan4-input",
        ..Carried::FLAT
    },
    ipv6: Carried {
        pool: "vxlanMode: Always",
        per_hop: &[
            "vxlan {local} -> {remote} vni 4096 port 4789: up, tagged peregrine vxlan {remote}, borrows loop0, gso, mtu 8930",
            HOST,
        ],
        per_destination: &[DESTINATION],
        through: "vxlan6-input",
        ..Carried::FLAT
    },
    ..Row::named("vxlan")
};

const HOST: &str =
    "route {remote}/{bits} in table 2: via {remote} on vxlan {local} -> {remote} vni 4096 port 4789";
const DESTINATION: &str =
    "route {prefix} in table 0: via {remote} on vxlan {local} -> {remote} vni 4096 port 4789";
