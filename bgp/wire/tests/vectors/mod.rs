//! Golden vectors of BGP messages: the file format, and a message's meaning in words.
//!
//! A vector begins with `[name] session`, says in prose what it is, then has the octets on lines that begin
//! with `>` and the meaning on lines that begin with `<`. `#` begins a comment. Several tests use this
//! module, each a part of it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::{fmt::Write as _, path::Path};

use bgp_wire::{
    Asn, Capability, Family, Ipv4Prefix, Ipv6Prefix, Message, Negotiated, NlriKey, Open, PathId, Prefixes,
    RouterId, SrPolicy4, SrPolicy6, UpdateView, VpnIpv4Prefix, VpnIpv6Prefix, WireError,
    attr::{Canonical, Decoded},
    capability::{AddPath, ExtendedNextHop},
    frame::split_message,
    parse_message,
};

pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) session: String,
    pub(crate) octets: Vec<u8>,
    pub(crate) meaning: Vec<String>,
}

/// The vectors of a file of this project's `tests/golden/bgp`.
pub(crate) fn load(file: &str) -> Vec<Vector> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/bgp").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut vectors: Vec<Vector> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix('[') {
            let (name, session) = head.split_once("] ").unwrap();
            vectors.push(Vector {
                name: name.to_owned(),
                session: session.to_owned(),
                octets: Vec::new(),
                meaning: Vec::new(),
            });
        } else if let (Some(vector), Some(octets)) = (vectors.last_mut(), line.strip_prefix("> ")) {
            vector.octets.extend(from_hex(octets).expect("hexadecimal digits"));
        } else if let (Some(vector), Some(meaning)) = (vectors.last_mut(), line.strip_prefix("< ")) {
            vector.meaning.push(meaning.to_owned());
        }
    }
    assert!(!vectors.is_empty());
    vectors
}

/// Octets from hexadecimal digits; `None` if they are none.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.trim().chars().map(|digit| Some(digit.to_digit(16)? as u8)).collect();
    let (pairs, []) = digits.as_ref()?.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        write!(text, "{octet:02x}").unwrap();
        text
    })
}

/// What a session agreed on. `A`: external, 4-octet AS numbers, both families. `I`: the same, internal. `2`:
/// external, 2-octet AS numbers, IPv4. `D`: external, 4-octet AS numbers, IPv4 with path identifiers both
/// ways. `L`: as `A`, with long messages. `S`: external, 4-octet AS numbers, SR policies. `P`: the same, with path
/// identifiers. `V`: external, both families of VPNs, IPv6 next hops for either. `W`: the same, with path identifiers.
pub(crate) fn session(name: &str) -> Negotiated {
    let (v4, v6) = (Capability::family(Family::Ipv4Unicast), Capability::family(Family::Ipv6Unicast));
    let four = |asn| Capability::FourOctetAs(Asn(asn));
    let both = Capability::AddPath(vec![AddPath { afi: 1, safi: 1, receive: true, send: true }]);
    let open = |asn: u32, id: u32, capabilities: &[Capability]| {
        Open::new(Asn(asn), 90, RouterId(id), capabilities.to_vec())
    };
    let agree = |ours: u32, ours_offer: &[Capability], theirs_offer: &[Capability]| {
        Negotiated::agree(&open(ours, 0xc000_020a, ours_offer), &open(65020, 0xc000_0214, theirs_offer))
    };
    match name {
        "A" => agree(65010, &[v4.clone(), v6.clone(), four(65010)], &[v4, v6, four(65020)]),
        "I" => agree(65020, &[v4.clone(), v6.clone(), four(65020)], &[v4, v6, four(65020)]),
        "2" => agree(65010, &[v4.clone(), four(65010)], &[v4]),
        "D" => agree(65010, &[v4.clone(), both.clone(), four(65010)], &[v4, both, four(65020)]),
        "L" => {
            let long = Capability::ExtendedMessage;
            agree(65010, &[v4.clone(), v6.clone(), long.clone(), four(65010)], &[v4, v6, long, four(65020)])
        }
        "S" | "P" => {
            let add_path = |afi| AddPath { afi, safi: 73, receive: true, send: true };
            let mut offer = vec![
                Capability::family(Family::Ipv4SrPolicy),
                Capability::family(Family::Ipv6SrPolicy),
                four(65010),
            ];
            offer.extend((name == "P").then(|| Capability::AddPath(vec![add_path(1), add_path(2)])));
            agree(65010, &offer, &[&offer[..2], &[four(65020)], &offer[3..]].concat())
        }
        "V" | "W" => {
            let families = [Family::Ipv4Vpn, Family::Ipv6Vpn];
            let mut offer = families.map(Capability::family).to_vec();
            let next_hop = ExtendedNextHop { afi: 1, safi: 128, next_hop_afi: 2 };
            offer.push(Capability::ExtendedNextHop(vec![next_hop]));
            if name == "W" {
                let both = families.map(|family| AddPath {
                    afi: family.afi(),
                    safi: family.safi(),
                    receive: true,
                    send: true,
                });
                offer.push(Capability::AddPath(both.to_vec()));
            }
            let with = |asn| [&offer[..], &[four(asn)]].concat();
            agree(65010, &with(65010), &with(65020))
        }
        _ => panic!("no session {name}"),
    }
}

