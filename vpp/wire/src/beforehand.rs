//! What must have been asked on a connection before a request is sent on it.
//!
//! Some requests hurt VPP, or go wrong without a word, in a state that the request itself does not show: source
//! translation before its addresses are set ends the process, a second WireGuard interface on the same port is made
//! without complaint. So each of them waits for an answer that tells the state, on the same connection: [`RULES`]. Others name
//! something that VPP does not look for: steering into a table that does not exist ends it, a route of a source that does
//! not exist is taken. So that thing must have been told too: [`NEEDS`], [`TELLS`]. The client keeps to these tables, whatever
//! its user does, and refuses the request unsent.
//!
//! What was told once counts for as long as the connection lasts, unless the client itself has it taken away: nobody tells when
//! another client does. Whoever holds an index for long asks anew.

use std::net::IpAddr;

use crate::api::fib::{FibSourceAddReply, FibSourceDetails};
use crate::api::ikev2::Ikev2SetResponder;
use crate::api::interface::SwInterfaceDetails;
use crate::api::ip::{IpAddressDetails, IpTableAddDel, IpTableDetails};
use crate::api::ipip::IpipAddTunnel;
use crate::api::sr::{SrSteer, SrSteeringAddDel};
use crate::message::Message;
use crate::types::{FibSourceId, SwIfIndex, TableId};

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// VPP's name of the request, in whatever form.
    pub request: &'static str,
    /// Before it, one of these replies (with return value 0) or dumps of these details must have come.
    pub answers: &'static [&'static str],
    /// What could happen otherwise.
    pub because: &'static str,
}

/// All rules.
pub const RULES: &[Rule] = &[
    Rule {
        request: "cnat_set_snat_policy",
        answers: SNAT_ADDRESSES,
        because: "without addresses for source translation it ends VPP",
    },
    Rule {
        request: "cnat_snat_policy_add_del_exclude_pfx",
        answers: SNAT_ADDRESSES,
        because: "without addresses for source translation it ends VPP",
    },
    Rule {
        request: "sr_steering_add_del",
        answers: TABLES,
        because: "with a table that does not exist it ends VPP",
    },
    Rule {
        request: "sr_localsid_add_del",
        answers: TABLES,
        because: "with an inner table that does not exist it leads nowhere",
    },
    Rule {
        request: "wireguard_interface_create",
        answers: &["wireguard_interface_details"],
        because: "a second interface on the same address and port is made without complaint",
    },
    Rule {
        request: "fib_source_add",
        answers: &["fib_source_details"],
        because: "a name that exists gets another source, and there are 255",
    },
    Rule {
        request: "feature_enable_disable",
        answers: &["feature_is_enabled_reply"],
        because: "it counts: on, on, off is on",
    },
    Rule {
        request: "ikev2_set_responder",
        answers: INTERFACES,
        because: "an interface that does not exist is taken",
    },
    Rule {
        request: "bfd_udp_add",
        answers: ADDRESSES,
        because: "an address that is not on the interface is taken",
    },
    Rule { request: "ipip_add_tunnel", answers: ADDRESSES, because: "a source that is not VPP's is taken" },
];

const SNAT_ADDRESSES: &[&str] =
    &["cnat_set_snat_addresses_reply", "cnat_set_snat_addresses_v2_reply", "cnat_get_snat_addresses_reply"];
const TABLES: &[&str] = &["ip_table_details"];
const INTERFACES: &[&str] = &["sw_interface_details"];
const ADDRESSES: &[&str] = &["ip_address_details"];

/// The rule for a request.
#[must_use]
pub fn rule(request: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.request == request)
}

/// Something of VPP's that messages name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A table of a family. Those with number 0 always exist.
    Table {
        /// Its number.
        id: TableId,
        /// Of IPv6.
        is_ip6: bool,
    },
    /// A source of routes.
    Source(FibSourceId),
    /// An address of VPP's own.
    Address(IpAddr),
    /// An interface.
    Interface(SwIfIndex),
}

/// What messages of a name have to do with things.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// VPP's name of the message, in whatever form.
    pub message: &'static str,
    /// The thing that this payload names; `None` where it needs none.
    pub thing: Naming,
}

/// Reads what a payload names.
pub type Naming = fn(&[u8]) -> Option<Thing>;

/// Requests that name a thing which VPP does not look for; it must have been told before.
pub const NEEDS: &[Names] = &[
    Names { message: "ip_route_add_del_v2", thing: route_source },
    Names { message: "sr_steering_add_del", thing: steered_table },
    Names { message: "ipip_add_tunnel", thing: own_end },
    Names { message: "ikev2_set_responder", thing: responder_interface },
];

