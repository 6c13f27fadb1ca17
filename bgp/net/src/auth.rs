//! What protects a connection and has no safe wrapper: TCP MD5 signatures (RFC 2385) and TTL security (RFC 5082).
//!
//! This is the only file of the crate with `unsafe` code: one call that sets a socket option and one that reads one, each
//! with its proof.
//!
//! A key belongs to a socket and an address, or a prefix. A listening socket has those of all neighbours, since the
//! kernel must know them before there is a connection; a connected socket has one. Linux ignores ports here, and lets
//! the key of the longest prefix win. A connection that was accepted before its key was known to the listener is given
//! the key like every other, so that none is ever read from unsigned.
//!
//! *Absent on purpose:* TCP-AO (RFC 5925), which needs other keys and a newer kernel; any choice of who gets what.

#![allow(unsafe_code, reason = "socket options that no safe wrapper knows; see the proof at each use")]

use std::ffi::c_int;
use std::io;
use std::mem::{offset_of, size_of};
use std::net::IpAddr;
use std::num::NonZeroU8;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use bgp_core::secret::{Secret, wipe};
use bgp_core::session::{ConnectError, Protection};
use bgp_core::speaker::Transport;
use ipnet::IpNet;
use socket2::SockRef;

use crate::socket;

/// Does to a socket what a neighbour's connection asks for: TTL, TTL security, interface, key. For sockets that aren't
/// connected yet, and for accepted ones from which nothing has been read.
///
/// # Errors
/// The first thing that can't be had. The socket must not be used then.
pub(crate) fn protect(socket: &impl AsFd, transport: &Transport) -> Result<(), ConnectError> {
    let remote = transport.remote.ip();
    let failed = |what| move |error: io::Error| ConnectError::Protection(what, error.kind());
    let fd = socket.as_fd();
    let plain = SockRef::from(&fd);
    socket::set_ttl(&plain, remote, transport.ttl).map_err(failed(Protection::Ttl))?;
    if let Some(min_ttl) = transport.min_ttl {
        set_min_ttl(fd, remote, min_ttl).map_err(failed(Protection::Ttl))?;
    }
    if let Some(device) = &transport.device {
        plain.bind_device(Some(device.as_str().as_bytes())).map_err(failed(Protection::Device))?;
    }
    if let Some(password) = &transport.password {
        set_key(fd, remote.into(), Some(password)).map_err(failed(Protection::Signature))?;
    }
    Ok(())
}

