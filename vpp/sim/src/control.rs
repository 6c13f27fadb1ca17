//! The control socket: HTTP/1 with JSON on a Unix socket of its own.
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/state` | everything the process holds |
//! | `GET /v1/meaning` | what it means, without the numbers VPP gives out; equal states are equal text |
//! | `GET /v1/stats` | [`crate::Stats`] |
//! | `GET`, `POST`, `DELETE /v1/faults` | the faults in force; add one ([`crate::Fault`]) or a list; forget all |
//! | `POST /v1/restart` | end the process and start it again with its first state |
//! | `POST /v1/down`, `/v1/up` | end it, its socket goes; start it |
//! | `POST /v1/hang`, `/v1/resume` | stop serving; go on |
//!
//! `curl --unix-socket PATH http://sim/v1/state`. Whoever may open the socket may do all of this.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::task::JoinHandle;

use crate::api::row;
use crate::faults::Fault;
use crate::server::handle::SimControl;
use crate::server::listen;

/// How long nothing is accepted after accepting failed, for example for want of descriptors.
const RETRY: Duration = Duration::from_millis(10);

/// The longest request body, in bytes.
const BODY: usize = 1 << 20;

/// A control socket that is served; it ends when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    task: JoinHandle<()>,
    path: PathBuf,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.task.abort();
        // gone already is as good
        let _gone = std::fs::remove_file(&self.path);
    }
}

/// Serves a control socket on the current tokio runtime. A socket file that is there is replaced.
///
/// # Errors
/// When the socket cannot be bound.
pub fn serve(control: SimControl, path: &Path) -> io::Result<ControlSocket> {
    let listener = listen::bind(path)?;
    let task = tokio::spawn(accept(control, listener));
    Ok(ControlSocket { task, path: path.to_owned() })
}

async fn accept(control: SimControl, listener: UnixListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let control = control.clone();
                tokio::spawn(async move {
                    let service = service_fn(|request| answer(control.clone(), request));
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service);
                    if let Err(error) = served.await {
                        tracing::debug!(%error, "a control connection broke");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a control connection is not accepted");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// One fault, or a list of them. Not left to an untagged enum, whose errors don't say what is wrong.
fn faults(body: &[u8]) -> Result<Vec<Fault>, String> {
    let value: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let faults: Vec<Fault> = if value.is_array() {
        serde_json::from_value(value)
    } else {
        serde_json::from_value(value).map(|fault| vec![fault])
    }
    .map_err(|error| error.to_string())?;
    for message in faults.iter().filter_map(Fault::message) {
        if !row::is_request(message) {
            return Err(format!(
                "no request is called `{message}`, so the fault would never happen; names are VPP's, without CRC, such as \
                 ip_route_add_del_v2"
            ));
        }
    }
    Ok(faults)
}

async fn answer(
    control: SimControl,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let (status, value) = match (&parts.method, parts.uri.path()) {
        (&Method::GET, "/v1/state") => (StatusCode::OK, control.state_json()),
        (&Method::GET, "/v1/meaning") => (StatusCode::OK, control.meaning()),
        (&Method::GET, "/v1/stats") => (StatusCode::OK, stats(&control)),
        (&Method::GET, "/v1/faults") => (StatusCode::OK, json!(control.faults())),
        (&Method::POST, "/v1/faults") => match Limited::new(body, BODY).collect().await {
            Ok(body) => add(&control, &body.to_bytes()),
            Err(error) => (StatusCode::PAYLOAD_TOO_LARGE, json!({ "error": error.to_string() })),
        },
        (&Method::DELETE, "/v1/faults") => {
            control.clear_faults();
            (StatusCode::OK, json!([]))
        }
        (&Method::POST, path) => match act(&control, path).await {
            Some(()) => (StatusCode::OK, stats(&control)),
            None => not_found(path),
        },
        (_, path) => not_found(path),
    };
    let mut response = Response::new(Full::new(Bytes::from(value.to_string() + "\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn stats(control: &SimControl) -> Value {
    json!(control.stats())
}

fn not_found(path: &str) -> (StatusCode, Value) {
    (StatusCode::NOT_FOUND, json!({ "error": format!("nothing at {path}") }))
}

fn add(control: &SimControl, body: &[u8]) -> (StatusCode, Value) {
    match faults(body) {
        Ok(faults) => faults.into_iter().for_each(|fault| control.fault(fault)),
        Err(error) => return (StatusCode::BAD_REQUEST, json!({ "error": error })),
    }
    (StatusCode::OK, json!(control.faults()))
}

async fn act(control: &SimControl, path: &str) -> Option<()> {
    match path {
        "/v1/restart" => control.restart(),
        "/v1/down" => control.down().await,
        "/v1/up" => control.up().await,
        "/v1/hang" => control.hang(true),
        "/v1/resume" => control.hang(false),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_cannot_be_is_refused_with_what_is_wrong() {
        for (text, expected) in [
            (r#"{"fault":"refus"}"#, "unknown variant `refus`, expected one of `delay`, `refuse`"),
            (r#"[{"fault":"refuse"}]"#, "missing field `retval`"),
            (r#"{"fault":"silence","message":"ip_route_add"}"#, "no request is called `ip_route_add`"),
            ("{", "EOF"),
        ] {
            let error = faults(text.as_bytes()).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let all = r#"[{"fault":"silence","message":"ip_route_add_del_v2"},{"fault":"silence","message":"sockclnt_create"}]"#;
        assert_eq!(faults(all.as_bytes()).map(|faults| faults.len()), Ok(2));
        assert_eq!(faults(br#"{"fault":"silence"}"#).map(|faults| faults.len()), Ok(1));
    }
}
