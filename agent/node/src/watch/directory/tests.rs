use std::io::Write;

use super::*;
use crate::crd::{Kind, Object};

fn pool(name: &str, cidr: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata:\n  name: {name}\nspec:\n  cidr: {cidr}\n"
    )
}

/// A folder and what its watcher has said so far.
struct Lab {
    dir: tempfile::TempDir,
    watcher: Directory,
    pools: BTreeMap<String, String>,
    lists: usize,
    faults: BTreeMap<String, Vec<String>>,
}

impl Lab {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let watcher = Directory::new(dir.path().to_owned());
        Self { dir, watcher, pools: BTreeMap::new(), lists: 0, faults: BTreeMap::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// As careful programs write: a new file that takes the old one's place.
    fn replace(&self, name: &str, text: &str) {
        fs::write(self.path("new.tmp"), text).unwrap();
        fs::rename(self.path("new.tmp"), self.path(name)).unwrap();
    }

    fn take_in(&mut self, changes: Vec<SourceChange>) {
        for change in changes {
            match change {
                SourceChange::Listed(Kind::IpPool, objects) => {
                    self.lists += 1;
                    self.pools.clear();
                    for (name, object) in objects {
                        self.put(name.as_str(), &object);
                    }
                }
                SourceChange::Listed(..) => {}
                SourceChange::Put(name, object) => self.put(name.as_str(), &object),
                SourceChange::Gone(_, name) => {
                    self.pools.remove(name.as_str());
                }
                SourceChange::Faults(Change::Upsert(file, conditions)) => {
                    let name = Path::new(&*file).file_name().unwrap().to_str().unwrap().to_owned();
                    self.faults
                        .insert(name, conditions.iter().map(|fault| fault.reason.to_string()).collect());
                }
                SourceChange::Faults(Change::Delete(file)) => {
                    let name = Path::new(&*file).file_name().unwrap().to_str().unwrap();
                    self.faults.remove(name);
                }
                SourceChange::Faults(Change::Resync(_)) => panic!("never told"),
            }
        }
        self.faults.retain(|_, faults| !faults.is_empty());
    }

    fn put(&mut self, name: &str, object: &Object) {
        let Object::IpPool(pool) = object else { panic!("{object:?}") };
        self.pools.insert(name.to_owned(), pool.cidr.to_string());
    }

    /// Listen until the condition holds.
    async fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !holds(self) {
            match tokio::time::timeout_at(deadline, self.watcher.next()).await {
                Ok(changes) => self.take_in(changes),
                Err(_) => panic!("never: {what}; pools {:?}, faults {:?}", self.pools, self.faults),
            }
        }
    }

    async fn until_pools(&mut self, expected: &[(&str, &str)]) {
        let expected: BTreeMap<String, String> =
            expected.iter().map(|(name, cidr)| ((*name).to_owned(), (*cidr).to_owned())).collect();
        self.until(&format!("{expected:?}"), |lab| lab.lists > 0 && lab.pools == expected).await;
    }
}

