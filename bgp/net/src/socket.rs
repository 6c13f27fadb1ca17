//! Options that every BGP socket gets.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// CS6, "internetwork control" (RFC 4271 appendix E asks for the precedence, RFC 4594 for the code point).
const INTERNETWORK_CONTROL: u32 = 0xc0;

/// How many octets the system shall hold that we have not read; about twice as many in its own way of counting. Left to
/// itself it gives a fast neighbour room for megabytes, all of which a change has to wait behind; and the neighbour's
/// own system, which sizes its buffer by what may be under way to us, four times that. A table still comes through this
/// at 4 MB/s from 50 ms away (`bgp/decisions` 12).
const UNREAD: usize = 192 * 1024;

/// A TCP socket of the address's family, not blocking. IPv6 sockets are for IPv6 only, so that a neighbour has one
/// address and each family its own listener.
pub(crate) fn new(address: &SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(*address);
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Before there is a connection, since the window is scaled by it; connections that are accepted inherit it.
    if let Err(error) = socket.set_recv_buffer_size(UNREAD) {
        tracing::debug!(%error, "can't bound the receive buffer");
    }
    Ok(socket)
}

/// How many octets the system may hold that it hasn't sent: with more, a slow neighbour would get old news, and a
/// KEEPALIVE would wait behind them.
const UNSENT: u32 = 256 * 1024;

/// Sets what a connection of either direction wants. Whole batches are written, so nothing is gained by waiting for more
/// (`TCP_NODELAY`). None of it is a reason to do without the connection.
pub(crate) fn prepare<'s>(socket: impl Into<SockRef<'s>>, family: IpAddr) {
    let socket = socket.into();
    let marked = match family {
        IpAddr::V4(_) => socket.set_tos_v4(INTERNETWORK_CONTROL),
        IpAddr::V6(_) => socket.set_tclass_v6(INTERNETWORK_CONTROL),
    };
    if let Err(error) = marked.and(socket.set_tcp_nodelay(true)).and(socket.set_tcp_notsent_lowat(UNSENT)) {
        tracing::debug!(%error, "can't set socket options");
    }
}

/// Has the kernel forget a connection that nobody wants as soon as it is closed, and tell the other end so.
pub(crate) fn abandon<'s>(socket: impl Into<SockRef<'s>>) {
    // Where that can't be had it is closed like any other.
    let _ = socket.into().set_linger(Some(Duration::ZERO));
}

/// Sets the TTL or hop limit of what is sent.
pub(crate) fn set_ttl(socket: &SockRef<'_>, family: IpAddr, ttl: u8) -> io::Result<()> {
    match family {
        IpAddr::V4(_) => socket.set_ttl_v4(u32::from(ttl)),
        IpAddr::V6(_) => socket.set_unicast_hops_v6(u32::from(ttl)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unread_is_bounded() {
        let address = "127.0.0.1:0".parse().unwrap();
        let listener = new(&address).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(1).unwrap();
        let to = listener.local_addr().unwrap();
        let dialled = new(&address).unwrap();
        dialled.set_nonblocking(false).unwrap();
        dialled.connect(&to).unwrap();
        listener.set_nonblocking(false).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        for socket in [dialled, accepted] {
            // The system counts its own part too.
            assert_eq!(socket.recv_buffer_size().unwrap(), 2 * UNREAD);
        }
    }
}
