//! One entry of `neighbors`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::num::{NonZeroU8, NonZeroU16};
use std::path::Path;

use bgp_core::command::{Chain, LocalAsn, NextHopMode, PeerConfig, PeerRange, RemovePrivateAs};
use bgp_core::limit::{LimitAction, PrefixLimit};
use bgp_core::peer_key::{BGP_PORT, PeerKey};
use bgp_core::policy::PolicyName;
use bgp_core::secret::Secret;
use bgp_core::session::{AddPath, GracefulRestart, HoldTime, PeerRole, RemoteAsn};
use bgp_wire::{Asn, Family, FamilySet, Role};
use ipnet::IpNet;

use super::policy::decode_chain;
use super::{Whom, asn};
use crate::yaml::{Fields, Item, Mistake, nearest};

/// What a neighbour's entry may refer to.
pub(super) struct Known<'a> {
    /// The speaker's AS number.
    pub(super) asn: Asn,
    /// An external neighbour without a policy exchanges nothing (RFC 8212).
    pub(super) require_policy: bool,
    /// An external neighbour's paths must begin with its AS number.
    pub(super) enforce_first_as: bool,
    /// Graceful restart.
    pub(super) graceful_restart: Option<GracefulRestart>,
    /// The policies of the file.
    pub(super) policies: &'a BTreeSet<PolicyName>,
}

/// Whom an entry is about, and what the speaker is told.
pub(super) enum Neighbor {
    /// `address`: one neighbour.
    Peer(PeerKey, PeerConfig),
    /// `prefix`: whoever connects from there.
    Range(IpNet, PeerRange),
}

impl Neighbor {
    /// Whom it is about.
    pub(super) fn whom(&self) -> Whom {
        match self {
            Self::Peer(key, _) => Whom::Peer(*key),
            Self::Range(prefix, _) => Whom::Range(*prefix),
        }
    }

    /// What does not happen for want of a policy in its entry (RFC 8212), if anything.
    pub(super) fn lacks_policy(&self, item: &Item<'_>, known: &Known<'_>) -> Option<&'static str> {
        let config = match self {
            Self::Peer(_, config) => config,
            Self::Range(_, range) => &range.config,
        };
        if !known.require_policy || !is_external(config, known) {
            return None;
        }
        let mut fields = item.fields()?;
        match (fields.take("import").is_some(), fields.take("export").is_some()) {
            (false, false) => Some("nothing is accepted from it or announced to it"),
            (false, true) => Some("nothing is accepted from it"),
            (true, false) => Some("nothing is announced to it"),
            (true, true) => None,
        }
    }
}

/// Read an entry: its address or prefix as written, and what it says. Mistakes go to the flaws of the item.
pub(super) fn decode(item: &Item<'_>, known: &Known<'_>) -> (String, Option<Neighbor>) {
    let Some(mut fields) = item.fields() else { return (String::new(), None) };
    let prefix = fields.take("prefix");
    let whom = if prefix.is_some() { prefix.clone() } else { fields.need("address") };
    let shown = whom.as_ref().and_then(Item::text).unwrap_or_default().to_owned();
    let neighbor = match prefix {
        Some(prefix) => range(&mut fields, &prefix, known),
        None => peer(&mut fields, whom.as_ref(), known),
    };
    fields.finish();
    (shown, neighbor)
}

fn peer(fields: &mut Fields<'_>, address: Option<&Item<'_>>, known: &Known<'_>) -> Option<Neighbor> {
    let wanted = "an address such as 192.0.2.2, or fe80::1%2 with the index of an interface";
    let key: Option<PeerKey> = address.and_then(|item| {
        // A port has a key of its own.
        item.parse_with(wanted, |text| text.parse().ok().filter(|key: &PeerKey| key.port == BGP_PORT))
    });
    if let Some(item) = fields.take("limit") {
        item.flaw(Mistake::Conflict {
            rule: "limit and address exclude each other: an address is one neighbour",
        });
    }
    let port = fields.take("port").and_then(|item| item.number("a port, 1 to 65535", 1..=u16::MAX));
    let passive = fields.take("passive").and_then(|item| item.boolean()).unwrap_or(false);
    let config = PeerConfig { passive, ..config(fields, known) };
    Some(Neighbor::Peer(key?.with_port(port.unwrap_or(BGP_PORT)), config))
}