#[tokio::test]
async fn writes_replacements_renames_and_deletions_are_seen() {
    let mut lab = Lab::new();
    lab.until_pools(&[]).await;
    lab.write("a.yaml", &pool("one", "10.0.0.0/16"));
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    lab.write("a.yaml", &pool("one", "10.1.0.0/16"));
    lab.until_pools(&[("one", "10.1.0.0/16")]).await;
    lab.replace("a.yaml", &pool("one", "10.2.0.0/16"));
    lab.until_pools(&[("one", "10.2.0.0/16")]).await;
    fs::rename(lab.path("a.yaml"), lab.path("b.yml")).unwrap();
    lab.write("c.json", r#"{"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": "two"}, "spec": {"cidr": "10.9.0.0/16"}}"#);
    lab.until_pools(&[("one", "10.2.0.0/16"), ("two", "10.9.0.0/16")]).await;
    fs::rename(lab.path("b.yml"), lab.path("b.off")).unwrap();
    lab.until_pools(&[("two", "10.9.0.0/16")]).await;
    fs::remove_file(lab.path("c.json")).unwrap();
    lab.until_pools(&[]).await;
    assert_eq!(lab.lists, 1);
}

#[tokio::test]
async fn a_rename_tells_nothing() {
    let mut lab = Lab::new();
    lab.write("a.yaml", &pool("one", "10.0.0.0/16"));
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    fs::rename(lab.path("a.yaml"), lab.path("z.yaml")).unwrap();
    lab.write("end.yaml", &pool("end", "10.9.0.0/16"));
    let changes = lab.watcher.next().await;
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert!(matches!(&changes[0], SourceChange::Put(name, _) if name.as_str() == "end"), "{changes:?}");
}

#[tokio::test]
async fn a_file_in_the_middle_of_being_written_is_not_taken_for_whole() {
    let mut lab = Lab::new();
    let (one, two) = (pool("one", "10.0.0.0/16"), pool("two", "10.1.0.0/16"));
    lab.write("a.yaml", &format!("{one}{two}"));
    lab.until_pools(&[("one", "10.0.0.0/16"), ("two", "10.1.0.0/16")]).await;
    let mut file = fs::File::create(lab.path("a.yaml")).unwrap();
    file.write_all(one.as_bytes()).unwrap();
    // Another change makes the watcher look; the first file is still open.
    lab.write("b.yaml", &pool("three", "10.3.0.0/16"));
    lab.until("three is there", |lab| lab.pools.contains_key("three")).await;
    assert!(lab.pools.contains_key("two"), "half a file counted");
    file.write_all(pool("four", "10.4.0.0/16").as_bytes()).unwrap();
    drop(file);
    lab.until_pools(&[("one", "10.0.0.0/16"), ("three", "10.3.0.0/16"), ("four", "10.4.0.0/16")]).await;
}

#[tokio::test]
async fn what_empties_a_file_or_takes_it_away_for_a_moment_takes_no_object_away() {
    let mut lab = Lab::new();
    let (one, two) = (pool("one", "10.0.0.0/16"), pool("two", "10.1.0.0/16"));
    lab.write("a.yaml", &format!("{one}{two}"));
    lab.write("b.yaml", &pool("three", "10.3.0.0/16"));
    lab.until_pools(&[("one", "10.0.0.0/16"), ("two", "10.1.0.0/16"), ("three", "10.3.0.0/16")]).await;
    let mut scanner = lab.watcher.scanner.take().unwrap();
    // As it is right after `cp` has opened the file, without a notice of it having come.
    let everything = scanner.notices.take();
    for changed in ["", "# soon\n"] {
        lab.write("a.yaml", changed);
        fs::rename(lab.path("b.yaml"), lab.path("b.yaml~")).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < 4 * QUIET {
            assert!(scanner.scan().is_empty(), "objects went that come back");
            std::thread::yield_now();
        }
        lab.write("a.yaml", &format!("{one}{two}"));
        fs::rename(lab.path("b.yaml~"), lab.path("b.yaml")).unwrap();
        while scanner.patience() == QUIET {
            assert!(scanner.scan().is_empty(), "nothing has changed");
            std::thread::yield_now();
        }
    }
    scanner.notices = everything;
    lab.watcher.scanner = Some(scanner);
    lab.write("a.yaml", "");
    fs::remove_file(lab.path("b.yaml")).unwrap();
    lab.until_pools(&[]).await;
}

#[tokio::test]
async fn what_moves_to_another_file_moves_at_once_and_is_no_duplicate() {
    let mut lab = Lab::new();
    let (one, two) = (pool("one", "10.0.0.0/16"), pool("two", "10.1.0.0/16"));
    lab.write("a.yaml", &one);
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    lab.write("a.yaml", "");
    lab.write("z.yaml", &format!("{one}{two}"));
    let changes = lab.watcher.next().await;
    assert!(matches!(&changes[..], [SourceChange::Put(name, _)] if name.as_str() == "two"), "{changes:?}");
}

#[tokio::test]
async fn a_file_that_changes_all_the_time_is_read_when_it_is_quiet() {
    let mut lab = Lab::new();
    lab.write("a.yaml", &pool("one", "10.0.0.0/16"));
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    let mut scanner = lab.watcher.scanner.take().unwrap();
    scanner.notices = None;
    // Each look finds the file complete and just written.
    for subnet in 1..50_u8 {
        lab.write(
            "a.yaml",
            &pool(
                &format!("pool-{subnet:0>width$}", width = usize::from(subnet)),
                &format!("10.{subnet}.0.0/16"),
            ),
        );
        assert!(scanner.scan().is_empty(), "a file that was written a moment ago counted");
    }
    lab.write("a.yaml", &pool("one", "10.99.0.0/16"));
    lab.watcher.scanner = Some(scanner);
    lab.until_pools(&[("one", "10.99.0.0/16")]).await;
}

#[tokio::test]
async fn a_new_file_counts_when_it_is_complete_and_first_lists_wait_for_it() {
    let mut lab = Lab::new();
    lab.write("a.yaml", &pool("one", "10.0.0.0/16"));
    let (path, one, two) = (lab.path("b.yaml"), pool("two", "10.1.0.0/16"), pool("three", "10.2.0.0/16"));
    // The watch is there before the file, so that its writing is noticed.
    let early = Notices::new(lab.dir.path()).and_then(watchable).unwrap();
    lab.watcher.scanner.as_mut().unwrap().notices = Some(early.get_ref().clone());
    lab.watcher.notices = Some(early);
    let scan = |lab: &mut Lab| lab.watcher.scanner.as_mut().unwrap().scan();
    let mut file = fs::File::create(path).unwrap();
    file.write_all(one.as_bytes()).unwrap();
    assert!(scan(&mut lab).is_empty(), "a list without the file that is being written");
    lab.write("c.yaml", &pool("four", "10.4.0.0/16"));
    assert!(scan(&mut lab).is_empty());
    file.write_all(two.as_bytes()).unwrap();
    drop(file);
    let all =
        [("one", "10.0.0.0/16"), ("two", "10.1.0.0/16"), ("three", "10.2.0.0/16"), ("four", "10.4.0.0/16")];
    lab.until_pools(&all).await;
    assert_eq!(lab.lists, 1);

    let mut file = fs::File::create(lab.path("d.yaml")).unwrap();
    file.write_all(pool("five", "10.5.0.0/16").as_bytes()).unwrap();
    lab.write("e.yaml", &pool("six", "10.6.0.0/16"));
    lab.until("six is there", |lab| lab.pools.contains_key("six")).await;
    assert!(!lab.pools.contains_key("five"), "half a new file counted");
    drop(file);
    lab.until("five is there", |lab| lab.pools.contains_key("five")).await;
}

#[test]
fn reading_never_blocks_and_never_ends_without_limit() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    assert_eq!(read_text(&pipe), Err("is no regular file".into()));
    assert_eq!(read_text(Path::new("/dev/zero")), Err("is no regular file".into()));
    let large = dir.path().join("large");
    fs::File::create(&large).unwrap().set_len(MAX_FILE + 1).unwrap();
    assert_eq!(read_text(&large), Err("is larger than 64 MiB".into()));
    let link = dir.path().join("loop");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    assert!(read_text(&link).unwrap_err().contains("symbolic links"));
}

