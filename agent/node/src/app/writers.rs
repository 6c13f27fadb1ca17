//! One writer at a time for a VPP. A second `peregrine agent`, whatever its folder of state, is kept off by a lock beside
//! VPP's socket. Calico/VPP's own agent leaves its process number in a file there; while it lives, two would undo each
//! other's routes, tunnels and source NAT.

use std::fs;
use std::path::{Path, PathBuf};

use super::lock::{Lock, LockError, take_file_in_time};

/// Where Calico/VPP's agent leaves its process number, beside VPP's socket.
const PID_FILE: &str = "calico_vpp.pid";
/// What its command line says.
const AGENT: &str = "calico-vpp-agent";

/// Who writes into the same VPP.
#[derive(Debug, thiserror::Error)]
pub(super) enum Writer {
    /// Another one of us.
    #[error("another peregrine agent writes into this VPP ({0} is locked); stop it first")]
    Ourselves(PathBuf),
    /// Calico/VPP's own agent.
    #[error(
        "Calico/VPP's own agent (process {0}) writes routes, tunnels and source NAT into this VPP; stop it first, and \
         start with --adopt to take over what it leaves"
    )]
    CalicoVpp(u32),
}

/// Makes sure that nobody else writes into the VPP behind this socket, for as long as the lock is held. Without one where
/// none can be made.
pub(super) async fn claim(socket: &Path) -> Result<Option<Lock>, Writer> {
    if let Some(process) = live_agent(socket) {
        return Err(Writer::CalicoVpp(process));
    }
    let mut file = socket.as_os_str().to_owned();
    file.push(".peregrine-lock");
    let file = PathBuf::from(file);
    let waits =
        || tracing::info!(file = %file.display(), "another agent writes into this VPP, and may be stopping");
    match take_file_in_time(&file, waits).await {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held) => Err(Writer::Ourselves(file)),
        Err(LockError::System(error)) => {
            tracing::warn!(file = %file.display(), %error, "a second agent for this VPP would not be noticed");
            Ok(None)
        }
    }
}

/// The process of Calico/VPP's agent, if it lives. A number that another process has got meanwhile is none.
fn live_agent(socket: &Path) -> Option<u32> {
    let text = fs::read_to_string(socket.with_file_name(PID_FILE)).ok()?;
    let process: u32 = text.trim().parse().ok()?;
    let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let is_it = words.windows(AGENT.len()).any(|part| part == AGENT.as_bytes());
    is_it.then_some(process)
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_writer_is_refused_while_it_lives() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("vpp-api.sock");
        let first = claim(&socket).await.unwrap();
        assert!(first.is_some());
        assert!(matches!(claim(&socket).await, Err(Writer::Ourselves(_))));
        drop(first);
        claim(&socket).await.unwrap();
        // It waits for input. Its name shows once it runs, which is when it has answered.
        let mut agent =
            Command::new("cat").arg0(AGENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        agent.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        agent.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let pid_file = dir.path().join(PID_FILE);
        fs::write(&pid_file, format!("{}\n", agent.id())).unwrap();
        let refused = claim(&socket).await;
        agent.kill().unwrap();
        agent.wait().unwrap();
        assert!(matches!(refused, Err(Writer::CalicoVpp(process)) if process == agent.id()), "{refused:?}");
        claim(&socket).await.unwrap();
        // Somebody else has its number now.
        fs::write(&pid_file, std::process::id().to_string()).unwrap();
        claim(&socket).await.unwrap();
        fs::write(&pid_file, "?").unwrap();
        claim(&socket).await.unwrap();
        assert!(claim(Path::new("/dev/null/vpp.sock")).await.unwrap().is_none());
    }
}
