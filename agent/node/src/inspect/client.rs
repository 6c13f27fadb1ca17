//! The asking side of the inspection socket.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::answer::Failure;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    /// Nobody listens.
    #[error("cannot reach {}: {source}; is `peregrine agent` or `peregrine speaker` running, and is --socket right?", .socket.display())]
    NotThere {
        /// The socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the answer broke off: {0}")]
    Broken(#[from] hyper::Error),
    /// The question was refused.
    #[error("{0}")]
    Refused(String),
    /// The answer is no JSON that we know: another version answers.
    #[error("cannot read the answer: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// Ask, and take the answer as it comes.
pub(crate) async fn open(socket: &Path, question: &str) -> Result<Response<Incoming>, AskError> {
    let request = Request::get(question).header("host", "peregrine").body(Full::new(Bytes::new()));
    send(socket, request.map_err(|error| AskError::Refused(error.to_string()))?).await
}

async fn send(socket: &Path, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, AskError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| AskError::NotThere { socket: socket.to_owned(), source })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status();
    let text = response.into_body().collect().await?.to_bytes();
    let failure: Failure =
        serde_json::from_slice(&text).unwrap_or_else(|_| Failure { error: status.to_string() });
    Err(AskError::Refused(failure.error))
}

/// Ask, and read the whole answer.
pub(crate) async fn ask<T: DeserializeOwned>(socket: &Path, question: &str) -> Result<T, AskError> {
    let body = open(socket, question).await?.into_body().collect().await?.to_bytes();
    Ok(serde_json::from_slice(&body)?)
}

/// Read an answer.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, AskError> {
    Ok(serde_json::from_str(text)?)
}

/// Ask, and read the whole answer as the text that it is.
pub(crate) async fn ask_text(socket: &Path, question: &str) -> Result<String, AskError> {
    let body = open(socket, question).await?.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Send text, and read the answer as the text that it is.
pub(crate) async fn post(socket: &Path, place: &str, text: String) -> Result<String, AskError> {
    let request = Request::post(place).header("host", "peregrine").body(Full::new(Bytes::from(text)));
    let request = request.map_err(|error| AskError::Refused(error.to_string()))?;
    let body = send(socket, request).await?.into_body().collect().await?.to_bytes();
    Ok(String::from_utf8_lossy(&body).into_owned())
}
