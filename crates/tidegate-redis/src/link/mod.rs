//! A link to one server: a shared connection and its state.
//!
//! ```text
//!                 reached                  silent or too slow for a while, or gone
//!   Connecting ------------> Up ---------------------------------------------------> Down
//!       |                     ^                                                        |
//!       | not reached         '--- a new connection, on which the server reports that -'
//!       '--> Down                  it is a primary (the probe), tried again and again
//! ```
//!
//! While the link is down, every request fails immediately. One task reconnects, with jittered exponential backoff. So
//! the link is also the circuit breaker: down is open, and the probe is half-open.
//!
//! The connection is multiplexed: requests are pipelined, and replies come in their order. So one connection per server
//! is sufficient, and a slow reply delays those behind it.

mod keeper;
mod memory_id;

pub(crate) use memory_id::{Answered, MemoryId};

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ServerError, Value};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

use crate::background::go_on;
use crate::counts::Counts;
use crate::dial::Dialer;
use crate::fault::{ErrorReply, Fault, Remedy};
use crate::script::Script;
use crate::url::Address;

/// The minimum time without a timely reply after which a server is given up, and the same in deadlines.
const LEAST_STALL: Duration = Duration::from_millis(200);
/// The same in deadlines; the longer of both counts.
const STALL_DEADLINES: u32 = 5;

/// The context that all links of a store share. It outlives all links, because each of them holds it.
#[derive(Debug)]
pub(crate) struct LinkContext {
    /// The connector with the credentials of the URL.
    pub(crate) dialer: Dialer,
    /// The counters of the store.
    pub(crate) counts: Arc<Counts>,
    /// The runtime for tasks.
    pub(crate) handle: Handle,
    /// The deadline of a reply.
    pub(crate) deadline: Duration,
    /// Notified when a link goes down, or when the topology may have changed.
    pub(crate) doubts: Notify,
}

/// A link to one server.
#[doc(alias = "circuit breaker")]
#[derive(Debug)]
pub(crate) struct Link {
    /// The server.
    pub(crate) address: Address,
    /// The shared context.
    trunk: Arc<LinkContext>,
    /// The current state. Waiters subscribe to it.
    state: watch::Sender<State>,
    /// True while a task investigates a missed deadline.
    is_doubted: AtomicBool,
    /// True once the connection has answered a request.
    has_answered: AtomicBool,
    /// The number of flushes of all data that the server has reported.
    flushes: AtomicU64,
    /// The last error reply that concerns the whole server, if any.
    complaint: Mutex<Option<String>>,
    /// The FIFO order in which requests get the connection. A `watch` wakes its waiters in any order.
    turns: tokio::sync::Mutex<()>,
    /// The scripts that a connection has run: the number of the connection, and their hashes.
    known: Mutex<(u64, Vec<&'static str>)>,
}

/// The state of a link.
#[derive(Clone, Debug)]
enum State {
    /// The server was neither reached nor given up yet.
    Connecting,
    /// The server answers. Each connection has a unique number.
    Up(MultiplexedConnection, u64),
    /// The server does not answer, for this reason.
    Down(Arc<str>),
}

impl Link {
    /// Starts to connect to a server, and reconnects until the link is dropped.
    pub(crate) fn new(address: Address, trunk: &Arc<LinkContext>) -> Arc<Link> {
        let (state, _) = watch::channel(State::Connecting);
        let link = Arc::new(Link {
            address,
            trunk: trunk.clone(),
            state,
            is_doubted: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
            flushes: AtomicU64::new(0),
            complaint: Mutex::default(),
            turns: tokio::sync::Mutex::default(),
            known: Mutex::default(),
        });
        let weak = Arc::downgrade(&link);
        go_on(&trunk.handle, move || keeper::keep(weak.clone()));
        link
    }

    /// Returns the reason why the server cannot decide now, if so. A connected server may still be unable to decide,
    /// for example while it loads its data. Its last error reply is then the reason.
    pub(crate) fn why_not(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Down(why) => Some(why.to_string()),
            State::Connecting => Some(format!("{}: not reached yet", self.address)),
            State::Up(..) => self.complaint().clone(),
        }
    }

