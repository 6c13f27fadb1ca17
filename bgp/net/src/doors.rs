//! Who may knock: what listeners know of the neighbours.
//!
//! A connection from an address that nobody is expected at is reset by the listener's task itself: it costs an accept, a
//! look into a table and a close, no place in a queue and no turn of the speaker.
//!
//! Pending connections are bounded everywhere: the kernel holds [`BACKLOG`] for each listener, the queue to the speaker
//! has so many places and accepting waits for one, a neighbour has at most one connection of its own opening (a newer one
//! replaces it), farewells are counted by address, and so are dynamic neighbours by prefix.
//!
//! The table also holds the keys of TCP MD5 signatures, which every listening socket has to have; they are exchanged
//! while it listens, and only those that differ.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bgp_core::secret::Secret;
use bgp_core::speaker::Door;
use ipnet::IpNet;
use socket2::Socket;
use tokio::net::TcpListener;

use crate::auth::set_key;

/// How many connections the kernel may hold that we haven't accepted yet, for each listener.
const BACKLOG: i32 = 128;

/// The table, shared by the runtime and the listeners.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doors(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    hosts: BTreeMap<IpAddr, Option<Secret>>,
    ranges: BTreeMap<IpNet, Option<Secret>>,
    listeners: Vec<Weak<TcpListener>>,
}

impl Doors {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets connections in from these and nowhere else, from now on. Connections that are there stay.
    pub(crate) fn set(&self, doors: Vec<Door>) {
        let mut table = self.table();
        let before = table.keys();
        let (mut hosts, mut ranges) = (BTreeMap::new(), BTreeMap::new());
        for Door { from, password } in doors {
            // Several neighbours at one address: the kernel knows one key for all, that of the first.
            if from.prefix_len() == from.max_prefix_len() {
                hosts.entry(from.addr()).or_insert(password);
            } else {
                ranges.entry(from).or_insert(password);
            }
        }
        (table.hosts, table.ranges) = (hosts, ranges);
        let after = table.keys();
        table.listeners.retain(|listener| listener.strong_count() > 0);
        for listener in table.listeners.iter().filter_map(Weak::upgrade) {
            let gone = before.keys().filter(|from| !after.contains_key(from)).map(|from| (from, None));
            let new = after.iter().filter(|(from, key)| before.get(from) != Some(key));
            exchange(&listener, gone.chain(new.map(|(from, key)| (from, Some(key)))));
        }
    }

    /// Begins to listen, with all keys in place before the first connection.
    pub(crate) fn listen(&self, socket: Socket) -> io::Result<Arc<TcpListener>> {
        let mut table = self.table();
        exchange(&socket, table.keys().iter().map(|(from, key)| (from, Some(key))));
        socket.listen(BACKLOG)?;
        let listener = Arc::new(TcpListener::from_std(socket.into())?);
        table.listeners.push(Arc::downgrade(&listener));
        Ok(listener)
    }

    /// Whether anybody is expected at this address.
    pub(crate) fn knows(&self, from: IpAddr) -> bool {
        let (table, from) = (self.table(), from.to_canonical());
        table.hosts.contains_key(&from) || table.ranges.keys().any(|prefix| prefix.contains(&from))
    }
}

impl Table {
    fn keys(&self) -> BTreeMap<IpNet, Secret> {
        let hosts = self.hosts.iter().map(|(address, password)| (IpNet::from(*address), password));
        let all = hosts.chain(self.ranges.iter().map(|(prefix, password)| (*prefix, password)));
        all.filter_map(|(from, password)| Some((from, password.clone()?))).collect()
    }
}

/// Changes keys of a listening socket. It listens on without one that can't be set: that neighbour can't connect then,
/// but we may connect to it.
fn exchange<'a>(listener: &impl AsFd, keys: impl Iterator<Item = (&'a IpNet, Option<&'a Secret>)>) {
    let fd = listener.as_fd();
    let local = socket2::SockRef::from(&fd).local_addr().ok().and_then(|address| address.as_socket());
    let ipv4 = local.is_none_or(|local| local.is_ipv4());
    for (from, key) in keys.filter(|(from, _)| from.addr().is_ipv4() == ipv4) {
        if let Err(error) = set_key(fd, *from, key) {
            tracing::error!(
                neighbor = %from, %error,
                "can't set a TCP MD5 key for connections from there (net.core.optmem_max bounds how many fit)"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(from: &str, password: Option<&str>) -> Door {
        let from = from.parse().or_else(|_| from.parse().map(|address: IpAddr| address.into())).unwrap();
        let password = password.map(|text| Secret::new(text.into()).unwrap());
        Door { from, password }
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn only_those_expected_are_let_in() {
        let doors = Doors::default();
        assert!(!doors.knows(ip("192.0.2.1")));
        doors.set(vec![door("192.0.2.1", None), door("198.51.100.0/24", None), door("2001:db8::/64", None)]);
        for welcome in ["192.0.2.1", "::ffff:192.0.2.1", "198.51.100.77", "2001:db8::5"] {
            assert!(doors.knows(ip(welcome)), "{welcome}");
        }
        for stranger in ["192.0.2.2", "198.51.101.1", "2001:db8:0:1::5"] {
            assert!(!doors.knows(ip(stranger)), "{stranger}");
        }
        doors.set(Vec::new());
        assert!(!doors.knows(ip("192.0.2.1")));
    }

    #[test]
    fn the_first_of_several_neighbours_at_an_address_has_the_say_about_the_key() {
        let doors = Doors::default();
        doors.set(vec![door("192.0.2.1", Some("a")), door("192.0.2.1", Some("b")), door("192.0.2.2", None)]);
        let keys = doors.table().keys();
        assert_eq!(
            keys.into_iter().collect::<Vec<_>>(),
            [("192.0.2.1/32".parse().unwrap(), Secret::new(b"a".to_vec()).unwrap())]
        );
    }
}
