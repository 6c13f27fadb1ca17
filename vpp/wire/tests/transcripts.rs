//! Holds the structs against frames recorded from a real VPP: what was sent is built again from its meaning, what was
//! received is read and means what was noted down with it, and both come to the same bytes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::IpNet;
use serde_json::{Value, json};
use vpp_wire::api::memclnt::{SockclntCreate, SockclntCreateReply, SockclntDelete};
use vpp_wire::api::wireguard::{InterfaceCreate, PeerAdd};
use vpp_wire::api::{self, feature, fib, gso, interface, ip, ipip, vpe};
use vpp_wire::frame::{self, Cut};
use vpp_wire::head::{address, context_at, message_id};
use vpp_wire::layout::{Layout, Shape};
use vpp_wire::message::Descriptor;
use vpp_wire::types::{
    AddressFamily, FibMplsLabel, FibPath, FibSourceId, FixedString, MAX_LABELS, SwIfIndex, TableId,
};
use vpp_wire::{ClientIndex, FromBytes, Message, MessageTable, MsgId, MsgName, Payload, Refused};

macro_rules! transcripts {
    ($($file:literal),* $(,)?) => {
        &[ $( ($file, include_str!(concat!("../../catalogue/transcripts/", $file, ".json"))) ),* ]
    };
}

const TRANSCRIPTS: &[(&str, &str)] = transcripts![
    "00-handshake",
    "01-interface",
    "02-ip-table",
    "03-ip-route",
    "04-ip-neighbor",
    "05-ipip",
    "06-vxlan",
    "07-wireguard",
    "08-ikev2",
    "09-ipsec",
    "10-srv6",
    "11-cnat",
    "12-bfd",
    "13-feature-punt",
    "14-npol",
    "15-transport",
    "16-established",
];

struct Frame {
    place: String,
    from_client: bool,
    name: String,
    bytes: Vec<u8>,
    truncated: bool,
    decoded: Value,
}

impl Frame {
    fn payload(&self) -> &[u8] {
        match frame::cut(&self.bytes).expect("recorded lengths are sane") {
            Cut::Frame(payload) => payload,
            Cut::Need(_) => panic!("{}: cut short", self.place),
        }
    }
}

