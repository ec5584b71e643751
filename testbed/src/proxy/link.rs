//! One connection through the proxy: two sockets, and whose turn it is to be answered.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A client, its server, and what lies between.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) client: TcpStream,
    /// Nobody, in a black hole.
    pub(super) server: Option<TcpStream>,
    /// What the client waits for, in order; whoever holds this may write to the client.
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

/// Moves the answers that are ready, and that nobody is before, to these bytes.
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
