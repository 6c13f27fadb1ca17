//! The daemons under test: how each is started for a plan, and what its processes have cost.

#![allow(unsafe_code, reason = "a process's CPU clock; see the proof at its only use")]

mod config;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use test_support::lab::Host;
use test_support::process::{Process, peak_kib};
use test_support::programs::{self, Program};

use crate::plan::Plan;

/// A daemon that can be measured.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Debian's BIRD 2, the yardstick.
    Bird,
    /// Ours.
    Peregrine,
    /// Debian's FRR, bgpd alone.
    Frr,
    /// Debian's OpenBGPD.
    Openbgpd,
    /// Debian's GoBGP.
    Gobgp,
}

/// A running daemon.
pub(crate) struct Daemon {
    process: Process,
    /// What its CPU clock showed before the program began.
    before: u64,
}

impl Kind {
    /// All, the yardstick first.
    pub(crate) const ALL: [Self; 5] = [Self::Bird, Self::Peregrine, Self::Frr, Self::Openbgpd, Self::Gobgp];

    /// Name in the table.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bird => "bird",
            Self::Peregrine => "peregrine",
            Self::Frr => "frr",
            Self::Openbgpd => "openbgpd",
            Self::Gobgp => "gobgp",
        }
    }

    /// Whether it is installed.
    #[must_use]
    pub(crate) fn is_installed(self) -> bool {
        let program: Program = match self {
            Self::Bird => programs::BIRD,
            Self::Peregrine => return programs::peregrine().is_file(),
            Self::Frr => programs::FRR,
            Self::Openbgpd => programs::OPENBGPD,
            Self::Gobgp => programs::GOBGP,
        };
        program.find().is_some()
    }

    /// Starts the daemon on `host` with the neighbours and policies of `plan`. It need not listen yet.
    #[must_use]
    pub(crate) fn start(self, host: &Host, plan: &Plan) -> Daemon {
        let dir = host.dir();
        let path = |file: &str| dir.join(file).to_string_lossy().into_owned();
        let file = path("daemon.conf");
        let write = |text: String| fs::write(&file, text).expect("the host's folder is ours");
        let argv: Vec<String> = match self {
            Self::Bird => {
                write(config::bird(plan));
                ["bird", "-f", "-c", &file, "-s", &path("bird.ctl"), "-P", &path("bird.pid")]
                    .map(str::to_owned)
                    .into()
            }
            Self::Peregrine => {
                write(config::peregrine(plan, &path("peregrine.sock")));
                let binary = programs::peregrine().to_string_lossy().into_owned();
                [&binary, "speaker", "--config", &file, "--log-level", "warn"].map(str::to_owned).into()
            }
            Self::Frr => {
                write(config::frr(plan));
                #[rustfmt::skip]
                let argv = [
                    programs::FRR.file, "-Z", "-n", "-S", "-f", &file, "-i", &path("bgpd.pid"), "--vty_socket",
                    &dir.to_string_lossy(), "-P", "0", "-p", "179", "--log", "stdout",
                ];
                argv.map(str::to_owned).into()
            }
            Self::Openbgpd => {
                // It wants this folder even where its socket is elsewhere.
                fs::create_dir_all("/run/openbgpd").expect("we are root");
                write(config::openbgpd(plan, &path("bgpd.sock")));
                // It refuses a file that others can read.
                fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a file of ours");
                ["/usr/sbin/bgpd", "-d", "-f", &file].map(str::to_owned).into()
            }
            Self::Gobgp => {
                write(config::gobgp(plan));
                let api = format!("unix://{}", path("gobgp.sock"));
                ["gobgpd", "-f", &file, "-p", "-l", "warn", "--pprof-disable", "--api-hosts", &api]
                    .map(str::to_owned)
                    .into()
            }
        };
        let process = host.spawn(self.name(), &argv.iter().map(String::as_str).collect::<Vec<_>>());
        // The namespace is entered by a program whose process becomes the daemon's.
        let mut before = 0;
        loop {
            let name = fs::read_to_string(format!("/proc/{}/comm", process.pid())).unwrap_or_default();
            if !matches!(name.trim(), "ip" | "bench-lab" | "lab") {
                break;
            }
            before = cpu_nanos(process.pid());
            std::thread::yield_now();
        }
        Daemon { process, before }
    }
}

impl Daemon {
    /// User plus system CPU seconds of all its processes so far.
    #[must_use]
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let nanos: u64 = self.processes().into_iter().map(cpu_nanos).sum();
        nanos.saturating_sub(self.before) as f64 / 1e9
    }

    /// Peak resident memory of all its processes, in MiB.
    #[must_use]
    pub(crate) fn peak_mib(&self) -> f64 {
        self.processes().into_iter().map(peak_kib).sum::<u64>() as f64 / 1024.0
    }

    /// What it wrote last.
    #[must_use]
    pub(crate) fn last_words(&self) -> String {
        let log = self.process.log();
        let tail: Vec<&str> = log.lines().rev().take(5).collect();
        tail.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.ended().is_some()
    }

    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.process.pid()];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let children: Vec<u32> = tasks
                .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
                .flat_map(|text| {
                    text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
                })
                .collect();
            all.extend(children);
            next += 1;
        }
        all
    }
}

/// A process's CPU clock: user plus system time of all its threads, also of those that have ended, in nanoseconds. 0
/// when the process has gone.
fn cpu_nanos(pid: u32) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let Ok(pid) = libc::pid_t::try_from(pid) else { return 0 };
    // The kernel's number for it: the complement of the pid, and 2 for the scheduler's clock.
    let clock = (!pid << 3) | 2;
    // SAFETY: the kernel writes one timespec to a place that is ours and lives until the call is over; a clock that
    // does not exist is an error and writes nothing.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return 0;
    }
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_of_this_process_goes_on() {
        let before = super::cpu_nanos(std::process::id());
        assert!(before > 0);
        while super::cpu_nanos(std::process::id()) == before {
            std::hint::black_box(vec![0_u8; 1000]);
        }
        assert_eq!(super::cpu_nanos(u32::MAX), 0);
    }
}
