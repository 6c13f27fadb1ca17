//! One agent at a time for a folder of state: two would undo each other's work in VPP.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Held for as long as the process runs; the system lets go of it however the process ends.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code)] File);

/// Why the folder can't be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum LockError {
    /// Another process has it.
    #[error("another agent runs with this folder")]
    Held,
    /// The system says no.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Make the folder, and take it.
pub(super) fn take(folder: &Path) -> Result<Lock, LockError> {
    std::fs::create_dir_all(folder)?;
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock(file)),
        Err(Errno::WOULDBLOCK) => Err(LockError::Held),
        Err(error) => Err(LockError::System(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let held = take(&folder).unwrap();
        assert!(matches!(take(&folder), Err(LockError::Held)));
        drop(held);
        take(&folder).unwrap();
        assert!(matches!(take(Path::new("/dev/null/x")), Err(LockError::System(_))));
    }
}
