//! Who is there in a scenario, what the senders say, and what the receivers must hear.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::ends::End;
use crate::judge::{Judge, Set};
use crate::scenario::Scenario;
use crate::table::{self, Family, OWN_COMMUNITIES, Prefix, Route};
use crate::wire::{self, Attributes};

/// AS number of the daemon under test.
pub(crate) const ASN: u32 = 65_000;
/// Its BGP identifier, and its address towards the senders.
const ROUTER_ID: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// AS number of the first sender.
const SENDER_ASN: u32 = 65_001;
/// AS number of the first receiver.
const RECEIVER_ASN: u32 = 65_101;
/// LOCAL_PREF of internal senders.
const LOCAL_PREF: u32 = 100;

/// How many rules of each kind the import policy of scenario k has.
const PREFIX_RULES: usize = 100;
const COMMUNITY_RULES: usize = 20;
/// First community that a prefix rule adds.
pub(crate) const PREFIX_MARK: u32 = 1_000;
/// First community that a community rule adds.
pub(crate) const COMMUNITY_MARK: u32 = 2_000;

/// A neighbour, as the daemon sees it.
#[derive(Clone, Debug)]
pub(crate) struct Neighbor {
    /// Its address.
    pub(crate) address: IpAddr,
    /// The daemon's address on the same network.
    pub(crate) ours: IpAddr,
    /// Its AS number.
    pub(crate) asn: u32,
    /// Whether anything is exported to it.
    pub(crate) hears: bool,
    /// A route reflector's client.
    pub(crate) client: bool,
}

/// See the module's page.
pub(crate) struct Plan {
    /// The family of sessions and routes.
    pub(crate) family: Family,
    /// All neighbours, senders first.
    pub(crate) neighbors: Vec<Neighbor>,
    /// What each of the first neighbours sends.
    pub(crate) tables: Vec<Vec<Route>>,
    /// Whether the import policy of scenario k applies.
    pub(crate) policy: bool,
}

impl Plan {
    /// The plan of a scenario; `scale` divides its tables.
    #[must_use]
    pub(crate) fn of(scenario: Scenario, scale: u32) -> Self {
        let family = if scenario == Scenario::I { Family::V6 } else { Family::V4 };
        let (senders, receivers, prefixes) = match scenario {
            Scenario::A | Scenario::E | Scenario::I => (1, 1, 200_000),
            Scenario::B | Scenario::H | Scenario::K => (1, 1, 1_000_000),
            Scenario::C => (10, 1, 100_000),
            Scenario::D => (10, 10, 100_000),
            Scenario::F => (50, 1, 64),
            Scenario::G => (500, 0, 4),
        };
        let internal = matches!(scenario, Scenario::F | Scenario::G);
        let prefixes = if internal { prefixes } else { prefixes / scale };
        let tables = (0..senders).map(|sender| match scenario {
            Scenario::C => table::build(family, prefixes, SENDER_ASN + sender, sender),
            Scenario::D => same_with_another_path(&table::build(family, prefixes, SENDER_ASN, 0), sender),
            Scenario::F | Scenario::G => own_blocks(sender, prefixes),
            Scenario::A | Scenario::B | Scenario::E | Scenario::H | Scenario::I | Scenario::K => {
                table::build(family, prefixes, SENDER_ASN, sender)
            }
        });
        let sender = |number| Neighbor {
            address: address(family, 0, number),
            ours: address(family, 0, DAEMON),
            asn: if internal { ASN } else { SENDER_ASN + number },
            hears: internal,
            client: scenario == Scenario::G,
        };
        let receiver = |number| Neighbor {
            address: address(family, 1, number),
            ours: address(family, 1, DAEMON),
            asn: RECEIVER_ASN + number,
            hears: true,
            client: false,
        };
        Self {
            family,
            neighbors: (0..senders).map(sender).chain((0..receivers).map(receiver)).collect(),
            tables: tables.collect(),
            policy: scenario == Scenario::K,
        }
    }

