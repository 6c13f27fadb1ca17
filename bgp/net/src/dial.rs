//! The active side: one attempt to connect.
//!
//! An attempt has no time limit of its own: the session's ConnectRetryTimer is the limit, and giving the attempt up is
//! dropping its task.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::num::NonZeroU16;

use bgp_core::peer_key::ConnId;
use bgp_core::session::ConnectError;
use bgp_core::speaker::Transport;
use socket2::Socket;
use tokio::net::{TcpSocket, TcpStream};

use crate::event::{Event, Inlet};
use crate::{auth, socket};

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
    let socket = bind(transport)?;
    let socket = TcpSocket::from_std_stream(socket.into());
    socket.connect(transport.remote).await.map_err(|error| {
        let kind = error.kind();
        if kind == io::ErrorKind::TimedOut { ConnectError::TimedOut } else { ConnectError::Remote(kind) }
    })
}

fn bind(transport: &Transport) -> Result<Socket, ConnectError> {
    let local = |error: io::Error| ConnectError::Local(error.kind());
    let socket = socket::new(&transport.remote).map_err(local)?;
    socket::prepare(&socket, transport.remote.ip());
    auth::protect(&socket, transport)?;
    if transport.local_port.is_some() {
        // The last connection from this port may not be quite gone.
        socket.set_reuse_address(true).map_err(local)?;
    }
    if let Some(end) = local_end(transport) {
        socket.bind(&end.into()).map_err(local)?;
    }
    Ok(socket)
}

/// Our end, where it matters. A link-local address is that of the link the neighbour is on.
fn local_end(transport: &Transport) -> Option<SocketAddr> {
    let port = transport.local_port.map_or(0, NonZeroU16::get);
    let any: IpAddr = match transport.remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    match (transport.local, transport.remote) {
        (None, _) => (port > 0).then(|| SocketAddr::new(any, port)),
        (Some(IpAddr::V6(local)), SocketAddr::V6(remote)) if local.is_unicast_link_local() => {
            Some(SocketAddrV6::new(local, port, 0, remote.scope_id()).into())
        }
        (Some(local), _) => Some(SocketAddr::new(local, port)),
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
        Transport { local: local.map(|local| local.parse().unwrap()), ..Transport::new(remote, 7) }
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
        assert_eq!(socket2::SockRef::from(&stream).tos_v4().unwrap(), 0xc0, "CS6");
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
        let end = |local, port| {
            let transport = Transport { local_port: NonZeroU16::new(port), ..transport(local, remote) };
            local_end(&transport).map(|end| end.to_string())
        };
        assert_eq!(end(Some("fe80::1"), 0).unwrap(), "[fe80::1%4]:0");
        assert_eq!(end(Some("2001:db8::1"), 0).unwrap(), "[2001:db8::1]:0");
        assert_eq!(end(Some("2001:db8::1"), 1179).unwrap(), "[2001:db8::1]:1179");
        assert_eq!(end(None, 1179).unwrap(), "[::]:1179");
        assert_eq!(end(None, 0), None);
    }

    #[tokio::test]
    async fn a_connection_comes_from_the_port_that_is_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // A port that was free a moment ago.
        let free = std::net::TcpListener::bind("127.0.0.8:0").unwrap().local_addr().unwrap().port();
        let to = transport(Some("127.0.0.8"), listener.local_addr().unwrap());
        let to = Transport { local_port: NonZeroU16::new(free), ..to };
        let Event::Connected(ID, stream) = attempt(to).await else { panic!("not connected") };
        assert_eq!(stream.local_addr().unwrap().port(), free);
    }
}
