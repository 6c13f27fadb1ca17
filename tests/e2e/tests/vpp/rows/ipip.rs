//! IPIP: a tunnel to each next hop. Calico knows it for IPv4 only.

use crate::row::{Carried, Row};

pub(crate) const ROW: Row = Row {
    ipv4: Carried {
        pool: "ipipMode: Always",
        per_hop: &[
            "ipip {local} -> {remote}: up, tagged peregrine ipip {remote}, borrows loop0, gso, mtu 8980",
            "route {remote}/{bits} in table 2: via {remote} on ipip {local} -> {remote}",
        ],
        per_destination: &["route {prefix} in table 0: into ipip {local} -> {remote}"],
        through: "ipip4-input",
        ..Carried::FLAT
    },
    ..Row::named("ipip")
};
