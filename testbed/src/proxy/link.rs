//! One connection through the proxy: two sockets, and whose turn it is to be answered.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::thread::JoinHandle;

use harness::Port;

use super::faults::Shared;
use super::{Admission, pump};

/// A client, its server, and what lies between.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: TcpStream,
    /// None in a black hole.
    pub(super) server: Option<TcpStream>,
    /// What the client waits for, in order; the holder of this lock may write to the client.
    waiting: Mutex<VecDeque<Waiting>>,
    is_cut: AtomicBool,
    /// Whether a reply was lost, so that none can follow.
    is_silent: AtomicBool,
    /// Whether a request was lost, so that none can follow.
    is_deaf: AtomicBool,
}

/// What a client waits for.
#[derive(Debug)]
pub(super) enum Waiting {
    /// The server's reply, and whether it may be eaten.
    Server { is_meant: bool },
    /// An answer that is ready here.
    Ready(Vec<u8>),
}

impl Link {
    pub(super) fn new(client: TcpStream, server: Option<TcpStream>) -> Link {
        for stream in [Some(&client), server.as_ref()].into_iter().flatten() {
            // Only slower without.
            let _ = stream.set_nodelay(true);
        }
        let flag = || AtomicBool::new(false);
        Link { client, server, waiting: Mutex::default(), is_cut: flag(), is_silent: flag(), is_deaf: flag() }
    }

    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in [Some(&self.client), self.server.as_ref()].into_iter().flatten() {
            // It may be gone already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }

    pub(super) fn silence(&self) {
        self.is_silent.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::SeqCst)
    }

    pub(super) fn deafen(&self) {
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::SeqCst)
    }

    pub(super) fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Moves the answers that are ready, and that no pending one precedes, to these bytes.
pub(super) fn take_ready(waiting: &mut VecDeque<Waiting>, bytes: &mut Vec<u8>) {
    while let Some(Waiting::Ready(answer)) = waiting.front() {
        bytes.extend_from_slice(answer);
        waiting.pop_front();
    }
}

/// Writes all of it; false, if that cannot be.
pub(super) fn write(mut stream: &TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Where connections come in.
pub(super) struct Door {
    port: Arc<Port>,
    shared: Arc<Shared>,
}

impl Door {
    /// Begins to listen, on a thread.
    pub(super) fn open(port: &Arc<Port>, shared: &Arc<Shared>) -> JoinHandle<()> {
        let door = Door { port: Arc::clone(port), shared: Arc::clone(shared) };
        let thread = thread::spawn(move || door.watch());
        shared.wait_for_door();
        thread
    }

    fn watch(&self) {
        while self.shared.wait_to_listen() {
            let address = self.port.address();
            let listener = TcpListener::bind(address);
            let listener = listener.unwrap_or_else(|error| panic!("proxy at {address}: {error}"));
            self.shared.listening(true);
            self.accept_all(&listener);
            drop(listener);
            self.shared.listening(false);
        }
    }

    /// Accepts connections until none are to be accepted.
    fn accept_all(&self, listener: &TcpListener) {
        loop {
            let accepted = listener.accept();
            let Some(admission) = self.shared.admission() else { return };
            // A connection that is closed already, or for which no descriptor is left, is not served.
            if let Ok((client, _)) = accepted {
                self.serve(client, admission);
            }
        }
    }

    fn serve(&self, client: TcpStream, admission: Admission) {
        let shared = Arc::clone(&self.shared);
        let server = match admission {
            Admission::BlackHole => None,
            _ => match TcpStream::connect(shared.target()) {
                Ok(server) => Some(server),
                // The client sees a connection that ends at once.
                Err(_) => return,
            },
        };
        let link = Arc::new(Link::new(client, server));
        shared.opened(&link);
        thread::spawn(move || {
            pump::run(&shared, &link);
            shared.closed(&link);
        });
    }
}

/// Wakes a door that waits for a connection.
pub(super) fn wake(port: &Port, shared: &Shared) {
    if shared.admission().is_none() && shared.is_listening() {
        // Only the door sees this connection, and it may be too late already.
        drop(TcpStream::connect(port.address()));
    }
}