    /// The daemon's BGP identifier.
    #[must_use]
    pub(crate) fn router_id(&self) -> Ipv4Addr {
        ROUTER_ID
    }

    /// The daemon's addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        [address(self.family, 0, DAEMON), address(self.family, 1, DAEMON)].into_iter()
    }

    /// Length of both networks.
    #[must_use]
    pub(crate) fn network_length(&self) -> u8 {
        match self.family {
            Family::V4 => 16,
            Family::V6 => 64,
        }
    }

    /// The other ends of all sessions.
    #[must_use]
    pub(crate) fn ends(&self) -> Vec<End> {
        let end = |(number, neighbor): (usize, &Neighbor)| End {
            local: neighbor.address,
            remote: neighbor.ours,
            asn: neighbor.asn,
            router_id: router_id_of(number),
        };
        self.neighbors.iter().enumerate().map(end).collect()
    }

    /// Which neighbours are receivers whose routes are judged.
    #[must_use]
    pub(crate) fn receivers(&self) -> Vec<usize> {
        let all_send = self.tables.len() == self.neighbors.len();
        if all_send {
            (0..self.neighbors.len()).collect()
        } else {
            (self.tables.len()..self.neighbors.len()).collect()
        }
    }

    /// The sender's whole table as messages, with End-of-RIB.
    #[must_use]
    pub(crate) fn messages(&self, sender: usize) -> Arc<[u8]> {
        let mut bytes =
            wire::updates(&self.tables[sender], self.neighbors[sender].address, self.local_pref(sender));
        bytes.extend(wire::end_of_rib(self.family));
        bytes.into()
    }

    /// What the sender says LOCAL_PREF is.
    #[must_use]
    pub(crate) fn local_pref(&self, sender: usize) -> Option<u32> {
        (self.neighbors[sender].asn == ASN).then_some(LOCAL_PREF)
    }

    /// A judge that wants the whole of all tables at every receiver.
    #[must_use]
    pub(crate) fn judge(&self) -> Judge {
        let receivers = self.receivers();
        let mut judge = Judge::new(receivers.len());
        for (sender, routes) in self.tables.iter().enumerate() {
            for route in routes {
                for (view, receiver) in receivers.iter().enumerate() {
                    let mut last: Option<(Vec<u32>, Set)> = None;
                    for prefix in &route.prefixes {
                        let marks = self.marks(route, *prefix);
                        let set = match &last {
                            Some((communities, set)) if *communities == marks => *set,
                            Some(_) | None => judge.set(&self.told(*receiver, sender, route, &marks)),
                        };
                        let slot = judge.slot(*prefix);
                        if *receiver == sender {
                            // It may be told its own route, and ignores it.
                            judge.want(view, slot, Set::ANY);
                        } else if self.is_best(sender, route) {
                            judge.want(view, slot, set);
                        }
                        last = Some((marks, set));
                    }
                }
            }
        }
        judge
    }

    /// Of several senders of the same prefixes, the one with the shortest path.
    fn is_best(&self, sender: usize, route: &Route) -> bool {
        self.tables.len() == 1 || self.neighbors[sender].asn == ASN || route.as_path.last() != Some(&LONGER)
    }

    /// What the receiver must hear of a sender's route, with these communities.
    #[must_use]
    pub(crate) fn told(
        &self,
        receiver: usize,
        sender: usize,
        route: &Route,
        communities: &[u32],
    ) -> Attributes {
        let (to, from) = (&self.neighbors[receiver], &self.neighbors[sender]);
        let plain = Attributes { communities: communities.to_vec(), ..Attributes::default() };
        if to.asn == ASN {
            Attributes {
                as_path: route.as_path.clone(),
                next_hop: Some(from.address),
                local_pref: Some(LOCAL_PREF),
                med: Some(0),
                originator: Some(router_id_of(sender)),
                cluster_list: vec![ROUTER_ID.to_bits()],
                ..plain
            }
        } else {
            let as_path = [&[ASN][..], &route.as_path].concat();
            Attributes { as_path, next_hop: Some(to.ours), ..plain }
        }
    }

    /// The communities of a route once the import policy, if there is one, has added its marks.
    #[must_use]
    pub(crate) fn marks(&self, route: &Route, prefix: Prefix) -> Vec<u32> {
        let mut communities = route.communities.clone();
        if self.policy {
            for (number, (rule, longest)) in prefix_rules().enumerate() {
                let (address, length) = rule.split_once('/').expect("a prefix");
                let bits = table::left(address.parse().expect("an address"));
                let length: u8 = length.parse().expect("a length");
                let inside = (bits ^ prefix.bits).leading_zeros() >= u32::from(length);
                if inside && (length..=longest).contains(&prefix.length) {
                    communities.push(mark(PREFIX_MARK, number));
                }
            }
            let hits =
                community_rules().enumerate().filter(|(_, community)| route.communities.contains(community));
            communities.extend(hits.map(|(number, _)| mark(COMMUNITY_MARK, number)));
            communities.sort_unstable();
        }
        communities
    }
}

