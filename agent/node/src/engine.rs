//! The task that owns the engine: events go in, operations come out, questions about its state are answered.
//!
//! It waits for nobody: an operation is handed over only where an executor has a free slot.

mod blocks;
mod notes;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use agent_core::desired::VppKey;
use agent_core::event::{Event, HostTaps};
use agent_core::explain::{Explained, ExplainedObject};
use agent_core::model::{Condition, Filter, FilterName, PublicKey, Severity};
use agent_core::plan::{Audit, Course, SpeakerOp, VppOp, VppState};
use agent_core::{Config, Engine, Forwarding, Status};
use bgp_core::command::Command;
use bgp_core::policy::{PolicyDef, PolicyName};
use bgp_core::time::Instant as EngineTime;
use bgp_net::{Handle, Stopped};
use ipnet::IpNet;
use tokio::sync::{mpsc, oneshot};

use self::blocks::{BlockLog, Line};
pub(crate) use self::notes::Notes;
use crate::app::Claim;
use crate::execute::speaker::SpeakerExecutor;
use crate::execute::status::{Keys, NodeStatus};
use crate::execute::vpp::{Connection, VppExecutor};
use crate::inspect::answer::{
    Audited, Count, Problem, Unsettled, Vpp, VppObject, Wireguard, WireguardSession,
};
use crate::watch::{self, InfoFile, RibWatcher, SourceChange};

/// A question about the engine's state.
#[derive(Debug)]
pub(crate) enum Ask {
    /// How everything stands.
    Status(oneshot::Sender<Snapshot>),
    /// The same, after an audit of VPP.
    Audit(oneshot::Sender<Snapshot>),
    /// Every object of VPP but routes.
    Objects(oneshot::Sender<Vec<VppObject>>),
    /// What becomes of a destination, and whether there is a VPP.
    Explain(IpNet, oneshot::Sender<(Explained, bool)>),
    /// Which policies these BGPFilters would be.
    Compile(Vec<(FilterName, Filter)>, oneshot::Sender<Vec<(PolicyName, PolicyDef)>>),
}

/// How long an answer may take before the engine counts as stuck.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an audit may take: all that VPP holds is read, and what differs repaired.
const AUDIT_PATIENCE: Duration = Duration::from_secs(60);

/// Ask how everything stands; `None` where the engine is stuck or gone.
pub(crate) async fn ask_status(engine: &mpsc::Sender<Ask>) -> Option<Snapshot> {
    ask(engine, Ask::Status, PATIENCE).await
}

/// Have VPP audited, and ask how everything stands after it. Where VPP can't be read the answer comes without.
pub(crate) async fn ask_audit(engine: &mpsc::Sender<Ask>) -> Option<Snapshot> {
    ask(engine, Ask::Audit, AUDIT_PATIENCE).await
}

/// Ask for every object of VPP but routes; `None` where the engine is stuck or gone.
pub(crate) async fn ask_objects(engine: &mpsc::Sender<Ask>) -> Option<Vec<VppObject>> {
    ask(engine, Ask::Objects, PATIENCE).await
}

/// Ask what becomes of a destination; and whether there is a VPP. `None` where the engine is stuck or gone.
pub(crate) async fn ask_explain(engine: &mpsc::Sender<Ask>, prefix: IpNet) -> Option<(Explained, bool)> {
    ask(engine, |answer| Ask::Explain(prefix, answer), PATIENCE).await
}

/// Ask which policies BGPFilters would be here. `None` where the engine is stuck or gone.
pub(crate) async fn ask_compile(
    engine: &mpsc::Sender<Ask>,
    filters: Vec<(FilterName, Filter)>,
) -> Option<Vec<(PolicyName, PolicyDef)>> {
    ask(engine, |answer| Ask::Compile(filters, answer), PATIENCE).await
}

async fn ask<T>(
    engine: &mpsc::Sender<Ask>,
    question: impl FnOnce(oneshot::Sender<T>) -> Ask,
    patience: Duration,
) -> Option<T> {
    let asked = async {
        let (sender, answer) = oneshot::channel();
        engine.send(question(sender)).await.ok()?;
        answer.await.ok()
    };
    tokio::time::timeout(patience, asked).await.ok().flatten()
}

