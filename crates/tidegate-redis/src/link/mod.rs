//! One server: a connection that many share, and what becomes of it.
//!
//! ```text
//!                 reached                    mute or too slow for a while, or gone
//!   Connecting ------------> Up ---------------------------------------------------> Down
//!       |                     ^                                                        |
//!       | not reached         '--- a new connection, on which the server says that ----'
//!       '--> Down                  it is a primary (the probe), tried again and again
//! ```
//!
//! While it is down nobody waits for it: every question fails at once, and one task tries to get it up again, at
//! growing intervals that no two of us share. So this is the circuit breaker too: open is down, half open is the
//! probe.

mod keeper;
mod seat;

pub(crate) use seat::{Answered, Seat};

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
use crate::fault::{Fault, Refusal, Remedy};
use crate::script::Script;
use crate::url::Address;

/// A server that is mute or too slow for so long is given up, at least; and for so many deadlines.
const LEAST_STALL: Duration = Duration::from_millis(200);
const STALL_DEADLINES: u32 = 5;

/// What all links of a store share.
#[derive(Debug)]
pub(crate) struct Trunk {
    pub(crate) dialer: Dialer,
    pub(crate) counts: Arc<Counts>,
    /// Where tasks run.
    pub(crate) handle: Handle,
    /// How long an answer may take.
    pub(crate) deadline: Duration,
    /// Told when a link goes down, or somebody doubts that it leads to the right server.
    pub(crate) doubts: Notify,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) address: Address,
    trunk: Arc<Trunk>,
    state: watch::Sender<State>,
    /// Whether somebody is finding out why an answer did not come in time.
    is_doubted: AtomicBool,
    /// Whether the connection has answered a question yet.
    has_answered: AtomicBool,
    /// How often the server has said that all data was flushed.
    flushes: AtomicU64,
    /// What it said last instead of an answer, if it would say so to anybody.
    complaint: Mutex<Option<String>>,
    /// The order in which questions get the connection. A `watch` wakes its waiters in any order.
    turns: tokio::sync::Mutex<()>,
    /// The scripts that a connection has run: the number of the connection, and their hashes.
    known: Mutex<(u64, Vec<&'static str>)>,
}

#[derive(Clone, Debug)]
enum State {
    /// It was never reached, nor given up.
    Connecting,
    /// It answers. Each connection has a number that no other one has.
    Up(MultiplexedConnection, u64),
    /// It does not, because of this.
    Down(Arc<str>),
}

impl Link {
    /// Begins to reach a server, and goes on until this is dropped.
    pub(crate) fn new(address: Address, trunk: &Arc<Trunk>) -> Arc<Link> {
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

    /// Why nothing can be decided there, if so.
    pub(crate) fn why_not(&self) -> Option<String> {
        match &*self.state.borrow() {
            State::Down(why) => Some(why.to_string()),
            State::Connecting => Some(format!("{}: not reached yet", self.address)),
            State::Up(..) => self.complaint().clone(),
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(..))
    }

    /// The number of its connection, while there is one.
    pub(crate) fn number(&self) -> Option<u64> {
        match &*self.state.borrow() {
            State::Up(_, number) => Some(*number),
            State::Connecting | State::Down(_) => None,
        }
    }

    /// What the server remembers, by name, while there is a connection.
    pub(crate) fn seat(&self) -> Option<Seat> {
        self.number().map(|number| self.seat_on(number))
    }

    fn seat_on(&self, connection: u64) -> Seat {
        // An answer that comes after the news of a flush is handed on after it, by the same thread.
        Seat { connection, flushes: self.flushes.load(Ordering::Relaxed) }
    }

    /// The server has said that all data was flushed.
    fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether the server has run this script on the present connection.
    pub(crate) fn knows(&self, script: &'static Script) -> bool {
        let known = self.known();
        self.number() == Some(known.0) && known.1.contains(&script.sha.as_str())
    }

    /// Notes that the server has run this script.
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

    /// Notes that the server has forgotten its scripts.
    pub(crate) fn unlearn(&self) {
        self.known().1.clear();
    }

    fn known(&self) -> MutexGuard<'_, (u64, Vec<&'static str>)> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complaint(&self) -> MutexGuard<'_, Option<String>> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when it is up or down: at once, unless it was never reached.
    pub(crate) async fn settled(&self) {
        // It cannot fail while the sender is here.
        let _ = self.state.subscribe().wait_for(|state| !matches!(state, State::Connecting)).await;
    }

    /// Asks, and waits for the answer as long as it takes.
    pub(crate) async fn call(&self, command: &Cmd) -> Result<Answered, Fault> {
        let (mut connection, seat) = self.connection().await?;
        let answer = connection.send_packed_command(command).await;
        self.read(answer, seat)
    }

    /// The same as the one question that a node answers although it has not got the key yet.
    pub(crate) async fn call_asking(&self, command: &Cmd) -> Result<Answered, Fault> {
        let (mut connection, seat) = self.connection().await?;
        let mut both = Pipeline::with_capacity(2);
        both.cmd("ASKING").add_command(command.clone());
        match connection.send_packed_commands(&both, 1, 1).await {
            Ok(mut answers) => self.read(Ok(answers.pop().unwrap_or(Value::Nil)), seat),
            Err(error) => self.read(Err(error), seat),
        }
    }

    /// Waits for the connection; those who wait get it in their order, and so send in their order.
    async fn connection(&self) -> Result<(MultiplexedConnection, Seat), Fault> {
        let _turn = self.turns.lock().await;
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !matches!(state, State::Connecting)).await;
        match settled.as_deref() {
            Ok(State::Up(connection, number)) => Ok((connection.clone(), self.seat_on(*number))),
            Ok(State::Down(why)) => Err(Fault::Down(why.to_string())),
            Ok(State::Connecting) | Err(_) => Err(Fault::Down(format!("{}: not reached", self.address))),
        }
    }

    fn read(&self, answer: Result<Value, redis::RedisError>, seat: Seat) -> Result<Answered, Fault> {
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

    /// The server has refused a call, or one ask of it.
    pub(crate) fn refused(&self, error: &ServerError, seat: Seat) -> Fault {
        let refusal = Refusal::new(&self.address, error);
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

    fn answered(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
    }

    /// Notes that an answer did not come in time, and has somebody find out whether others will.
    pub(crate) fn timed_out(self: &Arc<Link>) -> Fault {
        let up = match &*self.state.borrow() {
            State::Connecting => return Fault::Down(format!("{}: not reached in time", self.address)),
            State::Up(connection, number) => Some((connection.clone(), *number)),
            State::Down(_) => None,
        };
        if let Some((connection, number)) = up {
            if !self.is_doubted.swap(true, Ordering::Relaxed) {
                self.trunk.handle.spawn(find_out(self.clone(), connection, number));
            }
        }
        Fault::TimedOut(self.address.clone())
    }

    /// Gives a connection up, unless there is a newer one.
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

/// Asks the server for nothing until it answers within the deadline. One that does not for too long is given up.
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
