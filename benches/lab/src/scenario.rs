//! What is done to a daemon, and the figures that come out.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use test_support::lab::Lab;

use crate::churn;
use crate::daemon::{Daemon, Kind};
use crate::ends::Ends;
use crate::judge::{Judge, Set, Slot};
use crate::plan::Plan;
use crate::wire::{self, Attributes};

/// What is measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// One sender of 200,000 prefixes, one receiver.
    A,
    /// One sender of 1,000,000 prefixes, one receiver.
    B,
    /// Ten senders of 100,000 prefixes each, one receiver.
    C,
    /// Ten senders of the same 100,000 prefixes, ten receivers.
    D,
    /// The table of a; then a tenth of it changes again and again; then single prefixes change.
    E,
    /// A node of a cluster: 50 internal neighbours with 64 prefixes each, from the start of the process.
    F,
    /// A route reflector with 500 clients of 4 prefixes each.
    G,
    /// The table of b withdrawn at once: what the withdrawal costs.
    H,
    /// The table of a with IPv6.
    I,
    /// The table of b through an import policy of 100 prefix rules and 20 community rules.
    K,
}

impl Scenario {
    /// All, in order.
    pub(crate) const ALL: [Self; 10] =
        [Self::A, Self::B, Self::C, Self::D, Self::E, Self::F, Self::G, Self::H, Self::I, Self::K];

    /// Its letter.
    #[must_use]
    pub(crate) fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
            Self::C => 'c',
            Self::D => 'd',
            Self::E => 'e',
            Self::F => 'f',
            Self::G => 'g',
            Self::H => 'h',
            Self::I => 'i',
            Self::K => 'k',
        }
    }

    /// Its name in the table.
    #[must_use]
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::A => "1 x 200k -> 1",
            Self::B => "1 x 1M -> 1",
            Self::C => "10 x 100k -> 1",
            Self::D => "10 x same 100k -> 10",
            Self::E => "churn of 10 % of a",
            Self::F => "50 iBGP x 64, from start",
            Self::G => "reflector, 500 x 4",
            Self::H => "1M withdrawn",
            Self::I => "1 x 200k IPv6 -> 1",
            Self::K => "b with 120 rules",
        }
    }

    /// Whether the daemon takes part.
    #[must_use]
    pub(crate) fn is_for(self, kind: Kind) -> bool {
        // It needs minutes elsewhere.
        kind != Kind::Gobgp || matches!(self, Self::A | Self::F | Self::G)
    }
}

/// What one run cost the daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    /// User plus system CPU seconds of all its processes: from the start to the last prefix; in h those of the
    /// withdrawal.
    pub(crate) cpu_seconds: f64,
    /// Peak resident memory in MiB.
    pub(crate) peak_mib: f64,
    /// Seconds from the first UPDATE sent, in f from the start of the process, to the last one received.
    pub(crate) wall_seconds: f64,
    /// Other figures of the scenario, by name.
    pub(crate) more: Vec<(&'static str, f64)>,
}

/// A daemon with its sessions and the judge of what comes out.
pub(crate) struct Run {
    /// The daemon.
    pub(crate) daemon: Daemon,
    /// The other ends.
    pub(crate) ends: Ends,
    /// The judge.
    pub(crate) judge: Judge,
    /// The receivers' numbers among the ends.
    views: Vec<Option<usize>>,
    /// How long each part may take.
    patience: Duration,
}

