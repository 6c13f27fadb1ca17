//! The active side: one attempt to connect.
//!
//! An attempt has no time limit of its own: the session's ConnectRetryTimer is the limit, and giving the attempt up is
//! dropping its task.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use bgp_core::peer_key::ConnId;
use bgp_core::session::ConnectError;
use bgp_core::speaker::Transport;
use socket2::Socket;
use tokio::net::{TcpSocket, TcpStream};

use crate::event::{Event, Inlet};
use crate::socket;

/// An attempt under way; dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Attempt(tokio::task::AbortHandle);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts an attempt on the current tokio runtime.
pub(crate) fn start(conn: ConnId, transport: Transport, inlet: &Inlet) -> Attempt {
    let events = inlet.events.clone();
    let task = tokio::spawn(async move {
        let event = match connect(&transport).await {
            Ok(stream) => Event::Connected(conn, stream),
            Err(error) => Event::ConnectFailed(conn, error),
        };
        let _ = events.send(event).await;
    });
    Attempt(task.abort_handle())
}

async fn connect(transport: &Transport) -> Result<TcpStream, ConnectError> {
    let socket = bind(transport).map_err(|error| ConnectError::Local(error.kind()))?;
    let socket = TcpSocket::from_std_stream(socket.into());
    socket.connect(transport.remote).await.map_err(|error| {
        let kind = error.kind();
        if kind == io::ErrorKind::TimedOut { ConnectError::TimedOut } else { ConnectError::Remote(kind) }
    })
}

fn bind(transport: &Transport) -> io::Result<Socket> {
    let family = transport.remote.ip();
    let socket = socket::new(&transport.remote)?;
    socket::prepare(&socket, family);
    socket::set_ttl(&socket, family, transport.ttl)?;
    if let Some(local) = transport.local {
        socket.bind(&local_end(local, &transport.remote).into())?;
    }
    Ok(socket)
}

/// Our end, on any port. A link-local address is that of the link the neighbour is on.
fn local_end(local: IpAddr, remote: &SocketAddr) -> SocketAddr {
    match (local, remote) {
        (IpAddr::V6(local), SocketAddr::V6(remote)) if local.is_unicast_link_local() => {
            SocketAddrV6::new(local, 0, 0, remote.scope_id()).into()
        }
        (local, _) => SocketAddr::new(local, 0),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use tokio::net::TcpListener;

    use super::*;
    use crate::event::queues;

    const ID: ConnId = ConnId::dialled(1);

    fn transport(local: Option<&str>, remote: SocketAddr) -> Transport {
        Transport { local: local.map(|local| local.parse().unwrap()), remote, ttl: 7 }
    }

    async fn attempt(transport: Transport) -> Event {
        let (inlet, mut outlet) = queues();
        let _attempt = start(ID, transport, &inlet);
        outlet.events.recv().await.unwrap()
    }

    #[tokio::test]
    async fn a_connection_has_our_address_and_ttl() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let to = transport(Some("127.0.0.9"), listener.local_addr().unwrap());
        let Event::Connected(ID, stream) = attempt(to).await else { panic!("not connected") };
        assert_eq!(stream.local_addr().unwrap().ip().to_string(), "127.0.0.9");
        assert_eq!(stream.ttl().unwrap(), 7);
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn failures_are_ours_or_theirs() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // TEST-NET-1 is nobody's address.
        let event = attempt(transport(Some("192.0.2.77"), address)).await;
        assert!(
            matches!(event, Event::ConnectFailed(ID, ConnectError::Local(ErrorKind::AddrNotAvailable))),
            "{event:?}"
        );
        drop(listener);
        let event = attempt(transport(None, address)).await;
        assert!(
            matches!(event, Event::ConnectFailed(ID, ConnectError::Remote(ErrorKind::ConnectionRefused))),
            "{event:?}"
        );
    }

    #[tokio::test]
    async fn an_attempt_that_is_given_up_says_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (inlet, mut outlet) = queues();
        drop(start(ID, transport(None, listener.local_addr().unwrap()), &inlet));
        drop(inlet);
        assert!(outlet.events.recv().await.is_none());
    }

    #[test]
    fn a_link_local_end_is_on_the_neighbours_link() {
        let remote = SocketAddr::V6(SocketAddrV6::new("fe80::2".parse().unwrap(), 179, 0, 4));
        assert_eq!(local_end("fe80::1".parse().unwrap(), &remote).to_string(), "[fe80::1%4]:0");
        assert_eq!(local_end("2001:db8::1".parse().unwrap(), &remote).to_string(), "[2001:db8::1]:0");
    }
}