/// How everything stood a moment ago.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// By the engine's clock.
    pub(crate) now: EngineTime,
    /// What the engine says.
    pub(crate) status: Status,
    /// The connection to VPP; absent where there is no VPP.
    pub(crate) connection: Option<Connection>,
    /// What the last audit of VPP found.
    pub(crate) audit: Option<Audit>,
    /// The WireGuard keys that other nodes have to know.
    pub(crate) keys: Keys,
}

impl Snapshot {
    /// As the inspection socket says it.
    pub(crate) fn vpp(&self) -> Vpp {
        let converged = self.status.settled();
        let waiting_for = if converged { Vec::new() } else { self.waiting_for() };
        let mut answer = Vpp { state: "off".into(), converged, waiting_for, ..Vpp::default() };
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
            let blocked = report.blocked.iter().map(|blocked| Unsettled {
                object: blocked.object.to_string(),
                value: blocked.value.clone(),
                state: "blocked".into(),
                reason: blocked.reason.clone(),
                attempts: blocked.attempts,
                next_try_seconds: blocked.next_try.map(|at| seconds_until(self.now, at)),
            });
            let pending = report.pending.iter().map(|pending| Unsettled {
                object: pending.object.to_string(),
                value: pending.value.clone(),
                state: "pending".into(),
                reason: match pending.course {
                    Course::Coming => "is being made",
                    Course::Changing => "is being changed",
                    Course::Going => "is being removed",
                }
                .into(),
                ..Unsettled::default()
            });
            answer.objects = blocked.chain(pending).collect();
        }
        answer.audit = self.audit.as_ref().map(|audit| Audited {
            number: audit.number,
            found: audit.found as u64,
            again: audit.again as u64,
            disputed: audit.disputed as u64,
            objects: audit.objects.iter().map(ToString::to_string).collect(),
        });
        let sessions = self.status.vpp.iter().flat_map(|report| &report.wireguard);
        let sessions: Vec<_> = sessions
            .map(|session| WireguardSession {
                peer: session.peer.to_string(),
                public_key: session.public.to_string(),
                established: session.established,
            })
            .collect();
        if self.keys != Keys::default() || !sessions.is_empty() {
            let text = |key: Option<PublicKey>| key.map(|key| key.to_string());
            let (public_key, public_key_v6) = (text(self.keys.v4), text(self.keys.v6));
            answer.wireguard = Some(Wireguard { public_key, public_key_v6, sessions });
        }
        answer.conditions = self.status.conditions.iter().map(problem).collect();
        answer
    }
}

impl Snapshot {
    /// What isn't yet as it shall be, outermost cause first.
    fn waiting_for(&self) -> Vec<String> {
        let Status { sources, converged, families, forwarding, vpp, speaker_busy, conditions: _ } =
            &self.status;
        let mut waiting = Vec::new();
        let missing = sources.missing();
        if !missing.is_empty() {
            waiting.push(format!("the datastore to tell: {}", missing.join(", ")));
        }
        if let Some(connection) = &self.connection
            && !connection.up
        {
            waiting.push("the connection to VPP".to_owned());
        }
        if let Some(vpp) = vpp {
            let (pending, blocked) = vpp.kinds.iter().fold((0, 0), |(pending, blocked), (_, counts)| {
                (pending + counts.pending, blocked + counts.blocked)
            });
            match vpp.state {
                VppState::Reading => waiting.push("what VPP holds to be read".to_owned()),
                VppState::Running if pending > 0 => {
                    waiting.push(format!("{pending} objects on their way to VPP"));
                }
                VppState::Away | VppState::Running => {}
            }
            if blocked > 0 {
                waiting.push(format!("what blocks {blocked} objects"));
            }
        }
        if *speaker_busy {
            waiting.push("the speaker to be told".to_owned());
        }
        // Before the datastore has spoken nobody knows who is a neighbor.
        if missing.is_empty() && converged.intersect(*families) != *families {
            waiting.push("the first routes of every neighbor, or two minutes".to_owned());
        }
        if waiting.is_empty() && *forwarding != Forwarding::Ready {
            waiting.push("VPP to be brought up to date".to_owned());
        }
        waiting
    }
}