/// Number of the daemon on each network; other ends count from behind it.
const DAEMON: u32 = u32::MAX;

fn address(family: Family, network: u32, number: u32) -> IpAddr {
    let host = if number == DAEMON { 1 } else { number + 10 };
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from(ROUTER_ID.to_bits() - 1 + (network << 16) + host)),
        Family::V6 => {
            let base = Ipv6Addr::new(0xfd00, 0, 0, 0x10, 0, 0, 0, 0).to_bits();
            IpAddr::V6(Ipv6Addr::from(base + (u128::from(network) << 64) + u128::from(host)))
        }
    }
}

fn router_id_of(end: usize) -> u32 {
    Ipv4Addr::new(192, 0, 0, 0).to_bits() + 1 + u32::try_from(end).expect("few ends")
}

/// Last in the paths of routes that another sender has a shorter one of.
const LONGER: u32 = 4_199_999_999;

/// The table of `sender`, one of ten with the same prefixes: each has the shortest path of a tenth of them.
fn same_with_another_path(routes: &[Route], sender: u32) -> Vec<Route> {
    let of = |(index, route): (usize, &Route)| {
        let mut route = route.clone();
        route.as_path[0] = SENDER_ASN + sender;
        let turn = (u32::try_from(index).expect("few sets") * 7 + sender) % 10;
        if turn != 0 {
            route.as_path.extend(std::iter::repeat_n(LONGER, 1 + (turn as usize % 2)));
        }
        route
    };
    routes.iter().enumerate().map(of).collect()
}

/// Blocks of addresses as a node of a cluster has them: one attribute set without an AS path.
fn own_blocks(sender: u32, count: u32) -> Vec<Route> {
    let first = Ipv4Addr::new(20, 0, 0, 0).to_bits() + sender * count * 64;
    let prefix = |number| Prefix { bits: u128::from(first + number * 64) << 96, length: 26 };
    vec![Route { as_path: Vec::new(), communities: Vec::new(), prefixes: (0..count).map(prefix).collect() }]
}

/// The prefix rules of scenario k: a prefix, and the longest length inside it. Together they cover about a seventh of
/// the table.
pub(crate) fn prefix_rules() -> impl Iterator<Item = (String, u8)> {
    (0..PREFIX_RULES).map(|number| {
        let block = 16 + 7 * number;
        let (first, second) = (block / 16, block % 16 * 16);
        (format!("{first}.{second}.0.0/12"), if number % 3 == 0 { 22 } else { 24 })
    })
}

/// The communities that the rules of scenario k look for.
pub(crate) fn community_rules() -> impl Iterator<Item = u32> {
    (0..OWN_COMMUNITIES).map(|low| (SENDER_ASN << 16) | low).take(COMMUNITY_RULES)
}

/// The community that a rule adds.
#[must_use]
pub(crate) fn mark(first: u32, number: usize) -> u32 {
    (ASN << 16) | (first + u32::try_from(number).expect("few rules"))
}