    /// Returns true while there is a connection.
    pub(crate) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(..))
    }

    /// Returns the number of the connection, while there is one. The number distinguishes connections to one address,
    /// also after a restart of the server.
    pub(crate) fn number(&self) -> Option<u64> {
        match &*self.state.borrow() {
            State::Up(_, number) => Some(*number),
            State::Connecting | State::Down(_) => None,
        }
    }

    /// Returns the identity of the server's memory, while there is a connection.
    pub(crate) fn seat(&self) -> Option<MemoryId> {
        self.number().map(|number| self.seat_on(number))
    }

    /// Returns the identity for this connection, with the flushes reported so far.
    fn seat_on(&self, connection: u64) -> MemoryId {
        // A reply that follows the report of a flush is delivered after it, by the same thread.
        MemoryId { connection, flushes: self.flushes.load(Ordering::Relaxed) }
    }

    /// Records that the server reported a flush of all data. Cached denials and listings of the memory before the flush
    /// are invalid from then on.
    fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the server has run this script on the current connection. If not, its text is sent with the
    /// call.
    pub(crate) fn knows(&self, script: &'static Script) -> bool {
        let known = self.known();
        self.number() == Some(known.0) && known.1.contains(&script.sha.as_str())
    }

    /// Records that the server has run this script. Scripts of an earlier connection are dropped: the server may have
    /// restarted since.
    pub(crate) fn learn(&self, script: &'static Script) {
        let Some(number) = self.number() else { return };
        let mut known = self.known();
        if known.0 != number {
            *known = (number, Vec::new());
        }
        if !known.1.contains(&script.sha.as_str()) {
            known.1.push(&script.sha);
        }
    }

    /// Records that the server has lost its scripts. The next call of each script is sent as text.
    pub(crate) fn unlearn(&self) {
        self.known().1.clear();
    }

    /// Locks the known scripts.
    fn known(&self) -> MutexGuard<'_, (u64, Vec<&'static str>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the last error reply about the server.
    fn complaint(&self) -> MutexGuard<'_, Option<String>> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the link is up or down: immediately, unless the server was never reached. A link that is down
    /// later stays settled.
    pub(crate) async fn settled(&self) {
        // This cannot fail while the sender exists.
        let _ = self.state.subscribe().wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// Sends a command and waits for the reply without a deadline. The caller applies deadlines, and reports a missed
    /// one by [`Link::timed_out`].
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Answered, Fault> {
        let (mut connection, seat) = self.connection().await?;
        let answer = connection.send_packed_command(command).await;
        self.read(answer, seat)
    }

    /// Sends a command after `ASKING`, so that a node accepts it for a slot that it is importing. Both commands are
    /// written at once, so no other command comes in between.
    pub(crate) async fn call_asking(&self, command: &Cmd) -> Result<Answered, Fault> {
        let (mut connection, seat) = self.connection().await?;
        let mut both = Pipeline::with_capacity(2);
        both.cmd("ASKING").add_command(command.clone());
        match connection.send_packed_commands(&both, 1, 1).await {
            Ok(mut answers) => self.read(Ok(answers.pop().unwrap_or(Value::Nil)), seat),
            Err(error) => self.read(Err(error), seat),
        }
    }

    /// Waits for the connection. Waiters get it in FIFO order, and therefore send in that order. Fails at once while
    /// the link is down.
    async fn connection(&self) -> Result<(MultiplexedConnection, MemoryId), Fault> {
        let _turn = self.turns.lock().await;
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Connecting)).await;
        match settled.as_deref() {
            Ok(State::Up(connection, number)) => Ok((connection.clone(), self.seat_on(*number))),
            Ok(State::Down(why)) => Err(Fault::Down(why.to_string())),
            Ok(State::Connecting) | Err(_) => Err(Fault::Down(format!("{}: not reached", self.address))),
        }
    }

    /// Converts the result of the driver, and updates the state of the link by it.
    fn read(&self, answer: Result<Value, redis::RedisError>, seat: MemoryId) -> Result<Answered, Fault> {
        match answer {
            Ok(Value::ServerError(error)) => {
                self.answered();
                Err(self.refused(&error, seat))
            }
            Ok(value) => {
                self.answered();
                self.complaint().take();
                Ok(Answered { value, seat })
            }
            Err(error) => {
                let fault = Fault::of_lost(&self.address, &error);
                self.lose(seat.connection, fault.to_string());
                Err(fault)
            }
        }
    }

    /// Handles an error reply to a call, or to one ask of it. Depending on the code, the connection is given up, the
    /// error is kept for the status, or a new discovery is requested.
    pub(crate) fn refused(&self, error: &ServerError, seat: MemoryId) -> Fault {
        let refusal = ErrorReply::new(&self.address, error);
        let is_doubted = refusal.remedy() == Remedy::LookAround;
        let fault = Fault::Refused(refusal.clone());
        if refusal.is_of_connection() {
            self.lose(seat.connection, fault.to_string());
        } else if refusal.is_of_server() {
            *self.complaint() = Some(fault.to_string());
        }
        if is_doubted {
            self.trunk.doubts.notify_one();
        }
        fault
    }

    /// Records that the connection works, which resets the backoff of reconnects.
    fn answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Records a missed deadline, and starts a task that checks whether the server still answers. One check runs at a
    /// time, whatever the number of missed deadlines. No request fails because of the check alone.
    pub(crate) fn timed_out(self: &Arc<Link>) -> Fault {
        let up = match &*self.state.borrow() {
            State::Connecting => return Fault::Down(format!("{}: not reached in time", self.address)),
            State::Up(connection, number) => Some((connection.clone(), *number)),
            State::Down(_) => None,
        };
        if let Some((connection, number)) = up
            && !self.is_doubted.swap(true, Ordering::Relaxed)
        {
            self.trunk.handle.spawn(find_out(self.clone(), connection, number));
        }
        Fault::TimedOut(self.address.clone())
    }

    /// Gives a connection up, unless there is a newer one. All requests fail immediately from then on, until the keeper
    /// has a new connection.
    fn lose(&self, lost: u64, why: String) {
        let is_lost = self.state.send_if_modified(|state| {
            let is_this = matches!(state, State::Up(_, number) if *number == lost);
            if is_this {
                *state = State::Down(why.into());
            }
            is_this
        });
        if is_lost {
            self.trunk.doubts.notify_one();
        }
    }
}

/// Sends `PING` until the server answers within the deadline. A server that does not for too long is given up. The
/// `PING` is queued behind pending requests, so a server with a long queue is not mistaken for a fast one.
/// Requests are still sent meanwhile, each with its own deadline.
async fn find_out(link: Arc<Link>, mut connection: MultiplexedConnection, number: u64) {
    let deadline = link.trunk.deadline;
    let stall = LEAST_STALL.max(deadline * STALL_DEADLINES);
    let is_well = async {
        loop {
            let begin = Instant::now();
            match connection.send_packed_command(&redis::cmd("PING")).await {
                Ok(_) if begin.elapsed() <= deadline => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    };
    if !timeout(stall, is_well).await.unwrap_or(false) {
        let address = &link.address;
        link.lose(number, format!("{address}: no answer within the deadline of {deadline:?} for {stall:?}"));
    }
    link.is_doubted.store(false, Ordering::Relaxed);
}