/// Whole seconds, rounded up: what is due in a moment isn't due now.
fn seconds_until(now: EngineTime, at: EngineTime) -> u64 {
    at.saturating_since(now).as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX)
}

/// An object of VPP as the inspection socket says it.
fn vpp_object(now: EngineTime, explained: ExplainedObject) -> VppObject {
    let ExplainedObject { object, wanted, standing, value, reason, attempts, next_try, paths: _ } = explained;
    let kind = match object {
        VppKey::Object(object) => object.kind(),
        VppKey::Route(_) => "route",
    };
    VppObject {
        kind: kind.to_owned(),
        object: object.to_string(),
        value,
        wanted,
        state: standing.name().to_owned(),
        reason,
        attempts,
        next_try_seconds: next_try.map(|at| seconds_until(now, at)),
    }
}

/// A condition as the inspection socket says it.
pub(crate) fn problem(condition: &Condition) -> Problem {
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

/// Files of the engine's task.
#[derive(Debug)]
pub(crate) struct Files {
    /// What VPP's manager has given VPP.
    pub(crate) info_file: Option<InfoFile>,
    /// What VPP may hold and does not show.
    pub(crate) notes: Notes,
    /// Where this node's keys are published.
    pub(crate) status: NodeStatus,
    /// This agent's claim to its VPP.
    pub(crate) claim: Option<Claim>,
}

/// What the engine's task is made of.
#[derive(Debug)]
pub(crate) struct EngineTask {
    engine: Engine,
    began: Instant,
    vpp: Option<VppExecutor>,
    speaker: SpeakerExecutor,
    handle: Handle,
    rib: RibWatcher,
    objects: mpsc::Receiver<Vec<SourceChange>>,
    info_file: Option<InfoFile>,
    notes: Notes,
    asks: mpsc::Receiver<Ask>,
    status: NodeStatus,
    claim: Option<Claim>,
    /// Who waits for an audit, and for which.
    audits: Vec<(u64, oneshot::Sender<Snapshot>)>,
    listen: Vec<SocketAddr>,
    /// Conditions that have been logged, each with its form without a remedy.
    logged: BTreeMap<String, String>,
    blocks: BlockLog,
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
        files: Files,
        asks: mpsc::Receiver<Ask>,
    ) -> Self {
        let speaker = SpeakerExecutor::new(handle.clone());
        Self {
            engine: Engine::new(config),
            began: Instant::now(),
            vpp,
            speaker,
            handle,
            rib,
            objects,
            info_file: files.info_file,
            notes: files.notes,
            asks,
            status: files.status,
            claim: files.claim,
            audits: Vec::new(),
            listen: Vec::new(),
            logged: BTreeMap::new(),
            blocks: BlockLog::default(),
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
            self.answer_audits();
            self.log_blocks();
            if settings_changed {
                self.follow_up().await?;
            }
            let events = self.wait().await?;
            settings_changed = events.iter().any(|event| !matches!(event, Event::Rib(_) | Event::Vpp(_)));
            let now = self.now();
            for event in events {
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

    /// Take leave of VPP at once.
    pub(crate) fn part(&self) {
        if let Some(vpp) = &self.vpp {
            vpp.part();
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            now: self.now(),
            status: self.engine.status(),
            connection: self.vpp.as_ref().map(VppExecutor::connection),
            audit: self.engine.audited().cloned(),
            keys: self.engine.published_keys(),
        }
    }

    fn hear(&mut self, ask: Ask) {
        // Nobody may be left to hear it.
        match ask {
            Ask::Status(answer) => drop(answer.send(self.snapshot())),
            Ask::Audit(answer) => match self.engine.audit(self.now()) {
                Some(number) => self.audits.push((number, answer)),
                None => drop(answer.send(self.snapshot())),
            },
            Ask::Objects(answer) => {
                let now = self.now();
                let all = self.engine.objects().into_iter().map(|object| vpp_object(now, object));
                drop(answer.send(all.collect()));
            }
            Ask::Explain(prefix, answer) => {
                drop(answer.send((self.engine.explain(prefix), self.vpp.is_some())));
            }
            Ask::Compile(filters, answer) => drop(answer.send(self.engine.policies_of(&filters))),
        }
    }

    /// Answer who waits for an audit that is over, or that can't be had any more.
    fn answer_audits(&mut self) {
        if self.audits.is_empty() {
            return;
        }
        let lost = self.vpp.as_ref().is_none_or(|vpp| !vpp.is_up());
        let over = self.engine.audited().map_or(0, |audit| audit.number);
        let (answered, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.audits).into_iter().partition(|(number, _)| lost || *number <= over);
        self.audits = waiting;
        for (_, answer) in answered {
            drop(answer.send(self.snapshot()));
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
            self.notes.keep(self.engine.notes(), || self.engine.remembered());
            self.vpp_ops.drain(..).for_each(|op| vpp.submit(op));
        }
        self.engine.next_speaker_ops(now, self.speaker.free(), &mut self.speaker_ops);
        for op in &self.speaker_ops {
            if let Command::PutIdentity { asn, router_id } = &op.command {
                tracing::info!(%asn, %router_id, "this node in BGP");
            }
        }
        if !self.speaker_ops.is_empty() {
            self.speaker.submit(std::mem::take(&mut self.speaker_ops));
        }
    }

    /// Log what has become blocked in VPP, and what no longer is.
    fn log_blocks(&mut self) {
        let now = Instant::now();
        self.blocks.hear(self.engine.troubles(), now);
        if self.blocks.due().is_some_and(|due| now >= due)
            && let Some(report) = self.engine.status().vpp
        {
            self.blocks.look(&report, now).iter().for_each(Line::log);
        }
    }

    /// Things that change with configuration only.
    async fn follow_up(&mut self) -> Result<(), Stopped> {
        let listen = self.engine.listen();
        if listen != self.listen {
            self.handle.listen(listen.clone()).await?;
            self.listen = listen;
        }
        self.status.publish(self.engine.published_keys());
        let conditions: BTreeMap<String, String> = self
            .engine
            .conditions()
            .map(|condition| (condition.to_string(), condition.stated().to_string()))
            .collect();
        for condition in conditions.keys().filter(|condition| !self.logged.contains_key(*condition)) {
            tracing::warn!("{condition}");
        }
        for (condition, stated) in &self.logged {
            if !conditions.contains_key(condition) {
                tracing::info!("put right: {stated}");
            }
        }
        self.logged = conditions;
        Ok(())
    }

    /// Wait until something happened, and say what.
    async fn wait(&mut self) -> Result<Vec<Event>, Stopped> {
        let deadline = self.engine.deadline().map(|at| self.began + Duration::from_nanos(at.as_nanos()));
        let due =
            [deadline, self.blocks.due()].into_iter().flatten().min().map(tokio::time::Instant::from_std);
        tokio::select! {
            events = self.rib.next() => events,
            events = self.speaker.next() => events,
            events = next_of(&mut self.vpp) => Ok(events),
            changes = self.objects.recv() => match changes {
                Some(changes) => Ok(changes.into_iter().filter_map(watch::event).collect()),
                // Its task has ended, which only the end of the process does.
                None => std::future::pending().await,
            },
            writers = next_writers(&mut self.claim) => Ok(vec![Event::Writer(writers)]),
            taps = next_taps(&mut self.info_file) => Ok(vec![Event::HostTaps(taps)]),
            ask = self.asks.recv() => {
                if let Some(ask) = ask {
                    self.hear(ask);
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

async fn next_taps(info_file: &mut Option<InfoFile>) -> HostTaps {
    match info_file {
        Some(file) => file.next().await,
        None => std::future::pending().await,
    }
}

async fn next_writers(claim: &mut Option<Claim>) -> Vec<Condition> {
    match claim {
        Some(claim) => claim.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
