//! The directory datastore: a folder of manifests, watched.
//!
//! The files of the folder whose names end in `.yaml`, `.yml` or `.json` are read, hidden ones and subfolders are not.
//! inotify says when to look; what is true is always read from the folder itself, so a lost or spurious notice costs
//! nothing but time. A file that someone is writing in place counts with its old content until it is closed, a new one
//! not at all, so that half a file is never taken for a whole one. Notices come after the fact, so they aren't trusted alone:
//! what changed counts once it has stayed the same for a moment ([`QUIET`]), before and after it was read; a file that has
//! become empty, and one that has gone, longer ([`DOUBT`]), as many programs empty or move a file before they write it. Symbolic links are followed, as mounted ConfigMaps consist of them.
//!
//! A folder that is missing or can't be read keeps what it last said; it is looked for again until it comes back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_core::event::Change;
use agent_core::model::{Condition, ObjectRef, Severity};
use rustix::fs::inotify;
use tokio::io::unix::AsyncFd;

use super::manifests::Manifests;
use super::source::SourceChange;

/// Looked for changes at least this often, in case a notice got lost (network file systems send none).
const PATROL: Duration = Duration::from_secs(30);
/// Looked for changes this often while notices can't be had.
const POLL: Duration = Duration::from_secs(1);
/// Changes that follow each other this closely are told together.
const QUIET: Duration = Duration::from_millis(20);
/// What takes objects away wholesale counts once it has been so for this long.
const DOUBT: Duration = Duration::from_millis(300);
/// A file that was written to and never closed counts as complete after this time without writing.
const ABANDONED: Duration = Duration::from_secs(3);
/// Larger files are no manifests.
const MAX_FILE: u64 = 64 << 20;

/// A watched folder of manifests.
#[derive(Debug)]
pub(crate) struct Directory {
    path: Arc<Path>,
    notices: Option<AsyncFd<Notices>>,
    scanner: Option<Scanner>,
}

impl Directory {
    /// The folder need not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        let path: Arc<Path> = path.into();
        Self { scanner: Some(Scanner::new(&path)), path, notices: None }
    }

    /// Wait for the next changes. The first ones are complete lists of every kind, told once the folder could be read.
    /// Where it is cancelled while it looks, the next call begins anew and tells lists again.
    pub(crate) async fn next(&mut self) -> Vec<SourceChange> {
        loop {
            let mut scanner = self.scanner.take().unwrap_or_else(|| Scanner::new(&self.path));
            if scanner.lost_notices {
                self.notices = None;
                scanner.lost_notices = false;
            }
            if self.notices.is_none() {
                // Watched before it is looked at: what changes in between is then noticed.
                self.notices = Notices::new(&self.path).and_then(watchable).ok();
                scanner.notices = self.notices.as_ref().map(|fd| fd.get_ref().clone());
                scanner.writing.clear();
            }
            let looked = tokio::task::spawn_blocking(move || {
                let changes = scanner.scan();
                (scanner, changes)
            });
            let (scanner, changes) = match looked.await {
                Ok(looked) => looked,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down; nobody listens any more.
                    Err(_) => return Vec::new(),
                },
            };
            let patience = scanner.patience();
            self.scanner = Some(scanner);
            if !changes.is_empty() {
                return changes;
            }
            self.wait(patience).await;
        }
    }

    /// Until there is a reason to look again.
    async fn wait(&self, patience: Duration) {
        let Some(notices) = &self.notices else { return tokio::time::sleep(patience).await };
        if let Ok(Ok(mut ready)) = tokio::time::timeout(patience, notices.readable()).await {
            // The scanner reads them all, so the next one makes it ready again.
            ready.clear_ready();
            tokio::time::sleep(QUIET).await;
        }
    }
}

// Deprecated in favour of an unsafe function that asks for a descriptor that stays open and the same: `Notices` owns
// its own and never gives it away.
#[allow(deprecated)]
fn watchable(notices: Notices) -> io::Result<AsyncFd<Notices>> {
    AsyncFd::new(notices)
}

/// What inotify says about the folder.
#[derive(Clone, Debug)]
struct Notices(Arc<OwnedFd>);

impl AsRawFd for Notices {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl AsFd for Notices {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The folder isn't watched any more.
struct NoticesLost;

impl Notices {
    fn new(path: &Path) -> io::Result<Self> {
        use inotify::WatchFlags as On;
        let fd = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let mask = On::CREATE
            | On::MODIFY
            | On::ATTRIB
            | On::CLOSE_WRITE
            | On::MOVE
            | On::DELETE
            | On::DELETE_SELF
            | On::MOVE_SELF
            | On::ONLYDIR;
        inotify::add_watch(&fd, path, mask)?;
        Ok(Self(Arc::new(fd)))
    }

