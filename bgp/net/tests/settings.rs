//! What a change of a setting costs: `src/settings.md`, a part of the crate's documentation, held against a speaker with
//! live sessions. A setting without a row there, or without a line here, fails.
//!
//! The speaker under test, AS 65001 at 127.0.9.1, has five neighbours: one whose settings change, a bystander that must
//! not notice anything (both have a `local_asn`), two in the same AS, and one in a prefix.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use bgp_core::command::{
    Aggregate, Applied, Audience, Chain, Command, LocalAsn, NextHopMode, Origination, PeerConfig, PeerRange,
    RemovePrivateAs, StopMode,
};
use bgp_core::limit::{LimitAction, PrefixLimit};
use bgp_core::peer_key::{InstanceName, PeerKey};
use bgp_core::policy::{
    Act, Condition, Default as Otherwise, Direction, Flow, PolicyDef, SetDef, StatementDef,
};
use bgp_core::query::{PathEntry, RouteQuery, RouteTable};
use bgp_core::rib::{DecisionSettings, NextHopState, Standing};
use bgp_core::secret::Secret;
use bgp_core::session::{
    AddPath, GracefulRestart, HoldTime, IdleHold, LongLived, PeerRole, RemoteAsn, RestartTime, StaleTime,
    State,
};
use bgp_core::speaker::SpeakerSettings;
use bgp_core::tunnel_encap::CandidatePath;
use bgp_core::{Asn, Family, FamilySet, Label, Nlri, RouterId};
use bgp_net::{Handle, ListenerState, NetSettings};
use bgp_wire::Role;

const TABLE: &str = include_str!("../src/settings.md");

/// Nothing here takes a tenth of this; a test that waits for ever says so.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what}: not within {PATIENCE:?}"),
    }
}

/// What the documentation says that a change costs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Cost {
    Live,
    Refresh,
    Reset,
    Start,
}

