//! Many sessions with little to say: what one costs in memory, in CPU time while it only keeps itself alive, and in
//! file descriptors; and how long it takes until all are up when they begin at the same moment.
//!
//! The other ends are tasks of this process, each with a loopback address of its own. They offer the usual hold time
//! of 90 s, so that KEEPALIVEs come as often as they do in life.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use test_support::lab::Lab;
use test_support::process::Process;
use test_support::{programs, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::{Instant as Moment, interval_at, sleep, timeout};

use crate::pipeline::ticks_to_seconds;
use crate::table::Family;
use crate::wire;

/// The most memory that an idle session may cost, in KiB.
const MOST_KIB: f64 = 16.0;
/// The most of a core that a thousand of them may cost, in percent.
const MOST_PERCENT: f64 = 1.0;
/// The hold time offered by both ends, and the time between two KEEPALIVEs that follows from it.
const HOLD_TIME: u16 = 90;
const KEEPALIVE: Duration = Duration::from_secs(30);
/// How long idle sessions are watched: more than three KEEPALIVEs from each end.
const IDLE: Duration = Duration::from_secs(100);
/// How long everything else may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long an end that is refused waits until it tries again.
const RETRY: Duration = Duration::from_millis(50);

const ASN: u32 = 65_000;
const REMOTE_ASN: u32 = 65_001;
const DUT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 179);
/// Where the other ends listen, where they do.
const REMOTE_PORT: u16 = 1179;

/// Who connects.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Opener {
    /// The other ends.
    They,
    /// The speaker under test.
    We,
}

/// Measures `count` sessions and prints the figures. Says whether they are within their bounds.
#[must_use]
pub(crate) fn run(lab: &Lab, count: u32) -> bool {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, Rlimit { ..limit }).expect("a soft limit up to the hard one");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime for the other ends");
    let active = LocalSet::new().block_on(&runtime, measure(lab, count, Opener::We, Duration::ZERO));
    let passive = LocalSet::new().block_on(&runtime, measure(lab, count, Opener::They, IDLE));
    println!("{count} sessions, hold time {HOLD_TIME} s, a KEEPALIVE each way every 22 to 30 s");
    println!("  all up when they connect at once:       {:>8.2} s", passive.up.as_secs_f64());
    println!("  all up when the speaker connects:       {:>8.2} s", active.up.as_secs_f64());
    println!("  all up again after all were cut at once: {:>7.2} s", passive.again.as_secs_f64());
    println!("  file descriptors:                       {:>8} of the process", passive.descriptors);
    let each = (passive.rss_kib - passive.rss_before_kib) as f64 / f64::from(count);
    let memory = each <= MOST_KIB;
    println!(
        "  memory of an idle session:              {each:>8.1} KiB   at most {MOST_KIB}: {}",
        verdict(memory)
    );
    println!(
        "    ({:.1} MiB without neighbours, {:.1} MiB with idle sessions, {:.1} MiB peak)",
        mib(passive.rss_before_kib),
        mib(passive.rss_kib),
        mib(passive.peak_kib)
    );
    let percent = passive.idle_cpu_seconds / IDLE.as_secs_f64() * 100.0;
    let cpu = percent < MOST_PERCENT;
    println!(
        "  CPU of all while idle:                  {percent:>8.2} % of a core over {} s   below {MOST_PERCENT}: {}",
        IDLE.as_secs(),
        verdict(cpu)
    );
    memory && cpu
}

fn verdict(good: bool) -> &'static str {
    if good { "pass" } else { "FAIL" }
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}

/// What a run showed.
#[derive(Debug)]
struct Figures {
    /// Resident before there is a neighbour.
    rss_before_kib: u64,
    /// Resident with all sessions.
    rss_kib: u64,
    peak_kib: u64,
    /// From the moment that the speaker is told its neighbours.
    up: Duration,
    /// From the moment that all connections were cut; zero where it wasn't tried.
    again: Duration,
    idle_cpu_seconds: f64,
    descriptors: usize,
}

async fn measure(lab: &Lab, count: u32, opener: Opener, idle: Duration) -> Figures {
    let config = lab.dir().join("speaker.yaml");
    let socket = lab.dir().join("speaker.sock");
    let file = |neighbors: &str| {
        let text = format!(
            "asn: {ASN}\nrouter-id: 192.0.2.1\nlisten: [\"{DUT}\"]\nrequire-policy: false\napi: {}\nneighbors:\n{neighbors}",
            socket.display()
        );
        fs::write(&config, text).expect("the lab's folder is ours");
    };
    file("  []\n");
    let mut command = Command::new(programs::peregrine());
    command.arg("speaker").arg("--config").arg(&config).args(["--log-level", "warn"]);
    let mut dut = Process::spawn("peregrine", command, &lab.dir().join("speaker.log"));
    wait::until_true("the speaker has made its socket", || socket.exists());
    let rss_before_kib = rss_kib(dut.pid());

    let ends = Ends::start(count, opener).await;
    let start = Instant::now();
    file(&neighbors(count, opener));
    dut.signal(Signal::HUP);
    ends.all_up("the sessions").await;
    let up = start.elapsed();

    // What coming up took is given back first.
    sleep(idle.min(KEEPALIVE / 6)).await;
    let (ticks, begun) = (dut.cpu_ticks(), Instant::now());
    sleep(idle).await;
    let idle_cpu_seconds = ticks_to_seconds(dut.cpu_ticks() - ticks) * idle.as_secs_f64()
        / begun.elapsed().max(Duration::from_millis(1)).as_secs_f64();
    let (rss_kib, descriptors) = (rss_kib(dut.pid()), descriptors(dut.pid()));
    assert_eq!(ends.up.get(), count, "every session lives");

    let mut again = Duration::ZERO;
    if opener == Opener::They {
        let start = Instant::now();
        ends.cut();
        ends.all_up("the sessions again").await;
        again = start.elapsed();
    }
    let established = Command::new(programs::peregrine())
        .args(["peers", "-o", "json", "--socket"])
        .arg(&socket)
        .output()
        .map(|output| String::from_utf8_lossy(&output.stdout).matches("\"established\"").count());
    assert_eq!(established.ok(), Some(count as usize), "the speaker sees them too");
    let peak_kib = dut.peak_kib();
    dut.kill();
    let _ = fs::remove_file(&socket);
    Figures { rss_before_kib, rss_kib, peak_kib, up, again, idle_cpu_seconds, descriptors }
}

