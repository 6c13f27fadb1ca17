//! A real VPP, where the environment names one: `VPP_BIN` is its binary, `VPP_PLUGINS` its plugin folder if that is not
//! the default one, `VPPCTL` its command line if that does not lie beside it; the loader's own variables
//! (`LD_LIBRARY_PATH`) are passed on.
//!
//! Each has its runtime folder, API segment and network namespace for itself, so any number run side by side.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::lab::Host;
use crate::process::Process;
use crate::programs::note;
use crate::wait;

/// A VPP that runs, or has been killed.
#[derive(Debug)]
pub struct RealVpp {
    host: Host,
    process: Option<Process>,
}

/// The binary that `VPP_BIN` names.
///
/// # Panics
///
/// When it names no file.
#[must_use]
pub fn binary() -> Option<PathBuf> {
    let binary = PathBuf::from(env::var_os("VPP_BIN").filter(|name| !name.is_empty())?);
    assert!(binary.is_file(), "VPP_BIN={} is no file", binary.display());
    Some(binary)
}

/// Whether there is one to test with. Otherwise the test must return at once: that it did not run has been recorded for
/// the summary that `make test` prints last. That is no failure in CI, which has no VPP.
#[must_use]
pub fn available(test: &str) -> bool {
    let named = binary().is_some();
    if !named {
        note(test, "VPP_BIN names no VPP");
    }
    named
}

impl RealVpp {
    /// Prepares a VPP in the host's namespace with its files in the host's folder (`vpp.sock` is its API socket), that
    /// carries out these lines of its command language whenever it starts. It does not run yet.
    ///
    /// # Panics
    ///
    /// When the folder cannot be written.
    #[must_use]
    pub fn new(host: &Host, commands: &str) -> Self {
        let dir = host.dir();
        let plugins = env::var("VPP_PLUGINS").ok().filter(|folder| !folder.is_empty());
        let plugins = plugins.map_or_else(String::new, |folder| format!("plugins {{ path {folder} }}\n"));
        // The lab's folder has a name of its own, and so have its hosts.
        let lab = dir.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let config = format!(
            "unix {{ nodaemon nosyslog nobanner cli-no-banner cli-listen {dir}/cli.sock runtime-dir {dir} \
             log {dir}/vpp-cli.log }}\n\
             api-segment {{ prefix {lab}-{} }}\n\
             socksvr {{ socket-name {dir}/vpp.sock }}\n\
             statseg {{ socket-name {dir}/stats.sock size 64M }}\n\
             memory {{ main-heap-size 1G main-heap-page-size 4k }}\n\
             buffers {{ buffers-per-numa 2048 page-size 4k }}\n{plugins}",
            host.name(),
            dir = dir.display(),
        );
        fs::write(dir.join("startup.conf"), config).expect("the host's folder is ours");
        fs::write(dir.join("start.vpp"), commands).expect("the host's folder is ours");
        Self { host: host.clone(), process: None }
    }

    /// Starts it, with nothing of what an earlier one held, and waits until it answers on its command line.
    ///
    /// # Panics
    ///
    /// When it does not come up.
    #[track_caller]
    pub fn start(&mut self) {
        self.kill();
        let binary = binary().expect("available() said that there is one");
        // They outlive a SIGKILL.
        for socket in ["vpp.sock", "cli.sock", "stats.sock"] {
            let _ = fs::remove_file(self.host.dir().join(socket));
        }
        let config = self.host.dir().join("startup.conf");
        let mut process =
            self.host.spawn("vpp", &[&*binary.to_string_lossy(), "-c", &config.to_string_lossy()]);
        wait::until("VPP answers", || {
            assert!(process.ended().is_none(), "VPP ended: {}", process.log());
            if !self.host.dir().join("vpp.sock").exists() {
                return Err("no API socket".to_owned());
            }
            self.try_cli("show version")
        });
        // VPP carries out a script of its own configuration some seconds after it answers.
        let commands = self.host.dir().join("start.vpp");
        let said = self.cli(&format!("exec {}", commands.display()));
        assert!(!said.contains("error"), "{said}");
        self.process = Some(process);
    }

    /// The running process.
    ///
    /// # Panics
    ///
    /// When it does not run.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.as_ref().expect("start() came first").pid()
    }

    /// SIGKILL: all its state is lost.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops it in an orderly way.
    ///
    /// # Panics
    ///
    /// When it ended before that, by itself.
    #[track_caller]
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            assert!(process.ended().is_none(), "VPP has died: {}", process.log());
            process.signal(Signal::TERM);
            process.terminate();
        }
    }

    /// What one command of VPP's command line prints.
    ///
    /// # Panics
    ///
    /// When VPP can't be asked.
    #[track_caller]
    pub fn cli(&self, command: &str) -> String {
        self.try_cli(command).unwrap_or_else(|error| panic!("vppctl {command}: {error}"))
    }

    /// Like [`Self::cli`], for polling.
    ///
    /// # Errors
    ///
    /// What `vppctl` printed.
    pub fn try_cli(&self, command: &str) -> Result<String, String> {
        let vppctl = env::var_os("VPPCTL").map(PathBuf::from);
        let vppctl = vppctl.or_else(|| Some(binary()?.with_file_name("vppctl"))).ok_or("no VPP_BIN")?;
        let socket = self.host.dir().join("cli.sock");
        let mut argv = vec![vppctl.to_string_lossy().into_owned(), "-s".to_owned()];
        argv.push(socket.to_string_lossy().into_owned());
        argv.extend(command.split(' ').map(str::to_owned));
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        let output = self.host.output(&argv);
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        if output.status.success() { Ok(text) } else { Err(text + &String::from_utf8_lossy(&output.stderr)) }
    }
}