/// The rows of the section whose heading names `what`.
fn rows(what: &str) -> BTreeMap<&'static str, Cost> {
    let section = TABLE.split("\n## ").find(|section| section.lines().next().unwrap().contains(what));
    let section = section.unwrap_or_else(|| panic!("no section {what}"));
    let row = |line: &'static str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let setting = cells.next()?.trim().trim_end_matches('`');
        let cost = match cells.next()?.trim() {
            "live" => Cost::Live,
            "refresh" => Cost::Refresh,
            "reset" => Cost::Reset,
            "start" => Cost::Start,
            other => panic!("{setting}: {other:?} is no cost"),
        };
        Some((setting, cost))
    };
    section.lines().filter_map(row).collect()
}

/// A setting, and another value for it than the neighbour has whose settings change.
struct Line<T> {
    setting: &'static str,
    change: fn(&mut T),
}

/// A line for each field of a struct. It names all of them, so that a new one does not compile until it has its line.
macro_rules! lines {
    ($prefix:literal, $Of:ident in $Whole:ty { $($field:ident: $change:expr,)* }) => {{
        let _ = |$Of { $($field: _),* }: $Of| ();
        vec![$(Line::<$Whole> { setting: concat!($prefix, stringify!($field)), change: $change }),*]
    }};
}

/// The settings of a neighbour.
fn neighbour_lines() -> Vec<Line<PeerConfig>> {
    let mut lines = lines!("", PeerConfig in PeerConfig {
        remote_asn: |config| config.remote_asn = RemoteAsn::Is(Asn(65009)),
        local_asn: |config| config.local_asn = None,
        families: |config| config.families = FamilySet::only(Family::Ipv4Unicast),
        extended_messages: |config| config.extended_messages ^= true,
        extended_next_hop: |config| config.extended_next_hop ^= true,
        add_path: |config| config.add_path = AddPath::NONE,
        role: |config| config.role = Some(PeerRole::new(Role::Peer)),
        hold_time: |config| config.hold_time = HoldTime::new(30).unwrap(),
        keepalive: |config| config.keepalive = NonZeroU16::new(7),
        connect_retry: |config| config.connect_retry *= 2,
        idle_hold: |config| config.idle_hold.max *= 2,
        passive: |config| config.passive ^= true,
        delay_open: |config| config.delay_open = Duration::from_secs(1),
        max_prefixes: |config| {
            let limit = PrefixLimit { limit: 1000, action: LimitAction::Warn };
            config.max_prefixes.insert(Family::Ipv4Unicast, limit);
        },
        graceful_restart: |config| config.graceful_restart = None,
        local_address: |config| config.local_address = Some(address(9)),
        local_port: |config| config.local_port = NonZeroU16::new(1179),
        device: |config| config.device = Some("lo".parse().unwrap()),
        multihop_ttl: |config| config.multihop_ttl = Some(2),
        ttl_security: |config| config.ttl_security = NonZeroU8::new(1),
        password: |config| config.password = Some(Secret::new(b"key".to_vec()).unwrap()),
        max_prefixes_out: |config| {
            config.max_prefixes_out.insert(Family::Ipv4Unicast, 1);
        },
        import: |config| config.import = Chain::REJECT,
        export: |config| config.export = Chain::REJECT,
        next_hop: |config| config.next_hop = NextHopMode::Keep,
        next_hop_v4: |config| config.next_hop_v4 = Some([192, 0, 2, 77].into()),
        next_hop_v6: |config| config.next_hop_v6 = Some("2001:db8::77".parse().unwrap()),
        sr_policy_strict: |config| config.sr_policy_strict ^= true,
        route_reflector_client: |config| config.route_reflector_client ^= true,
        allow_own_as: |config| config.allow_own_as = 1,
        enforce_first_as: |config| config.enforce_first_as ^= true,
        as_override: |config| config.as_override ^= true,
        remove_private_as: |config| config.remove_private_as = None,
        description: |config| config.description = "another".into(),
    });
    lines.extend(lines!("add_path.", AddPath in PeerConfig {
        receive: |config| config.add_path.receive ^= true,
        send: |config| config.add_path.send = NonZeroU8::new(2),
    }));
    fn local(config: &mut PeerConfig) -> &mut LocalAsn {
        config.local_asn.as_mut().unwrap()
    }
    lines.extend(lines!("local_asn.", LocalAsn in PeerConfig {
        asn: |config| local(config).asn = Asn(65102),
        no_prepend: |config| local(config).no_prepend ^= true,
        replace_as: |config| local(config).replace_as ^= true,
    }));
    fn private(config: &mut PeerConfig) -> &mut RemovePrivateAs {
        config.remove_private_as.as_mut().unwrap()
    }
    lines.extend(lines!("remove_private_as.", RemovePrivateAs in PeerConfig {
        all: |config| private(config).all ^= true,
        replace: |config| private(config).replace ^= true,
    }));
    fn graceful(config: &mut PeerConfig) -> &mut GracefulRestart {
        config.graceful_restart.as_mut().unwrap()
    }
    lines.extend(lines!("graceful_restart.", GracefulRestart in PeerConfig {
        restart_time: |config| graceful(config).restart_time = RestartTime::MAX,
        long_lived: |config| graceful(config).long_lived = LongLived::of(FamilySet::UNICAST, StaleTime::MAX),
        forwarding: |config| graceful(config).forwarding = FamilySet::UNICAST,
        stale_time: |config| graceful(config).stale_time *= 2,
    }));
    lines
}

fn origination_lines() -> Vec<Line<Origination>> {
    lines!("", Origination in Origination {
        next_hop: |own| own.next_hop = Some([192, 0, 2, 78].into()),
        label: |own| own.label = Label::new(17),
        med: |own| own.med = Some(5),
        local_pref: |own| own.local_pref = Some(200),
        communities: |own| own.communities = vec![65001 << 16 | 1],
        large_communities: |own| own.large_communities = vec![(65001, 1, 1)],
        ext_communities: |own| own.ext_communities = vec!["rt:65001:1".parse().unwrap()],
        sr_policy: |own| own.sr_policy = candidate_path(7).sr_policy,
        audience: |own| own.audience = Audience::Ibgp,
    })
}

fn aggregate_lines() -> Vec<Line<Aggregate>> {
    lines!("", Aggregate in Aggregate {
        summary_only: |aggregate| aggregate.summary_only ^= true,
        communities: |aggregate| aggregate.communities = vec![65001 << 16 | 2],
        large_communities: |aggregate| aggregate.large_communities = vec![(65001, 1, 2)],
    })
}

/// What shows in the settings of a speaker; how it changes is said where it does.
fn speaker_lines() -> Vec<Line<SpeakerSettings>> {
    lines!("", SpeakerSettings in SpeakerSettings {
        instance: |_| (),
        asn: |_| (),
        router_id: |_| (),
        seed: |_| (),
        decision: |_| (),
        convergence_grace: |_| (),
        convergence_quiet: |_| (),
        convergence_deadline: |_| (),
        restarted: |_| (),
        deferral_grace: |_| (),
        selection_deferral: |_| (),
    })
}

fn decision_lines() -> Vec<Line<DecisionSettings>> {
    lines!("", DecisionSettings in DecisionSettings {
        always_compare_med: |how| how.always_compare_med = false,
        missing_med_worst: |how| how.missing_med_worst = true,
        compare_router_id: |how| how.compare_router_id = false,
        ignore_as_path_length: |how| how.ignore_as_path_length = true,
        multipath: |how| how.multipath = NonZeroU8::MIN,
        multipath_relax: |how| how.multipath_relax = false,
    })
}

/// How the subject compares paths, before that changes.
fn comparison() -> DecisionSettings {
    let multipath = NonZeroU8::new(8).unwrap();
    DecisionSettings {
        always_compare_med: true,
        multipath,
        multipath_relax: true,
        ..DecisionSettings::RFC4271
    }
}

/// The row that says what a command costs: section and setting. `None` where the setting is named by its own section, or
/// where it is no setting that is changed. No command is left out, so a new one has to be thought of.
fn row_of(command: &Command) -> Option<&'static str> {
    match command {
        Command::PutPolicy(..) => Some("PutPolicy"),
        Command::PutSet(..) => Some("PutSet"),
        Command::PutGlobalPolicies(..) => Some("PutGlobalPolicies"),
        Command::PutNextHop(..) => Some("PutNextHop"),
        Command::PutClusterId(_) => Some("PutClusterId"),
        // In sections of their own.
        Command::PutPeer(..)
        | Command::PutPeerRange(..)
        | Command::PutOrigination(..)
        | Command::PutDecision(_)
        | Command::PutAggregate(..)
        | Command::PutIdentity { .. } => None,
        // What is deleted costs what it was.
        Command::DeletePeer(_)
        | Command::DeletePeerRange(_)
        | Command::DeleteOrigination(_)
        | Command::DeleteAggregate(_)
        | Command::DeleteSet(..)
        | Command::DeletePolicy(_)
        | Command::DeleteNextHop(_) => None,
        // Deeds.
        Command::LoadingDone
        | Command::ClearPeer(..)
        | Command::DisablePeer(..)
        | Command::EnablePeer(_)
        | Command::GracefulShutdown(_)
        | Command::Stop(_) => None,
    }
}

fn named<T>(lines: &[Line<T>]) -> BTreeSet<&'static str> {
    lines.iter().map(|line| line.setting).collect()
}

#[test]
fn every_setting_has_its_row_and_every_row_its_setting() {
    let documented = |what| rows(what).into_keys().collect::<BTreeSet<_>>();
    assert_eq!(documented("PeerConfig"), named(&neighbour_lines()));
    assert_eq!(documented("Origination"), named(&origination_lines()));
    assert_eq!(documented("aggregate"), named(&aggregate_lines()));
    assert_eq!(documented("SpeakerSettings"), named(&speaker_lines()));
    assert_eq!(documented("DecisionSettings"), named(&decision_lines()));
    // A range has this, and the settings of a neighbour.
    let _ = |PeerRange { config: _, limit: _ }: PeerRange| ();
    assert_eq!(documented("PeerRange"), BTreeSet::from(["limit"]));
    // So has the shell.
    let _ = |NetSettings { listen: _ }: NetSettings| ();
    let mut shared: BTreeSet<_> = shared_changes().iter().filter_map(|(to, _)| row_of(to)).collect();
    shared.insert("listen");
    assert_eq!(documented("several neighbours"), shared);
}

fn policy(med: u32) -> PolicyDef {
    let when = vec![Condition::NeighborSet("told".into())];
    let statement = StatementDef { label: None, when, apply: vec![Act::SetMed(med)], then: Flow::Accept };
    PolicyDef { statements: vec![statement], default: Otherwise::Accept }
}

/// The policies of the neighbour and their sets, before anything changes.
fn shared_base() -> Vec<Command> {
    let when = vec![Condition::PrefixSet("unwanted".into())];
    let reject = StatementDef { label: None, when, apply: vec![], then: Flow::Reject };
    let import = PolicyDef { statements: vec![reject], default: Otherwise::Accept };
    vec![
        Command::PutSet("unwanted".into(), SetDef::Prefixes(vec!["10.9.0.0/16 le 24".parse().unwrap()])),
        Command::PutSet("told".into(), SetDef::Neighbors(vec![address(2)])),
        Command::PutPolicy("in".into(), import),
        Command::PutPolicy("out".into(), policy(1)),
        Command::PutPolicy("closed".into(), PolicyDef { statements: vec![], default: Otherwise::Reject }),
    ]
}

/// Other values, and the old ones.
fn shared_changes() -> Vec<(Command, Command)> {
    let hop = [192, 0, 2, 3].into();
    let [prefixes, neighbours, _, out, _] = shared_base().try_into().unwrap();
    vec![
        (
            Command::PutSet("unwanted".into(), SetDef::Prefixes(vec!["10.2.0.0/16 le 24".parse().unwrap()])),
            prefixes,
        ),
        (Command::PutSet("told".into(), SetDef::Neighbors(vec![])), neighbours),
        (Command::PutPolicy("out".into(), policy(2)), out),
        (
            Command::PutGlobalPolicies(Direction::Export, vec!["closed".into()]),
            Command::PutGlobalPolicies(Direction::Export, vec![]),
        ),
        (
            Command::PutNextHop(hop, NextHopState { reachable: false, ..NextHopState::default() }),
            Command::DeleteNextHop(hop),
        ),
        (Command::PutClusterId(Some(RouterId(99))), Command::PutClusterId(None)),
    ]
}

/// Asks again and again until there is an answer.
async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let mut pause = tokio::time::interval(Duration::from_millis(2));
    soon(what, async {
        loop {
            pause.tick().await;
            if let Some(answer) = ask().await {
                return answer;
            }
        }
    })
    .await
}

fn address(n: u8) -> IpAddr {
    [127, 0, 9, n].into()
}

/// A speaker with an address of its own.
struct Node {
    handle: Handle,
    address: SocketAddr,
}

impl Node {
    async fn start(asn: u32, n: u8) -> Self {
        let id = RouterId(u32::from(n));
        let settings = SpeakerSettings::new(InstanceName::new("test"), Asn(asn), id, u64::from(n) ^ 0x5eed);
        let net = NetSettings { listen: vec![SocketAddr::new(address(n), 0)] };
        let handle = bgp_net::spawn(settings, net).unwrap();
        let listeners = soon("listeners", handle.listeners()).await.unwrap();
        let ListenerState::Listening(address) = listeners[0].state else { panic!("{listeners:?}") };
        Self { handle, address }
    }

    fn key(&self) -> PeerKey {
        PeerKey::from_socket(self.address)
    }

    async fn command(&self, command: Command) -> Applied {
        soon("command", self.handle.command(command)).await.unwrap()
    }

    async fn originate(&self, prefix: &str, own: Origination) -> Applied {
        self.command(Command::PutOrigination(prefix.parse().unwrap(), own)).await
    }

    /// What it has learned from others, with all that may change; markers left out.
    async fn learned(&self) -> BTreeSet<String> {
        let mut learned = BTreeSet::new();
        for family in FAMILIES {
            let query = RouteQuery { table: RouteTable::LocRib, family, prefix: None };
            for route in soon("routes", self.handle.routes(query).collect()).await.unwrap() {
                let marker = route.nlri.to_string().starts_with("198.51.100.");
                let paths = route.paths.iter().filter(|path| path.source.is_some() && !marker);
                learned.extend(paths.map(|path| {
                    let (source, rejected) = (path.source.unwrap(), path.rejected.is_some());
                    let octets = path.attrs.canonical();
                    let next_hop = path.next_hop;
                    let stale = path.stale;
                    let used = matches!(path.standing, Some(Standing::Best | Standing::Beside));
                    let nlri = route.nlri.octets(path.attrs.label());
                    format!("{nlri:?} from {source} {next_hop:?} {octets:?} {stale} {rejected} {used}")
                }));
            }
        }
        learned
    }

    async fn has(&self, prefix: Nlri) -> bool {
        let query = RouteQuery { table: RouteTable::LocRib, family: prefix.family(), prefix: Some(prefix) };
        !soon("routes", self.handle.routes(query).collect()).await.unwrap().is_empty()
    }
}

fn config(asn: RemoteAsn, local: u8) -> PeerConfig {
    PeerConfig {
        families: FAMILIES.into_iter().collect(),
        idle_hold: IdleHold { min: Duration::from_millis(20), max: Duration::from_millis(200) },
        connect_retry: Duration::from_millis(200),
        graceful_restart: Some(GracefulRestart::USUAL),
        local_address: Some(address(local)),
        ..PeerConfig::new(asn)
    }
}

/// An SR policy that names no headends.
fn candidate_path(preference: u32) -> Origination {
    let path = CandidatePath { preference, ..CandidatePath::default() };
    Origination { sr_policy: Some(Box::new(path)), ..Origination::default() }
}

/// What the neighbour has whose settings change, before they do.
fn base() -> PeerConfig {
    PeerConfig {
        import: Chain::named("in"),
        export: Chain::named("out"),
        add_path: AddPath { receive: true, send: NonZeroU8::new(1) },
        local_asn: Some(LocalAsn::new(Asn(65100))),
        remove_private_as: Some(RemovePrivateAs { all: false, replace: true }),
        ..config(RemoteAsn::External, 1)
    }
}

/// What everyone speaks.
const FAMILIES: [Family; 4] =
    [Family::Ipv4Unicast, Family::Ipv6Unicast, Family::Ipv4Vpn, Family::Ipv4SrPolicy];
const OWN: &str = "10.1.0.0/24";
const AGGREGATE: &str = "10.0.0.0/8";
/// Only a route of a VPN has a label.
const VPN: &str = "65001:1:10.4.0.0/24";
/// Only an SR policy has a candidate path.
const SR_POLICY: &str = "1:100:192.0.2.9";
const RANGE: &str = "127.0.9.5/32";
/// The subject hears of it from one neighbour first.
const AGED: &str = "10.14.0.0/24";

/// The speakers, connected.
struct World {
    subject: Node,
    changed: Node,
    bystander: Node,
    inside: Node,
    twin: Node,
    dynamic: Node,
    markers: u8,
}

impl World {
    async fn start() -> Self {
        let (subject, changed) = (Node::start(65001, 1).await, Node::start(65002, 2).await);
        let (bystander, inside) = (Node::start(65003, 3).await, Node::start(65001, 4).await);
        let (dynamic, twin) = (Node::start(65005, 5).await, Node::start(65001, 7).await);
        for command in shared_base() {
            subject.command(command).await;
        }
        subject.originate(OWN, Origination::default()).await;
        subject.command(Command::PutAggregate(AGGREGATE.parse().unwrap(), Aggregate::default())).await;
        subject.originate("2001:db8:1::/48", Origination::default()).await;
        let labelled = Origination { label: Label::new(16), ..Origination::default() };
        subject.originate(VPN, labelled).await;
        subject.originate(SR_POLICY, candidate_path(1)).await;
        changed.originate("10.2.0.0/24", Origination::default()).await;
        changed.originate("2:100:192.0.2.9", candidate_path(1)).await;
        let third = Origination { next_hop: Some([192, 0, 2, 3].into()), ..Origination::default() };
        bystander.originate("10.3.0.0/24", third).await;
        inside.originate("10.5.0.0/24", Origination::default()).await;
        for (node, routes) in [
            // Our own number, but not first; and a foreign one first.
            (&changed, [("10.6.0.0/24", vec![65001, 65002]), ("10.7.0.0/24", vec![65099])]),
            // That of the neighbour whose settings change; and private ones behind a public one.
            (&bystander, [("10.8.0.0/24", vec![65002, 65003]), ("10.9.0.0/24", vec![7, 65003])]),
        ] {
            let mut statements = Vec::new();
            for (prefix, path) in routes {
                node.command(Command::PutSet(prefix.into(), SetDef::Prefixes(vec![prefix.parse().unwrap()])))
                    .await;
                node.originate(prefix, Origination::default()).await;
                let apply = path.into_iter().map(|asn| Act::Prepend(Asn(asn), 1)).collect();
                let when = vec![Condition::PrefixSet(prefix.into())];
                statements.push(StatementDef::new(when, apply, Flow::Accept));
            }
            let def = PolicyDef { statements, default: Otherwise::Accept };
            node.command(Command::PutPolicy("paths".into(), def)).await;
        }
        for node in [&bystander, &inside] {
            node.originate("10.4.0.0/24", Origination::default()).await;
        }
        subject.command(Command::PutDecision(comparison())).await;
        // What comes of comparing: MED, no MED, no difference; and, later, age.
        let med = |med| Origination { med, ..Origination::default() };
        for (prefix, one, other) in [
            ("10.11.0.0/24", Some(7), Some(3)),
            ("10.12.0.0/24", None, Some(3)),
            ("10.13.0.0/24", None, None),
        ] {
            changed.originate(prefix, med(one)).await;
            bystander.originate(prefix, med(other)).await;
        }
        bystander.originate(AGED, Origination::default()).await;

        let apart =
            PeerConfig { local_asn: Some(LocalAsn::new(Asn(65101))), ..config(RemoteAsn::External, 1) };
        subject.command(Command::PutPeer(changed.key(), base())).await;
        subject.command(Command::PutPeer(bystander.key(), apart)).await;
        subject.command(Command::PutPeer(inside.key(), config(RemoteAsn::Internal, 1))).await;
        subject.command(Command::PutPeer(twin.key(), config(RemoteAsn::Internal, 1))).await;
        let range = PeerRange::new(config(RemoteAsn::External, 1));
        subject.command(Command::PutPeerRange(RANGE.parse().unwrap(), range)).await;
        for (node, n) in [(&changed, 2), (&bystander, 3), (&inside, 4), (&dynamic, 5), (&twin, 7)] {
            let asn = if matches!(n, 4 | 7) { RemoteAsn::Internal } else { RemoteAsn::External };
            let add_path = if n == 2 { AddPath::ALL } else { AddPath::NONE };
            let export = if matches!(n, 2 | 3) { Chain::named("paths") } else { Chain::ACCEPT };
            let config = PeerConfig { add_path, export, ..config(asn, n) };
            node.command(Command::PutPeer(subject.key(), config)).await;
        }
        for node in [&subject, &changed, &bystander, &inside, &twin, &dynamic] {
            node.command(Command::LoadingDone).await;
        }
        let mut world = Self { subject, changed, bystander, inside, twin, dynamic, markers: 0 };
        world.all_is_told().await;
        world
    }

    /// The subject's neighbours.
    fn neighbours(&self) -> [&Node; 5] {
        [&self.changed, &self.bystander, &self.inside, &self.twin, &self.dynamic]
    }

    async fn routes(&self) -> Vec<BTreeSet<String>> {
        let mut all = vec![self.subject.learned().await];
        for node in self.neighbours() {
            all.push(node.learned().await);
        }
        all
    }

    /// The sessions that are up, and how often each has come up.
    async fn sessions(&self) -> BTreeMap<PeerKey, (State, u64)> {
        let peers = soon("peers", self.subject.handle.peers()).await.unwrap();
        peers.iter().map(|peer| (peer.key, (peer.state, peer.established_count))).collect()
    }

    /// Waits until what was told before has arrived, at the subject and at all its neighbours.
    async fn all_is_told(&mut self) {
        self.markers += 1;
        for (n, origin) in [&self.subject, &self.changed, &self.bystander].into_iter().enumerate() {
            let text = format!("198.51.100.{}/32", (3 * usize::from(self.markers) + n) % 256);
            let next_hop = Some([192, 0, 2, 9].into());
            origin.originate(&text, Origination { next_hop, ..Origination::default() }).await;
            let marker: Nlri = text.parse().unwrap();
            for there in [true, false] {
                for node in self.neighbours().into_iter().chain([&self.subject]) {
                    until("a marker", async || (node.has(marker).await == there).then_some(())).await;
                }
                origin.command(Command::DeleteOrigination(marker)).await;
            }
        }
    }

    /// Changes something and puts it back, and holds what that did against what it should cost; `whose` sessions have the
    /// setting.
    async fn change(&mut self, setting: &str, cost: Cost, whose: &[PeerKey], to: Command, back: Command) {
        let (routes, sessions) = (self.routes().await, self.sessions().await);
        let unchanged = self.subject.command(back.clone()).await;
        assert_eq!(unchanged, Applied::Unchanged, "{setting}, as it is");
        let answer = self.subject.command(to.clone()).await;
        let expected = if cost == Cost::Reset { Applied::SessionReset } else { Applied::Applied };
        assert_eq!(answer, expected, "{setting}");
        match cost {
            Cost::Live => {
                self.all_is_told().await;
                assert_eq!(self.routes().await, routes, "{setting}: no route may change");
            }
            Cost::Refresh => {
                let what = format!("{setting}: other routes");
                until(&what, async || (self.routes().await != routes).then_some(())).await;
            }
            Cost::Reset => {}
            Cost::Start => panic!("{setting} can't change"),
        }
        assert_eq!(self.subject.command(to).await, Applied::Unchanged, "{setting}, twice");
        assert_ne!(self.subject.command(back).await, Applied::Unchanged, "{setting}, back");
        let what = format!("{setting}: the sessions again");
        let after = until(&what, async || {
            let after = self.sessions().await;
            after.values().all(|(state, _)| *state == State::Established).then_some(after)
        })
        .await;
        let what = format!("{setting}: the routes again");
        until(&what, async || (self.routes().await == routes).then_some(())).await;
        self.all_is_told().await;
        for (key, (_, before)) in sessions {
            let again = after.get(&key).map(|(_, count)| *count).unwrap();
            if cost == Cost::Reset && whose.contains(&key) {
                assert!(again > before, "{setting}: {key} had to start again");
            } else {
                assert_eq!(again, before, "{setting}: {key} must not notice");
            }
        }
    }
}

#[tokio::test]
async fn a_change_costs_what_the_documentation_says() {
    let mut world = World::start().await;
    let (changed, inside) = (world.changed.key(), world.inside.key());
    let costs = rows("PeerConfig");
    for Line { setting, change } in neighbour_lines() {
        // Only an internal neighbour is a client.
        let client = setting == "route_reflector_client";
        let (key, base) = if client { (inside, config(RemoteAsn::Internal, 1)) } else { (changed, base()) };
        let mut other = base.clone();
        change(&mut other);
        let (to, back) = (Command::PutPeer(key, other), Command::PutPeer(key, base));
        world.change(setting, costs[setting], &[key], to, back).await;
    }

    let (costs, dynamic) = (rows("PeerRange"), PeerKey::new(address(5)));
    let prefix = RANGE.parse().unwrap();
    let range = PeerRange::new(config(RemoteAsn::External, 1));
    let put = |range: &PeerRange| Command::PutPeerRange(prefix, range.clone());
    let limit = PeerRange { limit: 7, ..range.clone() };
    world.change("limit", costs["limit"], &[], put(&limit), put(&range)).await;
    // And, as for a neighbour that is configured itself:
    for (setting, cost) in rows("PeerConfig") {
        if matches!(setting, "description" | "export" | "hold_time" | "password") {
            let mut other = range.clone();
            let lines = neighbour_lines();
            let line = lines.iter().find(|line| line.setting == setting).unwrap();
            (line.change)(&mut other.config);
            world.change(setting, cost, &[dynamic], put(&other), put(&range)).await;
        }
    }

    let costs = rows("Origination");
    for Line { setting, change } in origination_lines() {
        let (nlri, own) = match setting {
            "label" => (VPN, Origination { label: Label::new(16), ..Origination::default() }),
            "sr_policy" => (SR_POLICY, candidate_path(1)),
            _ => (OWN, Origination::default()),
        };
        let nlri = nlri.parse().unwrap();
        let mut other = own.clone();
        change(&mut other);
        let to = Command::PutOrigination(nlri, other);
        let back = Command::PutOrigination(nlri, own);
        world.change(setting, costs[setting], &[], to, back).await;
    }

    let costs = rows("aggregate");
    for Line { setting, change } in aggregate_lines() {
        let prefix = AGGREGATE.parse().unwrap();
        let mut other = Aggregate::default();
        change(&mut other);
        let to = Command::PutAggregate(prefix, other);
        let back = Command::PutAggregate(prefix, Aggregate::default());
        world.change(setting, costs[setting], &[], to, back).await;
    }

    // There is nothing to reflect without a client.
    let client = PeerConfig { route_reflector_client: true, ..config(RemoteAsn::Internal, 1) };
    world.subject.command(Command::PutPeer(inside, client)).await;
    world.all_is_told().await;
    let costs = rows("several neighbours");
    for (to, back) in shared_changes() {
        let setting = row_of(&to).unwrap();
        world.change(setting, costs[setting], &[], to, back).await;
    }

    assert_eq!(costs["listen"], Cost::Live);
    let (sessions, listen) = (world.sessions().await, world.subject.address);
    for addresses in [vec![listen, SocketAddr::new(address(6), 0)], vec![], vec![listen]] {
        soon("listen", world.subject.handle.listen(addresses)).await.unwrap();
        world.all_is_told().await;
    }
    assert_eq!(world.sessions().await, sessions);

    let aged = || RouteQuery {
        table: RouteTable::LocRib,
        family: Family::Ipv4Unicast,
        prefix: Some(AGED.parse().unwrap()),
    };
    let paths = async |world: &World| {
        let routes = soon("routes", world.subject.handle.routes(aged()).collect()).await.unwrap();
        routes.into_iter().flat_map(|route| route.paths).collect::<Vec<_>>()
    };
    until("an old path", async || {
        let old = |path: &PathEntry| path.age > Duration::from_secs(1);
        paths(&world).await.iter().any(old).then_some(())
    })
    .await;
    world.changed.originate(AGED, Origination::default()).await;
    until("a new path", async || (paths(&world).await.len() == 2).then_some(())).await;
    world.all_is_told().await;
    let costs = rows("DecisionSettings");
    for Line { setting, change } in decision_lines() {
        let mut other = comparison();
        change(&mut other);
        let (to, back) = (Command::PutDecision(other), Command::PutDecision(comparison()));
        world.change(setting, costs[setting], &[], to, back).await;
    }

    // Last, since everything begins anew.
    let costs = rows("SpeakerSettings");
    let asn = |asn| Command::PutIdentity { asn: Asn(asn), router_id: RouterId(1) };
    let id = |id| Command::PutIdentity { asn: Asn(65001), router_id: RouterId(id) };
    let [changed, bystander, inside, twin, dynamic] = world.neighbours().map(Node::key);
    let dynamic = dynamic.with_port(179);
    world.change("asn", costs["asn"], &[inside, twin, dynamic], asn(65011), asn(65001)).await;
    world
        .change("router_id", costs["router_id"], &[changed, bystander, inside, twin, dynamic], id(77), id(1))
        .await;
    for node in world.neighbours() {
        soon("shutdown", node.handle.shutdown(StopMode::Notify(String::new()))).await;
    }
}
