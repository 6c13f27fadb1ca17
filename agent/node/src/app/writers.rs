//! One writer at a time for a VPP. A second `peregrine agent`, whatever its folder of state, is kept off by a lock beside
//! VPP's socket. Calico/VPP's own agent leaves its process number in a file there; while it lives, two would undo each
//! other's routes, tunnels and source NAT. Both are looked at while the agent runs, too: then there is nothing to refuse, so it is
//! told until it is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_core::model::{Condition, ObjectRef};

use tokio::time::Instant;

use super::lock::{Lock, LockError, take_file, take_file_in_time};

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

/// While the agent runs it is looked for others this often.
const LOOK: Duration = Duration::from_secs(5);

/// This agent's claim to a VPP, for as long as the value lives; and who disregards it.
#[derive(Debug)]
pub(crate) struct Claim {
    socket: PathBuf,
    file: PathBuf,
    /// Without one, where none can be made, a second agent of ours is not noticed.
    lock: Option<Lock>,
    told: Vec<Condition>,
    due: Instant,
}

impl Claim {
    /// Wait until who else writes into this VPP is somebody else than before; nobody, mostly. Nothing is lost when the future is
    /// dropped.
    pub(crate) async fn next(&mut self) -> Vec<Condition> {
        loop {
            // It may be waited for again and again, each time for a moment only.
            tokio::time::sleep_until(self.due).await;
            self.due = Instant::now() + LOOK;
            let now = self.look();
            if now != self.told {
                self.told.clone_from(&now);
                return now;
            }
        }
    }

    /// Who else writes now, as conditions.
    fn look(&mut self) -> Vec<Condition> {
        let mut rivals = Vec::new();
        if let Some(process) = live_agent(&self.socket) {
            rivals.push(Condition::error(
                ObjectRef::new("VPP", "other writers"),
                "",
                format!(
                    "Calico/VPP's own agent (process {process}) has been started beside this one: the two undo each other's \
                     routes, tunnels and source NAT"
                ),
                "stop one of the two; `peregrine agent --release` gives VPP back to the other",
            ));
        }
        if let Some(lock) = &self.lock
            && !lock.is(&self.file)
        {
            // Whoever cleared the folder took our claim along. Nobody may have come since.
            match take_file(&self.file) {
                Ok(lock) => self.lock = Some(lock),
                Err(LockError::Held) => rivals.push(Condition::error(
                    ObjectRef::new("VPP", "other writers"),
                    "",
                    format!(
                        "another peregrine agent has claimed this VPP ({} is another file now)",
                        self.file.display()
                    ),
                    "stop one of the two agents",
                )),
                Err(LockError::System(_)) => {}
            }
        }
        rivals
    }
}

/// Makes sure that nobody else writes into the VPP behind this socket now.
pub(super) async fn claim(socket: &Path) -> Result<Claim, Writer> {
    if let Some(process) = live_agent(socket) {
        return Err(Writer::CalicoVpp(process));
    }
    let mut file = socket.as_os_str().to_owned();
    file.push(".peregrine-lock");
    let file = PathBuf::from(file);
    let waits =
        || tracing::info!(file = %file.display(), "another agent writes into this VPP, and may be stopping");
    let lock = match take_file_in_time(&file, waits).await {
        Ok(lock) => Some(lock),
        Err(LockError::Held) => return Err(Writer::Ourselves(file)),
        Err(LockError::System(error)) => {
            tracing::warn!(file = %file.display(), %error, "a second agent for this VPP would not be noticed");
            None
        }
    };
    Ok(Claim { socket: socket.to_owned(), file, lock, told: Vec::new(), due: Instant::now() + LOOK })
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

    use super::super::lock::tests::ALONE;
    use super::*;

    /// A process with the name of Calico's agent; it waits for input. Its name shows once it runs, which is when it has answered.
    fn calico() -> std::process::Child {
        let mut agent =
            Command::new("cat").arg0(AGENT).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        agent.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        agent.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        agent
    }

    fn reasons(conditions: &[Condition]) -> Vec<&str> {
        conditions.iter().map(|condition| &*condition.reason).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_later_is_told_until_he_is_gone() {
        let _alone = ALONE.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("vpp-api.sock");
        let mut ours = claim(&socket).await.unwrap();
        assert_eq!(ours.look(), []);
        let mut agent = calico();
        fs::write(dir.path().join(PID_FILE), agent.id().to_string()).unwrap();
        let told = ours.next().await;
        agent.kill().unwrap();
        agent.wait().unwrap();
        let begun =
            format!("Calico/VPP's own agent (process {}) has been started beside this one", agent.id());
        assert!(reasons(&told).iter().all(|told| told.starts_with(&begun)) && told.len() == 1, "{told:?}");
        assert_eq!(ours.next().await, [], "it is over");
        // Somebody clears the folder: the claim is made anew, unless another agent was faster.
        fs::remove_file(&ours.file).unwrap();
        assert_eq!(ours.look(), []);
        assert!(matches!(claim(&socket).await, Err(Writer::Ourselves(_))));
        fs::remove_file(&ours.file).unwrap();
        let theirs = claim(&socket).await.unwrap();
        let told = ours.next().await;
        assert!(
            reasons(&told).first().is_some_and(|told| told.contains("another peregrine agent")),
            "{told:?}"
        );
        drop(theirs);
        assert_eq!(ours.next().await, []);
        assert!(matches!(claim(&socket).await, Err(Writer::Ourselves(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn a_second_writer_is_refused_while_it_lives() {
        let _alone = ALONE.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("vpp-api.sock");
        let first = claim(&socket).await.unwrap();
        assert!(first.lock.is_some());
        assert!(matches!(claim(&socket).await, Err(Writer::Ourselves(_))));
        drop(first);
        claim(&socket).await.unwrap();
        let mut agent = calico();
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
        assert!(claim(Path::new("/dev/null/vpp.sock")).await.unwrap().lock.is_none());
    }
}
