//! Writes the seeds of the fuzz targets from the golden vectors: `cargo run --example seeds`.
//!
//! Every golden message becomes a seed of `message`, and the body of every UPDATE one of `update`, on the
//! session of its vector. Each message also becomes a recorded one, and the routes of each UPDATE a table, as seeds of
//! `mrt`.

use std::{fs, io, net::Ipv4Addr, path::Path};

use bgp_wire::{
    Asn, FamilySet, Negotiated, Nlri, NlriKey, PathId, RouterId, UpdateView,
    attr::Canonical,
    mrt::{Peer, TablePath, TableWriter},
};

fn main() -> io::Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = here.join("../tests/golden/bgp");
    for file in ["carried.txt", "field-faults.txt", "session.txt", "sent.txt", "sr-policy.txt", "vpn.txt"] {
        let text = fs::read_to_string(golden.join(file))?;
        for vector in text.split("\n[").skip(1) {
            let Some((name, session)) = vector.lines().next().and_then(|head| head.split_once("] ")) else {
                continue;
            };
            let choice = match session {
                "A" => 3,
                "I" => 1,
                "2" => 2 | 16,
                "D" => 7 | 16,
                "L" => 3 | 8,
                "S" => 3 | 48,
                "P" => 7 | 48,
                "V" => 3 | 16 | 32,
                "W" => 7 | 16 | 32,
                _ => continue,
            };
            let octets: Vec<u8> =
                vector.lines().filter_map(|line| line.strip_prefix("> ")).flat_map(from_hex).collect();
            let name = name.to_lowercase().replace(' ', "-");
            write(&here.join("corpus/message"), &name, choice, &octets)?;
            if octets.get(18) == Some(&2) {
                write(&here.join("corpus/update"), &name, choice, &octets[19..])?;
            }
            let folder = here.join("corpus/mrt");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(&name), recorded(choice, &octets))?;
            let table = table(choice, &octets);
            if !table.is_empty() {
                fs::write(folder.join(format!("{name}-table")), table)?;
            }
        }
    }
    Ok(())
}

fn from_hex(line: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        line.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect()
}

fn write(folder: &Path, name: &str, choice: u8, octets: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join(name), [&[choice], octets].concat())
}

/// A message as a collector writes it.
fn recorded(choice: u8, message: &[u8]) -> Vec<u8> {
    let four_octet = choice & 1 != 0;
    let subtype = if four_octet { 4 } else { 1 } + if choice & 4 != 0 { 5 } else { 0 };
    let asns: &[u8] =
        if four_octet { &[0, 0, 0xfd, 0xf2, 0, 0, 0xfd, 0xf3] } else { &[0xfd, 0xf2, 0xfd, 0xf3] };
    let ends = [0, 0, 0, 1, 192, 0, 2, 1, 192, 0, 2, 2];
    let length = (asns.len() + ends.len() + message.len()) as u32;
    [&[0, 0, 0, 1, 0, 16, 0, subtype], &length.to_be_bytes()[..], asns, &ends, message].concat()
}

/// The routes of an UPDATE as a table; nothing where there are none.
fn table(choice: u8, message: &[u8]) -> Vec<u8> {
    let add_path = if choice & 4 != 0 { FamilySet::ALL } else { FamilySet::EMPTY };
    let neg = Negotiated {
        families: FamilySet::ALL,
        four_octet: choice & 1 != 0,
        ebgp: choice & 2 != 0,
        add_path_receive: add_path,
        extended_next_hop: FamilySet::ALL,
        ..Negotiated::default()
    };
    let mut out = Vec::new();
    let Some(Ok(view)) = message.get(19..).map(|body| UpdateView::parse(body, &neg)) else { return out };
    let Ok(decoded) = view.decode() else { return out };
    if decoded.treat_as_withdraw.is_some() {
        return out;
    }
    let mut routes = Vec::new();
    routes.extend(view.announced().map(|(id, key)| (id, Nlri::from(key), None, decoded.next_hop)));
    let hop = view.mp_reach().map(|reach| reach.next_hop);
    fn mp<K: NlriKey>(view: &UpdateView<'_>) -> Vec<(PathId, Nlri, Option<bgp_wire::Label>)> {
        let mut rest = view.mp_announced::<K>();
        std::iter::from_fn(|| rest.next_labelled()).map(|(id, key, label)| (id, key.into(), label)).collect()
    }
    let all = [
        mp::<bgp_wire::Ipv4Prefix>(&view),
        mp::<bgp_wire::Ipv6Prefix>(&view),
        mp::<bgp_wire::VpnIpv4Prefix>(&view),
        mp::<bgp_wire::VpnIpv6Prefix>(&view),
        mp::<bgp_wire::SrPolicy4>(&view),
        mp::<bgp_wire::SrPolicy6>(&view),
    ];
    routes.extend(all.into_iter().flatten().map(|(id, nlri, label)| (id, nlri, label, hop)));
    let mut writer = TableWriter::new(1);
    let peer = Peer { router_id: RouterId(1), address: Ipv4Addr::new(192, 0, 2, 1).into(), asn: Asn(65010) };
    if routes.is_empty() || writer.peers(RouterId(2), "seed", &[peer], &mut out).is_err() {
        return Vec::new();
    }
    for (id, nlri, label, next_hop) in routes.into_iter().take(4) {
        let path_id = (choice & 4 != 0).then_some(id);
        let attrs = Canonical(&decoded.canonical);
        let path = TablePath { peer: 0, originated: 1, path_id, label, next_hop, attrs };
        if writer.destination(nlri, &[path], &mut out).is_err() {
            return Vec::new();
        }
    }
    out
}
