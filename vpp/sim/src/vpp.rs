//! One VPP process as a value: its clients, its table of messages, its state. A request goes in, answers and events come
//! out, each in the buffer of the connection it is for.
//!
//! Pure: no socket, no clock. What is not answered by a real VPP (an id that is not in the table, a message shorter than
//! its own counts say, a wrong client index) is not answered here.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use vpp_wire::frame;
use vpp_wire::name::MsgName;

use crate::api::{self, Row};
use crate::options::SimOptions;
use crate::state::State;
use crate::state::dump::{self, Detail};
use crate::state::interface::Event;
use crate::state::pool::Pool;

/// What a client handle has in front of its slot.
const HANDLE: u32 = 0x8000_0000;

/// A connection, in the order they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnId(pub(crate) u64);

/// Why a simulated process ended where a real one would have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Death {
    /// A frame announced more bytes than any message has, and bytes followed: VPP takes them all for its payload until its
    /// heap is full.
    EndlessFrame,
    /// A route had a path through a UDP encapsulation that does not exist.
    UdpEncap,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndlessFrame => "a frame announced a length far beyond any message, and more data followed",
            Self::UdpEncap => "a route path named a UDP encapsulation that does not exist",
        })
    }
}

/// What carrying out a request led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well; or nothing happened.
    Served,
    /// A client took its leave: its connection is to be closed behind the answer.
    Goodbye(ConnId),
    /// The process is dead.
    Died(Death),
}

/// Where answers go: mostly to who asked.
pub(crate) struct Outbox<'a> {
    asking: ConnId,
    own: &'a mut Vec<u8>,
    others: &'a mut Vec<(ConnId, Vec<u8>)>,
}

impl<'a> Outbox<'a> {
    /// `own` is the buffer of the connection `asking`; what is for others is added to `others`.
    pub(crate) fn new(asking: ConnId, own: &'a mut Vec<u8>, others: &'a mut Vec<(ConnId, Vec<u8>)>) -> Self {
        Self { asking, own, others }
    }

    /// The buffer for a connection.
    fn to(&mut self, conn: ConnId) -> &mut Vec<u8> {
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
    conn: ConnId,
    name: Vec<u8>,
    /// The pid to echo in interface events, if they are wanted.
    pub(crate) wants_events: Option<[u8; 4]>,
}

/// The clients by handle.
#[derive(Debug)]
pub(crate) struct Clients(Pool<Client>);

impl Clients {
    fn slot(handle: u32) -> Option<u32> {
        (handle & HANDLE != 0).then(|| (handle & !HANDLE).checked_sub(1)).flatten()
    }

    /// The client with this handle.
    pub(crate) fn get_mut(&mut self, handle: u32) -> Option<&mut Client> {
        self.0.get_mut(Self::slot(handle)?)
    }

    fn of(&self, conn: ConnId) -> Option<u32> {
        self.0.iter().find(|(_, client)| client.conn == conn).map(|(slot, _)| slot)
    }
}

/// What a handler has before it.
pub(crate) struct Cx<'a> {
    /// What the process knows.
    pub(crate) state: &'a mut State,
    /// Who is connected.
    pub(crate) clients: &'a mut Clients,
    /// The handle the request names.
    pub(crate) client: u32,
    /// The buffer of paths that route messages use.
    pub(crate) paths: &'a mut Vec<crate::state::path::Path>,
    /// Set by what ends the process.
    pub(crate) death: Option<Death>,
    /// Set by the handle of a client that leaves.
    pub(crate) goodbye: Option<u32>,
    answer_id: u16,
    answer_context_at: usize,
    context: [u8; 4],
    out: &'a mut Vec<u8>,
}