/// Nobody can connect to a prefix, so what is about connecting has no place here.
fn range(fields: &mut Fields<'_>, prefix: &Item<'_>, known: &Known<'_>) -> Option<Neighbor> {
    let wanted = "a prefix such as 192.0.2.0/24 without host bits";
    let prefix = prefix.parse_with(wanted, |text| {
        text.parse().ok().filter(|prefix: &IpNet| prefix.addr() == prefix.network())
    });
    for (key, rule) in [
        ("address", "address and prefix exclude each other"),
        ("port", "port and prefix exclude each other: neighbours of a prefix connect to us"),
        ("local-port", "local-port and prefix exclude each other: neighbours of a prefix connect to us"),
    ] {
        if let Some(item) = fields.take(key) {
            item.flaw(Mistake::Conflict { rule });
        }
    }
    if let Some(item) = fields.take("passive")
        && item.boolean() == Some(false)
    {
        let rule = "passive: false and prefix exclude each other: neighbours of a prefix connect to us";
        item.flaw(Mistake::Conflict { rule });
    }
    let limit = fields
        .take("limit")
        .and_then(|item| item.number("a number of neighbours, 1 to 1000000", 1..=1_000_000));
    let config = PeerConfig { passive: true, ..config(fields, known) };
    Some(Neighbor::Range(prefix?, PeerRange { config, limit: limit.unwrap_or(PeerRange::USUAL_LIMIT) }))
}

/// What entries of both kinds have.
fn config(fields: &mut Fields<'_>, known: &Known<'_>) -> PeerConfig {
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
    if let Some(item) = fields.take("local-address") {
        config.local_address = item.parse("an address such as 192.0.2.1");
    }
    config.local_port = fields.take("local-port").and_then(|item| item.parse("a port, 1 to 65535"));
    config.device =
        fields.take("device").and_then(|item| item.parse("the name of an interface such as eth0"));
    config.local_asn = fields.take("local-asn").and_then(|item| local_asn(&item));
    if let Some(item) = fields.take("families") {
        config.families = families(&item);
    }
    let switch = |fields: &mut Fields<'_>, name, default| {
        fields.take(name).and_then(|item| item.boolean()).unwrap_or(default)
    };
    config.extended_messages = switch(fields, "extended-messages", config.extended_messages);
    config.extended_next_hop = switch(fields, "extended-next-hop", config.extended_next_hop);
    config.add_path = fields.take("add-path").map(|item| add_path(&item)).unwrap_or_default();
    config.sr_policy_strict = switch(fields, "sr-policy-strict", config.sr_policy_strict);
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
    if let Some(item) = fields.take("delay-open") {
        // More than four minutes are refused with the rest of what the session is told.
        config.delay_open = item.duration().unwrap_or(config.delay_open);
    }
    if let Some(item) = fields.take("max-prefixes") {
        config.max_prefixes = max_prefixes(&item);
    }
    if let Some(item) = fields.take("max-prefixes-out") {
        let limits = by_family(&item).into_iter();
        let number = "a number of prefixes, 0 to 4294967295";
        config.max_prefixes_out =
            limits.filter_map(|(family, item)| Some((family, item.number(number, 0..=u32::MAX)?))).collect();
    }
    config.multihop_ttl = fields
        .take("multihop")
        .and_then(|item| item.number("a TTL, 1 to 255", 1..=255))
        .filter(|ttl| *ttl > 1);
    let hops = fields
        .take("ttl-security")
        .and_then(|item| item.number("hops, 1 to 255, or 0 for none", 0..=u8::MAX));
    config.ttl_security = hops.and_then(NonZeroU8::new);
    config.password = fields.take("md5-password-file").and_then(|item| password(&item));
    if let Some(item) = fields.take("next-hop") {
        config.next_hop = match item.word(&["default", "self", "keep"]) {
            Some(1) => NextHopMode::SelfAddress,
            Some(2) => NextHopMode::Keep,
            _ => NextHopMode::Default,
        };
    }
    config.next_hop_v4 = fields.take("next-hop-ipv4").and_then(|item| item.parse("an IPv4 address of ours"));
    config.next_hop_v6 = fields.take("next-hop-ipv6").and_then(|item| item.parse("an IPv6 address of ours"));
    let external = is_external(&config, known);
    config.role = role(fields, external);
    config.import = policy(fields.take("import"), external, known);
    config.export = policy(fields.take("export"), external, known);
    config.route_reflector_client = switch(fields, "route-reflector-client", false);
    let allow = fields.take("allow-own-as");
    let allow = allow.and_then(|item| item.number("how often ours may be in a path, 0 to 255", 0..=u8::MAX));
    config.allow_own_as = allow.unwrap_or(0);
    // A route server leaves itself out of the paths that it passes on (RFC 7947 section 2.2.2).
    let of_route_server = config.role.is_some_and(|ours| ours.role == Role::RouteServerClient);
    config.enforce_first_as =
        switch(fields, "enforce-first-as", known.enforce_first_as && external && !of_route_server);
    config.as_override = switch(fields, "as-override", false);
    config.remove_private_as = fields.take("remove-private-as").and_then(|item| remove_private_as(&item));
    config
}

