//! Routes into a real VPP, beside a bare loop that writes requests encoded beforehand into the same VPP with the same
//! window: as fast as that VPP takes them from anybody. Needs `VPP_BIN`.

use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use test_support::lab::Lab;
use test_support::process::cpu_ticks;
use test_support::vpp::RealVpp;

use super::binapi::{self, Connection, PING, number, prefix_and_hop, word};
use super::road::{self, Road, SENDER};
use crate::pipeline::ticks_to_seconds;
use crate::table::{self, Family, Prefix};
use crate::wire;

/// Of the bare loop's rate, what must be reached.
pub(crate) const LEAST_SHARE: f64 = 0.9;

/// The neighbour's AS.
const ASN: u32 = 65_001;
/// Requests unanswered at a time: what the agent has, too.
const WINDOW: usize = 200;
/// The priority of the bare loop's source: the agent's.
const PRIORITY: u8 = 130;
/// A next hop that is on a link of VPP, as a neighbour's would be.
const COMMANDS: &str = "create loopback interface\nset interface state loop0 up\n\
                        set interface ip address loop0 192.0.2.1/24\n";
const PATIENCE: Duration = Duration::from_secs(120);

/// Routes a second of the bare loop and of the agent.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Figures {
    /// Of requests encoded beforehand.
    pub(crate) bare: f64,
    /// From the first UPDATE to the last route in VPP.
    pub(crate) agent: f64,
}

/// Measures `count` routes and prints the figures.
pub(crate) fn run(lab: &Lab, count: u32) -> Figures {
    let host = road::host(lab);
    let mut vpp = RealVpp::new(&host, COMMANDS);
    vpp.start();
    let socket = host.dir().join("vpp.sock");
    let pid = vpp.pid();
    let routes = table::build(Family::V4, count, ASN, 0);
    let prefixes = road::prefixes(&routes);
    let connect =
        || Connection::new(UnixStream::connect(&socket).expect("VPP listens")).expect("VPP answers");

    // The first time VPP's own tables grow, so it does not count.
    let mut loop_ = connect();
    let source = source(&mut loop_);
    let (adds, add_size) = loop_.routes(&prefixes, SENDER, source, true);
    let (deletes, delete_size) = loop_.routes(&prefixes, SENDER, source, false);
    let mut bare = 0.0;
    for round in 0..2 {
        let (ticks, start) = (cpu_ticks(pid), Instant::now());
        let refused = loop_.pump(&adds, add_size, WINDOW).expect("VPP lives");
        let seconds = start.elapsed().as_secs_f64();
        assert_eq!(refused, 0, "VPP refuses nothing");
        bare = f64::from(count) / seconds;
        println!(
            "bare loop, round {round}: {seconds:.2} s, {bare:.0} routes/s; VPP: {:.2} CPU s",
            ticks_to_seconds(cpu_ticks(pid) - ticks)
        );
        assert_eq!(loop_.pump(&deletes, delete_size, WINDOW).expect("VPP lives"), 0);
    }

    let mut road = Road::open(&host, ASN, &[]);
    let base = held(&mut loop_);
    let mut bytes = wire::updates(&routes, IpAddr::V4(SENDER), None);
    bytes.extend(wire::end_of_rib(Family::V4));
    let ticks = (cpu_ticks(pid), road.node.agent().cpu_ticks());
    let start = Instant::now();
    road.send(bytes);
    let mut look = start;
    loop {
        road.turn(Duration::from_millis(1));
        if look.elapsed() > Duration::from_millis(20) {
            look = Instant::now();
            if held(&mut loop_) >= base + count as usize {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{} of {count} routes came", held(&mut loop_) - base);
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let agent = f64::from(count) / seconds;
    println!(
        "agent, from the first UPDATE to the last of {count} routes: {seconds:.2} s, {agent:.0} routes/s, {:.2} x the \
         bare loop; VPP: {:.2} CPU s, agent: {:.2} CPU s, peak {:.1} MiB",
        agent / bare,
        ticks_to_seconds(cpu_ticks(pid) - ticks.0),
        ticks_to_seconds(road.node.agent().cpu_ticks() - ticks.1),
        road.node.agent().peak_kib() as f64 / 1024.0,
    );
    judge(&mut loop_, prefixes);
    loop_.leave().expect("VPP says goodbye");
    drop(road);
    vpp.stop();
    Figures { bare, agent }
}

/// A FIB source of the bare loop's own, as the agent has one.
fn source(connection: &mut Connection<UnixStream>) -> u8 {
    let mut request = connection.request("fib_source_add");
    // Priority and id, then the name.
    request[10] = PRIORITY;
    request[12..17].copy_from_slice(b"bench");
    connection.ask(&request).expect("VPP answers")[10]
}

/// How many IPv4 prefixes VPP has.
fn held(connection: &mut Connection<UnixStream>) -> usize {
    let mut request = connection.request("cli_inband");
    let command = b"show ip fib summary";
    request[10..14].copy_from_slice(&u32::try_from(command.len()).expect("short").to_be_bytes());
    request.extend(command);
    let reply = connection.ask(&request).expect("VPP answers");
    let text = String::from_utf8_lossy(&reply[14..]).into_owned();
    let counts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let _length: u8 = words.next()?.parse().ok()?;
        words.next()?.parse::<usize>().ok()
    });
    counts.sum()
}

/// Reads everything back: each prefix must lead to the neighbour.
fn judge(connection: &mut Connection<UnixStream>, mut wanted: Vec<Prefix>) {
    let mut out = Vec::new();
    binapi::frame(&mut out, &connection.request("ip_route_v2_dump"));
    let mut ping = connection.request("control_ping");
    ping[..2].copy_from_slice(&PING.to_be_bytes());
    binapi::frame(&mut out, &ping);
    connection.write(&out).expect("VPP reads");
    let mut found = Vec::new();
    loop {
        let details = connection.receive().expect("VPP answers");
        if number(&details) == Some(PING + 1) {
            break;
        }
        let led = prefix_and_hop(details.get(6..).unwrap_or_default());
        found.extend(led.filter(|(_, next_hop)| *next_hop == SENDER).map(|(prefix, _)| prefix));
        assert!(word(&details, 2).is_some(), "details have a context");
    }
    let key = |prefix: &Prefix| (prefix.bits, prefix.length);
    found.sort_unstable_by_key(key);
    wanted.sort_unstable_by_key(key);
    // VPP itself has the way to the neighbour.
    found.retain(|prefix| prefix.length < 32);
    assert!(found == wanted, "VPP has {} of {} routes, or others", found.len(), wanted.len());
}