#[tokio::test]
async fn bad_content_is_reported_and_put_right() {
    let mut lab = Lab::new();
    lab.write("a.yaml", &pool("one", "10.0.0.0/16"));
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    lab.write("a.yaml", "a: [");
    lab.until("a fault", |lab| lab.faults.contains_key("a.yaml")).await;
    assert_eq!(lab.pools.len(), 1);
    lab.write("a.yaml", &pool("one", "10.5.0.0/16"));
    lab.until("put right", |lab| lab.faults.is_empty()).await;
    lab.until_pools(&[("one", "10.5.0.0/16")]).await;
    fs::write(lab.path("a.yaml"), b"\xff\xfe\x00").unwrap();
    lab.until("a fault", |lab| lab.faults.contains_key("a.yaml")).await;
    assert_eq!(lab.pools.len(), 1);
    fs::remove_file(lab.path("a.yaml")).unwrap();
    lab.until("gone", |lab| lab.faults.is_empty() && lab.pools.is_empty()).await;
}

#[tokio::test]
async fn the_folder_may_come_late_and_go() {
    let mut lab = Lab::new();
    let folder = lab.path("manifests");
    lab.watcher = Directory::new(folder.clone());
    lab.until("its absence is reported", |lab| lab.faults.contains_key("manifests")).await;
    assert_eq!(lab.lists, 0, "nothing may be listed that wasn't read");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), pool("one", "10.0.0.0/16")).unwrap();
    lab.until_pools(&[("one", "10.0.0.0/16")]).await;
    assert!(lab.faults.is_empty());
    fs::rename(&folder, lab.path("away")).unwrap();
    lab.until("its loss is reported", |lab| lab.faults.contains_key("manifests")).await;
    assert_eq!(lab.pools.len(), 1, "what it last said stays in force");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("b.yaml"), pool("two", "10.2.0.0/16")).unwrap();
    lab.until_pools(&[("two", "10.2.0.0/16")]).await;
    assert!(lab.faults.is_empty());
}

#[tokio::test]
async fn links_as_in_mounted_config_maps_are_followed() {
    let mut lab = Lab::new();
    for (version, cidr) in [("..v1", "10.1.0.0/16"), ("..v2", "10.2.0.0/16")] {
        fs::create_dir(lab.path(version)).unwrap();
        fs::write(lab.path(version).join("pool.yaml"), pool("one", cidr)).unwrap();
    }
    std::os::unix::fs::symlink("..v1", lab.path("..data")).unwrap();
    std::os::unix::fs::symlink("..data/pool.yaml", lab.path("pool.yaml")).unwrap();
    lab.until_pools(&[("one", "10.1.0.0/16")]).await;
    std::os::unix::fs::symlink("..v2", lab.path("..data_tmp")).unwrap();
    fs::rename(lab.path("..data_tmp"), lab.path("..data")).unwrap();
    lab.until_pools(&[("one", "10.2.0.0/16")]).await;
}

#[tokio::test]
async fn what_is_no_manifest_is_left_alone() {
    let mut lab = Lab::new();
    lab.write(".hidden.yaml", "a: [");
    lab.write("notes.txt", "a: [");
    lab.write("a.yaml~", "a: [");
    fs::create_dir(lab.path("sub.yaml")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        lab.path("pipe.yaml"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    lab.until_pools(&[]).await;
    assert_eq!(lab.faults.keys().map(String::as_str).collect::<Vec<_>>(), ["pipe.yaml"]);
}