/// The entries of a map by family.
fn by_family<'a>(item: &Item<'a>) -> Vec<(Family, Item<'a>)> {
    let mut entries = Vec::new();
    for (name, item) in item.entries() {
        match name.parse::<Family>() {
            Ok(family) => entries.push((family, item)),
            Err(_) => {
                let near = nearest(name, Family::ALL.map(Family::name)).map(str::to_owned);
                item.flaw(Mistake::Unknown { near });
            }
        }
    }
    entries
}

/// `max-prefixes`: for each family `{limit, action, restart}`. An action has to be named, as none of them is harmless for
/// everybody.
fn max_prefixes(item: &Item<'_>) -> BTreeMap<Family, PrefixLimit> {
    let mut limits = BTreeMap::new();
    for (family, item) in by_family(item) {
        let Some(mut fields) = item.fields() else { continue };
        let limit = fields
            .need("limit")
            .and_then(|item| item.number("a number of prefixes, 0 to 4294967295", 0..=u32::MAX));
        let action = fields.need("action").and_then(|item| item.word(&["warn", "discard", "reset"]));
        let restart = fields.take("restart");
        if let Some(item) = restart.as_ref().filter(|_| matches!(action, Some(0 | 1))) {
            item.flaw(Mistake::Conflict {
                rule: "restart is for action: reset, as the others keep the session",
            });
        }
        let restart = restart.and_then(|item| {
            let restart = item.duration()?;
            if restart.is_zero() {
                let (wanted, found) =
                    ("seconds, 1 or more; leave it out to wait for an operator", "0".to_owned());
                item.flaw(Mistake::Value { wanted, found });
            }
            Some(restart)
        });
        fields.finish();
        let action = match action {
            Some(0) => LimitAction::Warn,
            Some(1) => LimitAction::Discard,
            Some(_) => LimitAction::Reset { restart },
            None => continue,
        };
        if let Some(limit) = limit {
            limits.insert(family, PrefixLimit { limit, action });
        }
    }
    limits
}

fn is_external(config: &PeerConfig, known: &Known<'_>) -> bool {
    match config.remote_asn {
        RemoteAsn::Is(asn) => asn != config.local_asn.map_or(known.asn, |local| local.asn),
        RemoteAsn::External => true,
        RemoteAsn::Internal => false,
    }
}

/// The password in a file. Of a file only so much is read that a password which is too long is known as one.
fn password(item: &Item<'_>) -> Option<Secret> {
    const ENOUGH: usize = 4096;
    let path = item.text()?;
    let read = || -> std::io::Result<Vec<u8>> {
        // All its room at once: a vector that grows leaves copies behind.
        let mut content = Vec::with_capacity(2 * ENOUGH);
        File::open(path)?.take(ENOUGH as u64).read_to_end(&mut content)?;
        Ok(content)
    };
    let content = read().map_err(|error| error.to_string());
    match content.and_then(|content| Secret::from_file_content(content).map_err(|error| error.to_string())) {
        Ok(secret) => Some(secret),
        Err(reason) => {
            // Somebody may have written the password itself, and a slash makes no path of it: base64 has them too.
            let is_path = Path::new(path).is_absolute() || std::fs::symlink_metadata(path).is_ok();
            let path = if is_path { path } else { "(not shown)" };
            item.flaw(Mistake::File { path: path.to_owned(), reason });
            None
        }
    }
}

