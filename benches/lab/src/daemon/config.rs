//! The same plan in each daemon's own words.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::plan::{self, ASN, Neighbor, Plan};
use crate::table::Family;

pub(super) fn bird(plan: &Plan) -> String {
    let mut text =
        format!("log stderr {{ error, fatal }};\nrouter id {};\nprotocol device {{ }}\n", plan.router_id());
    let channel = match plan.family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    };
    let internal = plan.neighbors.iter().any(|neighbor| neighbor.asn == ASN);
    if internal {
        // Next hops of internal neighbours are looked up among the connected networks, apart from the routes.
        text +=
            &format!("{channel} table nexthops;\nprotocol direct {{ {channel} {{ table nexthops; }}; }}\n");
    }
    if plan.policy {
        text += "filter rules {\n";
        for (number, (prefix, longest)) in plan::prefix_rules().enumerate() {
            let add = plan::mark(plan::PREFIX_MARK, number);
            let (high, low) = (add >> 16, add & 0xffff);
            text += &format!(
                "if net ~ [ {prefix}{{{},{longest}}} ] then bgp_community.add(({high},{low}));\n",
                prefix_length(&prefix)
            );
        }
        for (number, community) in plan::community_rules().enumerate() {
            let add = plan::mark(plan::COMMUNITY_MARK, number);
            let pair = |community: u32| format!("({},{})", community >> 16, community & 0xffff);
            text +=
                &format!("if {} ~ bgp_community then bgp_community.add({});\n", pair(community), pair(add));
        }
        text += "accept;\n}\n";
    }
    for (index, neighbor) in plan.neighbors.iter().enumerate() {
        let Neighbor { address, ours, asn, hears, client } = neighbor;
        let import = if plan.policy { "filter rules" } else { "all" };
        let export = if *hears { "all" } else { "none" };
        let client = if *client { "rr client; " } else { "" };
        let igp = if internal { "igp table nexthops; " } else { "" };
        // Both networks are on one link, where it would leave the next hop as it is; the others don't.
        let next_hop = if *asn == ASN { "" } else { "next hop self; " };
        text += &format!(
            "protocol bgp n{index} {{ local {ours} as {ASN}; neighbor {address} as {asn}; passive on; {client}\
             {channel} {{ {igp}{next_hop}import {import}; export {export}; }}; }}\n"
        );
    }
    text
}

fn prefix_length(prefix: &str) -> &str {
    prefix.rsplit_once('/').map_or("32", |(_, length)| length)
}

pub(super) fn peregrine(plan: &Plan, socket: &str) -> String {
    let listen: Vec<String> =
        plan.addresses().map(|address| format!("\"{}\"", std::net::SocketAddr::new(address, 179))).collect();
    let mut text = format!(
        "asn: {ASN}\nrouter-id: {}\nlisten: [{}]\nrequire-policy: false\napi: {socket}\n",
        plan.router_id(),
        listen.join(", ")
    );
    if plan.policy {
        let prefixes: Vec<String> = plan::prefix_rules()
            .enumerate()
            .map(|(number, (prefix, longest))| format!("p{number}: [\"{prefix} le {longest}\"]"))
            .collect();
        let pair = |community: u32| format!("\"{}:{}\"", community >> 16, community & 0xffff);
        let communities: Vec<String> = plan::community_rules()
            .enumerate()
            .map(|(number, community)| format!("c{number}: [{}]", pair(community)))
            .collect();
        writeln!(
            text,
            "sets:\n  prefixes: {{ {} }}\n  communities: {{ {} }}",
            prefixes.join(", "),
            communities.join(", ")
        )
        .expect("writing to a string");
        text += "policies:\n  rules:\n    statements:\n";
        for number in 0..prefixes.len() {
            let mark = pair(plan::mark(plan::PREFIX_MARK, number));
            text += &format!(
                "      - {{ if: {{ prefixes: p{number} }}, set: {{ add-communities: [{mark}] }}, then: next }}\n"
            );
        }
        for number in 0..communities.len() {
            let mark = pair(plan::mark(plan::COMMUNITY_MARK, number));
            text += &format!(
                "      - {{ if: {{ community: c{number} }}, set: {{ add-communities: [{mark}] }}, then: next }}\n"
            );
        }
        text += "    default: accept\n";
    }
    text += "neighbors:\n";
    let family = match plan.family {
        Family::V4 => "ipv4-unicast",
        Family::V6 => "ipv6-unicast",
    };
    for neighbor in &plan.neighbors {
        let Neighbor { address, asn, hears, client, .. } = neighbor;
        let export = if *hears { "" } else { ", export: reject" };
        let client = if *client { ", route-reflector-client: true" } else { "" };
        let import = if plan.policy { ", import: rules" } else { "" };
        text += &format!(
            "  - {{ address: \"{address}\", asn: {asn}, passive: true, families: [{family}]{import}{export}{client} }}\n"
        );
    }
    text
}

