//! Real sockets on the loopback interface. The clock stands still and jumps when nothing else can happen, so deadlines
//! cost no time.

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::event::{INBOUND, Outlet, queues};

const ID: ConnId = ConnId::accepted(1);

/// An UPDATE of `len` octets, at least 23; its content is never looked at here.
fn update(len: u16, fill: u8) -> Vec<u8> {
    let mut message = vec![0xff; 16];
    message.extend(len.to_be_bytes());
    message.push(2);
    message.resize(usize::from(len), fill);
    message
}

struct Bench {
    conn: ConnHandle,
    inlet: Inlet,
    outlet: Outlet,
    neighbour: TcpStream,
}

impl Bench {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let neighbour = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        neighbour.set_nodelay(true).unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let (inlet, outlet) = queues();
        let conn = ConnHandle::start(ID, stream, neighbour.local_addr().unwrap().ip(), inlet.clone());
        Self { conn, inlet, outlet, neighbour }
    }

    async fn inbound(&mut self) -> Inbound {
        self.outlet.inbound.recv().await.unwrap()
    }

    /// The next messages, as the runtime would take them.
    async fn messages(&mut self) -> Vec<u8> {
        match self.inbound().await {
            Inbound::Messages(ID, buffer) => {
                let messages = buffer.filled().to_vec();
                self.conn.delivered();
                self.inlet.pool.give_back(buffer);
                messages
            }
            other @ (Inbound::Closed(..) | Inbound::Messages(..) | Inbound::Gone(_)) => panic!("{other:?}"),
        }
    }

    async fn event(&mut self) -> Event {
        self.outlet.events.recv().await.unwrap()
    }

    async fn closed(&mut self) -> CloseReason {
        match self.inbound().await {
            Inbound::Closed(ID, reason) => reason,
            other @ (Inbound::Closed(..) | Inbound::Messages(..) | Inbound::Gone(_)) => panic!("{other:?}"),
        }
    }
}

/// Waits until the socket is closed and everything that was read has been handed over.
async fn gone(outlet: &mut Outlet) {
    while !matches!(outlet.inbound.recv().await.unwrap(), Inbound::Gone(ID)) {}
}

#[tokio::test]
async fn messages_arrive_whole_however_they_are_cut() {
    let mut bench = Bench::new().await;
    let mut sent = Vec::new();
    for n in 0..400 {
        sent.extend(update(23 + n * 10, n as u8));
    }
    let (mut got, mut at) = (Vec::new(), 0);
    for n in 1.. {
        if at == sent.len() {
            break;
        }
        let end = (at + n * 7).min(sent.len());
        bench.neighbour.write_all(&sent[at..end]).await.unwrap();
        at = end;
        // Whatever has become whole comes, and nothing else.
        let whole = whole_messages(&sent[..at], MAX_MESSAGE).bytes;
        while got.len() < whole {
            let messages = bench.messages().await;
            assert_eq!(whole_messages(&messages, MAX_MESSAGE).bytes, messages.len());
            got.extend(messages);
        }
        assert_eq!(got, &sent[..whole]);
    }
    assert_eq!(got, sent);
    drop(bench.neighbour.shutdown().await);
    assert_eq!(bench.closed().await, CloseReason::EndOfStream);
}

#[tokio::test]
async fn the_longest_message_fits_behind_a_cut_one() {
    let mut bench = Bench::new().await;
    let mut sent = update(1000, 1);
    sent.extend(update(4096, 2).repeat(50));
    sent.extend(update(4096, 3));
    let (mut reader, mut writer) = (Vec::new(), bench.neighbour);
    let whole = sent.clone();
    let writing = tokio::spawn(async move {
        writer.write_all(&whole).await.unwrap();
        writer
    });
    bench.neighbour = writing.await.unwrap();
    while reader.len() < sent.len() {
        reader.extend(bench.messages().await);
    }
    assert_eq!(reader, sent);
}

#[tokio::test]
async fn what_comes_with_a_fault_is_handed_over_and_nothing_after_it() {
    let mut bench = Bench::new().await;
    let mut sent = update(30, 1);
    sent.extend([0; 30]);
    bench.neighbour.write_all(&sent).await.unwrap();
    assert_eq!(bench.messages().await, sent);
    bench.neighbour.write_all(&update(30, 2)).await.unwrap();
    bench.conn.close(vec![Bytes::from_static(b"what?")]);
    bench.neighbour.shutdown().await.unwrap();
    let mut got = Vec::new();
    bench.neighbour.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"what?");
    gone(&mut bench.outlet).await;
    assert!(bench.outlet.inbound.try_recv().is_err());
}

