//! A provider's part of the suite, as data.
//!
//! What VPP must hold is written as lines of text, the way `state.rs` reads them. In a line `{local}`, `{remote}` and
//! `{prefix}` stand for our own address, the next hop's and the destination's, `{node}` for the number of the next hop's node,
//! `{bits}` for 32 or 128, `{family}` for `ipv4` or `ipv6`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use test_support::peregrine::manifest;

use crate::world::{Destination, OWN};

/// What the suite has to know of a provider.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The provider.
    pub(crate) name: &'static str,
    /// Further lines of the agent's settings; `{node}` stands for the node's number.
    pub(crate) settings: &'static str,
    /// Further manifests, on top of the nodes, neighbours and pools that all rows have: file name, text.
    pub(crate) manifests: &'static [(&'static str, &'static str)],
    /// Nodes have to learn one another's WireGuard keys.
    pub(crate) keys: bool,
    /// The next hops of IPv4 destinations are IPv6 addresses.
    pub(crate) ipv6_hops: bool,
    /// Further blocks of each node's; `{node}` stands for its number.
    pub(crate) blocks: &'static [&'static str],
    /// Further entries of the neighbour's `originate`, once anything is announced.
    pub(crate) originate: &'static str,
    /// The route distinguisher of the network that destinations are announced in; empty for the default one.
    pub(crate) rd: &'static str,
    /// What VPP holds as long as the agent runs with this row.
    pub(crate) always: &'static [&'static str],
    /// How IPv4 is carried.
    pub(crate) ipv4: Carried,
    /// How IPv6 is carried.
    pub(crate) ipv6: Carried,
}

/// How the destinations of one family are carried.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    /// Modes of the family's pool, such as `ipipMode: Always`.
    pub(crate) pool: &'static str,
    /// What VPP holds once the family has a destination.
    pub(crate) per_family: &'static [&'static str],
    /// What it holds for each next hop that has a destination behind it.
    pub(crate) per_hop: &'static [&'static str],
    /// What it holds for each destination.
    pub(crate) per_destination: &'static [&'static str],
    /// The node of VPP's graph that takes the tunnel off a packet that arrives, as `show trace` calls it; empty for none.
    pub(crate) through: &'static str,
}

impl Carried {
    /// As it is.
    pub(crate) const FLAT: Self = Self {
        pool: "ipipMode: Never",
        per_family: &[],
        per_hop: &[],
        per_destination: &["route {prefix} in table 0: via {remote}"],
        through: "",
    };
}

impl Row {
    /// A row that has nothing but its name.
    pub(crate) const fn named(name: &'static str) -> Self {
        Self {
            name,
            // What SRv6 leaves in VPP goes when it is off, as long as the agent knows where its SIDs come from.
            settings: "srv6: { localsid-pool: fd00:a::/64, policy-pool: fd00:b::/64 }\n",
            manifests: &[],
            keys: false,
            ipv6_hops: false,
            blocks: &[],
            originate: "",
            rd: "",
            always: &[],
            ipv4: Carried::FLAT,
            ipv6: Carried::FLAT,
        }
    }

    /// Both families, IPv4 first.
    pub(crate) const fn families(&self) -> [&Carried; 2] {
        [&self.ipv4, &self.ipv6]
    }

    /// Everything of ours that VPP must hold while these destinations are announced.
    pub(crate) fn expected(&self, announced: &[Destination]) -> BTreeSet<String> {
        let mut lines: BTreeSet<String> = self.always.iter().map(|line| (*line).to_owned()).collect();
        for own in OWN {
            lines.insert(format!("route {own} in table 0: drop"));
        }
        for destination in announced {
            let carried = if destination.prefix.contains(':') { &self.ipv6 } else { &self.ipv4 };
            let all = carried.per_family.iter().chain(carried.per_hop).chain(carried.per_destination);
            let hop = self.hop(destination);
            lines.extend(all.map(|line| fill(line, destination.prefix, &hop)));
        }
        lines
    }

    /// The next hop of a destination.
    pub(crate) fn hop(&self, destination: &Destination) -> String {
        let Destination { hop, .. } = destination;
        if self.ipv6_hops { hop.replace("192.0.2.", "2001:db8:1::") } else { (*hop).to_owned() }
    }

    /// The agent's settings on the node with this number.
    pub(crate) fn settings(&self, socket: &str, uplink: &str, node: u8) -> String {
        let own = self.settings.replace("{node}", &node.to_string());
        format!("vpp: {{ socket: {socket}, uplink: {uplink}, info-file: none }}\n{own}")
    }

    /// The blocks of the node with this number, on top of those that all rows have, as manifests.
    pub(crate) fn block_manifests(&self, name: &str, node: u8) -> Vec<String> {
        let manifest = |(number, cidr): (usize, &&str)| {
            manifest::block(
                &format!("{name}-more-{number}"),
                name,
                &cidr.replace("{node}", &node.to_string()),
            )
        };
        self.blocks.iter().enumerate().map(manifest).collect()
    }

    /// The pools of both families.
    pub(crate) fn pools(&self) -> String {
        let pool = |name: &str, cidr: &str, carried: &Carried| {
            format!(
                "apiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata: {{ name: {name} }}\n\
                 spec: {{ cidr: \"{cidr}\", {} }}\n",
                carried.pool
            )
        };
        [pool("pods-v4", "10.244.0.0/16", &self.ipv4), pool("pods-v6", "fd00:10:244::/48", &self.ipv6)]
            .join("---\n")
    }
}

fn fill(line: &str, prefix: &str, hop: &str) -> String {
    let remote: IpAddr = hop.parse().expect("an address");
    let node = hop.rsplit(['.', ':']).next().unwrap_or_default();
    let (local, bits, family) =
        if remote.is_ipv4() { ("192.0.2.1", "32", "ipv4") } else { ("2001:db8:1::1", "128", "ipv6") };
    line.replace("{local}", local)
        .replace("{remote}", hop)
        .replace("{prefix}", prefix)
        .replace("{node}", node)
        .replace("{bits}", bits)
        .replace("{family}", family)
}
