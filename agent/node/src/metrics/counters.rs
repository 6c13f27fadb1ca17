//! VPP's own counters, read from its statistics segment: those of interfaces, and why packets were dropped.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use vpp_stats::{InterfaceCounters, Stats, StatsError, metric_name};

use super::PREFIX;
use super::text::Exposition;

/// Whoever asks while the segment is being read waits so long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where they come from.
#[derive(Debug)]
pub(super) struct Counters {
    socket: Option<PathBuf>,
    mapped: Arc<Mutex<Option<Mapped>>>,
}

/// The segment of a VPP. One that starts again has another, and says so by the generation of its API connection.
#[derive(Debug)]
struct Mapped {
    generation: u64,
    stats: Stats,
}

/// What was read.
#[derive(Debug)]
struct Read {
    interfaces: Vec<InterfaceCounters>,
    errors: BTreeMap<Box<str>, u64>,
}

impl Counters {
    pub(super) fn new(socket: Option<PathBuf>) -> Self {
        Self { socket, mapped: Arc::default() }
    }

    /// Adds what VPP counts; nothing but that there is nothing while there is no connection to it (no `generation`).
    pub(super) async fn write(&self, out: &mut Exposition, generation: Option<u64>) {
        let Some(socket) = &self.socket else { return };
        let read = match generation {
            Some(generation) => self.read(socket.clone(), generation).await,
            None => None,
        };
        out.gauge("vpp_stats_up", "1 while VPP's statistics can be read", &[], u64::from(read.is_some()));
        if let Some(read) = read {
            write(out, &read);
        }
    }

    /// Reads; `None` where it can't be.
    async fn read(&self, socket: PathBuf, generation: u64) -> Option<Read> {
        let mapped = Arc::clone(&self.mapped);
        let read = async move {
            // At most one thread reads, however many ask.
            let mut mapped = mapped.lock_owned().await;
            let read = move || {
                let read = read(&mut mapped, &socket, generation);
                if read.is_err() {
                    *mapped = None;
                }
                read
            };
            tokio::task::spawn_blocking(read).await.ok()
        };
        match tokio::time::timeout(PATIENCE, read).await.ok()?? {
            Ok(read) => Some(read),
            Err(error) => {
                tracing::debug!(%error, "VPP's statistics can't be read");
                None
            }
        }
    }
}

fn read(mapped: &mut Option<Mapped>, socket: &std::path::Path, generation: u64) -> Result<Read, StatsError> {
    if mapped.as_ref().is_none_or(|mapped| mapped.generation != generation) {
        // Let go of the old one first: it may be large.
        *mapped = None;
        *mapped = Some(Mapped { generation, stats: Stats::connect(socket)? });
    }
    let Some(Mapped { stats, .. }) = mapped else { return Err(StatsError::NoSegment) };
    Ok(Read { interfaces: stats.interfaces()?, errors: stats.errors()? })
}

fn write(out: &mut Exposition, read: &Read) {
    for interface in &read.interfaces {
        for (name, value) in &interface.counters {
            let name = format!("{PREFIX}{name}");
            let labels = [("vppInterfaceName", &*interface.name)];
            out.counter(&name, "counter of an interface of VPP", &labels, *value);
        }
    }
    // Reasons are free text; those that come to the same name are one counter.
    let mut errors = BTreeMap::<String, (u64, &str)>::new();
    for (reason, count) in &read.errors {
        let entry = errors.entry(metric_name(PREFIX, &format!("err/{reason}"))).or_insert((0, reason));
        entry.0 = entry.0.wrapping_add(*count);
    }
    for (name, (count, reason)) in errors {
        out.counter(&name, &format!("packets of VPP: {reason}"), &[], count);
    }
}
