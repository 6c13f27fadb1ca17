//! Writing answers, and ending with the right code.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::inspect::client::AskError;

/// Why a command ends without its answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommandError {
    /// No answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The answer can't be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
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
