//! A network of its own for each test: hosts in namespaces, joined by one link.
//!
//! A lab lives on one thread that has left the process's network and mount namespaces. Everything started
//! from that thread is inside; when the thread ends, or the test is killed, the kernel removes it all. Names
//! of hosts are private to the lab, so tests run in parallel.

#![allow(unsafe_code, reason = "unshare; see the proof at its only use")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;
use tempfile::TempDir;

use crate::process::Process;

/// A lab in the making or in use. See the module's page.
#[derive(Debug)]
pub struct Lab {
    dir: TempDir,
}

/// A host of the lab: one network namespace with an interface `eth0` on the shared link.
#[derive(Clone, Debug)]
pub struct Host {
    name: String,
    dir: PathBuf,
}

impl Lab {
    /// Runs `test` in a fresh lab on a thread of its own, and passes on its panic.
    ///
    /// # Panics
    ///
    /// When the namespaces cannot be made (they need root), or when the test panics.
    pub fn run(test: impl FnOnce(&Self) + Send + 'static) {
        let outcome = thread::Builder::new()
            .name("lab".to_owned())
            .spawn(move || {
                let lab = Self::enter();
                test(&lab);
            })
            .expect("a thread for the lab")
            .join();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }

    fn enter() -> Self {
        // SAFETY: the flags do not hold FILES, the only case that makes unshare unsafe: file descriptors stay
        // shared with the other threads.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET | UnshareFlags::NEWNS) }
            .expect("network and mount namespaces of our own (needs root)");
        rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
            .expect("a private mount tree");
        fs::create_dir_all("/run/netns").expect("/run/netns");
        rustix::mount::mount("tmpfs", "/run/netns", "tmpfs", MountFlags::empty(), None)
            .expect("names of namespaces of our own");
        let lab =
            Self { dir: tempfile::Builder::new().prefix("lab-").tempdir().expect("a folder for the lab") };
        // Daemons that give up root must be able to reach their files.
        set_mode(lab.dir.path(), 0o755);
        ip("link set lo up");
        // No second of duplicate address detection for every IPv6 address.
        for scope in ["default", "all"] {
            let knob = format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad");
            fs::write(knob, "0").expect("IPv6 is there");
        }
        ip("link add br0 type bridge");
        ip("link set br0 up");
        lab
    }

    /// The lab's folder; it is removed at the end.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Adds a host with the given addresses (with prefix lengths) on the shared link.
    ///
    /// # Panics
    ///
    /// When iproute2 refuses: the name is longer than 9 characters, or exists already.
    #[must_use]
    pub fn host(&self, name: &str, addresses: &[&str]) -> Host {
        ip(&format!("netns add {name}"));
        ip(&format!("-n {name} link set lo up"));
        ip(&format!("link add v-{name} type veth peer name eth0 netns {name}"));
        ip(&format!("link set v-{name} master br0 up"));
        let knob = "net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0";
        let dir = self.dir().join(name);
        fs::create_dir_all(&dir).expect("a folder for the host");
        set_mode(&dir, 0o777);
        let host = Host { name: name.to_owned(), dir };
        let sysctl: Vec<_> = ["sysctl", "-qw"].into_iter().chain(knob.split(' ')).collect();
        host.succeed(&sysctl);
        for address in addresses {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            ip(&format!("-n {name} addr add {address} dev eth0{nodad}"));
        }
        ip(&format!("-n {name} link set eth0 up"));
        host
    }
}

impl Host {
    /// A folder for the host's files, inside the lab's.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The host's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that will run inside the host's namespace.
    #[must_use]
    pub fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new("ip");
        // `ip netns exec` ends in exec, so the child's pid is the program's own.
        command.args(["netns", "exec", &self.name]).args(argv);
        command
    }

    /// Starts a daemon; its output goes to `<name>.log` in the host's folder.
    #[must_use]
    #[track_caller]
    pub fn spawn(&self, name: &str, argv: &[&str]) -> Process {
        Process::spawn(
            &format!("{} on {}", name, self.name),
            self.command(argv),
            &self.dir.join(format!("{name}.log")),
        )
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[must_use]
    pub fn output(&self, argv: &[&str]) -> Output {
        self.command(argv).output().unwrap_or_else(|error| panic!("{argv:?}: {error}"))
    }

    /// Runs a command that has to succeed and returns what it printed.
    ///
    /// # Panics
    ///
    /// When it fails.
    #[track_caller]
    pub fn succeed(&self, argv: &[&str]) -> String {
        let output = self.output(argv);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{argv:?} on {}: {error}", self.name);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Cuts the host off the link, or joins it again.
    pub fn link(&self, up: bool) {
        ip(&format!("link set v-{} {}", self.name, if up { "up" } else { "down" }));
    }
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own folder");
}

#[track_caller]
fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().expect("iproute2 is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
}
