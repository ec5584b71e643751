//! The queue of requests to the server. Takes that are queued at the same moment leave in one script call.
//!
//! ```text
//!   callers, on any thread        the thread of the connections
//!   take ana  --.                 .--> one call: ana, bob      (buckets)
//!   take bob  ---+-> the queue ---+--> one call: cy            (any algorithm)
//!   take cy   --'                 '--> reset ana, behind them
//! ```
//!
//! The queue does not wait for a call to fill. A take is queued when its caller polls it, and the thread is woken when
//! the caller is polled next. By then the takes of one pipeline are queued, and those of other ready connections. While
//! the thread writes, more asks are queued, and they leave together. Each ask of a call has its own deadline, verdict
//! and failure. A request that is no take leaves behind all takes before it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::callers::{Caller, Callers, ReplySender};
use crate::exchange::{Exchange, Question};
use crate::fault::Fault;
use crate::limits::Place;
use crate::link::Answered;
use crate::script::{self, AskReply, States, TakeAsk, Time};

/// The maximum number of asks in one call. A script blocks all other clients of the server while it runs.
pub(crate) const MOST_ASKS: usize = 32;
/// The maximum number of limits of all asks in one call. An ask with more is a call of its own.
const MOST_LIMITS: usize = 128;
/// The maximum size of names in one call, in bytes. An ask with more is a call of its own.
const MOST_BYTES: usize = 16 << 10;

/// A queued request.
enum QueuedRequest {
    /// A take, which can share a call with others.
    Take { take: QueuedTake, place: Option<Arc<Place>> },
    /// A request with a call of its own.
    Other { question: Question, due: Instant, reply: ReplySender<Answered> },
}

/// A queued take.
struct QueuedTake {
    ask: TakeAsk,
    time: Time,
    due: Instant,
    reply: ReplySender<AskReply>,
}

/// The queue of requests to the connection thread. Any thread can push to it. Its length is not bounded here: each
/// caller has at most one request in it, and the exchange rejects requests beyond `max_in_flight`.
pub(crate) struct RequestQueue(Arc<Shared>);

/// The state shared by the callers and the thread.
struct Shared {
    /// The queue. It is locked for a push or a swap only.
    queued: Mutex<Queued>,
    /// Notified when a request is ready to be sent, and when a take leaves its queues of turns.
    is_ready: Arc<Notify>,
}

#[derive(Default)]
struct Queued {
    /// The queued requests, at most one per caller: each caller waits for its own reply.
    requests: Vec<QueuedRequest>,
    /// True once the thread has ended.
    is_closed: bool,
}

impl Shared {
    /// Locks the queue. A panic of another thread leaves it valid, so poisoning is ignored.
    fn queued(&self) -> MutexGuard<'_, Queued> {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request. The thread is woken when the guard is dropped. Returns `None` if the thread has ended.
    fn push(&self, request: QueuedRequest) -> Option<WakeOnDrop<'_>> {
        let mut queued = self.queued();
        if queued.is_closed {
            return None;
        }
        queued.requests.push(request);
        Some(WakeOnDrop(self))
    }
}

/// A guard that wakes the thread on drop, unless the queue is empty by then. A caller keeps it until it is polled
/// again, so that the thread wakes once for all takes of one moment.
struct WakeOnDrop<'a>(&'a Shared);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        if !self.0.queued().requests.is_empty() {
            self.0.is_ready.notify_one();
        }
    }
}

/// The consumer end of the queue. When it is dropped, all pending replies are cancelled.
struct Drain(Arc<Shared>);

impl Drain {
    /// Waits for requests, and swaps them for an empty list. The two vectors are swapped back and forth, so a queue in
    /// steady state allocates nothing. With a time, it also returns at that time, and when a take may have left its turn.
    async fn next(&self, drained: &mut Vec<QueuedRequest>, until: Option<Instant>) {
        while drained.is_empty() {
            let is_ready = self.0.is_ready.notified();
            std::mem::swap(&mut self.0.queued().requests, drained);
            if !drained.is_empty() {
                return;
            }
            let Some(until) = until else {
                is_ready.await;
                continue;
            };
            let _ = timeout_at(until, is_ready).await;
            std::mem::swap(&mut self.0.queued().requests, drained);
            return;
        }
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let requests = {
            let mut queued = self.0.queued();
            queued.is_closed = true;
            std::mem::take(&mut queued.requests)
        };
        drop(requests);
    }
}