    /// Read all that is there. `writing` remembers which files are being written.
    fn drain(&self, writing: &mut HashMap<String, Instant>) -> Result<(), NoticesLost> {
        use inotify::ReadFlags as Is;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let flags = event.events();
                    if flags.intersects(Is::DELETE_SELF | Is::MOVE_SELF | Is::IGNORED | Is::UNMOUNT) {
                        return Err(NoticesLost);
                    }
                    let Some(name) = event.file_name().and_then(|name| name.to_str().ok()) else { continue };
                    if flags.intersects(Is::MODIFY) {
                        writing.insert(name.to_owned(), Instant::now());
                    } else if !flags.intersects(Is::ATTRIB) {
                        writing.remove(name);
                    }
                }
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return Err(NoticesLost),
            }
        }
    }
}

/// What tells one content of a file from another without reading it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&fs::Metadata> for Stamp {
    fn from(meta: &fs::Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }
}

/// Reads what changed in the folder. Blocking.
#[derive(Debug)]
struct Scanner {
    path: Arc<Path>,
    notices: Option<Notices>,
    lost_notices: bool,
    writing: HashMap<String, Instant>,
    /// Files that are not as last read, nor for long as they are.
    unsettled: HashMap<String, Unsettled>,
    /// Files that have gone, and since when.
    gone: HashMap<String, Instant>,
    manifests: Manifests,
    seen: BTreeMap<String, Option<Stamp>>,
    trouble: Option<String>,
    read_once: bool,
    /// When the folder could be read for the first time. The first lists wait for files being written, but not for ever.
    first_look: Option<Instant>,
}

/// A file that is not as last read.
#[derive(Copy, Clone, Debug)]
struct Unsettled {
    stamp: Option<Stamp>,
    /// Since when it has been like this.
    since: Instant,
}

/// What a look at one file gave.
enum Reading {
    Text(String),
    Unreadable(String),
}

impl Scanner {
    fn new(path: &Arc<Path>) -> Self {
        Self {
            path: Arc::clone(path),
            notices: None,
            lost_notices: false,
            writing: HashMap::new(),
            unsettled: HashMap::new(),
            gone: HashMap::new(),
            manifests: Manifests::default(),
            seen: BTreeMap::new(),
            trouble: None,
            read_once: false,
            first_look: None,
        }
    }

    /// How long to wait for a notice before looking all the same.
    fn patience(&self) -> Duration {
        // A folder that can't be read keeps all as it is.
        if self.trouble.is_none() && !(self.unsettled.is_empty() && self.gone.is_empty()) {
            return QUIET;
        }
        match (&self.notices, self.lost_notices, self.writing.is_empty()) {
            (Some(_), false, true) => PATROL,
            (Some(_), false, false) => ABANDONED,
            (None, ..) | (_, true, _) => POLL,
        }
    }

    fn scan(&mut self) -> Vec<SourceChange> {
        let mut changes = Vec::new();
        self.drain();
        match list(&self.path) {
            Ok(names) => {
                self.tell_trouble(None, &mut changes);
                self.forget_gone(&names);
                let readings = self.read_changed(&names);
                // A file that was written to while it was read is not to be trusted.
                self.drain();
                for (name, stamp, reading) in readings {
                    if self.writing.contains_key(&name) {
                        continue;
                    }
                    let full = self.full_name(&name);
                    if self.is_doubtful(&name, &full, &reading) {
                        self.manifests.doubt(&full);
                        continue;
                    }
                    self.unsettled.remove(&name);
                    match reading {
                        Reading::Text(text) => self.manifests.put(&full, &text),
                        Reading::Unreadable(reason) => self.manifests.unreadable(&full, None, reason),
                    }
                    self.seen.insert(name, stamp);
                }
                let first_look = *self.first_look.get_or_insert_with(Instant::now);
                let complete = names
                    .iter()
                    .all(|name| !self.writing.contains_key(name) && !self.unsettled.contains_key(name));
                self.read_once |= complete || first_look.elapsed() > ABANDONED;
            }
            Err(error) => self.tell_trouble(Some(error.to_string()), &mut changes),
        }
        if self.read_once {
            changes.extend(self.manifests.settle());
        }
        changes
    }

    fn drain(&mut self) {
        if let Some(notices) = &self.notices {
            self.lost_notices |= notices.drain(&mut self.writing).is_err();
        }
        let now = Instant::now();
        self.writing.retain(|_, last| now.duration_since(*last) < ABANDONED);
    }

