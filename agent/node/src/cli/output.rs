//! Writing answers, and ending with the right code.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;

use super::table::{Cell, Column, Tone, table};
use super::{Asking, Changed, Format};
use crate::inspect::answer::Done;
use crate::inspect::client::{AskError, post, read};

/// Why a command ends without its answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// No answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// No simulated VPP listens.
    #[error("cannot reach {}: {source}; is a `peregrine vpp-sim` running that was started with --control {}?", .socket.display(), .socket.display())]
    NoSim {
        /// Its control socket.
        socket: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The answer can't be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// Of several neighbours some did not follow.
    #[error("not carried out everywhere")]
    Partly,
}

/// Run a command that asks. A reader that goes away (`| head`) is no failure.
pub(super) fn run(command: impl Future<Output = Result<(), CommandError>>) -> ExitCode {
    crate::app::block_on(async {
        match command.await {
            Ok(()) => ExitCode::SUCCESS,
            Err(CommandError::Write(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("peregrine: {error}");
                ExitCode::FAILURE
            }
        }
    })
}

/// Run a command that changes something at neighbours, and show what became of it at each.
pub(super) fn change(asking: &Asking, changed: Changed<'_, impl Serialize>) -> ExitCode {
    run(async {
        let question = serde_json::to_string(changed.question).map_err(AskError::from)?;
        let answer = post(&asking.socket, changed.place, question).await?;
        let done: Vec<Done> = read(&answer)?;
        match asking.output {
            Format::Json => print(&(answer + "\n"))?,
            Format::Table => print(&show(&done, colours()))?,
        }
        if done.iter().any(|done| done.result == REFUSED) { Err(CommandError::Partly) } else { Ok(()) }
    })
}

const REFUSED: &str = "refused";

fn show(done: &[Done], colours: bool) -> String {
    let rows: Vec<Vec<Cell>> = done
        .iter()
        .map(|done| {
            let tone = if done.result == REFUSED { Tone::Bad } else { Tone::Plain };
            vec![Cell::from(done.peer.clone()), Cell::toned(done.detail.clone(), tone)]
        })
        .collect();
    table(&[Column::text("PEER"), Column::text("DONE")], &rows, colours)
}

/// Write to standard output.
pub(super) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Whether to use colours: on a terminal whose owner has nothing against them.
pub(super) fn colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A time as people say it: the two largest units.
pub(super) fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds % 60) {
        (0, 0, 0, seconds) => format!("{seconds}s"),
        (0, 0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (0, hours, minutes, _) => format!("{hours}h{minutes:02}m"),
        (0..1000, hours, ..) => format!("{days}d{hours:02}h"),
        (days, ..) => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let cases = [
            (0, "0s"),
            (59, "59s"),
            (61, "1m01s"),
            (3600, "1h00m"),
            (90_061, "1d01h"),
            (8_640_000, "100d00h"),
            (86_400_000, "1000d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(ago(Duration::from_secs(seconds)), text);
        }
    }
}
