//! HTTP/1 as the inspection socket and the ports for health and metrics speak it: JSON answers, long ones in chunks, and texts.

use std::convert::Infallible;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::channel::Channel;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;

use super::answer::Failure;

/// The body of an answer: whole, or in chunks.
pub(crate) type Body = Either<Full<Bytes>, Channel<Bytes, BrokenOff>>;

/// An answer in chunks ends before it is whole. Whoever reads it sees that the connection breaks.
#[derive(Debug, thiserror::Error)]
#[error("the process is stopping")]
pub(crate) struct BrokenOff;

/// A client that sends no request for so long is let go.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections served at a time; more wait.
const CONNECTIONS: usize = 64;

/// Answers requests.
pub(crate) trait Service: Send + Sync + 'static {
    /// Answer one request.
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Who is at the other end of a Unix socket, as the kernel says (SO_PEERCRED): found among the extensions of a request. There
/// is none over TCP.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The user who connected.
    pub(crate) uid: u32,
}

/// Where requests come from.
#[derive(Debug)]
pub(crate) enum Listener {
    /// A Unix socket.
    Unix(UnixListener),
    /// A TCP port.
    Tcp(TcpListener),
}

/// Why the Unix socket can't be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    /// Another process answers there.
    #[error("another process serves {0}")]
    InUse(String),
    /// Something else has that name, which must not be lost.
    #[error("{0} exists and is no socket")]
    NoSocket(String),
    /// The system says no.
    #[error("{path}: {source}")]
    System {
        /// The socket.
        path: String,
        /// Why.
        source: io::Error,
    },
}

impl Listener {
    /// Listen on a Unix socket that only its owner may use. Its folder is made, and a socket that a dead process left
    /// behind is replaced.
    pub(crate) fn unix(path: &Path) -> Result<Self, SocketError> {
        let shown = path.to_string_lossy().into_owned();
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(SocketError::InUse(shown));
        }
        if fs::symlink_metadata(path).is_ok_and(|meta| !meta.file_type().is_socket()) {
            return Err(SocketError::NoSocket(shown));
        }
        let bind = || {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            // Bound under another name first: under its own it must never be seen with wider permissions.
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}", std::process::id()));
            let temporary = path.with_file_name(name);
            let _ = fs::remove_file(&temporary);
            let listener = UnixListener::bind(&temporary)?;
            fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
            fs::rename(&temporary, path).inspect_err(|_| drop(fs::remove_file(&temporary)))?;
            Ok(listener)
        };
        bind().map(Self::Unix).map_err(|source| SocketError::System { path: shown, source })
    }
}

/// Serve until the future is dropped. Failures to accept are tried again.
pub(crate) async fn serve<S: Service>(listener: Listener, service: Arc<S>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let service = Arc::clone(&service);
        let accepted = match &listener {
            Listener::Unix(listener) => listener.accept().await.map(|(stream, _)| {
                let caller = stream.peer_cred().ok().map(|peer| Caller { uid: peer.uid() });
                tokio::spawn(async move {
                    converse(stream, caller, service).await;
                    drop(place);
                });
            }),
            Listener::Tcp(listener) => listener.accept().await.map(|(stream, _)| {
                tokio::spawn(async move {
                    converse(stream, None, service).await;
                    drop(place);
                });
            }),
        };
        if accepted.is_err() {
            // Out of descriptors, most likely: others have to close first.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

async fn converse<S: Service>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    caller: Option<Caller>,
    service: Arc<S>,
) {
    let answer = service_fn(move |mut request: Request<Incoming>| {
        let service = Arc::clone(&service);
        if let Some(caller) = caller {
            request.extensions_mut().insert(caller);
        }
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), answer);
    // A client that goes away in the middle of an answer is no fault of ours.
    let _ = connection.await;
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(text) => with_type(status, JSON, Either::Left(Full::new(text.into()))),
        Err(error) => failure(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// An answer that says what is wrong with the question.
pub(crate) fn failure(status: StatusCode, error: impl Into<String>) -> Response<Body> {
    let text = serde_json::to_vec(&Failure { error: error.into() }).unwrap_or_default();
    with_type(status, JSON, Either::Left(Full::new(text.into())))
}

/// An answer in chunks, of a media type.
pub(crate) fn chunks(media_type: &'static str, body: Channel<Bytes, BrokenOff>) -> Response<Body> {
    with_type(StatusCode::OK, media_type, Either::Right(body))
}

/// An answer that is a text.
pub(crate) fn whole(media_type: &'static str, text: String) -> Response<Body> {
    with_type(StatusCode::OK, media_type, Either::Left(Full::new(text.into())))
}

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

fn with_type(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_socket_is_its_owners_and_replaces_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/p.sock");
        let first = Listener::unix(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(matches!(Listener::unix(&path), Err(SocketError::InUse(_))));
        drop(first);
        assert!(path.exists(), "a dead process leaves its socket behind");
        Listener::unix(&path).unwrap();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    /// Tells who it thinks has asked.
    struct Who;

    impl Service for Who {
        async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
            json(StatusCode::OK, &request.extensions().get::<Caller>().map(|caller| caller.uid))
        }
    }

    #[tokio::test]
    async fn the_kernel_says_who_has_connected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.sock");
        let server = tokio::spawn(serve(Listener::unix(&path).unwrap(), Arc::new(Who)));
        let uid: Option<u32> = crate::inspect::client::ask(&path, "/").await.unwrap();
        assert_eq!(uid, Some(rustix::process::getuid().as_raw()));
        server.abort();
    }

    #[tokio::test]
    async fn what_is_no_socket_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        fs::write(&path, "data").unwrap();
        assert!(matches!(Listener::unix(&path), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "data");
        assert!(matches!(Listener::unix(dir.path()), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
