//! What VPP may hold and does not show, kept on disk from before VPP is asked for it: destinations that source translation
//! leaves alone. One to a line, in the folder of what must outlive a restart.

use std::io;
use std::path::{Path, PathBuf};

use ipnet::IpNet;

/// The name of the file.
const FILE: &str = "snat-exclusions";

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Notes {
    file: PathBuf,
    written: u64,
    /// It could not be written, which has been said.
    failing: bool,
}

impl Notes {
    /// In this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { file: folder.join(FILE), written: 0, failing: false }
    }

    /// What an earlier run has left. What can't be read is skipped, and never taken from VPP then.
    pub(crate) fn read(&self) -> Vec<IpNet> {
        match std::fs::read_to_string(&self.file) {
            Ok(text) => text.lines().filter_map(|line| line.trim().parse().ok()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!(
                    file = %self.file.display(), %error,
                    "what an earlier run excluded from source translation is not known: it stays excluded"
                );
                Vec::new()
            }
        }
    }

    /// Writes down what there is to remember, where it is another thing than before.
    pub(super) fn keep(&mut self, number: u64, remembered: impl FnOnce() -> Vec<IpNet>) {
        if number == self.written {
            return;
        }
        self.written = number;
        let text: String = remembered().iter().map(|prefix| format!("{prefix}\n")).collect();
        let beside = self.file.with_extension("new");
        let done = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, &self.file));
        if let Err(error) = &done
            && !self.failing
        {
            tracing::warn!(
                file = %self.file.display(), %error,
                "what is excluded from source translation now will stay so if nobody wants it after a restart"
            );
        }
        self.failing = done.is_err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again() {
        let folder = std::env::temp_dir().join(format!("peregrine-notes-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut notes = Notes::new(&folder);
        assert_eq!(notes.read(), []);
        let all: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::1/128".parse().unwrap()];
        notes.keep(1, || all.clone());
        assert_eq!(Notes::new(&folder).read(), all);
        notes.keep(1, || panic!("it is the same"));
        std::fs::write(folder.join(FILE), "10.0.0.0/8\nnonsense\n").unwrap();
        assert_eq!(notes.read(), all[..1]);
        notes.keep(2, Vec::new);
        assert_eq!(notes.read(), []);
        std::fs::remove_dir_all(&folder).unwrap();
        notes.keep(3, || all);
        assert!(notes.failing);
    }
}
