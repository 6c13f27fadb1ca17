//! One agent at a time for a folder of state, and for a VPP: two would undo each other's work.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tokio::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Held for as long as the process runs; the system lets go of it however the process ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Whether the file of this name is still the one that is held: another process that found none there has made one of its own.
    pub(super) fn is(&self, file: &Path) -> bool {
        let identity = |meta: Metadata| (meta.dev(), meta.ino());
        let now = std::fs::metadata(file).map(identity).ok();
        now.is_some() && now == self.0.metadata().map(identity).ok()
    }
}

/// Why a lock can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another process has it.
    #[error("another agent holds it")]
    Held,
    /// The system says no.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// How long the end of another agent is waited for: one that has been told to stop takes a moment (its sessions and VPP
/// are taken leave of), and whoever starts the next one need not wait for it.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often it is looked whether that has ended. The system has no call that waits and can be given up.
const AGAIN: Duration = Duration::from_millis(50);

/// Make the folder, and take it; where another process has it, say so by `waits` and wait a little for its end.
pub(super) async fn take_in_time(folder: &Path, waits: impl FnOnce()) -> Result<Lock, LockError> {
    std::fs::create_dir_all(folder)?;
    take_file_in_time(&folder.join("lock"), waits).await
}

/// Take a file, which is made where it is missing; its folder is not.
pub(super) async fn take_file_in_time(file: &Path, waits: impl FnOnce()) -> Result<Lock, LockError> {
    match take_file(file) {
        Err(LockError::Held) => waits(),
        taken => return taken,
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        tokio::time::sleep(AGAIN).await;
        match take_file(file) {
            Err(LockError::Held) if Instant::now() < deadline => {}
            taken => return taken,
        }
    }
}

/// Take a file, or say at once that another process has it.
pub(super) fn take_file(file: &Path) -> Result<Lock, LockError> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(file)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock(file)),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held),
        Err(error) => Err(LockError::System(error.into())),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// For tests that lock files or start processes: a process that is about to run its program has what files the other
    /// tests had open, and with them their locks, whoever lets go of them.
    pub(in crate::app) static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time() {
        let _alone = ALONE.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let held = take_in_time(&folder, || panic!("nobody has it")).await.unwrap();
        assert!(matches!(take_file(&folder.join("lock")), Err(LockError::Held)));
        drop(held);
        take_in_time(&folder, || panic!("nobody has it")).await.unwrap();
        let nowhere = take_in_time(Path::new("/dev/null/x"), || panic!("nobody has it")).await;
        assert!(matches!(nowhere, Err(LockError::System(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_another_is_waited_for_but_not_for_ever() {
        let _alone = ALONE.lock().await;
        let dir = tempfile::tempdir().unwrap();
        let held = take_file(&dir.path().join("lock")).unwrap();
        let said = std::cell::Cell::new(0);
        let say = || said.set(said.get() + 1);
        assert!(matches!(take_in_time(dir.path(), say).await, Err(LockError::Held)));
        let mut waiting = std::pin::pin!(take_in_time(dir.path(), say));
        assert!(tokio::time::timeout(PATIENCE / 2, waiting.as_mut()).await.is_err());
        drop(held);
        let held = waiting.await.unwrap();
        drop(held);
        take_in_time(dir.path(), || panic!("nobody has it")).await.unwrap();
        assert_eq!(said.get(), 2);
    }
}
