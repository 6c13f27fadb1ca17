//! One entry of `neighbors`.

use std::collections::BTreeMap;
use std::num::NonZeroU16;

use bgp_core::command::{NextHopMode, PeerConfig, Policy};
use bgp_core::peer_key::{BGP_PORT, PeerKey};
use bgp_core::policy::{PolicyDef, PolicyName};
use bgp_core::session::{GracefulRestart, HoldTime, RemoteAsn};
use bgp_wire::{Asn, FamilySet};

use super::{asn, later};
use crate::yaml::{Fields, Item, Mistake, nearest};

/// What a neighbour's entry may refer to.
pub(super) struct Known<'a> {
    /// The speaker's AS number.
    pub(super) asn: Asn,
    /// An external neighbour without a policy exchanges nothing (RFC 8212).
    pub(super) require_policy: bool,
    /// Graceful restart.
    pub(super) graceful_restart: Option<GracefulRestart>,
    /// The policies of the file.
    pub(super) policies: &'a BTreeMap<PolicyName, PolicyDef>,
}

/// Read an entry: its address as written, and what the speaker is told. Mistakes go to the flaws of the item.
pub(super) fn decode(item: &Item<'_>, known: &Known<'_>) -> (String, Option<(PeerKey, PeerConfig)>) {
    let Some(mut fields) = item.fields() else { return (String::new(), None) };
    later(&mut fields, &[("prefix", "", "name each neighbour by its address")]);
    let address = fields.need("address");
    let shown = address.as_ref().and_then(Item::text).unwrap_or_default().to_owned();
    let peer = decode_fields(&mut fields, address.as_ref(), known);
    fields.finish();
    (shown, peer)
}

fn decode_fields(
    fields: &mut Fields<'_>,
    address: Option<&Item<'_>>,
    known: &Known<'_>,
) -> Option<(PeerKey, PeerConfig)> {
    let wanted = "an address such as 192.0.2.2, or fe80::1%2 with the index of an interface";
    let key: Option<PeerKey> = address.and_then(|item| {
        // A port has a key of its own.
        item.parse_with(wanted, |text| text.parse().ok().filter(|key: &PeerKey| key.port == BGP_PORT))
    });
    let port = fields.take("port").and_then(|item| item.number("a port, 1 to 65535", 1..=u16::MAX));
    let remote = fields.need("asn").and_then(|item| match item.text() {
        Some("external") => Some(RemoteAsn::External),
        Some("internal") => Some(RemoteAsn::Internal),
        _ => asn(&item).map(RemoteAsn::Is),
    });
    let mut config = PeerConfig::new(remote.unwrap_or(RemoteAsn::External));
    config.graceful_restart = known.graceful_restart;
    if let Some(item) = fields.take("description") {
        config.description = item.text().unwrap_or_default().to_owned();
    }
    config.passive = fields.take("passive").and_then(|item| item.boolean()).unwrap_or(false);
    if let Some(item) = fields.take("local-address") {
        config.local_address = item.parse("an address such as 192.0.2.1");
    }
    config.local_asn = fields.take("local-asn").and_then(|item| local_asn(&item));
    if let Some(item) = fields.take("families") {
        config.families = families(&item);
    }
    let switch = |fields: &mut Fields<'_>, name, default| {
        fields.take(name).and_then(|item| item.boolean()).unwrap_or(default)
    };
    config.extended_messages = switch(fields, "extended-messages", config.extended_messages);
    config.extended_next_hop = switch(fields, "extended-next-hop", config.extended_next_hop);
    if let Some(item) = fields.take("hold-time") {
        let wanted = "seconds: 0, or 3 to 65535";
        let hold = item.parse_with(wanted, |text| text.parse().ok().and_then(HoldTime::new));
        config.hold_time = hold.unwrap_or(config.hold_time);
    }
    if let Some(item) = fields.take("keepalive") {
        config.keepalive = item.parse::<NonZeroU16>("seconds, 1 to 65535");
    }
    if let Some(item) = fields.take("connect-retry") {
        let retry = item.duration().filter(|retry| !retry.is_zero());
        config.connect_retry = retry.unwrap_or(config.connect_retry);
    }
    config.multihop_ttl = fields
        .take("multihop")
        .and_then(|item| item.number("a TTL, 1 to 255", 1..=255))
        .filter(|ttl| *ttl > 1);
    if let Some(item) = fields.take("next-hop") {
        config.next_hop = match item.word(&["default", "self", "keep"]) {
            Some(1) => NextHopMode::SelfAddress,
            Some(2) => NextHopMode::Keep,
            _ => NextHopMode::Default,
        };
    }
    let own = config.local_asn.unwrap_or(known.asn);
    let external = match config.remote_asn {
        RemoteAsn::Is(asn) => asn != own,
        RemoteAsn::External => true,
        RemoteAsn::Internal => false,
    };
    config.import = policy(fields.take("import"), external, known);
    config.export = policy(fields.take("export"), external, known);
    later(
        fields,
        &[
            ("ttl-security", "0", "leave it out; TTL security comes later"),
            ("md5-password-file", "", "leave it out; passwords come later"),
            ("route-reflector-client", "false", "leave it false"),
            ("add-path", "", "leave it out"),
            ("allow-own-as", "0", "leave it 0"),
            ("max-prefixes", "", "leave it out"),
        ],
    );
    Some((key?.with_port(port.unwrap_or(BGP_PORT)), config))
}

/// `local-asn`: a number, or `{asn, no-prepend: true, replace-as: true}`, which is what a number alone means here: the
/// neighbour sees this AS number and never the speaker's own.
fn local_asn(item: &Item<'_>) -> Option<Asn> {
    if item.is_scalar() {
        return asn(item);
    }
    let mut fields = item.fields()?;
    let number = fields.need("asn").and_then(|item| asn(&item));
    for key in ["no-prepend", "replace-as"] {
        if let Some(item) = fields.take(key)
            && item.boolean() == Some(false)
        {
            item.flaw(Mistake::Unsupported { remedy: "set it to true" });
        }
    }
    fields.finish();
    number
}

const FAMILIES: &str = "a family: ipv4-unicast or ipv6-unicast";
const LATER_FAMILIES: &[&str] = &["ipv4-vpn", "ipv6-vpn", "ipv4-srpolicy", "ipv6-srpolicy"];

fn families(item: &Item<'_>) -> FamilySet {
    let mut set = FamilySet::EMPTY;
    for item in item.list() {
        if item.text().is_some_and(|text| LATER_FAMILIES.contains(&text)) {
            item.flaw(Mistake::Unsupported { remedy: "use ipv4-unicast or ipv6-unicast" });
        } else if let Some(family) = item.parse(FAMILIES) {
            set.insert(family);
        }
    }
    if set.is_empty() {
        item.flaw(Mistake::Shape { wanted: "at least one family", found: "none" });
    }
    set
}

fn policy(item: Option<Item<'_>>, external: bool, known: &Known<'_>) -> Policy {
    let Some(item) = item else {
        return if external && known.require_policy { Policy::Reject } else { Policy::Accept };
    };
    match item.text() {
        Some("accept") => Policy::Accept,
        Some("reject") | None => Policy::Reject,
        Some(name) => {
            let named = PolicyName::new(name);
            if !known.policies.contains_key(&named) {
                let near = nearest(name, known.policies.keys().map(PolicyName::as_str)).map(str::to_owned);
                item.flaw(Mistake::NoSuchName { found: name.to_owned(), near });
            }
            Policy::Named(named)
        }
    }
}
