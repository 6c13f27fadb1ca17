//! The client against the simulated VPP: a full table through the pipeline, and back by a dump.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net};
use vpp_client::wire::api::fib::{FibSourceAdd, FibSourceDump};
use vpp_client::wire::api::ip::{IpRouteV2Dump, RouteDelete, RouteReplace};
use vpp_client::wire::types::{AddressFamily, FibPath, FibSourceId, FibTarget, SwIfIndex, TableId};
use vpp_client::wire::{Request, Retval};
use vpp_client::{Client, ClientSettings, FromReply, Pipeline, WindowSize};

const ROUTES: u32 = 100_000;

/// A simulated VPP on a thread of its own, as VPP is a process of its own.
struct OwnThread {
    socket: PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl OwnThread {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("api.sock");
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (started, ready) = std::sync::mpsc::channel();
        let path = socket.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let sim =
                    vpp_sim::Sim::builder(path).interface("host-eth0", &["192.0.2.1/24"]).spawn().unwrap();
                started.send(()).unwrap();
                stopped.await.unwrap();
                drop(sim);
            });
        });
        ready.recv().unwrap();
        Self { socket, stop: Some(stop), thread: Some(thread), _dir: dir }
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.thread.take().unwrap().join().unwrap();
    }
}

fn net(number: u32) -> IpNet {
    Ipv4Net::new(Ipv4Addr::from((10 << 24) + (number << 8)), 24).unwrap().into()
}

/// Submits a request for each number whenever there is room, as an executor does.
async fn all<R: Request>(pipeline: &Pipeline<u32, Retval>, request: impl Fn(u32) -> R) -> Duration
where
    Retval: FromReply<R::Reply>,
{
    let start = Instant::now();
    let (mut submitted, mut completed) = (0, 0);
    let mut batch = Vec::new();
    while completed < ROUTES {
        for _ in 0..pipeline.free().min((ROUTES - submitted) as usize) {
            pipeline.submit(&request(submitted), submitted).unwrap();
            submitted += 1;
        }
        pipeline.completions(&mut batch).await;
        for done in batch.drain(..) {
            assert_eq!((done.tag, done.outcome), (completed, Ok(Retval::OK)));
            completed += 1;
        }
    }
    start.elapsed()
}

#[tokio::test]
async fn a_full_table_goes_through_one_window() {
    let vpp = OwnThread::start();
    let (client, _notices) = Client::connect(&vpp.socket, ClientSettings::default());
    let client = client.at(client.ready().await.unwrap());
    client.dump_all(&FibSourceDump::default()).await.unwrap();
    let source: FibSourceId = client.call(&FibSourceAdd::below_api("test", 130).unwrap()).await.unwrap().id;
    let path = |last| {
        let hop = Ipv4Addr::new(192, 0, 2, last).into();
        [FibPath::new(FibTarget::Via(SwIfIndex::new(1), hop), AddressFamily::IP4).unwrap()]
    };
    let paths = [path(2), path(3)];
    let pipeline = client.pipeline::<u32, Retval>(2 * WindowSize::MAX.requests() as u16);

    let added = all(&pipeline, |number| {
        RouteReplace::new(TableId::DEFAULT, net(number), source, &paths[number as usize % 2]).unwrap()
    })
    .await;

    let start = Instant::now();
    let dump = IpRouteV2Dump::new(TableId::DEFAULT, false, Some(source));
    let routes = client
        .dump(&dump, Vec::new(), |routes: &mut Vec<_>, details| {
            routes.push((
                details.route.prefix.truncated(),
                details.route.paths.first().and_then(FibPath::target),
            ));
        })
        .await
        .unwrap();
    let dumped = start.elapsed();
    assert_eq!(routes.len(), ROUTES as usize);
    let expected = |number| (Some(net(number)), paths[number as usize % 2][0].target());
    assert!(routes.contains(&expected(0)) && routes.contains(&expected(ROUTES - 1)));

    let deleted =
        all(&pipeline, |number| RouteDelete::new(TableId::DEFAULT, net(number), source).unwrap()).await;
    let left = client.dump(&dump, 0, |left, _| *left += 1).await;
    assert_eq!(left, Ok(0));
    println!("{ROUTES} routes: {added:?} to add, {dumped:?} to dump, {deleted:?} to delete");
    client.close().await;
}