fn neighbors(count: u32, opener: Opener) -> String {
    let mut text = String::new();
    for n in 0..count {
        let address = address(n);
        let how = match opener {
            Opener::They => "passive: true".to_owned(),
            Opener::We => format!("port: {REMOTE_PORT}"),
        };
        writeln!(text, "  - {{ address: {address}, asn: {REMOTE_ASN}, hold-time: {HOLD_TIME}, {how} }}")
            .expect("writing to a string");
    }
    text
}

fn address(n: u32) -> Ipv4Addr {
    Ipv4Addr::from((127 << 24) + (1 << 16) + n)
}

fn rss_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The other ends.
struct Ends {
    count: u32,
    /// How many sessions are up.
    up: Rc<Cell<u32>>,
    /// A new number cuts all connections.
    cut: watch::Sender<u32>,
}

impl Ends {
    /// From now on they connect, or are there to be connected to.
    async fn start(count: u32, opener: Opener) -> Self {
        let ends = Self { count, up: Rc::default(), cut: watch::Sender::new(0) };
        match opener {
            Opener::They => {
                for n in 0..count {
                    let (up, mut cut) = (Rc::clone(&ends.up), ends.cut.subscribe());
                    tokio::task::spawn_local(async move {
                        loop {
                            cut.borrow_and_update();
                            if let Ok(stream) = connect(n).await {
                                session(stream, n, &up, &mut cut).await;
                            } else {
                                sleep(RETRY).await;
                            }
                        }
                    });
                }
            }
            Opener::We => {
                let listener = listen().expect("the port is free");
                let (up, cut) = (Rc::clone(&ends.up), ends.cut.clone());
                tokio::task::spawn_local(async move {
                    let mut n = 0;
                    while let Ok((stream, _)) = listener.accept().await {
                        let (up, mut cut) = (Rc::clone(&up), cut.subscribe());
                        tokio::task::spawn_local(async move { session(stream, n, &up, &mut cut).await });
                        n += 1;
                    }
                });
            }
        }
        ends
    }

    async fn all_up(&self, what: &str) {
        let waiting = async {
            while self.up.get() < self.count {
                sleep(Duration::from_millis(1)).await;
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            panic!("{what}: {} of {} came up within {PATIENCE:?}", self.up.get(), self.count);
        }
    }

    fn cut(&self) {
        self.up.set(0);
        self.cut.send_modify(|number| *number += 1);
    }
}

async fn connect(n: u32) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(address(n).into(), 0))?;
    let stream = socket.connect(DUT).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn listen() -> std::io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), REMOTE_PORT))?;
    socket.listen(4096)
}

/// One session, until it ends or is cut.
async fn session(mut stream: TcpStream, n: u32, up: &Cell<u32>, cut: &mut watch::Receiver<u32>) {
    let number = *cut.borrow();
    let mut is_up = false;
    let speaking = speak(&mut stream, n, || {
        is_up = true;
        up.set(up.get() + 1);
    });
    tokio::select! {
        _ = cut.changed() => {}
        _ = speaking => {}
    }
    // A cut has set the count to zero.
    if is_up && *cut.borrow() == number {
        up.set(up.get() - 1);
    }
}

async fn speak(stream: &mut TcpStream, n: u32, established: impl FnOnce()) -> std::io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    writer.write_all(&wire::open(REMOTE_ASN, n + 1, HOLD_TIME, Family::V4)).await?;
    let mut message = [0; 4096];
    read_message(&mut reader, &mut message, wire::OPEN).await?;
    writer.write_all(&wire::keepalive()).await?;
    read_message(&mut reader, &mut message, wire::KEEPALIVE).await?;
    established();
    // Spread, as ends that began at different times would be.
    let first = KEEPALIVE.mul_f64(f64::from(n % 1000) / 1000.0);
    let mut ticks = interval_at(Moment::now() + first, KEEPALIVE.mul_f64(0.875));
    let writing = async {
        loop {
            ticks.tick().await;
            writer.write_all(&wire::keepalive()).await?;
        }
    };
    let reading = async {
        loop {
            if reader.read(&mut message).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
    };
    tokio::select! {
        ended = writing => ended,
        ended = reading => ended,
    }
}

/// Reads one message, which must be of this type.
async fn read_message(
    reader: &mut (impl AsyncReadExt + Unpin),
    message: &mut [u8; 4096],
    kind: u8,
) -> std::io::Result<()> {
    reader.read_exact(&mut message[..19]).await?;
    let length = usize::from(u16::from_be_bytes([message[16], message[17]]));
    if message[18] != kind || !(19..=message.len()).contains(&length) {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    reader.read_exact(&mut message[19..length]).await?;
    Ok(())
}
