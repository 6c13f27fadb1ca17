//! Connect, get a handle and the message table, check it, ask for the release.

use std::path::Path;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::time::Instant;
use vpp_wire::api::memclnt::{SockclntCreate, SockclntCreateReply, id};
use vpp_wire::api::vlib::{CliInband, CliInbandReply, Heal};
use vpp_wire::api::vpe::{ShowVersion, ShowVersionReply};
use vpp_wire::head::{address, context_at, message_id};
use vpp_wire::types::FixedString;
use vpp_wire::{ClientIndex, Context, IntoBytes, Message, MessageTable, MsgId, Payload, frame};

use super::beforehand::Told;
use super::{FAR, Link, roles};
use crate::error::ConnectError;
use crate::inbox::Inbox;
use crate::outbox::Batch;
use crate::settings::ClientSettings;
use crate::window::Window;

/// Of both requests here; the loop's contexts are larger.
const CONTEXT: Context = Context::new(1);

impl Link {
    /// Connects. The caller limits the time.
    pub(crate) async fn connect(path: &Path, settings: &ClientSettings) -> Result<Self, ConnectError> {
        let stream = UnixStream::connect(path).await?;
        let now = Instant::now();
        let mut link = Self {
            stream: Some(Arc::new(stream)),
            inbox: Inbox::new(),
            handle: ClientIndex::new(0),
            table: Arc::default(),
            version: Arc::from(""),
            roles: Vec::new(),
            told: Told::default(),
            same: std::cell::Cell::new(None),
            staged: Batch::default(),
            written: 0,
            admitted: 0,
            window: Window::new(settings.window),
            overdue_at: now + FAR,
            heard: now,
            ping: None,
            closing_until: None,
        };
        link.introduce(&settings.name).await?;
        let missing: Vec<_> =
            settings.required.iter().filter(|name| link.table.id(name).is_none()).copied().collect();
        if !missing.is_empty() {
            link.leave(settings.farewell).await;
            return Err(ConnectError::Missing(missing));
        }
        link.ask_version().await?;
        link.heal().await?;
        link.heard = Instant::now();
        Ok(link)
    }

    async fn introduce(&mut self, name: &str) -> Result<(), ConnectError> {
        let hello = SockclntCreate::new(CONTEXT, cut(name));
        self.send(|out| out.extend_from_slice(hello.as_bytes())).await?;
        let (response, handle, table) = self
            .receive(id::SOCKCLNT_CREATE_REPLY, 6, |payload| {
                let reply = SockclntCreateReply::parse(payload)?;
                Ok((reply.response.get(), reply.index, MessageTable::new(&reply.message_table)))
            })
            .await?;
        if response != 0 {
            return Err(ConnectError::Refused(response));
        }
        self.handle = handle;
        self.roles = roles(&table);
        self.told = Told::nothing(&table);
        self.table = Arc::new(table);
        Ok(())
    }

    /// A VPP that cannot tell its release is used all the same.
    async fn ask_version(&mut self) -> Result<(), ConnectError> {
        let ids =
            (self.table.id(&ShowVersion::DESCRIPTOR.name), self.table.id(&ShowVersionReply::DESCRIPTOR.name));
        let (Some(request), Some(reply)) = ids else {
            return Ok(());
        };
        let handle = self.handle;
        self.send(|out| {
            let start = out.len();
            out.extend_from_slice(ShowVersion::default().as_bytes());
            let _ = out.get_mut(start..).is_some_and(|payload| address(payload, request, handle, CONTEXT));
        })
        .await?;
        self.version = self
            .receive(reply, 2, |payload| {
                Ok(Arc::from(ShowVersionReply::parse(payload)?.version.to_str().as_ref()))
            })
            .await?;
        Ok(())
    }

    /// Has VPP let go of connections that others have left without a farewell, should it have leaked some.
    async fn heal(&mut self) -> Result<(), ConnectError> {
        let ids =
            (self.table.id(&CliInband::DESCRIPTOR.name), self.table.id(&CliInbandReply::DESCRIPTOR.name));
        let (Some(request), Some(reply)) = ids else {
            return Ok(());
        };
        let handle = self.handle;
        self.send(|out| {
            let start = out.len();
            Heal.encode(out);
            let _ = out.get_mut(start..).is_some_and(|payload| address(payload, request, handle, CONTEXT));
        })
        .await?;
        // The script does not exist, so the answer is an error: that it comes is all that is expected.
        self.receive(reply, 2, |_| Ok(())).await
    }

    /// Writes one frame, all of it.
    async fn send(&mut self, payload: impl FnOnce(&mut Vec<u8>)) -> Result<(), ConnectError> {
        let stream = self.stream.as_ref().ok_or(ConnectError::Closed)?;
        self.staged.bytes.clear();
        frame::push(&mut self.staged.bytes, payload);
        self.written = 0;
        self.admitted = self.staged.bytes.len();
        while self.written < self.admitted {
            stream.writable().await?;
            match stream.try_write(&self.staged.bytes[self.written..self.admitted]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Reads frames until the answer comes, and takes what `read` finds in it.
    async fn receive<T>(
        &mut self,
        id: MsgId,
        context_stands: usize,
        read: impl Fn(&[u8]) -> Result<T, ConnectError>,
    ) -> Result<T, ConnectError> {
        loop {
            while let Some(payload) = self.inbox.next()? {
                if message_id(payload) == Some(id) && context_at(payload, context_stands) == Some(CONTEXT) {
                    return read(payload);
                }
            }
            let stream = self.stream.clone().ok_or(ConnectError::Closed)?;
            stream.readable().await?;
            self.read(&stream)?;
        }
    }
}

/// A name cut to what the field holds, at a character's border.
fn cut<const N: usize>(name: &str) -> FixedString<N> {
    let mut end = name.len().min(N - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let text = name.get(..end).unwrap_or_default().split('\0').next().unwrap_or_default();
    FixedString::new(text).unwrap_or(FixedString::EMPTY)
}
