//! Over loopback in a network of their own: the kernel's counters say what was dropped, and why.

use std::fs;
use std::net::SocketAddr;

use test_support::lab::Lab;
use test_support::programs::{IP, available};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;

fn secret(text: &str) -> Secret {
    Secret::new(text.into()).unwrap()
}

/// Runs a test in a network of its own, where its counters are its own too.
fn alone(name: &str, test: impl AsyncFnOnce() + Send + 'static) {
    if !available(name, &[IP]) {
        return;
    }
    Lab::run(move |_| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test());
    });
}

/// A counter of `/proc/net/netstat`.
fn counter(name: &str) -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        if let Some(at) = names.split(' ').position(|word| word == name) {
            return values.split(' ').nth(at).unwrap().parse().unwrap();
        }
    }
    panic!("the kernel has no counter {name}");
}

fn listener(address: &str) -> TcpListener {
    let address: SocketAddr = address.parse().unwrap();
    let socket = socket::new(&address).unwrap();
    socket.bind(&address.into()).unwrap();
    keep_first_packets(socket.as_fd()).unwrap();
    socket.listen(8).unwrap();
    TcpListener::from_std(socket.into()).unwrap()
}

fn transport(remote: SocketAddr, password: Option<&str>) -> Transport {
    Transport { password: password.map(secret), ..Transport::new(remote, 64) }
}

async fn connect(transport: &Transport) -> Result<TcpStream, ConnectError> {
    let socket = socket::new(&transport.remote).unwrap();
    protect(&socket, transport)?;
    Ok(TcpSocket::from_std_stream(socket.into()).connect(transport.remote).await.unwrap())
}

/// Tries to connect until the kernel has counted a segment that it dropped for this reason.
async fn is_dropped(transport: &Transport, reason: &str) {
    let before = counter(reason);
    let dropped = async {
        while counter(reason) == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = connect(transport) => panic!("connected, though {reason} was to be the end of it"),
        () = dropped => {}
    }
}

async fn exchanged(ours: &mut TcpStream, theirs: &mut TcpStream) {
    ours.write_all(b"ping").await.unwrap();
    let mut heard = [0; 4];
    theirs.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"ping");
}

#[test]
fn only_the_right_key_connects() {
    alone("auth keys", async || {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = listener(address);
            let at = listener.local_addr().unwrap();
            set_key(listener.as_fd(), at.ip().into(), Some(&secret("right"))).unwrap();
            let mut ours = connect(&transport(at, Some("right"))).await.unwrap();
            let mut theirs = listener.accept().await.unwrap().0;
            exchanged(&mut ours, &mut theirs).await;
            is_dropped(&transport(at, Some("wrong")), "TCPMD5Failure").await;
            is_dropped(&transport(at, None), "TCPMD5NotFound").await;
            // And a key where none is expected is no better.
            set_key(listener.as_fd(), at.ip().into(), None).unwrap();
            is_dropped(&transport(at, Some("right")), "TCPMD5Unexpected").await;
            // To take it away again is no error.
            set_key(listener.as_fd(), at.ip().into(), None).unwrap();
        }
    });
}

#[test]
fn a_new_key_is_for_new_connections() {
    alone("auth new key", async || {
        let listener = listener("127.0.0.1:0");
        let at = listener.local_addr().unwrap();
        let from = at.ip().into();
        set_key(listener.as_fd(), from, Some(&secret("old"))).unwrap();
        let mut ours = connect(&transport(at, Some("old"))).await.unwrap();
        let mut theirs = listener.accept().await.unwrap().0;
        set_key(listener.as_fd(), from, Some(&secret("new"))).unwrap();
        exchanged(&mut ours, &mut theirs).await;
        is_dropped(&transport(at, Some("old")), "TCPMD5Failure").await;
        let mut ours = connect(&transport(at, Some("new"))).await.unwrap();
        let mut theirs = listener.accept().await.unwrap().0;
        exchanged(&mut ours, &mut theirs).await;
    });
}