pub(crate) const SESSIONS: [&str; 9] = ["A", "I", "2", "D", "L", "S", "P", "V", "W"];

/// Reads one message as far as it goes and says what follows from it, a line for each thing. Touches every
/// accessor.
pub(crate) fn describe(octets: &[u8], neg: &Negotiated) -> Vec<String> {
    let mut lines = Vec::new();
    match split_message(octets, usize::from(neg.max_message)) {
        Ok(None) => lines.push("incomplete".to_owned()),
        Ok(Some(frame)) => match parse_message(frame, neg) {
            Ok(message) => describe_message(&message, &mut lines),
            Err(error) => lines.push(reset(&error)),
        },
        Err(error) => lines.push(reset(&error)),
    }
    lines
}

fn reset(error: &WireError) -> String {
    let notification = &error.notification;
    let mut line = format!("reset {}/{}", notification.code, notification.subcode);
    if !notification.data.is_empty() {
        write!(line, " data {}", hex(&notification.data)).unwrap();
    }
    write!(line, " ({error})").unwrap();
    line
}

fn describe_message(message: &Message<'_>, lines: &mut Vec<String>) {
    match message {
        Message::Open(open) => {
            let head = format!("open AS {} hold {} id {}", open.asn(), open.hold_time, open.router_id);
            let capabilities = open.capabilities.iter().map(|capability| format!("; {capability}"));
            lines.push(std::iter::once(head).chain(capabilities).collect());
        }
        Message::Update(view) => describe_update(view, lines),
        Message::Notification(notification) => lines.push(format!("notification {notification}")),
        Message::Keepalive => lines.push("keepalive".to_owned()),
        Message::RouteRefresh(refresh) => {
            lines.push(format!("route-refresh {}/{} subtype {}", refresh.afi, refresh.safi, refresh.subtype));
        }
    }
}