fn frames() -> Vec<Frame> {
    let mut frames = Vec::new();
    for (file, text) in TRANSCRIPTS {
        let transcript: Value = serde_json::from_str(text).expect("JSON");
        for (at, frame) in transcript["frames"].as_array().expect("frames").iter().enumerate() {
            let Some(name) = frame["msg"].as_str() else {
                continue;
            };
            frames.push(Frame {
                place: format!("{file}, frame {at}, {name}"),
                from_client: frame["dir"] == "c2s",
                name: name.to_owned(),
                bytes: unhex(frame["frame"].as_str().expect("hex")),
                truncated: frame.get("frame_truncated").is_some(),
                decoded: frame["decoded"].clone(),
            });
        }
    }
    frames
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

/// What the recorded VPP, a 26.06, has: of a message with several forms the newest, which is declared last.
fn known() -> BTreeMap<&'static str, &'static Descriptor> {
    api::messages().map(|message| (message.name.name(), message)).collect()
}

/// Every field of `layout` in `bytes` means what the recording says.
fn compare(layout: &Layout, bytes: &[u8], decoded: &Value, place: &str) {
    let mut count = None;
    for field in layout.fields {
        let name = field.name.trim_start_matches("r#");
        let value = if name == "head" { decoded } else { &decoded[name] };
        compare_value(&field.shape, &bytes[field.at..], value, &format!("{place}.{name}"));
        if layout.tail.is_some_and(|tail| tail.count == field.name) {
            count = Some(number(&bytes[field.at..field.at + field.shape.size()]) as usize);
        }
    }
    if let Some(tail) = &layout.tail {
        if let Some(hex) = decoded[tail.name]["hex"].as_str() {
            assert_eq!(bytes[layout.fixed..][..count.expect("a count")], unhex(hex), "{place}.{}", tail.name);
            return;
        }
        let Some(values) = decoded[tail.name].as_array() else {
            // Only the message table, which has a test of its own, is not spelled out.
            assert_eq!(tail.name, "message_table", "{place}");
            return;
        };
        assert_eq!(count, Some(values.len()), "{place}");
        for (bytes, value) in bytes[layout.fixed..].chunks(tail.element.size()).zip(values) {
            compare_value(&tail.element, bytes, value, &format!("{place}.{}", tail.name));
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn compare_value(shape: &Shape, bytes: &[u8], value: &Value, place: &str) {
    let own = bytes.get(..shape.size()).unwrap_or_else(|| panic!("{place}: bytes are missing"));
    if let Some(hex) = value["hex"].as_str() {
        let own = if let Shape::VarText = shape { &bytes[4..4 + number(own) as usize] } else { own };
        return assert_eq!(own, unhex(hex), "{place}");
    }
    match shape {
        Shape::Unsigned(_) | Shape::Named { .. } if value.is_string() => {
            // An enumerator by name. Where this crate has no name for it, the catalogue test has checked the width.
            if let Shape::Named { values, .. } = shape
                && let Some((name, _)) = values.iter().find(|(_, known)| u64::from(*known) == number(own))
            {
                assert!(
                    value.as_str().is_some_and(|text| text.ends_with(name)),
                    "{place}: {value} is not {name}"
                );
            }
        }
        Shape::Unsigned(_) | Shape::Named { .. } => assert_eq!(Some(number(own)), value.as_u64(), "{place}"),
        Shape::Signed(_) => {
            let unused = 64 - 8 * own.len();
            let signed = (number(own) << unused).cast_signed() >> unused;
            assert_eq!(Some(signed), value.as_i64(), "{place}");
        }
        Shape::Float => {
            let float = f64::from_ne_bytes(own.try_into().expect("8 bytes"));
            assert_eq!(Some(float), value.as_f64(), "{place}");
        }
        Shape::Bool => assert_eq!(Some(own != [0]), value.as_bool(), "{place}"),
        Shape::Text(_) => {
            let text = own.split(|byte| *byte == 0).next().expect("split yields something");
            assert_eq!(Some(String::from_utf8_lossy(text).as_ref()), value.as_str(), "{place}");
        }
        Shape::VarText => {
            let text = &bytes[4..4 + number(own) as usize];
            assert_eq!(Some(String::from_utf8_lossy(text).as_ref()), value.as_str(), "{place}");
        }
        Shape::Octets(_) => panic!("{place}: {value} is not hex"),
        Shape::Array(element, n) => {
            for at in 0..*n {
                compare_value(element, &own[at * element.size()..], &value[at], place);
            }
        }
        Shape::Struct(layout) => compare(layout, bytes, value, place),
    }
}

#[test]
fn recorded_frames_mean_what_was_noted_down() {
    let known = known();
    let mut compared = BTreeMap::<&str, usize>::new();
    for frame in frames() {
        let Some(message) = known.get(frame.name.as_str()) else {
            continue;
        };
        if frame.truncated || frame.decoded.is_null() {
            continue;
        }
        let payload = frame.payload();
        compare(message.layout, payload, &frame.decoded, &frame.place);
        let length = (message.measure)(payload).unwrap_or_else(|error| panic!("{}: {error}", frame.place));
        for short in 0..length {
            assert!(
                (message.measure)(&payload[..short]).is_err(),
                "{}: {short} bytes are enough?",
                frame.place
            );
        }
        if !frame.from_client {
            assert_eq!(length, payload.len(), "{}", frame.place);
        }
        *compared.entry(message.name.name()).or_default() += 1;
    }
    assert!(compared.len() >= 290, "only {} messages", compared.len());
}

/// Writes what a recording says, field by field.
fn write(layout: &Layout, decoded: &Value, out: &mut Vec<u8>) {
    for field in layout.fields {
        let name = field.name.trim_start_matches("r#");
        write_value(&field.shape, if name == "head" { decoded } else { &decoded[name] }, out);
    }
    let Some(tail) = &layout.tail else {
        return;
    };
    match decoded[tail.name].as_array() {
        Some(values) => values.iter().for_each(|value| write_value(&tail.element, value, out)),
        None => out.extend(unhex(decoded[tail.name]["hex"].as_str().expect("hex"))),
    }
}

fn write_value(shape: &Shape, value: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    let bytes = |value: u64| value.to_be_bytes()[8 - shape.size()..].to_vec();
    match (shape, value) {
        (Shape::Struct(layout), _) => write(layout, value, out),
        (Shape::VarText, _) => {
            let text = value["hex"].as_str().map_or_else(|| value.as_str().expect("text").into(), unhex);
            out.extend(u32::try_from(text.len()).expect("short").to_be_bytes());
            out.extend(text);
        }
        (_, Value::Object(_)) => out.extend(unhex(value["hex"].as_str().expect("hex"))),
        (Shape::Text(width), _) => {
            out.extend_from_slice(value.as_str().expect("text").as_bytes());
            out.resize(start + width, 0);
        }
        (Shape::Float, _) => out.extend(value.as_f64().expect("a number").to_ne_bytes()),
        (Shape::Array(element, _), Value::Array(values)) => {
            values.iter().for_each(|value| write_value(element, value, out));
        }
        (_, Value::Bool(bool)) => out.push(u8::from(*bool)),
        (_, Value::String(name)) => out.extend(bytes(enumerator(name))),
        (_, number) => {
            let number = number.as_u64().or(number.as_i64().map(i64::cast_unsigned));
            out.extend(bytes(number.expect("a number")));
        }
    }
}

/// The value of an enumerator by VPP's name of it.
fn enumerator(name: &str) -> u64 {
    static CATALOGUE: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../../catalogue/messages.json")).expect("the catalogue is JSON")
    });
    let enums = CATALOGUE["enums"].as_object().expect("enums");
    let found = enums.values().find_map(|definition| definition["values"][name].as_u64());
    found.unwrap_or_else(|| panic!("no enumerator {name}"))
}

/// What was read, written again field by field where the layouts say, gives the recorded bytes.
#[test]
fn recorded_frames_are_written_again() {
    let known = known();
    let mut written = BTreeMap::<&str, usize>::new();
    for frame in frames() {
        if frame.truncated || frame.decoded.is_null() || frame.decoded["message_table"].is_object() {
            continue;
        }
        let message = known.get(frame.name.as_str()).unwrap_or_else(|| panic!("{}: unknown", frame.place));
        let mut payload = Vec::new();
        write(message.layout, &frame.decoded, &mut payload);
        let recorded = frame.payload();
        assert!(recorded.starts_with(&payload), "{}: {payload:?} is not {recorded:?}", frame.place);
        assert!(payload.len() == recorded.len() || frame.from_client, "{}", frame.place);
        *written.entry(message.name.name()).or_default() += 1;
    }
    assert!(written.len() >= 290, "only {} messages", written.len());
}

/// Whatever is in a frame, it is cut and framed to the same bytes; of the header only the length means anything.
#[test]
fn recorded_frames_are_framed_again() {
    for frame in frames() {
        if frame.truncated {
            continue;
        }
        let Ok(Cut::Frame(payload)) = frame::cut(&frame.bytes) else {
            // Recorded as one that is never finished.
            assert!(frame.from_client, "{}", frame.place);
            continue;
        };
        let mut again = Vec::new();
        frame::push(&mut again, |out| out.extend_from_slice(payload));
        assert_eq!(again[8..12], frame.bytes[8..12], "{}", frame.place);
        assert_eq!(again[16..], frame.bytes[16..], "{}", frame.place);
    }
}

/// Every recording is in the list, and of each at least the requests and the answers of both directions are compared, byte
/// for byte, by the tests above: what they pass over is counted here.
#[test]
fn no_recording_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../catalogue/transcripts");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .expect("the recordings")
        .map(|entry| entry.expect("an entry").path().file_stem().expect("a name").to_string_lossy().into())
        .collect();
    files.sort();
    assert_eq!(files, TRANSCRIPTS.iter().map(|(file, _)| *file).collect::<Vec<_>>());

    let (mut compared, mut passed_over) = (BTreeMap::<(String, bool), usize>::new(), Vec::new());
    for frame in frames() {
        let file = frame.place.split(',').next().expect("a file").to_owned();
        if frame.truncated || frame.decoded.is_null() || frame.decoded["message_table"].is_object() {
            passed_over.push((frame.name, frame.truncated));
        } else {
            *compared.entry((file, frame.from_client)).or_default() += 1;
        }
    }
    for (file, _) in TRANSCRIPTS {
        for from_client in [true, false] {
            assert!(compared.contains_key(&((*file).to_owned(), from_client)), "{file}: {from_client}");
        }
    }
    // The greeting, whose table is cut off in all recordings but one, which has a test of its own; and what was sent too short on
    // purpose.
    passed_over.retain(|(name, _)| name != "sockclnt_create_reply");
    assert_eq!(passed_over, PASSED_OVER.map(|name| (name.to_owned(), false)));
}

/// Frames with a name that nothing can be compared with.
const PASSED_OVER: [&str; 1] = ["ip_route_add_del"];

#[test]
fn the_handshake_yields_the_table() {
    let frames = frames();
    let reply = frames.iter().find(|frame| frame.name == "sockclnt_create_reply").expect("recorded");
    assert!(!reply.truncated);
    let message = SockclntCreateReply::parse(reply.payload()).expect("whole");
    assert_eq!(message.response.get(), 0);
    assert_eq!(message.index, ClientIndex::new(0x8000_0001));
    let table = MessageTable::new(&message.message_table);
    assert_eq!(table.len(), 1183);
    // The recorded VPP is a 26.06: of a message with several forms it has the newest.
    for known in known().values() {
        let id = table.id(&known.name).unwrap_or_else(|| panic!("{} is not in the table", known.name));
        let entry = table.entries().find(|entry| entry.index == id).expect("its own entry");
        assert_eq!(entry.name.to_str(), known.name.to_string());
    }
    let noted = reply.decoded["message_table"].as_object().expect("names and ids");
    assert_eq!(noted.len(), table.len());
    for entry in table.entries() {
        assert_eq!(noted[entry.name.to_str().as_ref()], entry.index.value());
    }
    // The ids used before the table is known.
    for (name, id) in [
        ("sockclnt_delete", 17),
        ("sockclnt_delete_reply", 18),
        ("control_ping", 23),
        ("control_ping_reply", 24),
    ] {
        let name = api::messages().find(|message| message.name.name() == name).expect("known").name;
        assert_eq!(table.id(&name), Some(MsgId::new(id)));
    }
    assert_eq!(table.id(&MsgName::new("ip_table_flush", 0)), None);
}

/// Reads values out of a recording's meaning.
struct Meaning<'a>(&'a Value);

