//! `/metrics`: how VPP stands as the engine sees it, and VPP's own counters, as Prometheus reads them.
//!
//! Everything is looked up when somebody asks; nothing is kept but the mapping of VPP's statistics. VPP's counters have the
//! names that the agent for Calico and VPP gives them ([`PREFIX`], then VPP's name), so that dashboards stay as they are;
//! they are absent while there is no connection to VPP or no statistics socket, never stale.

mod counters;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use tokio::sync::mpsc;

use self::counters::Counters;
use self::text::{Exposition, MEDIA_TYPE};
use crate::engine::{Ask, Snapshot, ask_status};
use crate::health::bound;
use crate::inspect::http::{Body, Service, failure, serve, whole};

/// What the names of VPP's own counters begin with.
const PREFIX: &str = "cni_projectcalico_vpp_";

/// Who answers.
#[derive(Debug)]
struct Metrics {
    engine: mpsc::Sender<Ask>,
    counters: Counters,
}

/// Serve for ever. `stats` is VPP's statistics socket, where there may be one.
pub(crate) async fn run(address: SocketAddr, engine: mpsc::Sender<Ask>, stats: Option<PathBuf>) {
    let listener = bound(address, "metrics").await;
    serve(listener, Arc::new(Metrics { engine, counters: Counters::new(stats) })).await;
}

impl Service for Metrics {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != "/metrics" {
            return failure(StatusCode::NOT_FOUND, "there is /metrics");
        }
        let Some(snapshot) = ask_status(&self.engine).await else {
            return failure(StatusCode::SERVICE_UNAVAILABLE, "the engine does not answer");
        };
        let mut out = Exposition::default();
        agent(&mut out, &snapshot);
        if let Some(connection) = &snapshot.connection {
            let report = snapshot.status.vpp.as_ref();
            let generation = report.map(|report| report.generation.0).filter(|_| connection.up);
            self.counters.write(&mut out, generation).await;
        }
        whole(MEDIA_TYPE, out.finish())
    }
}

/// What the engine knows.
fn agent(out: &mut Exposition, snapshot: &Snapshot) {
    out.gauge("agent_ready", "1 when everything is as it shall be", &[], u64::from(snapshot.status.ready()));
    let mut conditions = std::collections::BTreeMap::<&str, u64>::new();
    for condition in &snapshot.status.conditions {
        *conditions.entry(condition.object.kind).or_default() += 1;
    }
    for (kind, count) in conditions {
        out.gauge("agent_conditions", "objects that something is wrong with", &[("kind", kind)], count);
    }
    let Some(report) = &snapshot.status.vpp else { return };
    let up = snapshot.connection.as_ref().is_some_and(|connection| connection.up);
    out.gauge("vpp_up", "1 while there is a connection to VPP", &[], u64::from(up));
    out.gauge("vpp_generation", "which connection to VPP this is", &[], report.generation.0);
    out.gauge("vpp_in_flight", "operations that VPP has not acknowledged", &[], report.in_flight as u64);
    for (kind, counts) in &report.kinds {
        let states = [
            ("wanted", counts.desired),
            ("present", counts.present),
            ("pending", counts.pending),
            ("blocked", counts.blocked),
        ];
        for (state, count) in states {
            let labels = [("kind", *kind), ("state", state)];
            out.gauge("vpp_objects", "objects of VPP by kind and state", &labels, count as u64);
        }
    }
    if let Some(audit) = &snapshot.audit {
        out.gauge("vpp_audit_found", "objects that the last audit put right", &[], audit.found as u64);
    }
}

#[cfg(test)]
mod tests;