impl Cx<'_> {
    /// Answers with the fields that `body` appends behind message id and context.
    pub(crate) fn answer_with(&mut self, body: impl FnOnce(&mut Vec<u8>, &State)) {
        let state = &*self.state;
        frame::push(self.out, |out| {
            push_head(out, self.answer_id, self.answer_context_at, self.context);
            body(out, state);
        });
    }

    /// Answers any number of times: `write` appends whole frames, each payload of which starts with the head it is given.
    pub(crate) fn answer_each(&mut self, write: impl FnOnce(&mut Vec<u8>, &State, &dyn Fn(&mut Vec<u8>))) {
        let (id, at, context) = (self.answer_id, self.answer_context_at, self.context);
        write(self.out, self.state, &|out| push_head(out, id, at, context));
    }

    /// Answers with a message of fixed size; what `fill` leaves alone is zero.
    pub(crate) fn answer<A: vpp_wire::Message + zerocopy::FromZeros>(&mut self, fill: impl FnOnce(&mut A)) {
        let mut answer = A::new_zeroed();
        fill(&mut answer);
        let head = self.answer_context_at + self.context.len();
        self.answer_with(|out, _| out.extend_from_slice(answer.as_bytes().get(head..).unwrap_or(&[])));
    }

    /// Answers with a return value and nothing else.
    pub(crate) fn retval(&mut self, retval: i32) {
        self.answer_with(|out, _| out.extend_from_slice(&retval.to_be_bytes()));
    }

    /// Answers with a return value and a number.
    pub(crate) fn retval_and(&mut self, retval: i32, value: u32) {
        self.answer_with(|out, _| {
            out.extend_from_slice(&retval.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        });
    }
}

/// One process.
#[derive(Debug)]
pub(crate) struct Vpp {
    state: State,
    clients: Clients,
    rows: Vec<Option<Row>>,
    /// Answers to `sockclnt_create` behind the handle: count and table.
    greeting: Vec<u8>,
    event_id: u16,
    carried_out: Vec<u64>,
    paths: Vec<crate::state::path::Path>,
}

impl Vpp {
    /// A process that was just started. Its message ids follow from `generation`, so that no client can keep them.
    pub(crate) fn new(options: &SimOptions, generation: u64) -> Self {
        let (rows, names) = number(&options.hide, generation);
        let mut greeting = u16::try_from(names.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
        for (id, name) in &names {
            greeting.extend_from_slice(&id.to_be_bytes());
            api::push_text::<64>(&mut greeting, name.to_string().as_bytes());
        }
        let event = |(_, name): &&(u16, MsgName)| name.name() == api::interface::EVENT;
        Self {
            state: State::new(&options.interfaces),
            clients: Clients(Pool::new()),
            event_id: names.iter().find(event).map_or(0, |(id, _)| *id),
            carried_out: vec![0; rows.len()],
            rows,
            greeting,
            paths: Vec::new(),
        }
    }

    /// Clients, routes and interfaces.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.clients.0.len(), self.state.fib.route_count(), self.state.interfaces.len())
    }