impl Meaning<'_> {
    fn number(&self, field: &str) -> u32 {
        u32::try_from(self.0[field].as_u64().expect("a number")).expect("32 bits")
    }

    fn interface(&self, field: &str) -> SwIfIndex {
        SwIfIndex::new(self.number(field))
    }

    fn bool(&self, field: &str) -> bool {
        self.0[field].as_bool().expect("a bool")
    }

    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().expect("text")
    }

    fn octets<const N: usize>(&self, field: &str) -> [u8; N] {
        unhex(self.0[field]["hex"].as_str().expect("hex")).try_into().expect("its length")
    }

    fn address(&self, field: &str) -> IpAddr {
        ip(&self.0[field])
    }

    /// `None` for a length that does not exist: `IpNet` has no such prefixes.
    fn prefix(&self, field: &str) -> Option<IpNet> {
        let address = ip(&self.0[field]["address"]);
        let len = u8::try_from(self.0[field]["len"].as_u64().expect("a length")).expect("8 bits");
        IpNet::new(address, len).ok()
    }
}

fn ip(address: &Value) -> IpAddr {
    let bytes: [u8; 16] = unhex(address["un"]["hex"].as_str().expect("hex")).try_into().expect("16 bytes");
    match address["af"].as_str() {
        Some("ADDRESS_IP4") => Ipv4Addr::from_octets(*bytes.first_chunk().expect("4 of 16")).into(),
        Some("ADDRESS_IP6") => Ipv6Addr::from_octets(bytes).into(),
        other => panic!("family {other:?}"),
    }
}

