//! A network beside the default one: VXLAN tunnels with its number, and tables of its own. What is announced is announced in it.

use crate::row::{Carried, Row};

pub(crate) const ROW: Row = Row {
    settings: "features: { multinet: true }\n",
    manifests: &[(
        "network.yaml",
        "apiVersion: projectcalico.org/v3\nkind: Network\nmetadata: { name: blue }\n\
         spec: { vni: 77, range: 10.244.0.0/16 }\n",
    )],
    rd: "64512:77",
    ipv4: Carried {
        per_hop: &[
            "vxlan {local} -> {remote} vni 77 port 4789: up, tagged peregrine vxlan {remote}, gso, mtu 8950, \
             in table 16777293",
        ],
        per_destination: &[DESTINATION],
        ..Carried::FLAT
    },
    ipv6: Carried {
        per_hop: &[
            "vxlan {local} -> {remote} vni 77 port 4789: up, tagged peregrine vxlan {remote}, gso, mtu 8930, \
             in table 16777293",
        ],
        per_destination: &[DESTINATION],
        ..Carried::FLAT
    },
    ..Row::named("network")
};

const DESTINATION: &str =
    "route {prefix} in table 16777293: via {remote} on vxlan {local} -> {remote} vni 77 port 4789";