fn describe_update(view: &UpdateView<'_>, lines: &mut Vec<String>) {
    if let Some(family) = view.end_of_rib() {
        lines.push(format!("end-of-rib {family}"));
    }
    if let Some((afi, safi)) = view.foreign() {
        lines.push(format!("ignore {afi}/{safi}"));
    }
    if view.passed_over() > 0 {
        lines.push(format!("pass over {}", view.passed_over()));
    }
    let withdraw = |(id, key)| format!("withdraw {}", prefix(id, key));
    lines.extend(view.withdrawn().map(withdraw));
    lines.extend(view.mp_withdrawn::<Ipv4Prefix>().map(withdraw));
    lines.extend(view.mp_withdrawn::<Ipv6Prefix>().map(|(id, key)| format!("withdraw {}", prefix(id, key))));
    lines.extend(view.mp_withdrawn::<SrPolicy4>().map(|(id, key)| format!("withdraw {}", prefix(id, key))));
    lines.extend(view.mp_withdrawn::<SrPolicy6>().map(|(id, key)| format!("withdraw {}", prefix(id, key))));
    lines.extend(
        view.mp_withdrawn::<VpnIpv4Prefix>().map(|(id, key)| format!("withdraw {}", prefix(id, key))),
    );
    lines.extend(
        view.mp_withdrawn::<VpnIpv6Prefix>().map(|(id, key)| format!("withdraw {}", prefix(id, key))),
    );
    let decoded = match view.decode() {
        Ok(decoded) => decoded,
        Err(error) => return lines.push(reset(&error)),
    };
    lines.extend(decoded.discarded.iter().map(ToString::to_string));
    lines.extend(decoded.treat_as_withdraw.iter().map(ToString::to_string));
    let verb = if decoded.treat_as_withdraw.is_some() { "withdraw" } else { "announce" };
    let via = |next_hop: Option<bgp_wire::NextHop>| match (decoded.treat_as_withdraw, next_hop) {
        (None, Some(bgp_wire::NextHop::V6 { global, link_local: Some(beside) })) => {
            format!(" via {global} and {beside}")
        }
        (None, Some(next_hop)) => format!(" via {next_hop}"),
        _ => String::new(),
    };
    let classic = via(decoded.next_hop);
    let inside = via(view.mp_reach().map(|reach| reach.next_hop));
    lines.extend(view.announced().map(|(id, key)| format!("{verb} {}{classic}", prefix(id, key))));
    let mp4 = view.mp_announced::<Ipv4Prefix>();
    lines.extend(mp4.map(|(id, key)| format!("{verb} {}{inside}", prefix(id, key))));
    let mp6 = view.mp_announced::<Ipv6Prefix>();
    lines.extend(mp6.map(|(id, key)| format!("{verb} {}{inside}", prefix(id, key))));
    let sr4 = view.mp_announced::<SrPolicy4>();
    lines.extend(sr4.map(|(id, key)| format!("{verb} {}{inside}", prefix(id, key))));
    let sr6 = view.mp_announced::<SrPolicy6>();
    lines.extend(sr6.map(|(id, key)| format!("{verb} {}{inside}", prefix(id, key))));
    describe_labelled(verb, &inside, view.mp_announced::<VpnIpv4Prefix>(), lines);
    describe_labelled(verb, &inside, view.mp_announced::<VpnIpv6Prefix>(), lines);
    if view.has_reachable() && decoded.treat_as_withdraw.is_none() {
        lines.push(describe_set(&decoded));
    }
}

fn describe_labelled<K: NlriKey>(
    verb: &str,
    inside: &str,
    mut prefixes: Prefixes<'_, K>,
    lines: &mut Vec<String>,
) {
    while let Some((id, key, label)) = prefixes.next_labelled() {
        lines.push(format!("{verb} {} label {}{inside}", prefix(id, key), label.expect("a label")));
    }
}

fn prefix<K: NlriKey>(id: PathId, key: K) -> String {
    if id == PathId::NONE { key.to_string() } else { format!("{key} path {id}") }
}

fn describe_set(decoded: &Decoded) -> String {
    let set = Canonical(&decoded.canonical);
    let mut line = format!("with origin {} path \"{}\"", set.origin(), set.as_path());
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(line, " {name} {value}").unwrap();
        }
    };
    let list = |items: Vec<String>| (!items.is_empty()).then(|| items.join(" "));
    put("med", set.med().map(|med| med.to_string()));
    put("local-pref", set.local_pref().map(|local_pref| local_pref.to_string()));
    put("atomic-aggregate", set.atomic_aggregate().then(|| "yes".to_owned()));
    put("aggregator", set.aggregator().map(|aggregator| aggregator.to_string()));
    put("communities", list(set.communities().map(|community| community.to_string()).collect()));
    put("originator", set.originator().map(|originator| originator.to_string()));
    put("clusters", list(set.cluster_list().map(|cluster| cluster.to_string()).collect()));
    put("ext-communities", list(set.ext_communities().map(|community| community.to_string()).collect()));
    put("large-communities", list(set.large_communities().map(|community| community.to_string()).collect()));
    put("tunnel-encap", set.attr(23).map(|attr| hex(attr.value)));
    put("only-to-customer", set.only_to_customer().map(|asn| asn.to_string()));
    put("prefix-sid", set.attr(40).map(|attr| hex(attr.value)));
    put("unknown", list(set.unknown().map(|attr| hex(attr.raw)).collect()));
    line
}