fn encoded(payload: impl Payload) -> Vec<u8> {
    let mut out = Vec::new();
    payload.encode(&mut out);
    out
}

/// The request built from its meaning by the public constructors; `None` for messages without one.
fn build(name: &str, meaning: &Meaning<'_>, recorded: &[u8]) -> Option<Result<Vec<u8>, Refused>> {
    let context = context_at(recorded, 2).expect("a head");
    Some(Ok(match name {
        "sockclnt_create" => {
            encoded(SockclntCreate::new(context, FixedString::new(meaning.text("name")).ok()?))
        }
        "sockclnt_delete" => {
            let context = context_at(recorded, 6).expect("a head");
            encoded(SockclntDelete::new(context, ClientIndex::new(meaning.number("index"))))
        }
        "control_ping" => encoded(api::memclnt::ControlPing::default()),
        "show_version" => encoded(vpe::ShowVersion::default()),
        "sw_interface_dump" if meaning.bool("name_filter_valid") => {
            encoded(interface::SwInterfaces::named(meaning.text("name_filter")))
        }
        "sw_interface_dump" => encoded(interface::SwInterfaces::one(meaning.interface("sw_if_index"))),
        "sw_interface_set_flags" => {
            let up = meaning.0["flags"] == "IF_STATUS_API_FLAG_ADMIN_UP";
            encoded(interface::SwInterfaceSetFlags::new(meaning.interface("sw_if_index"), up))
        }
        "sw_interface_add_del_address" => {
            if meaning.bool("del_all") {
                return None;
            }
            let (interface, prefix) = (meaning.interface("sw_if_index"), meaning.prefix("prefix")?);
            encoded(match meaning.bool("is_add") {
                true => interface::SwInterfaceAddDelAddress::add(interface, prefix),
                false => interface::SwInterfaceAddDelAddress::del(interface, prefix),
            })
        }
        "sw_interface_set_unnumbered" => encoded(interface::SwInterfaceSetUnnumbered::new(
            meaning.interface("sw_if_index"),
            meaning.interface("unnumbered_sw_if_index"),
            meaning.bool("is_add"),
        )),
        "sw_interface_set_table" => encoded(interface::SwInterfaceSetTable::new(
            meaning.interface("sw_if_index"),
            meaning.bool("is_ipv6"),
            TableId::new(meaning.number("vrf_id")),
        )),
        "sw_interface_get_table" => encoded(interface::SwInterfaceGetTable::new(
            meaning.interface("sw_if_index"),
            meaning.bool("is_ipv6"),
        )),
        "sw_interface_tag_add_del" => {
            let tag =
                interface::SwInterfaceTagAddDel::add(meaning.interface("sw_if_index"), meaning.text("tag"));
            return Some(tag.map(encoded));
        }
        "want_interface_events" => encoded(interface::WantInterfaceEvents::new(
            meaning.number("enable_disable") == 1,
            meaning.number("pid"),
        )),
        "create_loopback_instance" => {
            let instance = meaning.bool("is_specified").then(|| meaning.number("user_instance"));
            encoded(interface::CreateLoopbackInstance::new(instance))
        }
        "delete_loopback" => encoded(interface::DeleteLoopback::new(meaning.interface("sw_if_index"))),
        "ip_address_dump" => {
            encoded(ip::IpAddressDump::new(meaning.interface("sw_if_index"), meaning.bool("is_ipv6")))
        }
        "ip_unnumbered_dump" => encoded(ip::IpUnnumberedDump::one(meaning.interface("sw_if_index"))),
        "ip_table_dump" => encoded(ip::IpTableDump::default()),
        "ip_table_add_del" => {
            let table = Meaning(&meaning.0["table"]);
            let (id, is_ip6) = (TableId::new(table.number("table_id")), table.bool("is_ip6"));
            return Some(
                match meaning.bool("is_add") {
                    true => ip::IpTableAddDel::add(id, is_ip6, table.text("name")),
                    false => ip::IpTableAddDel::del(id, is_ip6),
                }
                .map(encoded),
            );
        }
        "fib_source_dump" => encoded(fib::FibSourceDump::default()),
        "fib_source_add" => {
            let source = Meaning(&meaning.0["src"]);
            let priority = u8::try_from(source.number("priority")).expect("8 bits");
            return Some(fib::FibSourceAdd::below_api(source.text("name"), priority).map(encoded));
        }
        "ip_route_v2_dump" => {
            let table = Meaning(&meaning.0["table"]);
            let source = FibSourceId::new(u8::try_from(meaning.number("src")).expect("8 bits"));
            encoded(ip::IpRouteV2Dump::new(
                TableId::new(table.number("table_id")),
                table.bool("is_ip6"),
                Some(source),
            ))
        }
        "ip_route_add_del_v2" => return Some(build_route(&Meaning(&meaning.0["route"]), recorded)),
        "ipip_add_tunnel" => {
            let tunnel = Meaning(&meaning.0["tunnel"]);
            let table = TableId::new(tunnel.number("table_id"));
            return Some(
                ipip::IpipAddTunnel::new(tunnel.address("src"), tunnel.address("dst"), table).map(encoded),
            );
        }
        "ipip_del_tunnel" => encoded(ipip::IpipDelTunnel::new(meaning.interface("sw_if_index"))),
        "ipip_tunnel_dump" => encoded(ipip::IpipTunnelDump::one(meaning.interface("sw_if_index"))),
        "feature_gso_enable_disable" => encoded(gso::FeatureGsoEnableDisable::new(
            meaning.interface("sw_if_index"),
            meaning.bool("enable_disable"),
        )),
        "wireguard_interface_create" => {
            let interface = Meaning(&meaning.0["interface"]);
            let key = interface.octets("private_key");
            let port = interface.number("port") as u16;
            return Some(InterfaceCreate::new(interface.address("src_ip"), port, &key).map(encoded));
        }
        "wireguard_peer_add" => {
            let peer = Meaning(&meaning.0["peer"]);
            let allowed: Vec<IpNet> = peer.0["allowed_ips"]
                .as_array()?
                .iter()
                .map(|prefix| {
                    let len = prefix["len"].as_u64().expect("a length") as u8;
                    IpNet::new(ip(&prefix["address"]), len).expect("an existing length")
                })
                .collect();
            let built = PeerAdd::new(
                peer.interface("sw_if_index"),
                &peer.octets("public_key"),
                peer.address("endpoint"),
                peer.number("port") as u16,
                peer.number("persistent_keepalive") as u16,
                TableId::new(peer.number("table_id")),
                &allowed,
            )
            .map(encoded);
            return Some(built);
        }
        "feature_is_enabled" => {
            let (arc, name) = (meaning.text("arc_name"), meaning.text("feature_name"));
            return Some(
                feature::FeatureIsEnabled::new(meaning.interface("sw_if_index"), arc, name).map(encoded),
            );
        }
        _ => return None,
    }))
}

