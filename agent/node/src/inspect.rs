//! The inspection socket: answers about the running process, as HTTP with JSON on a Unix socket.
//!
//! `GET /v1/peers`, `/v1/routes` (streamed), `/v1/explain`, `/v1/policies`, `/v1/vpp`, `/v1/vpp/objects`, `/v1/version`; `POST /v1/audit`, which has VPP audited and then
//! answers as `/v1/vpp` does; `POST /v1/check`, which says what files would change; `POST /v1/clear` and `/v1/peer`, which change something at neighbours and are for root and the
//! owner of the process only. It asks the owners of the state and keeps none; what it sends was true a moment ago.

pub(crate) mod answer;
mod base64;
mod check;
pub(crate) mod client;
mod control;
mod explain;
pub(crate) mod http;
mod mrt;
mod routes;

use std::sync::{Arc, Mutex, PoisonError};

use bgp_core::query::PeerStatus;
use bgp_net::{Handle, Stopped};
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::mpsc;

use crate::engine::{Ask, ask_audit, ask_objects, ask_status};
use crate::speaker_file::{RefusedNeighbor, Standing, Whom};
use answer::{Peer, Policies, Version};
use http::{Body, Service, failure, json};

/// Who answers.
#[derive(Debug)]
pub(crate) struct Inspector {
    speaker: Handle,
    engine: Option<mpsc::Sender<Ask>>,
    refused: Mutex<Vec<RefusedNeighbor>>,
}

impl Inspector {
    /// For a speaker, and the engine where there is one.
    pub(crate) fn new(speaker: Handle, engine: Option<mpsc::Sender<Ask>>) -> Self {
        Self { speaker, engine, refused: Mutex::default() }
    }

    /// Neighbours that are listed though they can't run as they are configured.
    pub(crate) fn set_refused(&self, refused: Vec<RefusedNeighbor>) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = refused;
    }

    async fn peers(&self) -> Response<Body> {
        let Ok(mut peers) = self.speaker.peers().await else { return stopped() };
        peers.sort_by_key(|peer| (peer.local_asn, peer.key));
        let mut shown: Vec<Peer> = peers.iter().map(Peer::from).collect();
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for neighbor in refused {
            let reasons: Vec<String> = neighbor.flaws.iter().map(ToString::to_string).collect();
            let reasons = reasons.join("; ");
            let said = match neighbor.standing {
                Standing::Stopped => {
                    let reason = format!("not started: {reasons}");
                    let (peer_address, session_state) = (neighbor.address, "unknown".to_owned());
                    shown.push(Peer {
                        peer_address,
                        session_state,
                        state_reason: Some(reason),
                        ..Peer::default()
                    });
                    continue;
                }
                Standing::Kept => format!("older settings are in force: {reasons}"),
                Standing::Runs => reasons,
            };
            let runs = |status: &PeerStatus| match neighbor.whom {
                Some(Whom::Peer(key)) => status.key == key,
                Some(Whom::Range(prefix)) => status.range == Some(prefix),
                None => false,
            };
            for (_, peer) in peers.iter().zip(&mut shown).filter(|(status, _)| runs(status)) {
                peer.configuration_error = Some(said.clone());
            }
        }
        json(StatusCode::OK, &shown)
    }

    async fn policies(&self) -> Response<Body> {
        match self.speaker.ask(|speaker, _| speaker.policies()).await {
            Ok(status) => json(StatusCode::OK, &Policies::from(&status)),
            Err(Stopped) => stopped(),
        }
    }

    async fn vpp(&self, audit: bool) -> Response<Body> {
        let Some(engine) = &self.engine else {
            return failure(StatusCode::NOT_FOUND, "this process has no VPP: it is a speaker alone");
        };
        let snapshot = if audit { ask_audit(engine).await } else { ask_status(engine).await };
        match snapshot {
            Some(snapshot) => json(StatusCode::OK, &snapshot.vpp()),
            None => stopped(),
        }
    }

    async fn vpp_objects(&self) -> Response<Body> {
        let Some(engine) = &self.engine else {
            return failure(StatusCode::NOT_FOUND, "this process has no VPP: it is a speaker alone");
        };
        match ask_objects(engine).await {
            Some(objects) => json(StatusCode::OK, &objects),
            None => stopped(),
        }
    }
}

impl Service for Inspector {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().trim_end_matches('/');
        if request.method() == Method::POST {
            return match path {
                "/v1/audit" => self.vpp(true).await,
                "/v1/check" => check::answer(&self.speaker, self.engine.as_ref(), request).await,
                "/v1/clear" => control::clear(&self.speaker, request).await,
                "/v1/peer" => control::peer(&self.speaker, request).await,
                _ => failure(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "only /v1/audit, /v1/check, /v1/clear and /v1/peer take POST, all else GET",
                ),
            };
        }
        if request.method() != Method::GET {
            return failure(StatusCode::METHOD_NOT_ALLOWED, "there are GET and POST only");
        }
        match path {
            "/v1/peers" => self.peers().await,
            "/v1/routes" => routes::answer(&self.speaker, request.uri().query().unwrap_or_default()).await,
            "/v1/policies" => self.policies().await,
            "/v1/explain" => {
                let query = request.uri().query().unwrap_or_default();
                explain::answer(&self.speaker, self.engine.as_ref(), query).await
            }
            "/v1/vpp" => self.vpp(false).await,
            "/v1/vpp/objects" => self.vpp_objects().await,
            "/v1/audit" | "/v1/check" | "/v1/clear" | "/v1/peer" => {
                failure(StatusCode::METHOD_NOT_ALLOWED, format!("{path} takes POST"))
            }
            "/v1/version" => json(StatusCode::OK, &Version::own()),
            _ => failure(
                StatusCode::NOT_FOUND,
                "there are /v1/peers, /v1/routes, /v1/explain, /v1/policies, /v1/vpp, /v1/vpp/objects and /v1/version",
            ),
        }
    }
}

fn stopped() -> Response<Body> {
    failure(StatusCode::SERVICE_UNAVAILABLE, "the process is stopping")
}