/// Yields once, so that the caller is polled again behind all other ready tasks of its executor. On a single-threaded
/// executor, all tasks that were ready have then queued their takes.
async fn polled_again() {
    let mut is_again = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut is_again, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl RequestQueue {
    /// Starts the task that sends requests, on the connection thread.
    pub(crate) fn open(exchange: &Arc<Exchange>, handle: &Handle, is_ready: &Arc<Notify>) -> RequestQueue {
        let shared = Arc::new(Shared { queued: Mutex::default(), is_ready: is_ready.clone() });
        handle.spawn(send_queued(exchange.clone(), Drain(shared.clone())));
        RequestQueue(shared)
    }

    /// Sends a request and returns the reply; `None` if the thread has ended.
    pub(crate) async fn ask(&self, question: Question, due: Instant) -> Option<Result<Answered, Fault>> {
        let (reply, replied) = oneshot::channel();
        drop(self.0.push(QueuedRequest::Other { question, due, reply })?);
        replied.await.ok()
    }

    /// Sends a take, which may share a call with others. Returns `None` if the thread has ended. Dropping the future
    /// does not withdraw the take: it is sent, and its reply is discarded.
    pub(crate) async fn take(
        &self,
        ask: TakeAsk,
        place: Option<Arc<Place>>,
        time: Time,
        due: Instant,
    ) -> Option<Result<AskReply, Fault>> {
        let (reply, replied) = oneshot::channel();
        // A caller that is dropped before it is polled again wakes the thread, too.
        let take = QueuedTake { ask, time, due, reply };
        let queued = self.0.push(QueuedRequest::Take { take, place })?;
        polled_again().await;
        drop(queued);
        replied.await.ok()
    }
}

/// Starts all queued requests before any of them is written. The loop never waits for a reply. Each call is a task of
/// its own, which is polled after the loop has drained the queue, in the order of the spawns.
async fn send_queued(exchange: Arc<Exchange>, queue: Drain) {
    let (mut drained, mut held_back) = (Vec::new(), HeldBack::default());
    loop {
        queue.next(&mut drained, held_back.due()).await;
        let (now, mut open) = (Instant::now(), OpenBatches::default());
        for request in drained.drain(..) {
            match request {
                QueuedRequest::Take { take, place: None } => {
                    open.add_admitted(&exchange, take, now);
                }
                QueuedRequest::Take { take, place: Some(place) } => held_back.takes.push((place, take)),
                QueuedRequest::Other { question, due, reply } => {
                    held_back.release(&mut open, &exchange, now);
                    open.send(&exchange);
                    if let Some(caller) = exchange.admit(due, reply, now) {
                        let exchange = exchange.clone();
                        tokio::spawn(async move { exchange.ask(&question, caller).await });
                    }
                }
            }
        }
        held_back.release(&mut open, &exchange, now);
        open.send(&exchange);
    }
}

/// Takes with turns, until those before them have left or are in the same call.
#[derive(Default)]
struct HeldBack {
    /// The takes.
    takes: Vec<(Arc<Place>, QueuedTake)>,
}

impl HeldBack {
    /// Returns the earliest deadline of a take.
    fn due(&self) -> Option<Instant> {
        self.takes.iter().map(|(_, take)| take.due).min()
    }

    /// Adds each take to the calls that are about to be sent, in the order of turns, if it may be sent. A take whose
    /// deadline has passed fails.
    fn release(&mut self, open: &mut OpenBatches, exchange: &Arc<Exchange>, now: Instant) {
        if self.takes.is_empty() {
            return;
        }
        self.takes.sort_by_key(|(place, _)| place.number());
        // The states of takes that stay; all behind them stay, too.
        let mut held = HashSet::new();
        for (place, take) in std::mem::take(&mut self.takes) {
            let is_late = take.due <= now;
            if !is_late && (place.is_in(&held) || !place.may_go_with(open.joined_by(exchange, &take))) {
                held.extend(place.lines());
                self.takes.push((place, take));
                continue;
            }
            let may_repeat = take.ask.may_repeat();
            if let Some(batch) = open.add_admitted(exchange, take, now)
                && !place.leaves_when_sent(may_repeat)
            {
                batch.turns.push(place.number());
            }
        }
    }
}

/// Takes that share one call. The batch is bounded in asks, in limits and in bytes of names, because a script blocks
/// the server while it runs.
pub(crate) struct TakeBatch {
    /// The asks, in the order of the script.
    pub(crate) asks: Vec<TakeAsk>,
    /// Their callers, in the same order.
    pub(crate) callers: Callers<AskReply>,
    /// The properties that all asks share.
    pub(crate) kind: BatchKind,
    /// The numbers of those with a turn.
    turns: Vec<u64>,
    /// The number of limits of all asks.
    limits: usize,
    /// The size of all names.
    bytes: usize,
}

/// The key for batching: takes of one slot, as of one time, by one script.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchKind {
    /// The slot of all states; zero without slots.
    slot: u16,
    pub(crate) time: Time,
    /// The kind of states, which selects the script.
    states: States,
}