/// Measures one daemon in one scenario.
///
/// # Errors
///
/// What it could not do, in words.
pub(crate) fn measure(
    lab: &Lab,
    kind: Kind,
    scenario: Scenario,
    scale: u32,
    patience: Duration,
) -> Result<Figures, String> {
    let plan = Plan::of(scenario, scale);
    let length = plan.network_length();
    let ours: Vec<String> = plan.addresses().map(|address| format!("{address}/{length}")).collect();
    let host = lab.host("dut", &ours.iter().map(String::as_str).collect::<Vec<_>>());
    add_addresses(&plan);
    let messages: Vec<_> = (0..plan.tables.len()).map(|sender| plan.messages(sender)).collect();
    let judge = plan.judge();
    let mut views = vec![None; plan.neighbors.len()];
    for (view, receiver) in plan.receivers().into_iter().enumerate() {
        views[receiver] = Some(view);
    }
    let mut ends = Ends::new(plan.family, plan.ends());
    let from_start = scenario == Scenario::F;
    let start = Instant::now();
    if from_start {
        for (sender, messages) in messages.iter().enumerate() {
            ends.send(sender, messages.clone());
        }
    }
    let mut run = Run { daemon: kind.start(&host, &plan), ends, judge, views, patience };
    let outcome = (|| {
        run.until("all sessions are up", |run| run.ends.all_up())?;
        let start = if from_start { start } else { Instant::now() };
        if !from_start {
            for (sender, messages) in messages.into_iter().enumerate() {
                run.ends.send(sender, messages);
            }
        }
        run.until_satisfied("every prefix has arrived")?;
        let mut figures = run.figures(0.0, start);
        match scenario {
            Scenario::E => churn::measure(&plan, &mut run, &mut figures)?,
            Scenario::H => figures = withdraw(&plan, &mut run)?,
            Scenario::A
            | Scenario::B
            | Scenario::C
            | Scenario::D
            | Scenario::F
            | Scenario::G
            | Scenario::I
            | Scenario::K => {}
        }
        Ok(figures)
    })();
    outcome.map_err(|error: String| format!("{error}; it said: {}", run.daemon.last_words()))
}

fn withdraw(plan: &Plan, run: &mut Run) -> Result<Figures, String> {
    for prefix in plan.tables.iter().flatten().flat_map(|route| &route.prefixes) {
        let slot = run.judge.slot(*prefix);
        run.judge.want(0, slot, Set::NONE);
    }
    let messages = wire::withdrawals(plan.family, &plan.tables[0]);
    let (before, start) = (run.daemon.cpu_seconds(), Instant::now());
    run.ends.send(0, messages.into());
    run.until_satisfied("every prefix is withdrawn")?;
    Ok(run.figures(before, start))
}

impl Run {
    /// Figures from a moment on.
    pub(crate) fn figures(&self, cpu_before: f64, start: Instant) -> Figures {
        Figures {
            wall_seconds: start.elapsed().as_secs_f64(),
            cpu_seconds: self.daemon.cpu_seconds() - cpu_before,
            peak_mib: self.daemon.peak_mib(),
            more: Vec::new(),
        }
    }

    /// One turn of sending and receiving. `each` is told every prefix that is heard.
    pub(crate) fn turn(
        &mut self,
        wait: Duration,
        mut each: impl FnMut(Slot, Set, &Attributes),
    ) -> Result<(), String> {
        let (judge, views) = (&mut self.judge, &self.views);
        self.ends.turn(wait, &mut |end, body| match views[end] {
            Some(view) => judge.heard(view, body, &mut each),
            None => Ok(()),
        })
    }

    fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !done(self) {
            let wait = if self.ends.all_up() {
                Duration::from_millis(100)
            } else {
                self.ends.connect();
                Duration::from_micros(500)
            };
            self.turn(wait, |_, _, _| {})?;
            if start.elapsed() > self.patience {
                let limit = self.patience.as_secs();
                return Err(format!("not within {limit} s: {what}; {}", self.judge.complaint()));
            }
            if self.daemon.has_ended() {
                return Err("the daemon ended".to_owned());
            }
        }
        Ok(())
    }

    /// Sends and receives until all receivers hold what is wanted.
    pub(crate) fn until_satisfied(&mut self, what: &str) -> Result<(), String> {
        self.until(what, |run| run.judge.satisfied())
    }

    /// How long a part may take.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }
}

/// The other ends' addresses, on the lab's bridge.
fn add_addresses(plan: &Plan) {
    let length = plan.network_length();
    let lines: Vec<String> = plan
        .neighbors
        .iter()
        .map(|neighbor| {
            format!(
                "addr add {}/{length} dev br0 {}\n",
                neighbor.address,
                if neighbor.address.is_ipv6() { "nodad" } else { "" }
            )
        })
        .collect();
    let child = Command::new("ip").args(["-batch", "-"]).stdin(Stdio::piped()).spawn();
    let mut child = child.expect("iproute2 is installed");
    child.stdin.take().expect("a pipe").write_all(lines.concat().as_bytes()).expect("it reads");
    assert!(child.wait().is_ok_and(|status| status.success()), "addresses on the lab's bridge");
}