#[test]
fn an_accepted_connection_without_its_key_is_not_heard_once_it_is_protected() {
    alone("auth late key", async || {
        let listener = listener("127.0.0.1:0");
        let mut ours = connect(&transport(listener.local_addr().unwrap(), None)).await.unwrap();
        let (theirs, remote) = listener.accept().await.unwrap();
        protect(&theirs, &transport(remote, Some("key"))).unwrap();
        let before = counter("TCPMD5NotFound");
        ours.write_all(b"unsigned").await.unwrap();
        while counter("TCPMD5NotFound") == before {
            tokio::task::yield_now().await;
        }
        let heard = theirs.try_read(&mut [0; 8]);
        assert_eq!(heard.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    });
}

#[test]
fn a_prefix_has_a_key_and_a_longer_prefix_its_own() {
    alone("auth prefix keys", async || {
        for (address, prefix, host) in
            [("127.0.0.1:0", "127.0.0.0/8", "127.0.0.1"), ("[::1]:0", "::/64", "::1")]
        {
            let listener = listener(address);
            let at = listener.local_addr().unwrap();
            let prefix: IpNet = prefix.parse().unwrap();
            let host: IpAddr = host.parse().unwrap();
            set_key(listener.as_fd(), prefix, Some(&secret("all"))).unwrap();
            connect(&transport(at, Some("all"))).await.unwrap();
            is_dropped(&transport(at, Some("wrong")), "TCPMD5Failure").await;
            set_key(listener.as_fd(), host.into(), Some(&secret("one"))).unwrap();
            connect(&transport(at, Some("one"))).await.unwrap();
            is_dropped(&transport(at, Some("all")), "TCPMD5Failure").await;
            set_key(listener.as_fd(), host.into(), None).unwrap();
            connect(&transport(at, Some("all"))).await.unwrap();
            set_key(listener.as_fd(), prefix, None).unwrap();
            connect(&transport(at, None)).await.unwrap();
        }
    });
}

#[test]
fn the_longest_key_that_is_allowed_fits() {
    alone("auth long key", async || {
        let listener = listener("127.0.0.1:0");
        let at = listener.local_addr().unwrap();
        let long = "k".repeat(Secret::MAX_LEN);
        set_key(listener.as_fd(), at.ip().into(), Some(&secret(&long))).unwrap();
        connect(&transport(at, Some(&long))).await.unwrap();
        is_dropped(&transport(at, Some(&long[1..])), "TCPMD5Failure").await;
    });
}

#[test]
fn what_comes_from_too_far_away_is_not_heard() {
    alone("auth ttl", async || {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = listener(address);
            let at = listener.local_addr().unwrap();
            let mut ours = connect(&Transport::new(at, 254)).await.unwrap();
            let (mut theirs, remote) = listener.accept().await.unwrap();
            assert_eq!(first_ttl(theirs.as_fd()), Some(254), "{address}");
            // The kernel gives it once.
            assert_eq!(first_ttl(theirs.as_fd()), None);
            protect(&theirs, &Transport { min_ttl: NonZeroU8::new(255), ..Transport::new(remote, 255) })
                .unwrap();
            let before = counter("TCPMinTTLDrop");
            ours.write_all(b"ping").await.unwrap();
            while counter("TCPMinTTLDrop") == before {
                tokio::task::yield_now().await;
            }
            assert_eq!(theirs.try_read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
            // It is sent again, this time from where it should be.
            socket::set_ttl(&SockRef::from(&ours), remote.ip(), 255).unwrap();
            let mut heard = [0; 4];
            theirs.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"ping");
        }
    });
}

#[test]
fn a_connection_is_bound_to_its_interface() {
    if !available("auth device", &[IP]) {
        return;
    }
    Lab::run(|lab| {
        let _host = lab.host("h", &[]);
        let remote: SocketAddr = "127.0.0.1:179".parse().unwrap();
        let socket = socket::new(&remote).unwrap();
        let device =
            |name: &str| Transport { device: Some(name.parse().unwrap()), ..Transport::new(remote, 1) };
        protect(&socket, &device("v-h")).unwrap();
        assert_eq!(socket.device().unwrap().as_deref(), Some(&b"v-h"[..]));
        let missing = protect(&socket, &device("nowhere")).unwrap_err();
        assert!(matches!(missing, ConnectError::Protection(Protection::Device, _)), "{missing:?}");
    });
}

#[test]
fn a_request_is_laid_out_as_the_kernel_reads_it() {
    let request = KeyRequest::new("192.0.2.1/32".parse().unwrap(), Some(&secret("abc")));
    assert_eq!((request.family, &request.address[..8]), (2, &[0, 0, 192, 0, 2, 1, 0, 0][..]));
    assert_eq!((request.flags, request.prefix_len, request.key_len), (0, 0, 3));
    assert_eq!((&request.key[..4], request.interface), (&b"abc\0"[..], 0));
    let request = KeyRequest::new("2001:db8::7/32".parse().unwrap(), None);
    assert_eq!((request.family, request.flags, request.prefix_len, request.key_len), (10, 1, 32, 0));
    assert_eq!(request.address[6..22], [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}
