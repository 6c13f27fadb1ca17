//! The task that owns the engine: events go in, operations come out, questions about its state are answered.
//!
//! It waits for nobody: an operation is handed over only where an executor has a free slot.

mod listen;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use agent_core::event::Event;
use agent_core::model::{Condition, Severity};
use agent_core::plan::{SpeakerOp, VppOp, VppState};
use agent_core::{Config, Engine, Status};
use bgp_core::FamilySet;
use bgp_core::time::Instant as EngineTime;
use bgp_net::{Handle, Stopped};
use tokio::sync::{mpsc, oneshot};

use listen::Listening;

use crate::execute::speaker::SpeakerExecutor;
use crate::execute::vpp::{Connection, VppExecutor};
use crate::inspect::answer::{Count, Problem, Unsettled, Vpp};
use crate::watch::{self, RibWatcher, SourceChange};

/// A question about the engine's state.
#[derive(Debug)]
pub(crate) struct Ask(oneshot::Sender<Snapshot>);

/// How long an answer may take before the engine counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ask how everything stands; `None` where the engine is stuck or gone.
pub(crate) async fn ask_status(engine: &mpsc::Sender<Ask>) -> Option<Snapshot> {
    let asked = async {
        let (sender, answer) = oneshot::channel();
        engine.send(Ask(sender)).await.ok()?;
        answer.await.ok()
    };
    tokio::time::timeout(PATIENCE, asked).await.ok().flatten()
}

/// How everything stood a moment ago.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// What the engine says.
    pub(crate) status: Status,
    /// The connection to VPP; absent where there is no VPP.
    pub(crate) connection: Option<Connection>,
}

impl Snapshot {
    /// As the inspection socket says it.
    pub(crate) fn vpp(&self) -> Vpp {
        let converged = self.status.ready() && self.status.converged == FamilySet::ALL;
        let mut answer = Vpp { state: "off".into(), converged, ..Vpp::default() };
        if let Some(connection) = &self.connection {
            answer.state = if connection.up { "up" } else { "connecting" }.into();
            answer.version.clone_from(&connection.version);
            answer.last_error.clone_from(&connection.last_error);
        }
        if let Some(report) = &self.status.vpp {
            answer.generation = report.generation.0;
            if report.state == VppState::Reading && answer.state == "up" {
                answer.state = "reading".into();
            }
            answer.kinds = report
                .kinds
                .iter()
                .map(|(kind, counts)| Count {
                    kind: (*kind).to_owned(),
                    desired: counts.desired as u64,
                    present: counts.present as u64,
                    pending: counts.pending as u64,
                    blocked: counts.blocked as u64,
                })
                .collect();
            answer.objects = report
                .blocked
                .iter()
                .map(|blocked| Unsettled {
                    object: blocked.object.to_string(),
                    state: "blocked".into(),
                    reason: blocked.reason.clone(),
                })
                .collect();
        }
        answer.conditions = self.status.conditions.iter().map(problem).collect();
        answer
    }
}

fn problem(condition: &Condition) -> Problem {
    let location = condition.location.as_ref();
    Problem {
        severity: match condition.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
        .into(),
        kind: condition.object.kind.into(),
        name: condition.object.name.to_string(),
        field: condition.field.to_string(),
        file: location.map(|location| location.file.to_string()),
        line: location.map(|location| location.line).filter(|line| *line > 0),
        reason: condition.reason.to_string(),
        remedy: condition.remedy.to_string(),
    }
}

/// What the engine's task is made of.
#[derive(Debug)]
pub(crate) struct EngineTask {
    engine: Engine,
    listening: Listening,
    began: Instant,
    vpp: Option<VppExecutor>,
    speaker: SpeakerExecutor,
    handle: Handle,
    rib: RibWatcher,
    objects: mpsc::Receiver<Vec<SourceChange>>,
    asks: mpsc::Receiver<Ask>,
    listen: Vec<SocketAddr>,
    logged: BTreeSet<String>,
    vpp_ops: Vec<VppOp>,
    speaker_ops: Vec<SpeakerOp>,
}

