//! A worker context without a server. A test polls its connections one at a time.

use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tidegate::{ManualClock, Zone};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::yield_now;

use crate::engine::Engine;
use crate::settings::Settings;
use crate::worker::WorkerContext;

/// A runtime and a worker context for tests of connections.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) worker: Arc<WorkerContext>,
    /// Keeps the channel open, so that the server counts as running.
    _stop: watch::Sender<bool>,
}

impl Bench {
    /// Creates an engine on a small zone in memory, with a clock that stands still.
    pub(crate) fn new(settings: Settings) -> Bench {
        let settings = Settings { threads: NonZeroUsize::MIN, ..settings };
        let zone = Zone::with_clock(1 << 20, Arc::new(ManualClock::new()));
        let engine = Engine::new(settings, zone, None).expect("there is memory");
        let (stop, stopped) = watch::channel(false);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a thread can wait");
        Bench { runtime, worker: Arc::new(WorkerContext::new(engine, 0, stopped)), _stop: stop }
    }
}

/// Returns the server's and the client's end of a connection.
pub(crate) async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let client = TcpStream::connect(listener.local_addr().expect("it listens")).await.expect("it listens");
    let (stream, _) = listener.accept().await.expect("a connection");
    (stream, client)
}

/// Polls a future once, and lets the runtime process I/O events.
pub(crate) async fn turn<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context))).await;
    yield_now().await;
    polled
}