    /// How often each message was carried out.
    pub(crate) fn carried_out(&self) -> BTreeMap<&'static str, u64> {
        let rows = self.rows.iter().zip(&self.carried_out);
        rows.filter_map(|(row, count)| Some((row.as_ref()?.name.name(), *count)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// The state as JSON.
    pub(crate) fn json(&self, detail: Detail) -> Value {
        let mut value = dump::json(&self.state, detail);
        if detail == Detail::Full {
            let clients: Vec<Value> = self
                .clients
                .0
                .iter()
                .map(|(slot, client)| {
                    json!({
                        "name": String::from_utf8_lossy(&client.name),
                        "handle": HANDLE + slot + 1,
                        "wants_interface_events": client.wants_events.is_some(),
                    })
                })
                .collect();
            value["clients"] = clients.into();
            value["carried_out"] = json!(self.carried_out());
        }
        value
    }

    /// The name of a request that has a handler here.
    pub(crate) fn name_of(&self, payload: &[u8]) -> Option<&'static str> {
        self.row(payload).map(|row| row.name.name())
    }

    fn row(&self, payload: &[u8]) -> Option<Row> {
        let id = u16::from_be_bytes(*payload.first_chunk()?);
        self.rows.get(usize::from(id)).copied().flatten()
    }

    /// A connection has ended. Whether its client had not taken its leave.
    pub(crate) fn disconnected(&mut self, conn: ConnId) -> bool {
        let mut unclean = false;
        while let Some(slot) = self.clients.of(conn) {
            self.clients.0.remove(slot);
            unclean = true;
        }
        unclean
    }

    /// Carries out one request.
    pub(crate) fn carry_out(&mut self, payload: &[u8], outbox: &mut Outbox<'_>) -> Outcome {
        let Some(row) = self.row(payload) else { return Outcome::Served };
        if let Some(count) = self.carried_out.get_mut(usize::from(row.id)) {
            *count += 1;
        }
        if row.name.name() == api::memclnt::SOCKCLNT_CREATE {
            self.greet(payload, row.answer_id, outbox);
            return Outcome::Served;
        }
        let Some((client, context)) = addressed(payload) else { return Outcome::Served };
        let conn = Clients::slot(client).and_then(|slot| self.clients.0.get(slot)).map(|client| client.conn);
        // most handlers of VPP look for the client only when they answer: without one the work is done all the same
        let mut nobody = Vec::new();
        let out = match conn {
            Some(conn) => outbox.to(conn),
            None if row.is_dump => return Outcome::Served,
            None => &mut nobody,
        };
        let mut cx = Cx {
            state: &mut self.state,
            clients: &mut self.clients,
            client,
            paths: &mut self.paths,
            death: None,
            goodbye: None,
            answer_id: row.answer_id,
            answer_context_at: row.answer_context_at,
            context,
            out,
        };
        // `None` is a message shorter than it says: not answered
        let _served = (row.serve)(&mut cx, payload);
        let (death, goodbye) = (cx.death.take(), cx.goodbye.take());
        if let Some(death) = death {
            return Outcome::Died(death);
        }
        if self.state.interfaces.has_events() {
            for event in self.state.interfaces.take_events() {
                self.send_event(event, outbox);
            }
        }
        match goodbye.and_then(Clients::slot).and_then(|slot| self.clients.0.remove(slot)) {
            Some(gone) => Outcome::Goodbye(gone.conn),
            None => Outcome::Served,
        }
    }

    /// Answers a request with a return value of somebody's choice, everything behind it all ones. A dump gets nothing.
    pub(crate) fn refuse(&self, payload: &[u8], retval: i32, outbox: &mut Outbox<'_>) {
        let Some(row) = self.row(payload).filter(|row| !row.is_dump) else { return };
        if row.name.name() == api::memclnt::SOCKCLNT_CREATE {
            let Some(context) = payload.get(2..).and_then(|rest| rest.first_chunk()) else { return };
            greet(outbox.to(outbox.asking), row.answer_id, *context, retval, 0, &[0, 0]);
            return;
        }
        let Some((client, context)) = addressed(payload) else { return };
        let Some(client) = Clients::slot(client).and_then(|slot| self.clients.0.get(slot)) else { return };
        frame::push(outbox.to(client.conn), |out| {
            let start = out.len();
            push_head(out, row.answer_id, row.answer_context_at, context);
            out.extend_from_slice(&retval.to_be_bytes());
            out.resize((start + row.answer_size).max(out.len()), 0xff);
        });
    }

    fn greet(&mut self, payload: &[u8], answer_id: u16, outbox: &mut Outbox<'_>) {
        let Some((context, name)) = payload.get(2..).and_then(|rest| rest.split_first_chunk::<4>()) else {
            return;
        };
        let Some(name) = name.first_chunk::<64>() else { return };
        let name = api::text(name).to_vec();
        let conn = outbox.asking;
        let slot = match self.clients.of(conn) {
            Some(slot) => {
                if let Some(client) = self.clients.0.get_mut(slot) {
                    client.name = name;
                }
                slot
            }
            None => {
                tracing::info!(client = %String::from_utf8_lossy(&name), conn = conn.0, "a client connects");
                self.clients.0.insert(Client { conn, name, wants_events: None })
            }
        };
        greet(outbox.to(conn), answer_id, *context, 0, HANDLE + slot + 1, &self.greeting);
    }

    fn send_event(&self, event: Event, outbox: &mut Outbox<'_>) {
        for (slot, client) in self.clients.0.iter() {
            let Some(pid) = client.wants_events else { continue };
            frame::push(outbox.to(client.conn), |out| {
                out.extend_from_slice(&self.event_id.to_be_bytes());
                out.extend_from_slice(&(HANDLE + slot + 1).to_be_bytes());
                out.extend_from_slice(&pid);
                out.extend_from_slice(&event.sw_if_index.to_be_bytes());
                out.extend_from_slice(&event.flags.to_be_bytes());
                out.push(u8::from(event.deleted));
            });
        }
    }
}

/// Appends what an answer starts with.
fn push_head(out: &mut Vec<u8>, id: u16, context_at: usize, context: [u8; 4]) {
    let start = out.len();
    out.extend_from_slice(&id.to_be_bytes());
    out.resize(start + context_at, 0);
    out.extend_from_slice(&context);
}

/// The client index and context of a request; `None` when it is too short to have them.
fn addressed(payload: &[u8]) -> Option<(u32, [u8; 4])> {
    let (client, rest) = payload.get(2..)?.split_first_chunk()?;
    Some((u32::from_be_bytes(*client), *rest.first_chunk()?))
}

/// `sockclnt_create_reply`, whose fields stand in an order of their own. `table` is the count and the entries.
fn greet(out: &mut Vec<u8>, id: u16, context: [u8; 4], response: i32, handle: u32, table: &[u8]) {
    frame::push(out, |out| {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&context);
        out.extend_from_slice(&response.to_be_bytes());
        out.extend_from_slice(&handle.to_be_bytes());
        out.extend_from_slice(table);
    });
}