fn build_route(route: &Meaning<'_>, recorded: &[u8]) -> Result<Vec<u8>, Refused> {
    let (table, prefix) =
        (TableId::new(route.number("table_id")), route.prefix("prefix").expect("an existing length"));
    let source = FibSourceId::new(u8::try_from(route.number("src")).expect("8 bits"));
    let message = ip::IpRouteAddDelV2::parse(recorded).expect("recorded whole");
    let paths: Vec<_> =
        message.route().paths.iter().map(|path| again(path, prefix.addr().is_ipv6())).collect();
    match message.is_add() {
        true => ip::RouteReplace::new(table, prefix, source, &paths).map(encoded),
        false => ip::RouteDelete::new(table, prefix, source).map(encoded),
    }
}

/// A path made from what another one means.
fn again(path: &FibPath, is_ip6: bool) -> FibPath {
    let family = if is_ip6 { AddressFamily::IP6 } else { AddressFamily::IP4 };
    let target = path.target().expect("a kind of path that we make");
    let made = FibPath::new(target, family)
        .expect("refers to something")
        .weighted(path.weight())
        .preferred(path.preference());
    made.labelled(path.labels()).expect("at most 16")
}

#[test]
fn recorded_requests_are_built_again_from_their_meaning() {
    let mut same = BTreeMap::<String, usize>::new();
    let mut refused = Vec::new();
    for frame in frames() {
        if !frame.from_client || frame.decoded.is_null() {
            continue;
        }
        let recorded = frame.payload();
        match build(&frame.name, &Meaning(&frame.decoded), recorded) {
            None => {}
            Some(Err(refusal)) => refused.push((frame.name, refusal)),
            Some(Ok(mut built)) => {
                if frame.name != "sockclnt_create" {
                    let client = ClientIndex::new(number(&recorded[2..6]) as u32);
                    let context = context_at(recorded, 6).expect("a head");
                    assert!(address(&mut built, message_id(recorded).expect("an id"), client, context));
                }
                if frame.name == "ipip_add_tunnel" {
                    // The reference client asks for instances and puts 0 where VPP ignores the interface.
                    for ignored in [10..14, 48..52] {
                        built[ignored.clone()].copy_from_slice(&recorded[ignored]);
                    }
                }
                let expected = &recorded[..built.len().min(recorded.len())];
                assert_eq!(built, expected, "{}", frame.place);
                *same.entry(frame.name).or_default() += 1;
            }
        }
    }
    assert!(same.len() >= 25, "only {same:?}");
    let mixed = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x20);
    // What the recordings have on purpose, and no constructor makes.
    for (name, refusal) in [
        ("fib_source_add", Refused::SourcePriority(120)),
        ("ip_route_add_del_v2", Refused::Source(0)),
        ("ipip_add_tunnel", Refused::MixedFamilies(Ipv4Addr::new(192, 0, 2, 1).into(), mixed.into())),
    ] {
        assert!(refused.contains(&(name.to_owned(), refusal)), "{name} was not refused: {refused:?}");
    }
}

