//! WireGuard: an interface for each family, whose peers are the nodes that have published a key.

use crate::row::{Carried, Row};

pub(crate) const ROW: Row = Row {
    manifests: &[(
        "felix.yaml",
        "apiVersion: projectcalico.org/v3\nkind: FelixConfiguration\nmetadata: { name: default }\n\
         spec: { wireguardEnabled: true, wireguardEnabledV6: true }\n",
    )],
    keys: true,
    ipv4: Carried {
        pool: "ipipMode: Always",
        per_family: &[
            "wireguard {local} port 51820: up, tagged peregrine wireguard {local}, borrows loop0, gso, mtu 8940",
        ],
        per_hop: &[
            "route {remote}/{bits} in table 2: via {remote} on wireguard {local} port 51820",
            "peer {remote} port 51820 on wireguard {local} port 51820: may send {remote}/{bits}",
        ],
        per_destination: &[
            "route {prefix} in table 0: via {remote} on wireguard {local} port 51820",
            "peer {remote} port 51820 on wireguard {local} port 51820: may send {prefix}",
        ],
        through: "wg4-input",
    },
    ipv6: Carried {
        pool: "vxlanMode: Always",
        per_family: &[
            "wireguard {local} port 51821: up, tagged peregrine wireguard {local}, borrows loop0, gso, mtu 8920",
        ],
        per_hop: &[
            "route {remote}/{bits} in table 2: via {remote} on wireguard {local} port 51821",
            "peer {remote} port 51821 on wireguard {local} port 51821: may send {remote}/{bits}",
        ],
        per_destination: &[
            "route {prefix} in table 0: via {remote} on wireguard {local} port 51821",
            "peer {remote} port 51821 on wireguard {local} port 51821: may send {prefix}",
        ],
        through: "wg6-input",
    },
    ..Row::named("wireguard")
};
