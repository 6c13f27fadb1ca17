//! The passive side: one listener for each address, independent of one another.
//!
//! Who isn't expected is turned away here, see [`Doors`].
//!
//! An address that can't be had (not configured yet, in use) is tried again for ever, ever more slowly. When the speaker
//! has no time, accepting pauses and the kernel's queue fills.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use crate::doors::Doors;
use crate::event::{Event, Inlet};
use crate::{auth, socket};

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Where we listen, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// The address that was asked for.
    pub wanted: SocketAddr,
    /// How it stands.
    pub state: ListenerState,
}

/// How a listener stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerState {
    /// It hasn't been tried yet.
    Starting,
    /// Connections are accepted at this address; its port is the real one where 0 was asked for.
    Listening(SocketAddr),
    /// The address can't be had at the moment.
    Retrying(io::ErrorKind),
}

/// A listener; dropping it stops listening.
#[derive(Debug)]
pub(crate) struct Listener {
    wanted: SocketAddr,
    state: watch::Receiver<ListenerState>,
    task: AbortHandle,
}

impl Listener {
    /// Starts listening on the current tokio runtime.
    pub(crate) fn start(wanted: SocketAddr, doors: &Doors, inlet: &Inlet) -> Self {
        let (state_in, state) = watch::channel(ListenerState::Starting);
        let task = tokio::spawn(listen(wanted, state_in, doors.clone(), inlet.clone())).abort_handle();
        Self { wanted, state, task }
    }

    pub(crate) const fn wanted(&self) -> SocketAddr {
        self.wanted
    }

    pub(crate) fn status(&self) -> ListenerStatus {
        ListenerStatus { wanted: self.wanted, state: self.state.borrow().clone() }
    }

    /// Follows the state.
    pub(crate) fn watch(&self) -> watch::Receiver<ListenerState> {
        self.state.clone()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(wanted: SocketAddr, state: watch::Sender<ListenerState>, doors: Doors, inlet: Inlet) {
    let mut retry = FIRST_RETRY;
    loop {
        match bind(wanted, &doors) {
            Ok(listener) => {
                let address = listener.local_addr().unwrap_or(wanted);
                tracing::info!(%address, "listening");
                state.send_replace(ListenerState::Listening(address));
                accept(&listener, &doors, &inlet).await;
                return;
            }
            Err(error) => {
                let now = ListenerState::Retrying(error.kind());
                if state.send_replace(now.clone()) != now {
                    tracing::warn!(address = %wanted, %error, "can't listen; trying again");
                }
                sleep(retry).await;
                retry = (retry * 2).min(LAST_RETRY);
            }
        }
    }
}

fn bind(wanted: SocketAddr, doors: &Doors) -> io::Result<Arc<TcpListener>> {
    let socket = socket::new(&wanted)?;
    // A connection of an earlier process that isn't quite gone must not keep us from the port.
    socket.set_reuse_address(true)?;
    socket.bind(&wanted.into())?;
    socket::prepare(&socket, wanted.ip());
    // Neighbours with TTL security don't hear an answer that says less, and to others it makes no difference.
    socket::set_ttl(&SockRef::from(&socket), wanted.ip(), u8::MAX)?;
    if let Err(error) = auth::keep_first_packets(socket.as_fd()) {
        tracing::debug!(%error, "can't see the TTL of first packets");
    }
    doors.listen(socket)
}

/// Accepts until the runtime has ended.
async fn accept(listener: &TcpListener, doors: &Doors, inlet: &Inlet) {
    loop {
        match listener.accept().await {
            Ok((stream, remote)) if doors.knows(remote.ip()) => {
                socket::prepare(&stream, remote.ip());
                // Where there is no place, further connections wait with the kernel.
                if inlet.events.send(Event::Accepted(stream, remote)).await.is_err() {
                    return;
                }
            }
            Ok((stream, remote)) => {
                socket::abandon(&stream);
                tracing::debug!(%remote, "a connection from nobody we know");
            }
            Err(error) => {
                // Some errors are about one connection that died early, others (no file left) last: a short pause
                // does for both.
                tracing::debug!(%error, "can't accept");
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bgp_core::speaker::Door;
    use tokio::net::TcpStream;

    use super::*;
    use crate::event::queues;

    #[tokio::test(start_paused = true)]
    async fn an_address_in_use_is_tried_again_until_it_is_free() {
        let (inlet, mut outlet) = queues();
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let doors = Doors::default();
        doors.set(vec![Door { from: address.ip().into(), password: None }]);
        let listener = Listener::start(address, &doors, &inlet);
        let mut state = listener.watch();
        let retrying = ListenerState::Retrying(io::ErrorKind::AddrInUse);
        state.wait_for(|state| *state == retrying).await.unwrap();
        drop(other);
        state.wait_for(|state| *state == ListenerState::Listening(address)).await.unwrap();
        assert_eq!(
            listener.status(),
            ListenerStatus { wanted: address, state: ListenerState::Listening(address) }
        );
        let neighbour = TcpStream::connect(address).await.unwrap();
        let Some(Event::Accepted(stream, remote)) = outlet.events.recv().await else {
            panic!("not accepted")
        };
        assert_eq!((remote, stream.nodelay().unwrap()), (neighbour.local_addr().unwrap(), true));
        assert_eq!(SockRef::from(&stream).tos_v4().unwrap(), 0xc0, "CS6");
    }

    #[tokio::test]
    async fn both_families_can_have_the_same_port() {
        let (inlet, _outlet) = queues();
        let any4 = Listener::start("0.0.0.0:0".parse().unwrap(), &Doors::default(), &inlet);
        let listening = |state: &ListenerState| matches!(state, ListenerState::Listening(_));
        let ListenerState::Listening(address) = any4.watch().wait_for(listening).await.unwrap().clone()
        else {
            panic!("not listening")
        };
        let any6 = Listener::start(
            SocketAddr::new("::".parse().unwrap(), address.port()),
            &Doors::default(),
            &inlet,
        );
        any6.watch().wait_for(listening).await.unwrap();
    }

    #[tokio::test]
    async fn dropping_a_listener_frees_the_address() {
        let (inlet, _outlet) = queues();
        let listener = Listener::start("127.0.0.1:0".parse().unwrap(), &Doors::default(), &inlet);
        let mut state = listener.watch();
        let listening = |state: &ListenerState| matches!(state, ListenerState::Listening(_));
        let ListenerState::Listening(address) = state.wait_for(listening).await.unwrap().clone() else {
            panic!("not listening")
        };
        drop(listener);
        // The task is gone when its end of the state is.
        while state.changed().await.is_ok() {}
        drop(std::net::TcpListener::bind(address).unwrap());
    }
}