/// The paths of the first-version route messages are the same struct, and there are more of them.
#[test]
fn recorded_paths_are_built_again_from_their_meaning() {
    let mut seen = 0;
    for frame in frames() {
        if !frame.from_client || frame.name != "ip_route_add_del" || frame.decoded.is_null() {
            continue;
        }
        let route = &frame.decoded["route"];
        let payload = frame.payload();
        let paths = payload.get(39..).expect("longer than a route without paths");
        assert_eq!(paths.len(), route["paths"].as_array().expect("paths").len() * size_of::<FibPath>());
        let is_ip6 = route["prefix"]["address"]["af"] == json!("ADDRESS_IP6");
        for bytes in paths.chunks(size_of::<FibPath>()) {
            let recorded = FibPath::ref_from_bytes(bytes).expect("the size of one");
            assert_eq!(again(recorded, is_ip6), *recorded, "{}", frame.place);
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} paths");
}

#[test]
fn more_labels_than_a_path_holds_are_refused() {
    let label = FibMplsLabel { is_uniform: 0, label: 100.into(), ttl: 64, exp: 0 };
    let path = FibPath::new(vpp_wire::types::FibTarget::Drop, AddressFamily::IP4).expect("needs nothing");
    assert_eq!(path.labelled(&[label; MAX_LABELS]).map(|path| path.labels().len()), Ok(MAX_LABELS));
    assert_eq!(path.labelled(&[label; MAX_LABELS + 1]), Err(Refused::Labels(MAX_LABELS + 1)));
}
