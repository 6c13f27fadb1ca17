//! A node in a folder of its own: its files, its processes, its answers.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use vpp_sim::{Sim, SimHandle};

const BINARY: &str = env!("CARGO_BIN_EXE_peregrine");
/// How long a condition may take on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running `peregrine`. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it ended, and after how long a wait.
    pub(crate) async fn end(&mut self) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        let status = until("the process ends", || {
            let ended = self.child.try_wait().unwrap();
            async move { ended.ok_or_else(String::new) }
        })
        .await;
        (status, begin.elapsed())
    }

    pub(crate) async fn kill(mut self) {
        self.signal(Signal::KILL);
        self.end().await;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

/// Calls `probe` until it gives a value.
pub(crate) async fn until<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    mut probe: impl FnMut() -> F,
) -> T {
    let begin = Instant::now();
    loop {
        let seen = match probe().await {
            Ok(value) => return value,
            Err(seen) => seen,
        };
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}; last seen: {seen}");
        // Polling is all that a foreign process offers; the pause only keeps the cores free for it.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs `peregrine` to its end.
pub(crate) async fn run(words: &[&str]) -> Output {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    tokio::task::spawn_blocking(move || Command::new(BINARY).args(words).env_clear().output().unwrap())
        .await
        .unwrap()
}

/// The status line and the body of an answer over HTTP.
pub(crate) async fn fetch(port: u16, path: &str) -> std::io::Result<(String, String)> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    Ok((head.lines().next().unwrap().to_owned(), body.to_owned()))
}

