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

use crate::api::field::{push_text, text};
use crate::api::row::{self, Row};
use crate::api::{interface, memclnt, wireguard};
use crate::clients::{Client, Clients, ConnId, Outbox};
use crate::context::{Cx, push_head};
use crate::options::SimOptions;
use crate::release::Release;
use crate::state::State;
use crate::state::dump::{self, Detail};
use crate::state::interface::Event;
use crate::state::path::Path;

/// Why a simulated process ended where a real one would have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Death {
    /// A frame announced more bytes than any message has, and bytes followed: VPP takes them all for its payload until its
    /// heap is full.
    EndlessFrame,
    /// A route had a path through a UDP encapsulation that does not exist.
    UdpEncap,
    /// Something was said about source translation before it had any address.
    SnatWithoutAddresses,
    /// Addresses of source translation came with the index of a table that does not exist.
    SnatTable,
    /// A translation had no backends.
    TranslationWithoutBackends,
    /// A list of segments without a segment.
    EmptySidList,
    /// Something was to be steered in a table that does not exist.
    SteeringTable,
    /// A local SID was to do what no plugin had registered.
    LocalsidBehavior,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EndlessFrame => "a frame announced a length far beyond any message, and more data followed",
            Self::UdpEncap => "a route path named a UDP encapsulation that does not exist",
            Self::SnatWithoutAddresses => "source translation was set up before it had any address",
            Self::SnatTable => "source translation was to use a table index that does not exist",
            Self::TranslationWithoutBackends => "a translation had no backends",
            Self::EmptySidList => "a list of segments was empty",
            Self::SteeringTable => "something was to be steered in a table that does not exist",
            Self::LocalsidBehavior => "a local SID was to do what nobody had registered",
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
    /// A system call failed on the way, which lets VPP go of sockets it had leaked.
    Healed,
    /// The process is dead.
    Died(Death),
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
    paths: Vec<Path>,
}