/// Has segments with `from` signed with `key`, or no longer signed. Taking away a key that isn't there is no error.
///
/// # Errors
/// The kernel knows no signatures, or has no memory left for keys (`net.core.optmem_max` bounds those of a socket).
pub(crate) fn set_key(socket: BorrowedFd<'_>, from: IpNet, key: Option<&Secret>) -> io::Result<()> {
    let mut request = KeyRequest::new(from, key);
    let option = if request.flags == 0 { libc::TCP_MD5SIG } else { libc::TCP_MD5SIG_EXT };
    let done = set_option(socket, libc::IPPROTO_TCP, option, &request);
    wipe(&mut request.key);
    match done {
        Err(error) if key.is_none() && error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Lets the kernel drop packets with a TTL or hop limit below `min` (RFC 5082).
fn set_min_ttl(socket: BorrowedFd<'_>, family: IpAddr, min: NonZeroU8) -> io::Result<()> {
    let min = c_int::from(min.get());
    match family {
        IpAddr::V4(_) => set_option(socket, libc::IPPROTO_IP, libc::IP_MINTTL, &min),
        IpAddr::V6(_) => set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT, &min),
    }
}

/// Has a listening socket keep the first packet of every connection for [`first_ttl`].
pub(crate) fn keep_first_packets(listener: BorrowedFd<'_>) -> io::Result<()> {
    set_option(listener, libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, &c_int::from(1_u8))
}

/// TTL or hop limit of the first packet of an accepted connection. An accepted socket gets its lower bound too late for
/// what has arrived already; but who sent this packet from too far away sent the rest from there too. `None` where
/// the kernel hasn't kept it, as when it answers a flood with cookies.
pub(crate) fn first_ttl(accepted: BorrowedFd<'_>) -> Option<u8> {
    // Headers of IP and TCP have at most 60 octets each; a longer packet is an error and not of use.
    let mut packet = [0_u8; 256];
    let mut len = libc::socklen_t::try_from(packet.len()).ok()?;
    // SAFETY: `packet` and `len` are live, writable and not aliased for the whole call, and `len` says how many octets
    // `packet` has, which is all that the kernel writes. Every octet is a valid u8. The descriptor is borrowed, so it
    // is open; were it no TCP socket, the call would fail and write nothing.
    let done = unsafe {
        libc::getsockopt(
            accepted.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_SAVED_SYN,
            packet.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let len = usize::try_from(len).ok().filter(|_| done == 0)?;
    let packet = packet.get(..len)?;
    match packet.first()? >> 4 {
        4 => packet.get(8).copied(),
        6 => packet.get(7).copied(),
        _ => None,
    }
}

/// `TCP_MD5SIG_FLAG_PREFIX`: the key is for a whole prefix.
const FLAG_PREFIX: u8 = 1;

/// `struct tcp_md5sig` of linux/tcp.h: an address (`struct sockaddr_storage`), and what belongs to it.
#[repr(C, align(8))]
struct KeyRequest {
    family: u16,
    /// What follows the family in `struct sockaddr_in` or `sockaddr_in6`, in network byte order: the port and then the
    /// address, behind the flow label for IPv6.
    address: [u8; 126],
    flags: u8,
    prefix_len: u8,
    key_len: u16,
    interface: c_int,
    key: [u8; Secret::MAX_LEN],
}

// The layout is the kernel's, and there is no padding whose content the kernel could be shown.
const _: () = assert!(size_of::<KeyRequest>() == 216);
const _: () = assert!(offset_of!(KeyRequest, flags) == size_of::<libc::sockaddr_storage>());
const _: () = assert!(offset_of!(KeyRequest, interface) == 132 && offset_of!(KeyRequest, key) == 136);
const _: () = assert!(Secret::MAX_LEN == libc::TCP_MD5SIG_MAXKEYLEN);

impl KeyRequest {
    fn new(from: IpNet, key: Option<&Secret>) -> Self {
        let mut request = Self {
            family: 0,
            address: [0; 126],
            flags: 0,
            prefix_len: 0,
            key_len: 0,
            interface: 0,
            key: [0; Secret::MAX_LEN],
        };
        // The numbers of families fit into the field that the kernel has for them.
        match from.network() {
            IpAddr::V4(address) => {
                request.family = libc::AF_INET as u16;
                request.address[2..6].copy_from_slice(&address.octets());
            }
            IpAddr::V6(address) => {
                request.family = libc::AF_INET6 as u16;
                request.address[6..22].copy_from_slice(&address.octets());
            }
        }
        if from.prefix_len() < from.max_prefix_len() {
            request.flags = FLAG_PREFIX;
            request.prefix_len = from.prefix_len();
        }
        if let Some(key) = key {
            let octets = key.expose();
            request.key[..octets.len()].copy_from_slice(octets);
            // At most `Secret::MAX_LEN`.
            request.key_len = octets.len() as u16;
        }
        request
    }
}

/// What the kernel may be shown as the value of an option: plain data without padding.
trait OptionValue {}
impl OptionValue for c_int {}
impl OptionValue for KeyRequest {}

fn set_option<T: OptionValue>(
    socket: BorrowedFd<'_>,
    level: c_int,
    name: c_int,
    value: &T,
) -> io::Result<()> {
    let len = libc::socklen_t::try_from(size_of::<T>()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` is a live reference and `len` the size of what it points to, so the kernel, which only reads,
    // reads nothing else; `OptionValue`s have no padding, so all of it is initialised. Nothing keeps the pointer after
    // the call. The descriptor is borrowed, so it is open; a wrong kind of socket makes the call fail.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests;
