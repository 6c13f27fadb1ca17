//! What the running process is asked: its table, as it comes, for a reader that waits; and what files would change.

use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::{Buf, Bytes};
use http_body_util::BodyExt;

use crate::check::Checked;
use crate::inspect::answer::{CheckQuestion, PolicyChange};
use crate::inspect::client::{AskError, open, post, read};

/// What is asked for: everything that neighbours have sent, as they sent it.
const QUESTION: &str = "/v1/routes?table=adj-rib-in&family=all&format=mrt";
/// Chunks on their way: the process waits for a slow reader.
const CHUNKS: usize = 4;

/// An answer being read. One that breaks off is an error, not an end.
#[derive(Debug)]
pub(super) struct LiveTable {
    chunks: Receiver<Result<Bytes, AskError>>,
    rest: Bytes,
}

impl LiveTable {
    /// Asks a process.
    pub(super) fn open(socket: &Path) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        let socket = socket.to_owned();
        std::thread::spawn(move || {
            crate::app::block_on(async {
                if let Err(error) = fetch(&socket, &sender).await {
                    // Nobody may be left to hear it.
                    let _ = sender.send(Err(error));
                }
                ExitCode::SUCCESS
            })
        });
        Self { chunks, rest: Bytes::new() }
    }
}

async fn fetch(socket: &Path, sender: &SyncSender<Result<Bytes, AskError>>) -> Result<(), AskError> {
    let mut body = open(socket, QUESTION).await?.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data()
            && sender.send(Ok(data)).is_err()
        {
            break;
        }
    }
    Ok(())
}

/// What the files that were checked would change at the neighbours of the process.
pub(super) fn changes(socket: &Path, checked: &Checked, named: bool) -> Result<Vec<PolicyChange>, AskError> {
    let files = checked.texts.iter().map(|(name, text)| (name.to_string(), text.clone())).collect();
    let question = serde_json::to_string(&CheckQuestion { files, named })?;
    let mut answer = Ok(String::new());
    crate::app::block_on(async {
        answer = post(socket, "/v1/check", question).await;
        ExitCode::SUCCESS
    });
    read(&answer?)
}

impl Read for LiveTable {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.chunks.recv() {
                Ok(Ok(chunk)) => self.rest = chunk,
                Ok(Err(error)) => return Err(io::Error::other(error)),
                Err(_) => return Ok(0),
            }
        }
        let count = room.len().min(self.rest.len());
        self.rest.copy_to_slice(room.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}
