//! Child processes that end with their test, and whose output can be read while they run.

#![allow(unsafe_code, reason = "pre_exec; see the proof at its only use")]

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};

use crate::wait;

/// A running child. Dropping it kills it and waits for its end.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl Process {
    /// Starts `command` with its output appended to `log`, its input closed.
    ///
    /// # Panics
    ///
    /// When the program cannot be started.
    #[must_use]
    #[track_caller]
    pub fn spawn(name: &str, mut command: Command, log: &Path) -> Self {
        let open =
            || File::options().create(true).append(true).open(log).expect("a log in the test's folder");
        command.stdin(Stdio::null()).stdout(open()).stderr(open());
        // SAFETY: the closure runs between fork and exec and makes one system call (prctl), which is
        // async-signal-safe; it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(|| {
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into)
            });
        }
        let child = match command.spawn() {
            Ok(child) => child,
            Err(error) => panic!("{name} did not start: {error} ({command:?})"),
        };
        Self { name: name.to_owned(), child, log: log.to_owned(), ended: None }
    }

    /// Process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything the process has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Sends a signal. A process that has ended already is no error.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none()
            && let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
        {
            // It may have ended this very moment.
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// SIGKILL, then waits for the end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        if self.ended.is_none() {
            self.ended = self.child.wait().ok();
        }
    }

    /// SIGTERM, then waits for an orderly end and returns the exit status.
    ///
    /// # Panics
    ///
    /// When the process does not end in time.
    #[track_caller]
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        let what = format!("{} ends after SIGTERM", self.name);
        wait::until(&what, || self.ended().ok_or_else(|| "still running".to_owned()))
    }

    /// User plus system CPU time so far, in clock ticks of 10 ms, read from the kernel.
    #[must_use]
    pub fn cpu_ticks(&self) -> u64 {
        cpu_ticks(self.pid())
    }

    /// Peak resident memory so far, in KiB.
    #[must_use]
    pub fn peak_kib(&self) -> u64 {
        peak_kib(self.pid())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<_> = log.lines().rev().take(40).collect();
            let end = self.ended.map_or_else(String::new, |status| {
                status.signal().map_or_else(|| status.to_string(), |signal| format!("signal {signal}"))
            });
            eprintln!("---- {} ({end}), last lines:", self.name);
            for line in tail.iter().rev() {
                eprintln!("{line}");
            }
        }
    }
}

/// User plus system CPU time of a process, in clock ticks (10 ms on every Linux we run on).
#[must_use]
pub fn cpu_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in brackets may hold spaces: count fields after it. utime and stime are 14 and 15 of proc(5).
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Peak resident memory of a process in KiB (`VmHWM`).
#[must_use]
pub fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
