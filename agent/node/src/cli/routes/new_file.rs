//! A file that appears under its name only when it is whole.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file being written, for its owner alone. Dropped before it is [kept](Self::keep) it leaves nothing behind, and what
/// had its name before stays.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    file: BufWriter<File>,
    kept: bool,
}

impl NewFile {
    /// Begins a file that is to have a name, in the same folder under another one.
    ///
    /// # Errors
    /// The name is that of something else than a file, or the folder does not take it.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
        if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "something else than a file has that name",
            ));
        }
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}", std::process::id()));
        let temporary = path.with_file_name(temporary);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        Ok(Self { path: path.to_owned(), temporary, file: BufWriter::new(file), kept: false })
    }

    /// Gives it its name, in place of what had it. It is on the disk then.
    ///
    /// # Errors
    /// The disk is full, or the like; nothing has changed then.
    pub(super) fn keep(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        self.kept = true;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.file.write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("table.mrt");
        let names = || fs::read_dir(dir.path()).unwrap().count();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(names(), 0);
        fs::write(&path, "old").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        file.keep().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(), 1);
    }

    #[test]
    fn what_is_no_file_is_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        for path in [dir.path(), &link, Path::new("/"), &dir.path().join("missing/table.mrt")] {
            assert!(NewFile::create(path).is_err(), "{}", path.display());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