/// A port that nobody listens at, at the moment.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// One test's folder: the node is `node-a` at 127.77.0.1 in AS 64512, its neighbour at 127.77.0.2 in AS 65000.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
    pub(crate) node_port: u16,
    pub(crate) peer_port: u16,
    pub(crate) health_port: u16,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let lab = Self { dir, node_port: free_port(), peer_port: free_port(), health_port: free_port() };
        fs::create_dir(lab.path("manifests")).unwrap();
        lab.write(
            "agent.yaml",
            &format!(
                "node: node-a\ndatastore: directory:{0}/manifests\napi: {0}/agent.sock\nstate: {0}/state\nhealth: \"127.0.0.1:{1}\"\n\
                 vpp: {{ socket: {0}/vpp.sock, uplink: host-eth0, loss-grace: 300ms, info-file: none }}\n",
                lab.dir.path().display(),
                lab.health_port,
            ),
        );
        lab.manifest("node.yaml", "apiVersion: v1\nkind: Node\nmetadata:\n  name: node-a\n  annotations:\n    projectcalico.org/IPv4Address: 127.77.0.1/24\n");
        lab.manifest(
            "bgp.yaml",
            &format!(
                "apiVersion: projectcalico.org/v3\nkind: BGPConfiguration\nmetadata: {{ name: default }}\n\
                 spec: {{ nodeToNodeMeshEnabled: false, asNumber: 64512, listenPort: {} }}\n",
                lab.node_port
            ),
        );
        lab.manifest("peer.yaml", &lab.peer_manifest(""));
        lab.manifest(
            "pools.yaml",
            &(pool("plain", "10.244.0.0/16", "Never") + &pool("tunnelled", "10.245.0.0/16", "Always")),
        );
        lab.manifest("block.yaml", &block("10.244.1.0/26"));
        lab.write("speaker.yaml", &lab.speaker_file("", &["203.0.113.0/24", "10.245.7.0/26"]));
        lab
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn manifest(&self, name: &str, text: &str) {
        self.write("next", text);
        fs::rename(self.path("next"), self.path("manifests").join(name)).unwrap();
    }

    pub(crate) fn peer_manifest(&self, more: &str) -> String {
        format!(
            "apiVersion: projectcalico.org/v3\nkind: BGPPeer\nmetadata:\n  name: tor\nspec:\n  peerIP: 127.77.0.2:{}\n  asNumber: 65000\n{more}",
            self.peer_port
        )
    }

    /// The neighbour's file; `more` goes below `neighbors`.
    pub(crate) fn speaker_file(&self, more: &str, originate: &[&str]) -> String {
        let routes: String = originate
            .iter()
            .map(|prefix| format!("  - {{ prefix: {prefix}, next-hop: 127.77.0.2 }}\n"))
            .collect();
        format!(
            "asn: 65000\nrouter-id: 127.77.0.2\nlisten: [\"127.77.0.2:{}\"]\nrequire-policy: false\napi: {}\noriginate:\n{routes}\
             neighbors:\n  - {{ address: 127.77.0.1, port: {}, asn: 64512, local-address: 127.77.0.2, connect-retry: 1 }}\n{more}",
            self.peer_port,
            self.path("speaker.sock").display(),
            self.node_port
        )
    }

    pub(crate) fn sim(&self) -> SimHandle {
        Sim::builder(self.path("vpp.sock")).interface("host-eth0", &["127.77.0.1/24"]).spawn().unwrap()
    }

    fn start(&self, words: &[&str], socket: &str, log: &str) -> Process {
        let _ = fs::remove_file(self.path(socket));
        let log = self.path(log);
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
        let child = Command::new(BINARY)
            .args(words)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        Process { child, log }
    }

    pub(crate) async fn agent(&self) -> Process {
        self.agent_with(&[]).await
    }

    pub(crate) async fn agent_with(&self, options: &[&str]) -> Process {
        let config = self.path("agent.yaml");
        let mut words = vec!["agent", "--config", config.to_str().unwrap()];
        words.extend(options);
        let process = self.start(&words, "agent.sock", "agent.log");
        until("the agent answers", || self.try_ask("agent.sock", &["peers"])).await;
        process
    }

    pub(crate) async fn speaker(&self) -> Process {
        self.speaker_at("info").await
    }

    /// A speaker that logs from this level on.
    pub(crate) async fn speaker_at(&self, level: &str) -> Process {
        let config = self.path("speaker.yaml");
        let words = ["speaker", "--config", config.to_str().unwrap(), "--log-level", level];
        let process = self.start(&words, "speaker.sock", "speaker.log");
        until("the speaker answers", || self.try_ask("speaker.sock", &["peers"])).await;
        process
    }

    /// What a query command prints, as JSON.
    pub(crate) async fn try_ask(&self, socket: &str, words: &[&str]) -> Result<Value, String> {
        let socket = self.path(socket);
        let mut all = words.to_vec();
        all.extend(["-o", "json", "--socket", socket.to_str().unwrap()]);
        let output = run(&all).await;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    }

    pub(crate) async fn ask(&self, socket: &str, words: &[&str]) -> Value {
        self.try_ask(socket, words).await.unwrap_or_else(|error| panic!("peregrine {words:?}: {error}"))
    }

    /// What a query command prints, for people.
    pub(crate) async fn show(&self, socket: &str, words: &[&str]) -> String {
        let socket = self.path(socket);
        let mut all = words.to_vec();
        all.extend(["--socket", socket.to_str().unwrap()]);
        let output = run(&all).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The status line and the body of an answer of the health port.
    pub(crate) async fn health(&self, path: &str) -> (String, Value) {
        let (line, body) = fetch(self.health_port, path).await.unwrap();
        (line, serde_json::from_str(&body).unwrap())
    }

    pub(crate) async fn established(&self, socket: &str) -> Value {
        until("the session is established", || async {
            let peers = self.try_ask(socket, &["peers"]).await?;
            let up = |peer: &&Value| peer["session-state"] == "established";
            peers.as_array().into_iter().flatten().find(up).cloned().ok_or_else(|| peers.to_string())
        })
        .await
    }

    /// Waits until exactly these prefixes are in the neighbour's Loc-RIB, besides its own.
    pub(crate) async fn heard(&self, expected: &[&str]) {
        until(&format!("the neighbour hears {expected:?}"), || async {
            let routes = self.try_ask("speaker.sock", &["routes"]).await?;
            let own = |route: &&Value| route["paths"][0]["source"].is_string();
            let mut heard: Vec<&str> = routes
                .as_array()
                .unwrap()
                .iter()
                .filter(own)
                .map(|route| route["prefix"].as_str().unwrap())
                .collect();
            heard.sort_unstable();
            if heard == expected { Ok(()) } else { Err(format!("{heard:?}")) }
        })
        .await;
    }

    pub(crate) async fn converged(&self) -> Value {
        until("everything is as wanted", || async {
            let vpp = self.try_ask("agent.sock", &["vpp"]).await?;
            if vpp["converged"] == true { Ok(vpp) } else { Err(vpp.to_string()) }
        })
        .await
    }
}

pub(crate) fn pool(name: &str, cidr: &str, ipip: &str) -> String {
    format!(
        "---\napiVersion: projectcalico.org/v3\nkind: IPPool\nmetadata:\n  name: {name}\nspec:\n  cidr: {cidr}\n  ipipMode: {ipip}\n"
    )
}

pub(crate) fn block(cidr: &str) -> String {
    let name = cidr.replace(['.', ':', '/'], "-");
    format!(
        "---\napiVersion: crd.projectcalico.org/v1\nkind: BlockAffinity\nmetadata:\n  name: node-a-{name}\nspec:\n  cidr: {cidr}\n  node: node-a\n  state: confirmed\n  deleted: \"false\"\n"
    )
}

/// Whether a folder's file is there.
pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