/// `local-asn`: a number, or `{asn, no-prepend: true, replace-as: true}`, which is what a number alone means here: the
/// neighbour sees this AS number and never the speaker's own.
fn local_asn(item: &Item<'_>) -> Option<LocalAsn> {
    if item.is_scalar() {
        return asn(item).map(LocalAsn::new);
    }
    let mut fields = item.fields()?;
    let number = fields.need("asn").and_then(|item| asn(&item));
    let mut switch = |name| fields.take(name).and_then(|item| item.boolean()).unwrap_or(true);
    let (no_prepend, replace_as) = (switch("no-prepend"), switch("replace-as"));
    fields.finish();
    number.map(|asn| LocalAsn { asn, no_prepend, replace_as })
}

/// `remove-private-as`: no, `leading` or `all`, or `{ remove: all, replace: true }`.
fn remove_private_as(item: &Item<'_>) -> Option<RemovePrivateAs> {
    let all = |item: &Item<'_>| item.word(&["leading", "all"]).map(|word| word == 1);
    if item.is_scalar() {
        if item.text() == Some("false") {
            return None;
        }
        return all(item).map(|all| RemovePrivateAs { all, replace: false });
    }
    let mut fields = item.fields()?;
    let all = fields.need("remove").and_then(|item| all(&item));
    let replace = fields.take("replace").and_then(|item| item.boolean()).unwrap_or(false);
    fields.finish();
    all.map(|all| RemovePrivateAs { all, replace })
}

/// `role`: what we are to the neighbour; `role-strict`: it must say what it is to us.
fn role(fields: &mut Fields<'_>, external: bool) -> Option<PeerRole> {
    let item = fields.take("role");
    let wanted = "what we are to the neighbour: provider, customer, peer, rs or rs-client";
    let role = item.as_ref().and_then(|item| item.parse::<Role>(wanted));
    if let Some(item) = item.filter(|_| !external) {
        let rule =
            "role and asn exclude each other: a role is for a neighbour in another AS, this one is in ours";
        item.flaw(Mistake::Conflict { rule });
    }
    let strict = fields.take("role-strict");
    let wanted = strict.as_ref().and_then(Item::boolean).unwrap_or(false);
    if let Some(item) = strict.filter(|_| wanted && role.is_none()) {
        item.flaw(Mistake::Conflict { rule: "role-strict: true asks for a role: say role as well" });
    }
    role.map(|role| PeerRole { role, strict: wanted })
}

/// `add-path`: `{receive: true, send: 4}`, each of which may be left out.
fn add_path(item: &Item<'_>) -> AddPath {
    let Some(mut fields) = item.fields() else { return AddPath::NONE };
    let receive = fields.take("receive").and_then(|item| item.boolean()).unwrap_or(false);
    let send = fields
        .take("send")
        .and_then(|item| item.number("paths of a prefix, 1 to 255, or 0 for the best one only", 0..=u8::MAX));
    fields.finish();
    AddPath { receive, send: send.and_then(NonZeroU8::new) }
}

pub(super) const FAMILIES: &str =
    "a family: ipv4-unicast, ipv6-unicast, ipv4-vpn, ipv6-vpn, ipv4-srpolicy or ipv6-srpolicy";

fn families(item: &Item<'_>) -> FamilySet {
    let mut set = FamilySet::EMPTY;
    let items = item.list();
    for item in &items {
        if let Some(family) = item.parse(FAMILIES) {
            set.insert(family);
        }
    }
    if items.is_empty() {
        item.flaw(Mistake::Shape { wanted: "at least one family", found: "none" });
    }
    set
}

fn policy(item: Option<Item<'_>>, external: bool, known: &Known<'_>) -> Chain {
    match item {
        Some(item) => decode_chain(&item, known.policies),
        None if external && known.require_policy => Chain::REJECT,
        None => Chain::ACCEPT,
    }
}