/// Gives ids to all messages but the hidden ones: the rows by id, and the names with their ids.
fn number(hidden: &[String], generation: u64) -> (Vec<Option<Row>>, Vec<(u16, MsgName)>) {
    let is_hidden = |name: &MsgName| hidden.iter().any(|hidden| hidden == name.name());
    let mut names: Vec<(u16, MsgName)> = Vec::new();
    let mut next = 100 + u16::try_from(generation % 50).unwrap_or(0) * 17;
    for name in api::names().filter(|name| !is_hidden(name)) {
        let id = api::memclnt::fixed_id(name.name()).unwrap_or_else(|| {
            next += 1;
            next
        });
        names.push((id, name));
    }
    let id_of = |name: &MsgName| names.iter().find(|(_, other)| other == name).map(|(id, _)| *id);
    let mut rows: Vec<Option<Row>> = vec![None; usize::from(next) + 1];
    for row in api::rows() {
        let (Some(id), Some(answer_id)) = (id_of(&row.name), id_of(&row.answer)) else { continue };
        if let Some(place) = rows.get_mut(usize::from(id)) {
            *place = Some(Row { id, answer_id, ..row });
        }
    }
    (rows, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of numbers; the same ones each time.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 33
        }

        fn below(&mut self, limit: u64) -> u64 {
            self.next() % limit
        }
    }

    fn hello(vpp: &mut Vpp) -> Vec<u8> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut payload = vec![0, 15, 0, 0, 0, 1];
        payload.resize(70, b'x');
        vpp.carry_out(&payload, &mut Outbox::new(ConnId(1), &mut own, &mut others));
        own
    }

    /// Requests of any length with any bytes, small numbers preferred so that they mean something: nothing panics, every
    /// answer is a whole frame, and the state can be shown.
    #[test]
    fn no_request_is_too_strange() {
        let mut options = SimOptions::new("unused");
        options.interfaces.push("host-eth0=192.0.2.1/24,2001:db8::1/64".parse().expect("an interface"));
        let mut random = Random(1);
        for round in 0..20 {
            let mut vpp = Vpp::new(&options, round);
            hello(&mut vpp);
            let ids: Vec<u16> = vpp.rows.iter().flatten().map(|row| row.id).collect();
            for _ in 0..2000 {
                let id = ids[usize::try_from(random.below(ids.len() as u64)).expect("small")];
                let mut payload = id.to_be_bytes().to_vec();
                payload.extend_from_slice(&(HANDLE + 1).to_be_bytes());
                let length = random.below(700);
                payload.extend((0..length).map(|_| match random.below(8) {
                    0 => 0xff,
                    1 | 2 => u8::try_from(random.below(256)).expect("a byte"),
                    3 => u8::try_from(random.below(3)).expect("a byte"),
                    _ => 0,
                }));
                let (mut own, mut others) = (Vec::new(), Vec::new());
                let outcome = vpp.carry_out(&payload, &mut Outbox::new(ConnId(1), &mut own, &mut others));
                let mut rest = own.as_slice();
                while !rest.is_empty() {
                    let Ok(frame::Cut::Frame(answer)) = frame::cut(rest) else {
                        panic!("half an answer to {payload:?}")
                    };
                    rest = &rest[frame::HEADER + answer.len()..];
                }
                match outcome {
                    Outcome::Served => {}
                    Outcome::Goodbye(_) => {
                        hello(&mut vpp);
                    }
                    Outcome::Died(_) => break,
                }
            }
            assert!(
                vpp.json(Detail::Full)["tables"].is_array() && vpp.json(Detail::Meaning)["tables"].is_array()
            );
        }
    }

    #[test]
    fn the_greeting_has_the_table() {
        let mut vpp = Vpp::new(&SimOptions::new("unused"), 1);
        let greeting = hello(&mut vpp);
        let entry = b"ip_route_add_del_v2_521ef330\0";
        assert!(greeting.windows(entry.len()).any(|window| window == entry));
    }
}
