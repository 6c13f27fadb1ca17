//! Where the programs are that tests start, and the record of what had to be skipped.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A daemon that some tests need: its file, and the Debian package that brings it.
#[derive(Copy, Clone, Debug)]
pub struct Program {
    /// Name to look up in `PATH`, or an absolute path.
    pub file: &'static str,
    /// Debian package.
    pub package: &'static str,
}

/// BIRD 2.
pub const BIRD: Program = Program { file: "bird", package: "bird2" };
/// FRR's BGP daemon.
pub const FRR: Program = Program { file: "/usr/lib/frr/bgpd", package: "frr" };
/// GoBGP, daemon and command line.
pub const GOBGP: Program = Program { file: "gobgpd", package: "gobgpd" };
/// OpenBGPD.
pub const OPENBGPD: Program = Program { file: "bgpd", package: "openbgpd" };
/// ExaBGP.
pub const EXABGP: Program = Program { file: "exabgp", package: "exabgp" };
/// iproute2, which makes the namespaces.
pub const IP: Program = Program { file: "ip", package: "iproute2" };

impl Program {
    /// The program's path, if it is installed.
    #[must_use]
    pub fn find(self) -> Option<PathBuf> {
        let file = Path::new(self.file);
        if file.is_absolute() {
            return file.is_file().then(|| file.to_owned());
        }
        let path = env::var_os("PATH")?;
        env::split_paths(&path)
            .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
            .map(|folder| folder.join(file))
            .find(|path| path.is_file())
    }
}

/// True when every program is there. Otherwise the test must return at once: what is missing has been
/// printed and recorded for the summary that `make test` prints last.
///
/// # Panics
///
/// In CI, where everything is meant to be installed, a missing program is a failure.
#[must_use]
pub fn available(test: &str, programs: &[Program]) -> bool {
    let missing: Vec<_> = programs.iter().filter(|program| program.find().is_none()).collect();
    let root = rustix::process::geteuid().is_root();
    if missing.is_empty() && root {
        return true;
    }
    let mut why: Vec<String> = missing
        .iter()
        .map(|program| format!("{} is not installed (package {})", program.file, program.package))
        .collect();
    if !root {
        why.push("network namespaces need root".to_owned());
    }
    skip(test, &why.join(", "));
    false
}

/// Records that `test` could not run. In CI that is a failure.
///
/// # Panics
///
/// When the variable `CI` is `true`.
pub fn skip(test: &str, why: &str) {
    assert!(env::var("CI").as_deref() != Ok("true"), "{test} cannot run in CI: {why}");
    note(test, why);
}

/// Records that `test` did not run, for want of something that is not expected to be everywhere.
pub fn note(test: &str, why: &str) {
    eprintln!("skipped: {test}: {why}");
    if let Some(file) = env::var_os("SKIPPED_TESTS")
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file)
    {
        // The summary is a courtesy; the line above has told the same already.
        let _ = writeln!(file, "{test}: {why}");
    }
}

/// The `peregrine` binary: the one that `PEREGRINE_BIN` names, else the one built beside the running test.
///
/// # Panics
///
/// When there is none: a `cargo test` of the whole workspace, as `make test` runs it, builds it.
#[must_use]
pub fn peregrine() -> PathBuf {
    if let Some(path) = env::var_os("PEREGRINE_BIN") {
        return path.into();
    }
    // Not `current_exe`: inside a lab the kernel can no longer name the file as it was mounted outside, which in a chroot
    // gives a path that leads nowhere. Cargo starts tests by their whole path.
    let test = PathBuf::from(env::args_os().next().expect("a running test has a name"));
    let found = test.ancestors().skip(1).map(|folder| folder.join("peregrine")).find(|path| path.is_file());
    found.expect("no peregrine binary beside the tests: build the whole workspace")
}
