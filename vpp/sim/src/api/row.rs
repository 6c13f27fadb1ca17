//! The table of handlers: which message is served by what, and answered by which other.

use vpp_wire::name::MsgName;
use vpp_wire::{Kind, Message};

use super::{
    cnat, feature, fib, ikev2, interface, ip, ipip, ipsec, memclnt, route, sr, vlib, vpe, vxlan, wireguard,
};
use crate::context::Cx;

/// Carries a request out; `None` when it is too short.
pub(crate) type Serve = fn(&mut Cx<'_>, &[u8]) -> Option<()>;

/// A request or dump that has a handler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Its id in this process.
    pub(crate) id: u16,
    /// The id of its reply or details.
    pub(crate) answer_id: u16,
    /// Its name.
    pub(crate) name: MsgName,
    /// The name of its reply or details.
    pub(crate) answer: MsgName,
    /// Where the context stands in the answer: a few echo a client index, which is 0, before it.
    pub(crate) answer_context_at: usize,
    /// Bytes of the reply without its variable part.
    pub(crate) answer_size: usize,
    /// Whether details answer it, any number of them.
    pub(crate) is_dump: bool,
    /// The handler.
    pub(crate) serve: Serve,
}

/// A row for a message that `vpp-wire` has, answered by `A`.
pub(crate) fn row<M: Message + ?Sized, A: Message + ?Sized>(serve: Serve) -> Row {
    let (message, answer) = (M::DESCRIPTOR, A::DESCRIPTOR);
    Row {
        id: 0,
        answer_id: 0,
        name: message.name,
        answer: answer.name,
        answer_context_at: answer.context_at.unwrap_or(2),
        answer_size: answer.layout.fixed,
        is_dump: message.kind == Kind::Dump,
        serve,
    }
}

/// A row for a request that only other clients send; the reply has `answer_size` bytes.
pub(crate) fn foreign(name: MsgName, answer: MsgName, answer_size: usize, serve: Serve) -> Row {
    Row { id: 0, answer_id: 0, name, answer, answer_context_at: 2, answer_size, is_dump: false, serve }
}

/// A row for a dump that only other clients send.
pub(crate) fn foreign_dump(name: MsgName, answer: MsgName, serve: Serve) -> Row {
    Row { is_dump: true, ..foreign(name, answer, 0, serve) }
}

/// Whether a request or dump of this name, without CRC, has a handler.
pub(crate) fn is_request(name: &str) -> bool {
    rows().any(|row| row.name.name() == name)
}

/// Every request and dump with a handler.
pub(crate) fn rows() -> impl Iterator<Item = Row> {
    [
        memclnt::rows(),
        vpe::rows(),
        interface::rows(),
        ip::rows(),
        route::rows(),
        fib::rows(),
        ipip::rows(),
        feature::rows(),
        cnat::rows(),
        ikev2::rows(),
        ipsec::rows(),
        sr::rows(),
        wireguard::rows(),
        vlib::rows(),
        vxlan::rows(),
    ]
    .into_iter()
    .flatten()
}

/// The names of all messages there are: requests, their answers, events.
pub(crate) fn names() -> impl Iterator<Item = MsgName> {
    let events =
        vpp_wire::api::messages().filter(|message| message.kind == Kind::Notice).map(|message| message.name);
    let rows: Vec<Row> = rows().collect();
    let foreign = [wireguard::EVENT];
    let foreign =
        foreign.into_iter().filter(|name| vpp_wire::api::messages().all(|message| message.name != *name));
    rows.into_iter().flat_map(|row| [row.name, row.answer]).chain(events).chain(foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of the wire that are not served yet, by API module; a module leaves the list when its lane lands.
    const NOT_SERVED_YET: &[&[vpp_wire::message::Descriptor]] = &[
        vpp_wire::api::af_packet::GENERATED,
        vpp_wire::api::bfd::GENERATED,
        vpp_wire::api::cnat::GENERATED,
        vpp_wire::api::ikev2::GENERATED,
        vpp_wire::api::interface::GENERATED,
        vpp_wire::api::ip::GENERATED,
        vpp_wire::api::ip_neighbor::GENERATED,
        vpp_wire::api::ipsec::GENERATED,
        vpp_wire::api::memclnt::GENERATED,
        vpp_wire::api::punt::GENERATED,
        vpp_wire::api::sr::GENERATED,
        vpp_wire::api::tapv2::GENERATED,
        vpp_wire::api::urpf::GENERATED,
        vpp_wire::api::vlib::GENERATED,
        vpp_wire::api::vpe::GENERATED,
        vpp_wire::api::vxlan::GENERATED,
        // Waits for a user.
        vpp_wire::api::npol::GENERATED,
    ];

    #[test]
    fn every_request_of_the_wire_has_a_handler() {
        let known: Vec<MsgName> = rows().map(|row| row.name).collect();
        let later: Vec<MsgName> =
            NOT_SERVED_YET.iter().copied().flatten().map(|message| message.name).collect();
        for message in vpp_wire::api::messages().filter(|message| !later.contains(&message.name)) {
            match message.kind {
                Kind::Request | Kind::Dump | Kind::Stream => {
                    assert!(known.contains(&message.name), "{} is not served", message.name);
                }
                Kind::Reply | Kind::Details | Kind::Notice => {
                    assert!(names().any(|name| name == message.name), "{} is not sent", message.name);
                }
            }
        }
    }

    #[test]
    fn what_is_served_in_full_is_not_listed_as_missing() {
        let known: Vec<MsgName> = names().collect();
        for module in NOT_SERVED_YET {
            let missing = module.iter().any(|message| !known.contains(&message.name));
            assert!(missing, "all of {:?} is served", module.first().map(|message| message.name));
        }
    }

    #[test]
    fn no_name_comes_twice() {
        let mut all: Vec<String> = names().map(|name| name.to_string()).collect();
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