impl TakeBatch {
    /// Creates a batch of one ask, with its caller.
    pub(crate) fn alone(kind: BatchKind, ask: TakeAsk, callers: Callers<AskReply>) -> TakeBatch {
        let (limits, bytes) = (ask.bids.len(), ask.name_bytes());
        TakeBatch { asks: vec![ask], callers, kind, turns: Vec::new(), limits, bytes }
    }

    /// Returns true if the batch stays within its bounds with this ask. An ask with twins is always alone.
    fn has_room_for(&self, ask: &TakeAsk) -> bool {
        !ask.has_twins
            && self.asks.len() < MOST_ASKS
            && self.limits + ask.bids.len() <= MOST_LIMITS
            && self.bytes + ask.name_bytes() <= MOST_BYTES
    }
}

/// Batches that further takes can join.
#[derive(Default)]
struct OpenBatches(Vec<TakeBatch>);

impl OpenBatches {
    /// Adds a take, unless too many are in flight or its deadline has passed. Returns its batch if it is not sent yet.
    fn add_admitted(
        &mut self,
        exchange: &Arc<Exchange>,
        take: QueuedTake,
        now: Instant,
    ) -> Option<&mut TakeBatch> {
        let QueuedTake { ask, time, due, reply } = take;
        let caller = exchange.admit(due, reply, now)?;
        self.add(exchange, ask, time, caller)
    }

    /// Returns the kind of batch that an ask is added to. Behind a mixed ask, all use the mixed script.
    fn kind_of(&self, exchange: &Exchange, ask: &TakeAsk, time: Time) -> BatchKind {
        let has_slots = exchange.topology.has_slots();
        let slot = ask.bids.first().filter(|_| has_slots).map_or(0, |bid| script::slot(&bid.target.name));
        let states = if self.is_mixed() { States::Mixed } else { ask.states() };
        BatchKind { slot, time, states }
    }

    /// Returns true if there is a batch for the mixed script.
    fn is_mixed(&self) -> bool {
        self.0.iter().any(|batch| batch.kind.states == States::Mixed)
    }

    /// Returns the index of the batch that an ask of this kind joins. Asks about one state stay in order: an ask joins
    /// only the newest batch of its kind. `None` if it opens another batch.
    fn place_for(&self, kind: BatchKind, ask: &TakeAsk) -> Option<usize> {
        let newest = self.0.iter().rposition(|batch| batch.kind == kind);
        newest.filter(|place| self.0[*place].has_room_for(ask))
    }

    /// Returns the turns in the batch that a take joins.
    fn joined_by(&self, exchange: &Exchange, take: &QueuedTake) -> &[u64] {
        let kind = self.kind_of(exchange, &take.ask, take.time);
        self.place_for(kind, &take.ask).map_or(&[], |place| &self.0[place].turns)
    }

    /// Adds an ask to an open batch, or opens another one. Returns the batch if it is not sent yet.
    ///
    /// Asks for one state must not change their order. Buckets and other algorithms have different scripts and never
    /// share a state, so their batches are independent. A mixed ask touches both kinds. Everything before it is
    /// therefore sent first, and everything after it joins the mixed script.
    fn add(
        &mut self,
        exchange: &Arc<Exchange>,
        ask: TakeAsk,
        time: Time,
        caller: Caller<AskReply>,
    ) -> Option<&mut TakeBatch> {
        let kind = self.kind_of(exchange, &ask, time);
        if ask.has_twins || kind.states == States::Mixed && !self.is_mixed() {
            self.send(exchange);
        }
        if let Some(place) = self.place_for(kind, &ask) {
            let batch = &mut self.0[place];
            batch.limits += ask.bids.len();
            batch.bytes += ask.name_bytes();
            batch.asks.push(ask);
            batch.callers.push(caller);
            return Some(batch);
        }
        let has_twins = ask.has_twins;
        let mut callers = Callers::new(exchange.counts.clone());
        callers.push(caller);
        self.0.push(TakeBatch::alone(kind, ask, callers));
        if has_twins {
            self.send(exchange);
        }
        self.0.last_mut()
    }

    /// Sends all batches, in the order in which they were opened.
    fn send(&mut self, exchange: &Arc<Exchange>) {
        for batch in self.0.drain(..) {
            let exchange = exchange.clone();
            tokio::spawn(async move { exchange.take(batch).await });
        }
    }
}