#[tokio::test]
async fn an_idle_connection_holds_no_buffer_and_a_full_queue_no_more_than_its_places() {
    let mut bench = Bench::new().await;
    bench.neighbour.write_all(&update(40, 1)[..25]).await.unwrap();
    // The beginning of a message makes nobody wait, and leaves the buffer in the pool.
    while !bench.inlet.pool.has_spare() || bench.conn.has_unread() {
        tokio::task::yield_now().await;
    }
    bench.neighbour.write_all(&update(40, 1)[25..]).await.unwrap();
    assert_eq!(bench.messages().await, update(40, 1));
    for n in 0..INBOUND {
        bench.neighbour.write_all(&update(40, n as u8)).await.unwrap();
        while bench.inlet.inbound.capacity() >= INBOUND - n {
            tokio::task::yield_now().await;
        }
    }
    bench.inlet.pool.trim(0);
    bench.neighbour.write_all(&update(50, 0)).await.unwrap();
    let mut got = Vec::new();
    for _ in 0..INBOUND {
        assert!(bench.conn.has_unread());
        got.extend(bench.messages().await);
    }
    got.extend(bench.messages().await);
    assert_eq!(got.len(), INBOUND * 40 + 50);
    assert!(!bench.conn.has_unread());
}

#[tokio::test]
async fn batches_are_written_whole_one_at_a_time() {
    let mut bench = Bench::new().await;
    assert!(bench.conn.is_idle());
    bench.conn.write(&mut Vec::new(), None);
    assert!(bench.conn.is_idle(), "an empty batch is none");
    // More chunks than fit into one call, more octets than into the socket.
    let mut batch: Vec<Bytes> = (0..200).map(|n: u8| BytesMut::from(&vec![n; 60_000][..]).freeze()).collect();
    let sent = batch.concat();
    bench.conn.write(&mut batch, None);
    assert!(!bench.conn.is_idle());
    assert!(batch.is_empty() && batch.capacity() >= 200, "its memory is used again");
    let mut got = vec![0; sent.len()];
    bench.neighbour.read_exact(&mut got).await.unwrap();
    assert!(got == sent);
    let Event::Written(ID) = bench.event().await else { panic!("not written") };
    bench.conn.written();
    assert!(bench.conn.is_idle());
}

#[tokio::test]
async fn what_the_system_has_room_for_is_written_at_once() {
    let mut bench = Bench::new().await;
    // The system says that a socket can be written to when it is asked for the first time.
    bench.neighbour.write_all(&update(30, 0)).await.unwrap();
    bench.messages().await;
    let mut memory = Vec::new();
    for n in 0..3 {
        // More chunks than go to the system in one call.
        memory.extend((0..=2 * MANY_SLICES).map(|chunk| Bytes::from(vec![(n + chunk) as u8; 3])));
        bench.conn.write(&mut memory, None);
        assert!(bench.conn.is_idle(), "nobody else has had a turn");
        assert!(memory.is_empty() && memory.capacity() > 2 * MANY_SLICES);
    }
    let sent = |n| (0..=2 * MANY_SLICES).flat_map(move |chunk| [(n + chunk) as u8; 3]);
    let sent: Vec<u8> = (0..3).flat_map(sent).collect();
    let mut got = vec![0; sent.len()];
    bench.neighbour.read_exact(&mut got).await.unwrap();
    assert!(got == sent);
    assert!(bench.outlet.events.is_empty());
}

