//! The listening socket: there while the process lives, gone while it is dead.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::conn;
use super::process::Process;

/// Binds the API socket; a socket file left over from another process is replaced, any other file is not.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

/// Accepts connections until the handle is gone. `bound` tells whether there is a socket to connect to.
pub(crate) async fn run(process: Arc<Process>, listener: UnixListener, bound: watch::Sender<bool>) {
    let path = process.options().socket.clone();
    let mut life = process.life();
    let mut listener = Some(listener);
    let mut connections = JoinSet::new();
    loop {
        let now = *life.borrow_and_update();
        match (&listener, now.listening) {
            (Some(_), false) => {
                listener = None;
                remove(&path);
                bound.send_replace(false);
            }
            (None, true) => match bind(&path) {
                Ok(new) => {
                    listener = Some(new);
                    bound.send_replace(true);
                }
                Err(error) => tracing::error!(%error, path = %path.display(), "the API socket is not bound"),
            },
            (Some(_), true) | (None, false) => {}
        }
        if now.over {
            break;
        }
        let accepted = async {
            match &listener {
                Some(listener) => listener.accept().await,
                None if now.listening => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    Err(io::ErrorKind::NotConnected.into())
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = life.changed() => if changed.is_err() { break },
            accepted = accepted => match accepted {
                Ok((stream, _)) => {
                    if let Some((id, wake)) = process.connected() {
                        connections.spawn(conn::serve(Arc::clone(&process), stream, id, wake));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection is not accepted");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
    while connections.join_next().await.is_some() {}
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "the API socket is not removed");
    }
}
