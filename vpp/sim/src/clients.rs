//! Who is connected, and the buffers that answers and events go to.

use crate::state::pool::Pool;

/// What a client handle has in front of its slot.
const HANDLE: u32 = 0x8000_0000;

/// A connection, in the order they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// Where answers go: mostly to who asked.
pub(crate) struct Outbox<'a> {
    /// Who asks.
    pub(crate) asking: ConnId,
    own: &'a mut Vec<u8>,
    others: &'a mut Vec<(ConnId, Vec<u8>)>,
}

impl<'a> Outbox<'a> {
    /// `own` is the buffer of the connection `asking`; what is for others is added to `others`.
    pub(crate) fn new(asking: ConnId, own: &'a mut Vec<u8>, others: &'a mut Vec<(ConnId, Vec<u8>)>) -> Self {
        Self { asking, own, others }
    }

    /// The buffer for a connection.
    pub(crate) fn to(&mut self, conn: ConnId) -> &mut Vec<u8> {
        if conn == self.asking {
            return self.own;
        }
        let at = self.others.iter().position(|(other, _)| *other == conn).unwrap_or_else(|| {
            self.others.push((conn, Vec::new()));
            self.others.len() - 1
        });
        match self.others.get_mut(at) {
            Some((_, buffer)) => buffer,
            None => self.own,
        }
    }
}

/// A connection that did the handshake.
#[derive(Debug)]
pub(crate) struct Client {
    /// Where it is.
    pub(crate) conn: ConnId,
    /// What it calls itself.
    pub(crate) name: Vec<u8>,
    /// The pid to echo in interface events, if they are wanted.
    pub(crate) wants_events: Option<[u8; 4]>,
}

/// The clients by handle.
#[derive(Debug)]
pub(crate) struct Clients(Pool<Client>);

impl Clients {
    /// Nobody.
    pub(crate) fn new() -> Self {
        Self(Pool::new())
    }

    fn slot(handle: u32) -> Option<u32> {
        (handle & HANDLE != 0).then(|| (handle & !HANDLE).checked_sub(1)).flatten()
    }

    /// A new client; its handle.
    pub(crate) fn add(&mut self, client: Client) -> u32 {
        HANDLE + self.0.insert(client) + 1
    }

    /// The client with this handle.
    pub(crate) fn get(&self, handle: u32) -> Option<&Client> {
        self.0.get(Self::slot(handle)?)
    }

    /// The client with this handle.
    pub(crate) fn get_mut(&mut self, handle: u32) -> Option<&mut Client> {
        self.0.get_mut(Self::slot(handle)?)
    }

    /// Takes a client out; its handle may be the next one's.
    pub(crate) fn remove(&mut self, handle: u32) -> Option<Client> {
        self.0.remove(Self::slot(handle)?)
    }

    /// The handle of the client on a connection.
    pub(crate) fn on(&self, conn: ConnId) -> Option<u32> {
        self.iter().find(|(_, client)| client.conn == conn).map(|(handle, _)| handle)
    }

    /// All of them with their handles.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Client)> {
        self.0.iter().map(|(slot, client)| (HANDLE + slot + 1, client))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