pub(super) fn frr(plan: &Plan) -> String {
    let family = match plan.family {
        Family::V4 => "ipv4",
        Family::V6 => "ipv6",
    };
    let mut text = format!(
        "log stdout emergencies\nrouter bgp {ASN}\n bgp router-id {}\n no bgp ebgp-requires-policy\n \
         no bgp network import-check\n no bgp default ipv4-unicast\n",
        plan.router_id()
    );
    let mut activated = String::new();
    // Neighbours of one kind form a peer group: so they are one update group from the beginning.
    let mut groups: Vec<(u32, bool, bool)> = Vec::new();
    for neighbor in &plan.neighbors {
        let Neighbor { address, asn, hears, client, .. } = neighbor;
        let kind = (*asn, *hears, *client);
        if !groups.contains(&kind) {
            groups.push(kind);
            let number = groups.len() - 1;
            text += &format!(
                " neighbor G{number} peer-group\n neighbor G{number} remote-as {asn}\n neighbor G{number} passive\n"
            );
            if *asn != ASN {
                text += &format!(" neighbor G{number} disable-connected-check\n");
            }
            activated += &format!("  neighbor G{number} activate\n");
            if *client {
                activated += &format!("  neighbor G{number} route-reflector-client\n");
            }
            if !hears {
                activated += &format!("  neighbor G{number} route-map NONE out\n");
            }
            if plan.policy {
                activated += &format!("  neighbor G{number} route-map RULES in\n");
            }
        }
        let number = groups.iter().position(|group| *group == kind).unwrap_or_default();
        text += &format!(" neighbor {address} peer-group G{number}\n");
    }
    text += &format!(
        " address-family {family} unicast\n{activated} exit-address-family\nexit\nroute-map NONE deny 10\nexit\n"
    );
    if plan.policy {
        let mut rules = String::new();
        let mut rule = |matches: String, mark: u32, number: usize, mark_kind: &str| {
            let sequence = 10 * (number + 1);
            rules += &format!(
                "route-map RULES permit {sequence}\n description {mark_kind}\n match {matches}\n set community {}:{} additive\n \
                 on-match next\nexit\n",
                mark >> 16,
                mark & 0xffff
            );
        };
        let mut lists = String::new();
        let mut count = 0;
        for (number, (prefix, longest)) in plan::prefix_rules().enumerate() {
            lists += &format!("ip prefix-list P{number} seq 5 permit {prefix} le {longest}\n");
            rule(
                format!("ip address prefix-list P{number}"),
                plan::mark(plan::PREFIX_MARK, number),
                count,
                "prefix",
            );
            count += 1;
        }
        for (number, community) in plan::community_rules().enumerate() {
            lists += &format!(
                "bgp community-list standard C{number} seq 5 permit {}:{}\n",
                community >> 16,
                community & 0xffff
            );
            rule(
                format!("community C{number}"),
                plan::mark(plan::COMMUNITY_MARK, number),
                count,
                "community",
            );
            count += 1;
        }
        // Before they are used: what is named and not there yet lets nothing in for some seconds.
        text = lists + &rules + "route-map RULES permit 9000\nexit\n" + &text;
    }
    text
}

pub(super) fn openbgpd(plan: &Plan, socket: &str) -> String {
    let mut text = format!("socket \"{socket}\"\nAS {ASN}\nrouter-id {}\nfib-update no\n", plan.router_id());
    for address in plan.addresses() {
        text += &format!("listen on {address}\n");
    }
    for neighbor in &plan.neighbors {
        let Neighbor { address, asn, hears, client, .. } = neighbor;
        text += &format!("neighbor {address} {{\n remote-as {asn}\n passive\n");
        if address.is_ipv6() {
            text += " announce IPv4 none\n announce IPv6 unicast\n";
        } else {
            text += " announce IPv6 none\n";
        }
        if *client {
            text += " route-reflector\n";
        }
        if !hears {
            text += " export none\n";
        }
        text += "}\n";
    }
    text += "allow from any\nallow to any\n";
    if plan.policy {
        let pair = |community: u32| format!("{}:{}", community >> 16, community & 0xffff);
        for (number, (prefix, longest)) in plan::prefix_rules().enumerate() {
            let mark = pair(plan::mark(plan::PREFIX_MARK, number));
            text += &format!("match from any prefix {prefix} maxlen {longest} set community {mark}\n");
        }
        for (number, community) in plan::community_rules().enumerate() {
            let mark = pair(plan::mark(plan::COMMUNITY_MARK, number));
            text += &format!("match from any community {} set community {mark}\n", pair(community));
        }
    }
    text
}

pub(super) fn gobgp(plan: &Plan) -> String {
    let addresses: Vec<String> = plan.addresses().map(|address: IpAddr| format!("\"{address}\"")).collect();
    let mut text = format!(
        "[global.config]\n as = {ASN}\n router-id = \"{}\"\n local-address-list = [{}]\n",
        plan.router_id(),
        addresses.join(", ")
    );
    for Neighbor { address, asn, client, .. } in &plan.neighbors {
        text += &format!(
            "[[neighbors]]\n [neighbors.config]\n  neighbor-address = \"{address}\"\n  peer-as = {asn}\n \
             [neighbors.transport.config]\n  passive-mode = true\n"
        );
        if *client {
            text += &format!(
                " [neighbors.route-reflector.config]\n  route-reflector-client = true\n  route-reflector-cluster-id = \"{}\"\n",
                plan.router_id()
            );
        }
    }
    text
}
