//! The five daemons behind one face: the same [`Settings`] in the words of each, the same questions to each.

mod bird;
mod exabgp;
mod frr;
mod gobgp;
mod openbgpd;

use test_support::bird::Bird;
use test_support::exabgp::Exabgp;
use test_support::frr::Frr;
use test_support::gobgp::Gobgp;
use test_support::lab::Host;
use test_support::openbgpd::Openbgpd;
use test_support::process::Process;
use test_support::programs::{self, Program};
use test_support::route::{Part, Route};
use test_support::wait;

use crate::{PEER_IPV4, PEER_IPV6, PEER_ROUTE4, PEER_ROUTE6};

/// Which daemon.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// BIRD 2.
    Bird,
    /// FRR's bgpd, without zebra.
    Frr,
    /// GoBGP.
    Gobgp,
    /// OpenBGPD, portable.
    Openbgpd,
    /// ExaBGP.
    Exabgp,
}

/// What a daemon shall do, at [`PEER_IPV4`] and [`PEER_IPV6`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its AS number.
    pub asn: u32,
    /// Its neighbours.
    pub neighbours: Vec<Neighbour>,
    /// For how many seconds it asks its neighbours to keep its routes while it restarts, if it does.
    pub restart_time: Option<u16>,
    /// Whether it announces [`PEER_ROUTE4`] and [`PEER_ROUTE6`], with MULTI_EXIT_DISC 77, COMMUNITIES 65001:7, and
    /// LOCAL_PREF 150 inside its AS.
    pub originates: bool,
    /// What else it announces as it is; only ExaBGP can be told so.
    pub announces: Vec<(String, Route)>,
}

/// A neighbour of a daemon.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// Its address; the daemon's own end is of the same family.
    pub address: String,
    /// Its AS number.
    pub asn: u32,
    /// IPv4 unicast, IPv6 unicast.
    pub families: [bool; 2],
    /// Hold time that the daemon offers, in seconds.
    pub hold_time: u16,
    /// TCP MD5 key.
    pub password: Option<String>,
    /// GTSM for a neighbour that is directly connected.
    pub ttl_security: bool,
    /// Whether the daemon waits for the connection.
    pub passive: bool,
    /// Whether AS numbers of 4 octets are agreed on.
    pub four_octet: bool,
    /// Whether enhanced route refresh is offered, where the daemon has it.
    pub enhanced_refresh: bool,
    /// Whether routes of others are passed on to it, with the daemon's own address as next hop where it is in another AS.
    pub hears: bool,
}

impl Neighbour {
    /// IPv4 over IPv4, or IPv6 over IPv6, with nothing special.
    #[must_use]
    pub fn new(address: &str, asn: u32) -> Self {
        let six = address.contains(':');
        Self {
            address: address.to_owned(),
            asn,
            families: [!six, six],
            hold_time: 9,
            password: None,
            ttl_security: false,
            passive: false,
            four_octet: true,
            enhanced_refresh: true,
            hears: true,
        }
    }

    /// The daemon's own end.
    #[must_use]
    pub fn local(&self) -> &'static str {
        if self.address.contains(':') { PEER_IPV6 } else { PEER_IPV4 }
    }
}

impl Settings {
    /// The usual ones.
    #[must_use]
    pub fn new(asn: u32, neighbours: Vec<Neighbour>) -> Self {
        Self { asn, neighbours, restart_time: None, originates: true, announces: Vec::new() }
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bird, Self::Frr, Self::Gobgp, Self::Openbgpd, Self::Exabgp];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bird => "BIRD",
            Self::Frr => "FRR",
            Self::Gobgp => "GoBGP",
            Self::Openbgpd => "OpenBGPD",
            Self::Exabgp => "ExaBGP",
        }
    }

    /// What has to be installed.
    #[must_use]
    pub fn program(self) -> Program {
        match self {
            Self::Bird => programs::BIRD,
            Self::Frr => programs::FRR,
            Self::Gobgp => programs::GOBGP,
            Self::Openbgpd => programs::OPENBGPD,
            Self::Exabgp => programs::EXABGP,
        }
    }

    /// The AS number it has in tests.
    #[must_use]
    pub fn asn(self) -> u32 {
        match self {
            Self::Bird => 65_001,
            Self::Frr => 65_002,
            Self::Gobgp => 65_003,
            Self::Openbgpd => 65_004,
            Self::Exabgp => 65_005,
        }
    }

    /// What it does not show of a path that it holds, and why it can't be compared there.
    #[must_use]
    pub fn hides(self) -> &'static [(Part, &'static str)] {
        match self {
            Self::Bird => &[
                (Part::Partial, "birdc shows no Partial bit"),
                (Part::Tails, "birdc shows the first 160 octets of an attribute that BIRD does not know"),
            ],
            Self::Frr => &[(Part::Unknown, "vtysh shows no attribute that bgpd does not know")],
            Self::Exabgp => &[(Part::Sets, "its events show no AS_SET")],
            Self::Gobgp | Self::Openbgpd => &[],
        }
    }

    /// The configuration file in its words.
    #[must_use]
    pub fn config(self, settings: &Settings) -> String {
        match self {
            Self::Bird => bird::config(settings),
            Self::Frr => frr::config(settings),
            Self::Gobgp => gobgp::config(settings),
            Self::Openbgpd => openbgpd::config(settings),
            Self::Exabgp => exabgp::config(settings),
        }
    }
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    host: Host,
    settings: Settings,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Bird(Bird),
    Frr(Frr),
    Gobgp(Gobgp),
    Openbgpd(Openbgpd),
    Exabgp(Exabgp),
}