impl Vpp {
    /// A process that was just started. Its message ids follow from `generation`, so that no client can keep them.
    pub(crate) fn new(options: &SimOptions, generation: u64) -> Self {
        let (rows, names) = number(options.release, &options.hide, generation);
        let mut greeting = u16::try_from(names.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
        for (id, name) in &names {
            greeting.extend_from_slice(&id.to_be_bytes());
            push_text::<64>(&mut greeting, name.to_string().as_bytes());
        }
        let id_of =
            |wanted: &str| names.iter().find(|(_, name)| name.name() == wanted).map_or(0, |(id, _)| *id);
        let mut state = State::new(options.release, &options.interfaces);
        state.crypto.workers = vec![true; options.workers];
        state.wireguard.event_id = id_of(wireguard::EVENT.name());
        Self {
            state,
            clients: Clients::new(),
            event_id: id_of(interface::EVENT),
            carried_out: vec![0; rows.len()],
            rows,
            greeting,
            paths: Vec::new(),
        }
    }

    /// Clients, routes and interfaces.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        (self.clients.len(), self.state.fib.route_count(), self.state.interfaces.len())
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
                .iter()
                .map(|(handle, client)| {
                    json!({
                        "name": String::from_utf8_lossy(&client.name),
                        "handle": handle,
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
        while let Some(handle) = self.clients.on(conn) {
            self.clients.remove(handle);
            self.state.wireguard.forget_client(handle);
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
        if row.name.name() == memclnt::SOCKCLNT_CREATE {
            self.greet(payload, row.answer_id, outbox);
            return Outcome::Served;
        }
        let Some((client, context)) = addressed(payload) else { return Outcome::Served };
        let conn = self.clients.get(client).map(|client| client.conn);
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
            healed: false,
            answer_id: row.answer_id,
            answer_context_at: row.answer_context_at,
            context,
            out,
        };
        // `None` is a message shorter than it says: not answered
        let _served = (row.serve)(&mut cx, payload);
        let (death, goodbye, healed) = (cx.death.take(), cx.goodbye.take(), cx.healed);
        if let Some(death) = death {
            return Outcome::Died(death);
        }
        self.send_events(outbox);
        if let Some(handle) = goodbye {
            self.state.wireguard.forget_client(handle);
        }
        match goodbye.and_then(|handle| self.clients.remove(handle)) {
            Some(gone) => Outcome::Goodbye(gone.conn),
            None if healed => Outcome::Healed,
            None => Outcome::Served,
        }
    }

    /// Answers a request with a return value of somebody's choice, everything behind it all ones. A dump gets nothing.
    pub(crate) fn refuse(&self, payload: &[u8], retval: i32, outbox: &mut Outbox<'_>) {
        let Some(row) = self.row(payload).filter(|row| !row.is_dump) else { return };
        if row.name.name() == memclnt::SOCKCLNT_CREATE {
            let Some(context) = payload.get(2..).and_then(|rest| rest.first_chunk()) else { return };
            greet(outbox.to(outbox.asking), row.answer_id, *context, retval, 0, &[0, 0]);
            return;
        }
        let Some((client, context)) = addressed(payload) else { return };
        let Some(client) = self.clients.get(client) else { return };
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
        let name = text(name).to_vec();
        let conn = outbox.asking;
        let handle = match self.clients.on(conn) {
            Some(handle) => {
                if let Some(client) = self.clients.get_mut(handle) {
                    client.name = name;
                }
                handle
            }
            None => {
                tracing::info!(client = %String::from_utf8_lossy(&name), conn = conn.0, "a client connects");
                self.clients.add(Client { conn, name, wants_events: None })
            }
        };
        greet(outbox.to(conn), answer_id, *context, 0, handle, &self.greeting);
    }

    /// Something happens without a client's doing.
    pub(crate) fn happen(&mut self, what: impl FnOnce(&mut State), outbox: &mut Outbox<'_>) {
        what(&mut self.state);
        self.send_events(outbox);
    }

    fn send_events(&mut self, outbox: &mut Outbox<'_>) {
        if self.state.interfaces.has_events() {
            for event in self.state.interfaces.take_events() {
                self.send_event(event, outbox);
            }
        }
        let id = self.state.wireguard.event_id;
        for event in self.state.wireguard.take_events() {
            if let Some(client) = self.clients.get(event.client) {
                wireguard::push_event(outbox.to(client.conn), id, event);
            }
        }
    }

    fn send_event(&self, event: Event, outbox: &mut Outbox<'_>) {
        for (handle, client) in self.clients.iter() {
            let Some(pid) = client.wants_events else { continue };
            frame::push(outbox.to(client.conn), |out| {
                out.extend_from_slice(&self.event_id.to_be_bytes());
                out.extend_from_slice(&handle.to_be_bytes());
                out.extend_from_slice(&pid);
                out.extend_from_slice(&event.sw_if_index.to_be_bytes());
                out.extend_from_slice(&event.flags.to_be_bytes());
                out.push(u8::from(event.deleted));
            });
        }
    }
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

/// Gives ids to all messages of a release but the hidden ones: the rows by id, and the names with their ids.
fn number(release: Release, hidden: &[String], generation: u64) -> (Vec<Option<Row>>, Vec<(u16, MsgName)>) {
    let is_hidden = |name: &MsgName| hidden.iter().any(|hidden| hidden == name.name());
    let mut names: Vec<(u16, MsgName)> = Vec::new();
    let mut next = 100 + u16::try_from(generation % 50).unwrap_or(0) * 17;
    for name in row::names().filter_map(|name| release.name(name)).filter(|name| !is_hidden(name)) {
        let id = memclnt::fixed_id(name.name()).unwrap_or_else(|| {
            next += 1;
            next
        });
        names.push((id, name));
    }
    let id_of = |name: &MsgName| names.iter().find(|(_, other)| other == name).map(|(id, _)| *id);
    let mut rows: Vec<Option<Row>> = vec![None; usize::from(next) + 1];
    for row in row::rows().filter_map(|row| release.row(row)) {
        let (Some(id), Some(answer_id)) = (id_of(&row.name), id_of(&row.answer)) else { continue };
        if let Some(place) = rows.get_mut(usize::from(id)) {
            *place = Some(Row { id, answer_id, ..row });
        }
    }
    (rows, names)
}

#[cfg(test)]
mod tests;
