//! The scripted VPP.

use std::path::PathBuf;

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use vpp_wire::api::memclnt::{MessageTableEntry, SockclntCreate, SockclntCreateReply, id};
use vpp_wire::api::vpe::{ShowVersion, ShowVersionReply};
use vpp_wire::frame::{self, Cut, HEADER};
use vpp_wire::head::{EchoHead, ReplyHead, context_at, message_id};
use vpp_wire::message::Tailed;
use vpp_wire::types::FixedString;
use vpp_wire::{ClientIndex, Context, IntoBytes, Message, MsgId, MsgName, Retval, api};

use crate::{Client, ClientSettings, ConnState, Generation, Notices};

/// The handle every client gets.
const HANDLE: ClientIndex = ClientIndex::new(0x8000_0001);

/// A listening socket.
pub(super) struct Vpp {
    listener: UnixListener,
    pub(super) path: PathBuf,
    _dir: TempDir,
    /// Messages this VPP lacks.
    pub(super) lacks: Vec<&'static str>,
    /// A form of a message that it lacks.
    pub(super) lacks_form: Option<MsgName>,
}

impl Vpp {
    pub(super) fn listen() -> Self {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("api.sock");
        Self {
            listener: UnixListener::bind(&path).unwrap(),
            path,
            _dir: dir,
            lacks: Vec::new(),
            lacks_form: None,
        }
    }

    /// A client of this VPP, connected.
    pub(super) async fn client(&self, settings: ClientSettings) -> (Client, Notices, Peer) {
        let (client, notices) = Client::connect(&self.path, settings);
        let peer = self.accept().await;
        client.ready().await.unwrap();
        (client, notices, peer)
    }

    /// The next connection, without a word.
    pub(super) async fn accept_silently(&self) -> Peer {
        Peer {
            stream: self.listener.accept().await.unwrap().0,
            bytes: Vec::new(),
            lacks: self.lacks.clone(),
            lacks_form: self.lacks_form,
        }
    }

    /// The next connection, introduced.
    pub(super) async fn accept(&self) -> Peer {
        let mut peer = self.accept_silently().await;
        peer.greet().await;
        let ask = peer.next().await.unwrap();
        assert_eq!(ask.name(), "show_version");
        let version = ShowVersionReply {
            head: ask.reply_head::<ShowVersionReply>(),
            retval: Retval::OK,
            program: FixedString::new("vpe").unwrap(),
            version: FixedString::new("26.06-test").unwrap(),
            build_date: FixedString::EMPTY,
            build_directory: FixedString::EMPTY,
        };
        assert!(ShowVersion::parse(&ask.payload).is_ok());
        peer.send(version.as_bytes()).await;
        let heal = peer.expect("cli_inband").await;
        let mut nothing_there = plain(&heal, -1);
        nothing_there.extend_from_slice(&[0; 4]);
        peer.send(&nothing_there).await;
        peer
    }
}

/// What VPP got from a client.
pub(super) struct Asked {
    pub(super) payload: Vec<u8>,
}

impl Asked {
    pub(super) fn name(&self) -> &'static str {
        let id = message_id(&self.payload).unwrap();
        api::messages()
            .find(|message| id_of(message.name.name()) == id)
            .map_or("?", |message| message.name.name())
    }

    pub(super) fn context(&self) -> Context {
        context_at(&self.payload, 6).unwrap()
    }

    /// The interface of [`super::request`] and its like.
    pub(super) fn index(&self) -> u32 {
        u32::from_be_bytes(self.payload[10..14].try_into().unwrap())
    }

    pub(super) fn reply_head<M: Message + ?Sized>(&self) -> ReplyHead {
        ReplyHead { _vl_msg_id: id_of(M::DESCRIPTOR.name.name()), context: self.context() }
    }
}

/// The id of a message in this VPP: the fixed ones, and 100 and more for the others.
pub(super) fn id_of(name: &str) -> MsgId {
    match name {
        "sockclnt_create" => id::SOCKCLNT_CREATE,
        "sockclnt_create_reply" => id::SOCKCLNT_CREATE_REPLY,
        "sockclnt_delete" => id::SOCKCLNT_DELETE,
        "sockclnt_delete_reply" => id::SOCKCLNT_DELETE_REPLY,
        "control_ping" => id::CONTROL_PING,
        "control_ping_reply" => id::CONTROL_PING_REPLY,
        other => {
            let at = api::messages().position(|message| message.name.name() == other).unwrap();
            MsgId::new(100 + u16::try_from(at).unwrap())
        }
    }
}