impl Daemon {
    /// Starts it on `host`.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[must_use]
    #[track_caller]
    pub fn start(kind: Kind, host: &Host, settings: Settings) -> Self {
        let running = Self::run(kind, host, &settings, false);
        Self { host: host.clone(), settings, running }
    }

    #[track_caller]
    fn run(kind: Kind, host: &Host, settings: &Settings, again: bool) -> Running {
        let config = kind.config(settings);
        match kind {
            Kind::Bird if again => Running::Bird(Bird::recover(host, &config)),
            Kind::Bird => Running::Bird(Bird::start(host, &config)),
            Kind::Frr => Running::Frr(Frr::start(host, &config)),
            Kind::Gobgp => {
                // One that restarts sends its End-of-RIB once its neighbours have sent theirs, be its own routes there
                // by then or not; so they have to be there before it reaches a neighbour.
                host.link(!again);
                let gobgp = if again { Gobgp::recover(host, &config) } else { Gobgp::start(host, &config) };
                if settings.originates {
                    gobgp::originate(&gobgp);
                }
                host.link(true);
                Running::Gobgp(gobgp)
            }
            Kind::Openbgpd => Running::Openbgpd(Openbgpd::start(host, &config)),
            Kind::Exabgp => {
                Running::Exabgp(Exabgp::start(host, &config, &format!("{PEER_IPV4} {PEER_IPV6}")))
            }
        }
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.running {
            Running::Bird(_) => Kind::Bird,
            Running::Frr(_) => Kind::Frr,
            Running::Gobgp(_) => Kind::Gobgp,
            Running::Openbgpd(_) => Kind::Openbgpd,
            Running::Exabgp(_) => Kind::Exabgp,
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        match &mut self.running {
            Running::Bird(bird) => bird.kill(),
            Running::Frr(frr) => frr.kill(),
            Running::Gobgp(gobgp) => gobgp.kill(),
            Running::Openbgpd(openbgpd) => openbgpd.kill(),
            Running::Exabgp(exabgp) => exabgp.kill(),
        }
    }

    /// Starts it again after [`kill`](Self::kill), as one that restarts gracefully where it has a way to be told.
    #[track_caller]
    pub fn recover(&mut self) {
        self.running = Self::run(self.kind(), &self.host, &self.settings, true);
    }

    /// Waits until its session with `neighbour` is Established.
    #[track_caller]
    pub fn await_established(&self, neighbour: &str) {
        match &self.running {
            Running::Bird(bird) => bird.await_established(&bird::protocol(&self.settings, neighbour)),
            Running::Frr(frr) => frr.await_established(neighbour),
            Running::Gobgp(gobgp) => gobgp.await_established(neighbour),
            Running::Openbgpd(openbgpd) => openbgpd.await_established(neighbour),
            Running::Exabgp(exabgp) => exabgp.await_established(neighbour),
        }
    }

    /// Whether its session with `neighbour` is Established right now.
    ///
    /// # Errors
    ///
    /// What it answers instead.
    pub fn is_established(&self, neighbour: &str) -> Result<bool, String> {
        match &self.running {
            Running::Bird(bird) => {
                let protocol = bird::protocol(&self.settings, neighbour);
                Ok(bird.ask(&format!("show protocols {protocol}")).contains("Established"))
            }
            Running::Frr(frr) => {
                let answer = frr.ask(&format!("show bgp neighbors {neighbour} json"))?;
                Ok(answer[neighbour]["bgpState"] == "Established")
            }
            Running::Gobgp(gobgp) => Ok(gobgp.ask(&["neighbor", neighbour])?["state"]["session_state"] == 6),
            Running::Openbgpd(openbgpd) => Ok(openbgpd.neighbor(neighbour)?["state"] == "Established"),
            Running::Exabgp(exabgp) => Ok(exabgp.is_established(neighbour)),
        }
    }

    /// Waits until it has had both marks of an enhanced refresh from `neighbour` (RFC 7313), where it tells of them: the
    /// others only hold their tables right if they understood them.
    #[track_caller]
    pub fn await_refresh_marks(&self, neighbour: &str) {
        if let Running::Openbgpd(openbgpd) = &self.running {
            wait::until("OpenBGPD has had both marks", || {
                let answer = openbgpd.neighbor(neighbour)?;
                let marks = &answer["stats"]["route-refresh"]["received"];
                if marks["borr"] == 1 && marks["eorr"] == 1 { Ok(()) } else { Err(marks.to_string()) }
            });
        }
    }

    /// Its best path for exactly `prefix`.
    ///
    /// # Errors
    ///
    /// What it answers instead.
    pub fn route(&self, prefix: &str) -> Result<Route, String> {
        match &self.running {
            Running::Bird(bird) => bird.route(prefix),
            Running::Frr(frr) => frr.route(prefix),
            Running::Gobgp(gobgp) => gobgp.route(prefix),
            Running::Openbgpd(openbgpd) => openbgpd.route(prefix),
            Running::Exabgp(exabgp) => exabgp.route(prefix),
        }
    }

    /// Has it ask `neighbour` for all routes of a family again (RFC 2918).
    ///
    /// # Panics
    ///
    /// When it refuses, or is one that can't.
    #[track_caller]
    pub fn ask_again(&self, neighbour: &str) {
        let family = if neighbour.contains(':') { "ipv6" } else { "ipv4" };
        match &self.running {
            Running::Bird(bird) => {
                let _ = bird.ask(&format!("reload in {}", bird::protocol(&self.settings, neighbour)));
            }
            Running::Frr(frr) => frr.tell(&format!("clear bgp {family} unicast {neighbour} soft in")),
            Running::Gobgp(_) => panic!("GoBGP asks nobody: its soft reset goes over what it has kept"),
            Running::Openbgpd(openbgpd) => {
                let told = openbgpd.tell(&format!("neighbor {neighbour} refresh"));
                told.unwrap_or_else(|error| panic!("bgpctl refresh: {error}"));
            }
            Running::Exabgp(exabgp) => exabgp.tell(&format!("announce route-refresh {family} unicast")),
        }
    }

    /// How many times `neighbour` has asked for a family again.
    ///
    /// # Errors
    ///
    /// What it answers instead.
    pub fn asked(&self, neighbour: &str) -> Result<u64, String> {
        match &self.running {
            Running::Bird(bird) => Ok(bird.process().log().matches("Got ROUTE-REFRESH").count() as u64),
            Running::Frr(frr) => {
                let answer = frr.ask(&format!("show bgp neighbors {neighbour} json"))?;
                let count = answer[neighbour]["messageStats"]["routeRefreshRecv"].as_u64();
                count.ok_or_else(|| answer.to_string())
            }
            Running::Gobgp(gobgp) => {
                let answer = gobgp.ask(&["neighbor", neighbour])?;
                // It leaves out what is 0.
                Ok(answer["state"]["messages"]["received"]["refresh"].as_u64().unwrap_or(0))
            }
            Running::Openbgpd(openbgpd) => {
                let answer = openbgpd.neighbor(neighbour)?;
                let count = answer["stats"]["message"]["received"]["route_refresh"].as_u64();
                count.ok_or_else(|| answer.to_string())
            }
            Running::Exabgp(exabgp) => Ok(exabgp.refreshes() as u64),
        }
    }

    /// How many announcements `neighbour` has made in its session so far.
    ///
    /// # Errors
    ///
    /// What it answers instead.
    pub fn announcements(&self, neighbour: &str) -> Result<u64, String> {
        match &self.running {
            Running::Bird(bird) => bird::announcements(bird, &bird::protocol(&self.settings, neighbour)),
            Running::Frr(frr) => {
                let answer = frr.ask(&format!("show bgp neighbors {neighbour} json"))?;
                let count = answer[neighbour]["messageStats"]["updatesRecv"].as_u64();
                count.ok_or_else(|| answer.to_string())
            }
            Running::Gobgp(gobgp) => {
                let answer = gobgp.ask(&["neighbor", neighbour])?;
                let count = answer["state"]["messages"]["received"]["update"].as_u64();
                count.ok_or_else(|| answer.to_string())
            }
            Running::Openbgpd(openbgpd) => {
                let answer = openbgpd.neighbor(neighbour)?;
                let count = answer["stats"]["update"]["received"]["updates"].as_u64();
                count.ok_or_else(|| answer.to_string())
            }
            Running::Exabgp(exabgp) => {
                let events = exabgp.events();
                let announced = |event: &&serde_json::Value| {
                    event["neighbor"]["message"]["update"]["announce"].is_object()
                };
                Ok(events.iter().filter(announced).count() as u64)
            }
        }
    }

    /// Has it take back [`PEER_ROUTE4`].
    ///
    /// # Panics
    ///
    /// When it refuses.
    #[track_caller]
    pub fn withdraw_own(&self) {
        match &self.running {
            Running::Bird(bird) => {
                let _ = bird.ask("disable s4");
            }
            Running::Frr(frr) => frr.configure(&[
                &format!("router bgp {}", self.settings.asn),
                "address-family ipv4 unicast",
                &format!("no network {PEER_ROUTE4}"),
            ]),
            Running::Gobgp(gobgp) => gobgp.withdraw("ipv4", PEER_ROUTE4),
            Running::Openbgpd(openbgpd) => {
                // One of its file can't be deleted, but all that it does not say can.
                let file = self.host.dir().join("openbgpd.conf");
                let text = std::fs::read_to_string(&file).expect("a file of ours");
                let lines = text.lines().filter(|line| !line.starts_with(&format!("network {PEER_ROUTE4}")));
                let text: String = lines.flat_map(|line| [line, "\n"]).collect();
                std::fs::write(&file, text).expect("a file of ours");
                openbgpd.tell("reload").unwrap_or_else(|error| panic!("bgpctl reload: {error}"));
            }
            Running::Exabgp(exabgp) => {
                exabgp.tell(&format!("withdraw route {PEER_ROUTE4} next-hop {PEER_IPV4}"));
            }
        }
    }

    /// Has it end the session with `neighbour` by a NOTIFICATION "administrative shutdown", or the next best it knows.
    ///
    /// # Panics
    ///
    /// When it refuses.
    #[track_caller]
    pub fn shut_down(&self, neighbour: &str) {
        match &self.running {
            Running::Bird(bird) => {
                let _ = bird.ask(&format!("disable {}", bird::protocol(&self.settings, neighbour)));
            }
            Running::Frr(frr) => frr.configure(&[
                &format!("router bgp {}", self.settings.asn),
                &format!("neighbor {neighbour} shutdown"),
            ]),
            Running::Gobgp(gobgp) => {
                let told = gobgp.tell(&["neighbor", neighbour, "shutdown"]);
                told.unwrap_or_else(|error| panic!("gobgp shutdown: {error}"));
            }
            Running::Openbgpd(openbgpd) => {
                let told = openbgpd.tell(&format!("neighbor {neighbour} down bye"));
                told.unwrap_or_else(|error| panic!("bgpctl down: {error}"));
            }
            Running::Exabgp(exabgp) => exabgp.tell(&format!("neighbor {neighbour} teardown 2")),
        }
    }

    /// Where it tells why its session with `neighbour` ended.
    ///
    /// # Errors
    ///
    /// What it answers instead.
    pub fn told_of_ends(&self, neighbour: &str) -> Result<String, String> {
        match &self.running {
            Running::Frr(frr) => Ok(frr.ask(&format!("show bgp neighbors {neighbour} json"))?.to_string()),
            Running::Exabgp(exabgp) => {
                let mut events = exabgp.events();
                events.retain(|event| event["type"] == "notification");
                Ok(serde_json::Value::Array(events).to_string())
            }
            Running::Bird(_) | Running::Gobgp(_) | Running::Openbgpd(_) => Ok(self.process().log()),
        }
    }

    /// The process, for its log and its figures.
    #[must_use]
    pub fn process(&self) -> &Process {
        match &self.running {
            Running::Bird(bird) => bird.process(),
            Running::Frr(frr) => frr.process(),
            Running::Gobgp(gobgp) => gobgp.process(),
            Running::Openbgpd(openbgpd) => openbgpd.process(),
            Running::Exabgp(exabgp) => exabgp.process(),
        }
    }
}

/// [`PEER_ROUTE4`] or [`PEER_ROUTE6`], whichever a neighbour at `address` is told.
fn own_routes(families: [bool; 2]) -> impl Iterator<Item = &'static str> {
    [PEER_ROUTE4, PEER_ROUTE6].into_iter().zip(families).filter_map(|(route, wanted)| wanted.then_some(route))
}
