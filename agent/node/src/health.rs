//! `/liveness`, `/readiness` and `/status` for whoever restarts and watches the agent.
//!
//! Live: the engine's loop answers. Ready: every source gave its first complete list, VPP is connected and holds what is
//! wanted, and the speaker has been told everything. Neighbours don't count: a node with no neighbour up is no reason to
//! restart it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::engine::{Ask, Snapshot, ask_status};
use crate::inspect::http::{Body, Listener, Service, failure, json, serve};

/// A port that is taken is tried again after this.
const RETRY: Duration = Duration::from_secs(5);

/// Who answers.
#[derive(Debug)]
pub(crate) struct Health(mpsc::Sender<Ask>);

/// How the agent is.
#[derive(Clone, Debug, Serialize)]
struct Report {
    healthy: bool,
    ready: bool,
    message: String,
    components: Vec<Component>,
}

/// How a part of it is.
#[derive(Clone, Debug, Serialize)]
struct Component {
    name: &'static str,
    initialized: bool,
    message: String,
}

/// Serve for ever.
pub(crate) async fn run(address: SocketAddr, engine: mpsc::Sender<Ask>) {
    serve(bound(address, "health").await, Arc::new(Health(engine))).await;
}

/// The port for `what`, as soon as it is free.
pub(crate) async fn bound(address: SocketAddr, what: &str) -> Listener {
    let mut told = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return Listener::Tcp(listener),
            Err(error) if told => tracing::debug!(%address, %error, what, "no port yet"),
            Err(error) => {
                tracing::warn!(%address, %error, "can't serve {what}; trying again");
                told = true;
            }
        }
        tokio::time::sleep(RETRY).await;
    }
}

impl Service for Health {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let report =
            ask_status(&self.0).await.map(|snapshot| Report::new(&snapshot)).unwrap_or_else(Report::stuck);
        let when = |good| if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        match request.uri().path() {
            "/liveness" => json(when(report.healthy), &report),
            "/readiness" => json(when(report.ready), &report),
            "/status" => json(StatusCode::OK, &report),
            _ => failure(StatusCode::NOT_FOUND, "there are /liveness, /readiness and /status"),
        }
    }
}

impl Report {
    fn stuck() -> Self {
        Self {
            healthy: false,
            ready: false,
            message: "the engine does not answer".into(),
            components: Vec::new(),
        }
    }

    fn new(snapshot: &Snapshot) -> Self {
        let status = &snapshot.status;
        let missing = status.sources.missing();
        let mut components = vec![Component {
            name: "datastore",
            initialized: missing.is_empty(),
            message: if missing.is_empty() {
                "in sync".into()
            } else {
                format!("waiting for {}", missing.join(", "))
            },
        }];
        if let Some(connection) = &snapshot.connection {
            let unsettled = status.vpp.as_ref().map_or(0, agent_core::plan::VppReport::unsettled);
            components.push(Component {
                name: "vpp",
                initialized: connection.up && unsettled == 0,
                message: match (connection.up, &connection.last_error) {
                    (true, _) if unsettled == 0 => format!("connected to {}", connection.version),
                    (true, _) => format!("{unsettled} objects are not as wanted; `peregrine vpp` says why"),
                    (false, Some(error)) => format!("not connected: {error}"),
                    (false, None) => "connecting".into(),
                },
            });
        }
        components.push(Component {
            name: "speaker",
            initialized: !status.speaker_busy,
            message: if status.speaker_busy { "is being told" } else { "knows everything" }.into(),
        });
        let ready = status.ready();
        let waiting = components.iter().find(|component| !component.initialized);
        let message = match (ready, waiting) {
            (true, _) => "ready".into(),
            (false, Some(component)) => format!("{}: {}", component.name, component.message),
            (false, None) => "vpp is being brought up to date".into(),
        };
        Self { healthy: true, ready, message, components }
    }
}