/// VPP's end of one connection.
pub(super) struct Peer {
    stream: UnixStream,
    bytes: Vec<u8>,
    lacks: Vec<&'static str>,
    lacks_form: Option<MsgName>,
}

impl Peer {
    /// Answers `sockclnt_create`.
    pub(super) async fn greet(&mut self) {
        let hello = self.next().await.unwrap();
        assert_eq!(hello.name(), "sockclnt_create");
        let create = SockclntCreate::parse(&hello.payload).unwrap();
        assert_eq!(create.name.text(), b"peregrine");
        let known: Vec<_> = api::messages()
            .filter(|message| {
                !self.lacks.contains(&message.name.name()) && self.lacks_form != Some(message.name)
            })
            .collect();
        let mut payload = Vec::new();
        let reply = SockclntCreateReply::append(&mut payload, known.len()).unwrap();
        reply.head = EchoHead {
            _vl_msg_id: id::SOCKCLNT_CREATE_REPLY,
            client_index: ClientIndex::new(0),
            context: create.head.context,
        };
        reply.index = HANDLE;
        for (entry, message) in reply.message_table.iter_mut().zip(known) {
            let name = FixedString::new(&message.name.to_string()).unwrap();
            *entry = MessageTableEntry { index: id_of(message.name.name()), name };
        }
        self.send(&payload).await;
    }

    /// The next request; `None` when the client is gone.
    pub(super) async fn next(&mut self) -> Option<Asked> {
        loop {
            if let Cut::Frame(payload) = frame::cut(&self.bytes).unwrap() {
                let asked = Asked { payload: payload.to_vec() };
                self.bytes.drain(..HEADER + asked.payload.len());
                if asked.name() != "sockclnt_create" {
                    assert_eq!(asked.payload[2..6], HANDLE.value().to_be_bytes(), "{}", asked.name());
                }
                return Some(asked);
            }
            if self.stream.read_buf(&mut self.bytes).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    pub(super) async fn expect(&mut self, name: &str) -> Asked {
        let asked = self.next().await.expect("the client is there");
        assert_eq!(asked.name(), name);
        asked
    }

    /// Writes one frame.
    pub(super) async fn send(&mut self, payload: &[u8]) {
        let mut out = Vec::new();
        frame::push(&mut out, |out| out.extend_from_slice(payload));
        self.write(&out).await;
    }

    /// Writes bytes.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Answers a request whose reply has nothing but a return value.
    pub(super) async fn answer(&mut self, asked: &Asked, retval: i32) {
        let payload = plain(asked, retval);
        self.send(&payload).await;
    }

    /// Reads the farewell, answers it and closes.
    pub(super) async fn part(mut self) {
        self.expect("sockclnt_delete").await;
        self.stream.shutdown().await.unwrap();
        assert!(self.next().await.is_none(), "the client says more than farewell");
    }
}

/// A reply with nothing but a return value.
pub(super) fn plain(asked: &Asked, retval: i32) -> Vec<u8> {
    let id = match asked.name() {
        "control_ping" => {
            let mut pong = id::CONTROL_PING_REPLY.value().to_be_bytes().to_vec();
            pong.extend_from_slice(&asked.context().value().to_be_bytes());
            pong.extend_from_slice(&[0; 12]);
            return pong;
        }
        name => id_of(&format!("{name}_reply")),
    };
    let mut reply = id.value().to_be_bytes().to_vec();
    reply.extend_from_slice(&asked.context().value().to_be_bytes());
    reply.extend_from_slice(&retval.to_be_bytes());
    reply
}

/// Waits for the client to leave a generation behind and to be up again.
pub(super) async fn up_after(client: &Client, generation: Generation) -> Generation {
    let mut state = client.state();
    let up = state
        .wait_for(|state| state.generation().is_some_and(|now| now > generation))
        .await
        .unwrap()
        .generation();
    up.unwrap()
}

/// Waits for the client to be down, and tells why.
pub(super) async fn down(client: &Client) -> String {
    let mut state = client.state();
    let down = state
        .wait_for(|state| matches!(state, ConnState::Connecting { last_error: Some(_), .. }))
        .await
        .unwrap()
        .clone();
    match down {
        ConnState::Connecting { last_error: Some(error), .. } => error.to_string(),
        ConnState::Connecting { .. } | ConnState::Up { .. } | ConnState::Closed => unreachable!(),
    }
}
