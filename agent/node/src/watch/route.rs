//! Which watcher hears which piece of news.

use agent_core::event::{Change, Event};

use super::source::SourceChange;
use super::{affinity, bgp_config, bgp_filter, bgp_peer, felix_config, network, node, pool};
use crate::crd::{Kind, Object, ObjectName};

/// The event for a piece of news; `None` for an object whose name means nothing.
pub(crate) fn event(change: SourceChange) -> Option<Event> {
    Some(match change {
        SourceChange::Faults(faults) => Event::Fault(faults),
        SourceChange::Listed(kind, objects) => listed(kind, &objects),
        SourceChange::Put(name, object) => match &*object {
            Object::Node(value) => node::event(Change::Upsert(node::key(&name), node::value(value))),
            Object::BgpConfiguration(value) => {
                bgp_config::event(Change::Upsert(bgp_config::key(&name)?, bgp_config::value(value)))
            }
            Object::BgpFilter(value) => {
                bgp_filter::event(Change::Upsert(bgp_filter::key(&name), bgp_filter::value(value)))
            }
            Object::BgpPeer(value) => {
                bgp_peer::event(Change::Upsert(bgp_peer::key(&name), bgp_peer::value(value)))
            }
            Object::IpPool(value) => pool::event(Change::Upsert(pool::key(&name), pool::value(value))),
            Object::BlockAffinity(value) => {
                affinity::event(Change::Upsert(affinity::key(&name), affinity::value(value)))
            }
            Object::Network(value) => {
                network::event(Change::Upsert(network::key(&name), network::value(value)?))
            }
            Object::FelixConfiguration(value) => {
                felix_config::event(Change::Upsert(felix_config::key(&name)?, value.0.clone()))
            }
        },
        SourceChange::Gone(kind, name) => match kind {
            Kind::Node => node::event(Change::Delete(node::key(&name))),
            Kind::BgpConfiguration => bgp_config::event(Change::Delete(bgp_config::key(&name)?)),
            Kind::BgpFilter => bgp_filter::event(Change::Delete(bgp_filter::key(&name))),
            Kind::BgpPeer => bgp_peer::event(Change::Delete(bgp_peer::key(&name))),
            Kind::IpPool => pool::event(Change::Delete(pool::key(&name))),
            Kind::BlockAffinity => affinity::event(Change::Delete(affinity::key(&name))),
            Kind::Network => network::event(Change::Delete(network::key(&name))),
            Kind::FelixConfiguration => felix_config::event(Change::Delete(felix_config::key(&name)?)),
        },
    })
}

fn listed(kind: Kind, objects: &[(ObjectName, std::sync::Arc<Object>)]) -> Event {
    macro_rules! resync {
        ($variant:ident, |$name:ident, $value:ident| $entry:expr, $event:path) => {
            $event(Change::Resync(
                objects
                    .iter()
                    .filter_map(|($name, object)| match &**object {
                        Object::$variant($value) => $entry,
                        // A list holds objects of its own kind only.
                        #[allow(clippy::wildcard_enum_match_arm)]
                        _ => None,
                    })
                    .collect(),
            ))
        };
    }
    match kind {
        Kind::Node => resync!(Node, |name, value| Some((node::key(name), node::value(value))), node::event),
        Kind::BgpConfiguration => resync!(
            BgpConfiguration,
            |name, value| Some((bgp_config::key(name)?, bgp_config::value(value))),
            bgp_config::event
        ),
        Kind::BgpFilter => resync!(
            BgpFilter,
            |name, value| Some((bgp_filter::key(name), bgp_filter::value(value))),
            bgp_filter::event
        ),
        Kind::BgpPeer => {
            resync!(
                BgpPeer,
                |name, value| Some((bgp_peer::key(name), bgp_peer::value(value))),
                bgp_peer::event
            )
        }
        Kind::IpPool => {
            resync!(IpPool, |name, value| Some((pool::key(name), pool::value(value))), pool::event)
        }
        Kind::BlockAffinity => resync!(
            BlockAffinity,
            |name, value| Some((affinity::key(name), affinity::value(value))),
            affinity::event
        ),
        Kind::Network => resync!(
            Network,
            |name, value| network::value(value).map(|network| (network::key(name), network)),
            network::event
        ),
        Kind::FelixConfiguration => resync!(
            FelixConfiguration,
            |name, value| Some((felix_config::key(name)?, value.0.clone())),
            felix_config::event
        ),
    }
}
