//! Connections that are polled by hand: what one of them does in a turn, and what it holds.

use std::future::poll_fn;
use std::num::NonZeroUsize;

use tidegate::{ManualClock, Zone};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::*;
use crate::engine::Engine;
use crate::front::resp::stretch::STRETCH_KEYS;
use crate::settings::Settings;

/// A thread without a server, whose connections have their turns when a test says so.
struct Bench {
    runtime: Runtime,
    post: Arc<Post>,
    /// As long as this is there, the server goes on.
    _stop: watch::Sender<bool>,
}

impl Bench {
    fn new(settings: Settings) -> Bench {
        let settings = Settings { threads: NonZeroUsize::MIN, ..settings };
        let zone = Zone::with_clock(1 << 20, Arc::new(ManualClock::new()));
        let engine = Engine::new(settings, zone, None).expect("there is memory");
        let (stop, stopped) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a thread can wait");
        Bench { runtime, post: Arc::new(Post::until(engine, stopped)), _stop: stop }
    }

    /// A connection, and its client.
    async fn connect(&self) -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let client =
            TcpStream::connect(listener.local_addr().expect("it listens")).await.expect("it listens");
        let (stream, _) = listener.accept().await.expect("a connection");
        (Connection::new(stream, &self.post), client)
    }
}

/// Gives a connection one turn.
async fn turn(connection: &mut Connection) -> Poll<End> {
    let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *connection).poll(context))).await;
    // What has arrived meanwhile is seen.
    yield_now().await;
    polled
}

/// Whatever a client can read now.
fn heard(client: &TcpStream) -> String {
    let mut heard = vec![0; 1 << 20];
    let bytes = client.try_read(&mut heard).unwrap_or(0);
    heard.truncate(bytes);
    String::from_utf8(heard).expect("replies are text")
}

/// `DEL` of the keys with these numbers.
fn delete(keys: std::ops::Range<usize>) -> String {
    let words: String =
        keys.clone().map(|key| format!("${}\r\nk{key}\r\n", key.to_string().len() + 1)).collect();
    format!("*{}\r\n$3\r\nDEL\r\n{words}", keys.len() + 1)
}

#[test]
fn others_are_answered_between_the_stretches_of_an_exec() {
    let bench = Bench::new(Settings::default());
    bench.runtime.block_on(async {
        let (mut long, mut client) = bench.connect().await;
        let (mut other, mut witness) = bench.connect().await;
        let deletes = [0, 1, 2, 3].map(|nth| delete(nth * STRETCH_KEYS..(nth + 1) * STRETCH_KEYS)).concat();
        let said = format!("CL.THROTTLE k7 1 1 60\r\nMULTI\r\n{deletes}PING\r\nPING\r\nEXEC\r\nECHO end\r\n");
        client.write_all(said.as_bytes()).await.expect("it fits into the socket");
        witness.write_all(b"PING\r\n").await.expect("it fits into the socket");

        let mut told = String::new();
        while !told.contains("*6\r\n") {
            assert!(turn(&mut long).await.is_pending());
            told += &heard(&client);
        }
        assert!(!told.contains("end"), "all of it was done in one turn: {told}");
        assert!(turn(&mut other).await.is_pending());
        let mut pong = [0; 7];
        witness.read_exact(&mut pong).await.expect("it is answered in between");
        assert_eq!(&pong, b"+PONG\r\n");

        let mut turns = 0;
        while !told.contains("end") {
            assert!(turn(&mut long).await.is_pending());
            told += &heard(&client);
            turns += 1;
        }
        assert!(turns >= 3, "{turns} turns");
        assert!(told.ends_with("*6\r\n:1\r\n:0\r\n:0\r\n:0\r\n+PONG\r\n+PONG\r\n$3\r\nend\r\n"), "{told}");
    });
}

#[test]
fn a_delete_of_more_keys_than_a_stretch_has_is_answered_once_and_in_its_place() {
    let bench = Bench::new(Settings::default());
    bench.runtime.block_on(async {
        for (keys, least_turns) in [(STRETCH_KEYS, 1), (STRETCH_KEYS + 1, 2), (3 * STRETCH_KEYS + 1, 4)] {
            let (mut connection, mut client) = bench.connect().await;
            let takes = format!("CL.THROTTLE k0 1 1 60\r\nCL.THROTTLE k{} 1 1 60\r\n", keys - 1);
            client.write_all(takes.as_bytes()).await.expect("it fits into the socket");
            let said = format!("{}ECHO end\r\n", delete(0..keys));
            client.write_all(said.as_bytes()).await.expect("it fits into the socket");
            let (mut told, mut turns) = (String::new(), 0);
            while !told.contains("end") {
                assert!(turn(&mut connection).await.is_pending());
                told += &heard(&client);
                turns += 1;
            }
            assert!(turns >= least_turns, "{turns} turns for {keys} keys");
            assert!(told.ends_with("\r\n:2\r\n$3\r\nend\r\n"), "{told}");
        }
    });
}