#[tokio::test]
async fn the_last_words_arrive_though_the_neighbour_goes_on_talking() {
    let mut bench = Bench::new().await;
    bench.conn.write(&mut vec![Bytes::from_static(b"long story, ")], None);
    // Unread bytes at the time of close would make the system reset the connection.
    bench.neighbour.write_all(&update(4000, 0)).await.unwrap();
    bench.conn.close(vec![Bytes::from_static(b"and goodbye")]);
    assert!(bench.conn.is_closing() && !bench.conn.is_idle());
    bench.neighbour.write_all(&update(4000, 1)).await.unwrap();
    let mut got = Vec::new();
    bench.neighbour.read_to_end(&mut got).await.unwrap();
    assert_eq!(got, b"long story, and goodbye");
    bench.neighbour.write_all(&update(4000, 2)).await.unwrap();
    drop(bench.neighbour);
    gone(&mut bench.outlet).await;
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_takes_nothing_is_left_after_the_deadline() {
    let mut bench = Bench::new().await;
    bench.conn.write(&mut vec![Bytes::from(vec![7; 60_000]); 200], None);
    let start = tokio::time::Instant::now();
    bench.conn.close(vec![Bytes::from_static(b"goodbye")]);
    gone(&mut bench.outlet).await;
    assert!(start.elapsed() >= CLOSE_DEADLINE && start.elapsed() < 2 * CLOSE_DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn a_neighbour_that_stops_reading_is_reported_after_the_send_hold_time() {
    let mut bench = Bench::new().await;
    const SEND_HOLD: Duration = Duration::from_secs(20 * 60);
    bench.conn.write(&mut vec![Bytes::from(vec![7; 60_000]); 200], Some(SEND_HOLD));
    let start = tokio::time::Instant::now();
    assert_eq!(bench.closed().await, CloseReason::SendHoldTimerExpired);
    assert!(start.elapsed() >= SEND_HOLD);
}

#[tokio::test]
async fn the_end_is_told_behind_everything_else_however_it_comes() {
    // The neighbour sends far more than the queue holds, takes nothing, and is reset: the writer fails at once, the reader
    // has much to tell. Nothing may be said elsewhere that lets the runtime forget the connection meanwhile.
    let mut bench = Bench::new().await;
    bench.conn.write(&mut vec![Bytes::from(vec![7; 60_000]); 200], None);
    for n in 0..200 {
        bench.neighbour.write_all(&update(4096, n)).await.unwrap();
    }
    while bench.outlet.inbound.is_empty() {
        tokio::task::yield_now().await;
    }
    bench.neighbour.set_zero_linger().unwrap();
    drop(bench.neighbour);
    let mut kinds = Vec::new();
    while kinds.last() != Some(&"gone") {
        kinds.push(match bench.outlet.inbound.recv().await.unwrap() {
            Inbound::Messages(..) => "messages",
            Inbound::Closed(..) => "closed",
            Inbound::Gone(_) => "gone",
        });
    }
    assert!(kinds.len() > 2 && kinds.ends_with(&["closed", "gone"]), "{kinds:?}");
    assert!(bench.outlet.events.is_empty());
}

#[tokio::test]
async fn a_writer_that_fails_lets_the_reader_finish() {
    let mut bench = Bench::new().await;
    // The neighbour's last words and its reset are there before anybody looks.
    bench.neighbour.write_all(&update(100, 5)).await.unwrap();
    bench.neighbour.set_zero_linger().unwrap();
    drop(bench.neighbour);
    bench.conn.write(&mut vec![Bytes::from_static(b"anybody there?")], None);
    let mut inbound = Vec::new();
    while let Some(next) = bench.outlet.inbound.recv().await {
        let last = matches!(next, Inbound::Closed(..));
        inbound.push(next);
        if last {
            break;
        }
    }
    assert!(matches!(inbound.last(), Some(Inbound::Closed(ID, CloseReason::Error(_)))), "{inbound:?}");
    bench.conn.close(Vec::new());
    gone(&mut bench.outlet).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_was_said_is_closed_at_once() {
    let mut bench = Bench::new().await;
    let start = tokio::time::Instant::now();
    // Which is also what dropping the handle does.
    drop(bench.conn);
    assert_eq!(bench.neighbour.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), Duration::ZERO);
    gone(&mut bench.outlet).await;
}

#[tokio::test]
async fn a_message_that_announces_itself_too_long_is_handed_over_at_once() {
    let mut bench = Bench::new().await;
    let mut header = update(5000, 0)[..19].to_vec();
    // An OPEN: no session ever agrees on longer ones.
    header[18] = 1;
    bench.neighbour.write_all(&header).await.unwrap();
    assert_eq!(bench.messages().await, header);
}

#[tokio::test]
async fn a_cut_connection_says_nothing_and_does_not_linger() {
    let mut bench = Bench::new().await;
    bench.conn.write(&mut vec![Bytes::from(vec![7; 10])], None);
    bench.neighbour.read_exact(&mut [0; 10]).await.unwrap();
    bench.conn.cut();
    // The neighbour neither reads nor closes.
    gone(&mut bench.outlet).await;
}