/// Answers that tell of a thing.
pub const TELLS: &[Names] = &[
    Names { message: "ip_table_details", thing: listed_table },
    Names { message: "fib_source_details", thing: listed_source },
    Names { message: "fib_source_add_reply", thing: added_source },
    Names { message: "ip_address_details", thing: listed_address },
    Names { message: "sw_interface_details", thing: listed_interface },
];

/// The request that makes or removes a thing: the table it names, and whether it is made.
#[must_use]
pub fn table_made(payload: &[u8]) -> Option<(Thing, bool)> {
    let request = IpTableAddDel::parse(payload).ok()?;
    let table = request.table();
    Some((Thing::Table { id: table.table_id, is_ip6: table.is_ip6.is_true() }, request.is_add()))
}

/// VPP's name of that request.
pub const MAKES_TABLES: &str = "ip_table_add_del";

/// Where a route's source stands in its request: behind head, two flags, table, counters, prefix and number of paths. Read
/// by itself, since routes come by the hundred thousand.
const SOURCE_AT: usize = 10 + 2 + 4 + 4 + 18 + 1;

fn route_source(payload: &[u8]) -> Option<Thing> {
    payload.get(SOURCE_AT).map(|source| Thing::Source(FibSourceId::new(*source)))
}

fn steered_table(payload: &[u8]) -> Option<Thing> {
    let request = SrSteeringAddDel::parse(payload).ok()?;
    let is_ip6 = *request.traffic_type() == SrSteer::IPV6;
    Some(Thing::Table { id: *request.table_id(), is_ip6 })
}

fn own_end(payload: &[u8]) -> Option<Thing> {
    IpipAddTunnel::parse(payload).ok()?.tunnel().src().ip().map(Thing::Address)
}

fn responder_interface(payload: &[u8]) -> Option<Thing> {
    Some(Thing::Interface(Ikev2SetResponder::parse(payload).ok()?.responder().sw_if_index))
}

fn listed_table(payload: &[u8]) -> Option<Thing> {
    let table = &IpTableDetails::parse(payload).ok()?.table;
    Some(Thing::Table { id: table.table_id, is_ip6: table.is_ip6.is_true() })
}

fn listed_source(payload: &[u8]) -> Option<Thing> {
    Some(Thing::Source(FibSourceDetails::parse(payload).ok()?.src.id))
}

fn added_source(payload: &[u8]) -> Option<Thing> {
    Some(Thing::Source(FibSourceAddReply::parse(payload).ok()?.id))
}

fn listed_address(payload: &[u8]) -> Option<Thing> {
    IpAddressDetails::parse(payload).ok()?.prefix.address().ip().map(Thing::Address)
}

fn listed_interface(payload: &[u8]) -> Option<Thing> {
    Some(Thing::Interface(SwInterfaceDetails::parse(payload).ok()?.sw_if_index))
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::Payload;
    use crate::api::ip::RouteDelete;

    #[test]
    fn rules_speak_of_messages_that_exist() {
        for rule in RULES {
            let kinds = |name: &str| {
                crate::api::messages()
                    .filter(|message| message.name.name() == name)
                    .map(|message| message.kind)
                    .collect::<Vec<_>>()
            };
            assert!(
                !kinds(rule.request).is_empty()
                    && kinds(rule.request).iter().all(|kind| *kind == Kind::Request)
            );
            for answer in rule.answers.iter().chain(TELLS.iter().map(|names| &names.message)) {
                assert!(!kinds(answer).is_empty(), "{answer}");
                assert!(
                    kinds(answer).iter().all(|kind| matches!(kind, Kind::Reply | Kind::Details)),
                    "{answer}"
                );
            }
        }
        for name in NEEDS.iter().map(|names| names.message).chain([MAKES_TABLES]) {
            assert!(crate::api::messages().any(|message| message.name.name() == name), "{name}");
        }
    }

    #[test]
    fn a_routes_source_stands_where_it_is_read() {
        let mut payload = Vec::new();
        let prefix = "255.255.255.255/32".parse().unwrap();
        RouteDelete::new(TableId::new(u32::MAX), prefix, FibSourceId::new(26)).unwrap().encode(&mut payload);
        assert_eq!(route_source(&payload), Some(Thing::Source(FibSourceId::new(26))));
        assert_eq!(route_source(&payload[..SOURCE_AT]), None);
    }
}