    /// Say what is wrong with the folder itself, once.
    fn tell_trouble(&mut self, trouble: Option<String>, changes: &mut Vec<SourceChange>) {
        if self.trouble == trouble {
            return;
        }
        let folder: Arc<str> = self.path.to_string_lossy().into();
        let remedy = if self.read_once {
            "what it last said stays in force"
        } else {
            "make it; it is looked for again"
        };
        let conditions = trouble.iter().map(|reason| Condition {
            object: ObjectRef::new("directory", &*folder),
            field: "".into(),
            reason: reason.as_str().into(),
            remedy: remedy.into(),
            severity: Severity::Error,
            location: None,
        });
        changes.push(SourceChange::Faults(Change::Upsert(Arc::clone(&folder), conditions.collect())));
        self.trouble = trouble;
    }

    /// A file that has gone counts as gone after a moment, as it may be on its way back or be another one's name now.
    fn forget_gone(&mut self, names: &BTreeSet<String>) {
        self.unsettled.retain(|name, _| names.contains(name));
        let missing: Vec<String> = self.seen.keys().filter(|name| !names.contains(*name)).cloned().collect();
        for name in missing {
            self.seen.remove(&name);
            self.manifests.doubt(&self.full_name(&name));
            self.gone.insert(name, Instant::now());
        }
        // One that is back is read as a new one.
        self.gone.retain(|name, _| !names.contains(name));
        let over: Vec<String> = self
            .gone
            .iter()
            .filter(|(_, since)| since.elapsed() >= DOUBT)
            .map(|(name, _)| name.clone())
            .collect();
        for name in over {
            self.gone.remove(&name);
            self.manifests.remove(&self.full_name(&name));
        }
    }

    fn read_changed(&mut self, names: &BTreeSet<String>) -> Vec<(String, Option<Stamp>, Reading)> {
        let mut readings = Vec::new();
        for name in names {
            if self.writing.contains_key(name) {
                self.unsettled.remove(name);
                continue;
            }
            let path = self.path.join(name);
            let (stamp, absence) = match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => continue,
                Ok(meta) => (Some(Stamp::from(&meta)), None),
                // Deleted since it was listed, or a link to nowhere.
                Err(error) => (None, Some(error.to_string())),
            };
            if self.seen.get(name) == Some(&stamp) {
                self.unsettled.remove(name);
                continue;
            }
            if !self.has_settled(name, stamp) {
                continue;
            }
            let reading = absence.map_or_else(|| read_file(&path), Reading::Unreadable);
            // Its notice may not be there yet where it was written to just now.
            let after = fs::metadata(&path).ok().map(|meta| Stamp::from(&meta));
            if after == stamp {
                readings.push((name.clone(), stamp, reading));
            } else {
                self.has_settled(name, after);
            }
        }
        readings
    }

    /// Whether a file that isn't as last read has been as it is for long enough. That is longer than the system's clock
    /// for files takes to tick: whatever is written from now on leaves another stamp, so a text can't be taken for one that
    /// was written right after it, with the same length.
    fn has_settled(&mut self, name: &str, stamp: Option<Stamp>) -> bool {
        let now = Instant::now();
        match self.unsettled.get(name) {
            Some(unsettled) if unsettled.stamp == stamp => now.duration_since(unsettled.since) >= QUIET,
            Some(_) | None => {
                self.unsettled.insert(name.to_owned(), Unsettled { stamp, since: now });
                false
            }
        }
    }

    /// Whether a file says nothing any more, and hasn't done so for long.
    fn is_doubtful(&self, name: &str, full: &str, reading: &Reading) -> bool {
        let Reading::Text(text) = reading else { return false };
        let young = self.unsettled.get(name).is_some_and(|unsettled| unsettled.since.elapsed() < DOUBT);
        young && Manifests::says_nothing(text) && self.manifests.holds(full)
    }

    fn full_name(&self, name: &str) -> Arc<str> {
        self.path.join(name).to_string_lossy().into()
    }
}

fn read_file(path: &Path) -> Reading {
    read_text(path).map_or_else(Reading::Unreadable, Reading::Text)
}

/// The text of a manifest, or why there is none.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    // Without waiting: a pipe would otherwise block until somebody writes to it.
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(|error| error.to_string())?;
    // Asked of what was opened, as the name may mean something else by now.
    let meta = file.metadata().map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("is no regular file".to_owned());
    }
    let mut text = String::new();
    let read = file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if read as u64 > MAX_FILE {
        return Err(format!("is larger than {} MiB", MAX_FILE >> 20));
    }
    Ok(text)
}

/// The names of the files that can be manifests.
pub(crate) fn list(path: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(path)? {
        let Ok(name) = entry?.file_name().into_string() else { continue };
        let manifest = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        if manifest && !name.starts_with('.') {
            names.insert(name);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