impl EngineTask {
    /// Everything is connected, nothing has happened yet.
    pub(crate) fn new(
        config: Config,
        vpp: Option<VppExecutor>,
        handle: Handle,
        rib: RibWatcher,
        objects: mpsc::Receiver<Vec<SourceChange>>,
        asks: mpsc::Receiver<Ask>,
    ) -> Self {
        let speaker = SpeakerExecutor::new(handle.clone());
        Self {
            listening: Listening::new(config.mode, config.node.clone()),
            engine: Engine::new(config),
            began: Instant::now(),
            vpp,
            speaker,
            handle,
            rib,
            objects,
            asks,
            listen: Vec::new(),
            logged: BTreeSet::new(),
            vpp_ops: Vec::new(),
            speaker_ops: Vec::new(),
        }
    }

    /// Run until the future is dropped.
    ///
    /// # Errors
    /// The speaker has stopped.
    pub(crate) async fn run(&mut self) -> Result<(), Stopped> {
        let mut settings_changed = true;
        loop {
            self.hand_over();
            if settings_changed {
                self.follow_up().await?;
            }
            let events = self.wait().await?;
            settings_changed = events.iter().any(|event| !matches!(event, Event::Rib(_) | Event::Vpp(_)));
            let now = self.now();
            for event in events {
                self.listening.hear(&event);
                self.engine.handle(now, event);
            }
        }
    }

    /// Let requests to VPP finish and take leave of it. What it holds stays.
    pub(crate) async fn close(&self) {
        if let Some(vpp) = &self.vpp {
            vpp.close().await;
        }
    }

    fn now(&self) -> EngineTime {
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        EngineTime::from_nanos(nanos)
    }

    fn hand_over(&mut self) {
        let now = self.now();
        if let Some(vpp) = &mut self.vpp {
            self.engine.next_vpp_ops(now, vpp.free(), &mut self.vpp_ops);
            self.vpp_ops.drain(..).for_each(|op| vpp.submit(op));
        }
        let free = self.speaker.free();
        if free > 0 {
            self.engine.next_speaker_ops(now, free, &mut self.speaker_ops);
            self.speaker.submit(std::mem::take(&mut self.speaker_ops));
        }
    }

    /// Things that change with configuration only.
    async fn follow_up(&mut self) -> Result<(), Stopped> {
        let listen = self.listening.addresses();
        if listen != self.listen {
            self.handle.listen(listen.clone()).await?;
            self.listen = listen;
        }
        let conditions: BTreeSet<String> = self.engine.conditions().map(ToString::to_string).collect();
        for condition in conditions.difference(&self.logged) {
            tracing::warn!("{condition}");
        }
        for condition in self.logged.difference(&conditions) {
            tracing::info!("put right: {condition}");
        }
        self.logged = conditions;
        Ok(())
    }

    /// Wait until something happened, and say what.
    async fn wait(&mut self) -> Result<Vec<Event>, Stopped> {
        let due = self.engine.deadline().map(|deadline| {
            tokio::time::Instant::from_std(self.began + Duration::from_nanos(deadline.as_nanos()))
        });
        tokio::select! {
            events = self.rib.next() => events,
            events = self.speaker.next() => events,
            events = next_of(&mut self.vpp) => Ok(events),
            changes = self.objects.recv() => match changes {
                Some(changes) => Ok(changes.into_iter().filter_map(watch::event).collect()),
                // Its task has ended, which only the end of the process does.
                None => std::future::pending().await,
            },
            ask = self.asks.recv() => {
                if let Some(Ask(answer)) = ask {
                    let connection = self.vpp.as_ref().map(VppExecutor::connection);
                    // Nobody may be left to hear it.
                    let _ = answer.send(Snapshot { status: self.engine.status(), connection });
                }
                Ok(Vec::new())
            }
            () = sleep_until(due) => Ok(vec![Event::Tick]),
        }
    }
}

async fn next_of(vpp: &mut Option<VppExecutor>) -> Vec<Event> {
    match vpp {
        Some(vpp) => vpp.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
