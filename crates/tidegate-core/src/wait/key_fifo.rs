//! The FIFO policy: one queue per key. Waiters have spent nothing, and only the head of a queue takes.
//!
//! ```text
//!   no waiters, allowed now              passes, without the lock
//!   no waiters, allowed after a delay    becomes the head; its take is made and kept in `serving`
//!   no waiters, denied until later       becomes the head; it takes when the denial has ended
//!   waiters                              joins at the end and costs nothing until it is the head
//!   impossible, too long, queue full     denied at once; nothing is spent
//! ```
//!
//! A take made ahead for the head is given back when the head leaves, when the limit is replaced, or when the state of
//! the key is removed. The waiters behind it then move up by its whole cost.
//!
//! A queue is opened when the first waiter of its key joins, and closed when the last one leaves. A limiter without
//! waiters therefore holds no memory for queues.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;

use super::outlook::{FORESEEN, Tail};
use super::policy::{Cause, Next, QueuePolicy, QueueTurn};
use super::state::{Entry, KeyQueue, QueueState, QueueTicket};
use super::taken::Taken;
use super::wait_queue::{Joined, WaitQueue, Waiter};
use super::{WaitTarget, Waited};
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::denied::{Denied, Reason};
use crate::store::state_key::{EncodedKey, StateKey};
use crate::time::{Clock, Ticks, Timestamp};

/// The largest delay of the timer that is corrected: 1 ms. For limits that space calls, a head that is served up to
/// this late passes as of its due time, so that timer delays do not add up. The span is in ticks of 1/16 ns. A head
/// that is served later than this passes as of the current time less this span.
const LATENESS: Ticks = Ticks::new(16_000_000);

/// The FIFO policy of limiters, shapers, pacers and permits: one queue per key that has waiters.
///
/// The order is strict: a small ask never passes a larger one that came first, so no waiter starves. It uses
/// [`WaiterAsk`], [`KeyState`] and [`QueueGrant`].
#[derive(Debug)]
pub struct KeyFifo;

/// The ask of a waiter.
#[derive(Clone, Copy, Debug)]
pub struct WaiterAsk {
    /// The ask, without the delay that a leaky bucket would accept: a waiter has its place in this queue instead.
    pub(crate) ask: Ask,
    /// True if it needs a receipt of its take.
    pub(crate) is_tracked: bool,
}

/// The state of a key that has waiters.
#[derive(Debug)]
pub struct KeyState {
    /// The encoded namespace and key, from which the account under the limit in force is made at each turn.
    name: EncodedKey,
    /// The take of the head, if the head has to wait for its own cost.
    pub(super) serving: Option<Taken>,
    /// The total cost of all waiters.
    pub(super) units: u64,
    /// The cached prediction for the end of the queue. Each change that could invalidate it sets it to `None`.
    pub(super) tail: Option<Tail>,
}

impl KeyState {
    /// Refunds the take that was made ahead for the head, if there is one, and discards the prediction.
    fn give_back_serving(&mut self, target: &dyn WaitTarget) {
        self.tail = None;
        if let Some(taken) = self.serving.take() {
            taken.give_back(target);
        }
    }
}

/// The result of a successful wait: the wait and its take.
#[derive(Debug)]
pub struct QueueGrant {
    /// The reported wait, and the decision of the take.
    pub(crate) waited: Waited,
    /// The take with its receipt, by which a grant that is not picked up is given back.
    pub(super) taken: Taken,
}

impl QueueGrant {
    /// Creates the grant of a take that passed after `wait`; zero for a caller that was not queued.
    pub(super) fn after(wait: Ticks, taken: Taken) -> QueueGrant {
        QueueGrant { waited: Waited { duration: wait.to_duration(), decision: taken.decision }, taken }
    }
}

impl WaitQueue<KeyFifo> {
    /// Passes at once, denies at once, or queues a waiter. If there are no waiters, an allowed ask takes no lock.
    ///
    /// With waiters, or after a denial, the ask is decided again under the lock. The lock is also needed for an ask
    /// that a leaky bucket would delay, because two clients must not both become the head.
    ///
    /// A tracked ask gets a receipt. Otherwise the take is made without one, which saves the lock of the receipts.
    pub(super) fn acquire(
        &self,
        target: &Arc<dyn WaitTarget>,
        name: &EncodedKey,
        asked: WaiterAsk,
        max_wait: Option<Ticks>,
    ) -> Joined<KeyFifo, Waiter<KeyFifo>> {
        if self.is_empty() {
            let account = target.account(name);
            if account.terms().in_line(asked.ask) == asked.ask {
                let taken = match asked.is_tracked {
                    true => Taken::take(&**target, &account, asked, None),
                    false => Taken::take_now(&**target, &account, asked.ask),
                };
                if taken.decision.is_allowed() {
                    return Break(Ok(QueueGrant::after(Ticks::ZERO, taken)));
                }
            }
        }
        self.join(target, |state, turn| enter(state, turn, name, asked, max_wait))
    }

    /// Returns the time that an ask has to wait because its key has waiters; `None` if it has none. A peek uses it,
    /// because a peek of the state alone would report no wait. The result is at least one tick, and for long queues a
    /// lower bound.
    pub(crate) fn wait_behind(&self, target: &dyn WaitTarget, name: &EncodedKey, ask: Ask) -> Option<Ticks> {
        let account = target.account(name);
        self.lock(|state| {
            let id = state.id_of(name.key())?;
            let wait = state.queue(id)?.outlook(target, &account, target.clock().now(), ask);
            Some(wait.max(Ticks::new(1)))
        })
    }

    /// Serves the waiters of a key after a refund, a release or a charge. Without waiters this costs a fence and one
    /// load.
    pub(crate) fn serve_key(&self, target: &Arc<dyn WaitTarget>, name: &EncodedKey) {
        if self.has_waiters() {
            self.with(target, |state, turn| serve_key(state, turn, name, |key| key.tail = None));
        }
    }

    /// Serves the waiters of a key again from a full state, because its state was removed. A take that was made ahead
    /// for the head is forgotten with the state, so it is given back and made again.
    pub(crate) fn begin_anew(&self, target: &Arc<dyn WaitTarget>, name: &EncodedKey) {
        if self.has_waiters() {
            self.with(target, |state, turn| {
                serve_key(state, turn, name, |key| key.give_back_serving(turn.owner));
            });
        }
    }

    /// Replaces the limit, and serves all waiters again. Units that were taken ahead for the head of a queue are
    /// given back before its counts are carried over; otherwise they would be charged under both limits.
    ///
    /// A waiter that may join concurrently counts itself before it reads the limit, so the second check of
    /// `has_waiters` sees it. Waiters keep their order and their max wait.
    pub(crate) fn replace_limit<R>(&self, target: &Arc<dyn WaitTarget>, replace: impl FnOnce() -> R) -> R {
        if self.is_empty() {
            // Without waiters, no clock is read.
            let replaced = replace();
            if self.has_waiters() {
                self.with(target, |state, turn| {
                    give_all_back(state, turn);
                    state.serve_all(turn);
                });
            }
            return replaced;
        }
        self.with(target, |state, turn| {
            give_all_back(state, turn);
            let replaced = replace();
            state.serve_all(turn);
            replaced
        })
    }
}

impl QueuePolicy for KeyFifo {
    type Owner = dyn WaitTarget;
    type Key = Box<[u8]>;
    type Ask = WaiterAsk;
    type State = KeyState;
    type Grant = QueueGrant;
    type Denial = Denied;

    const FORGETS_KEYS: bool = true;

    fn queue(target: &Self::Owner) -> &WaitQueue<KeyFifo> {
        target.queue()
    }

    fn clock(target: &Self::Owner) -> &impl Clock {
        target.clock()
    }

    fn next(&mut self, turn: &mut QueueTurn<'_, KeyFifo>, queue: &mut KeyQueue<KeyFifo>) -> Next<KeyFifo> {
        let (target, now) = (turn.owner, turn.now);
        let account = target.account(&queue.state.name);
        // A limit that guarantees spacing may serve its head as of the due time, if the timer was not too late.
        turn.at = turn.at.max(if account.terms().spaces() { now.saturating_sub(LATENESS) } else { now });
        // A head that is served later than predicted moves all waiters behind it, so the prediction is wrong.
        if queue.due().is_none_or(|due| turn.at > due) || queue.len() > FORESEEN {
            queue.state.tail = None;
        }
        if let Some(taken) = queue.state.serving.take() {
            // The head never waits longer than the reported delay, even if the clock has stepped back since.
            let delay = taken.decision.delay().map_or(Ticks::ZERO, Ticks::saturating_from);
            let due = queue.due().unwrap_or(now).min(now.saturating_add(delay));
            if due <= now {
                return queue.settle_head(now, Ok(taken));
            }
            queue.state.serving = Some(taken);
            return Next::Wait(Some(due));
        }
        queue.take_for_head(turn, &account)
    }

    fn deny(
        &mut self,
        turn: QueueTurn<'_, KeyFifo>,
        queue: &mut KeyQueue<KeyFifo>,
        ask: &WaiterAsk,
        cause: Cause,
    ) -> Denied {
        let decision = turn.owner.look(&turn.owner.account(&queue.state.name), ask.ask);
        // It was not its turn, whatever the limit would allow a caller without a queue.
        let is_late = cause == Cause::TimedOut && decision.is_allowed();
        let decision = if is_late { decision.denied_for(Ticks::new(1)) } else { decision };
        Denied::because(Reason::CutShort(cause), decision)
    }

    fn give_back(
        state: &mut QueueState<KeyFifo>,
        turn: QueueTurn<'_, KeyFifo>,
        _: QueueTicket,
        passed: QueueGrant,
    ) {
        let name = passed.taken.account.name().clone();
        passed.taken.give_back(turn.owner);
        serve_key(state, turn, &name, |key| key.tail = None);
    }

    fn left(
        &mut self,
        turn: QueueTurn<'_, KeyFifo>,
        queue: &mut KeyQueue<KeyFifo>,
        entry: &Entry<WaiterAsk>,
        was_head: bool,
    ) {
        let key = &mut queue.state;
        key.units = key.units.saturating_sub(entry.ask.ask.units());
        key.tail = None;
        if was_head {
            key.give_back_serving(turn.owner);
        }
    }

    fn stepped_back(state: &mut QueueState<KeyFifo>, _: QueueTurn<'_, KeyFifo>, _: Ticks) {
        state.queues().for_each(|queue| queue.state.tail = None);
    }
}

impl KeyQueue<KeyFifo> {
    /// Takes for the head, as of the time of the turn or later times up to now.
    ///
    /// Each round of the loop is one take. A denial names the time of the next attempt: if that time has passed, the
    /// next round takes as of it, and otherwise the queue waits for it. A round that makes no progress in time ends the
    /// wait with the denial.
    fn take_for_head(&mut self, turn: &mut QueueTurn<'_, KeyFifo>, account: &StateKey) -> Next<KeyFifo> {
        let Some((_, head)) = self.head() else { return Next::Wait(None) };
        let ask = WaiterAsk { ask: account.terms().in_line(head.ask.ask), ..head.ask };
        loop {
            let taken = Taken::take(turn.owner, account, ask, Some(turn.at));
            let decision = taken.decision;
            let Some(wait) = wait_of(&decision) else { return self.settle_head(turn.now, Err(decision)) };
            let due = turn.at.saturating_add(wait);
            if due > turn.now {
                self.state.serving = decision.is_allowed().then_some(taken);
                return Next::Wait(Some(due));
            }
            let is_time_over = due == turn.at;
            turn.at = due;
            if decision.is_allowed() {
                return self.settle_head(turn.now, Ok(taken));
            }
            if is_time_over {
                return self.settle_head(turn.now, Err(decision));
            }
        }
    }

    /// Ends the wait of the head and removes its cost from the total of the queue. The reported wait is counted from
    /// the ask of the head.
    fn settle_head(&mut self, now: Timestamp, result: Result<Taken, Decision>) -> Next<KeyFifo> {
        let Some((number, head)) = self.head() else { return Next::Wait(None) };
        let (waited, units) = (now.since(head.since), head.ask.ask.units());
        self.state.units = self.state.units.saturating_sub(units);
        if result.is_err() {
            self.state.tail = None;
        }
        Next::Settle(number, result.map(|taken| QueueGrant::after(waited, taken)).map_err(Denied::of))
    }
}

/// Passes at once, denies at once, or queues a waiter. Runs under the lock. Checks, in this order: can the ask ever
/// pass, does it pass now, is the predicted wait within the max wait, is there room. A denied ask leaves no queue and
/// no take behind.
fn enter(
    state: &mut QueueState<KeyFifo>,
    turn: QueueTurn<'_, KeyFifo>,
    name: &EncodedKey,
    asked: WaiterAsk,
    max_wait: Option<Ticks>,
) -> Joined<KeyFifo> {
    let (target, now, ask) = (turn.owner, turn.now, asked.ask);
    let account = target.account(name);
    let terms = *account.terms();
    let known = state.id_of(name.key());
    let (decision, wait, serving) = match known.and_then(|id| state.queue(id)) {
        None => {
            let in_line = WaiterAsk { ask: terms.in_line(ask), ..asked };
            let taken = Taken::take(target, &account, in_line, Some(now));
            let decision = taken.decision;
            match wait_of(&decision) {
                None => return Break(Err(Denied::of(decision))),
                Some(Ticks::ZERO) if decision.is_allowed() => {
                    return Break(Ok(QueueGrant::after(Ticks::ZERO, taken)));
                }
                Some(wait) => (decision, wait, decision.is_allowed().then_some(taken)),
            }
        }
        Some(queue) => {
            let decision = target.look(&account, terms.in_line(ask));
            if decision.verdict_in_ticks() == Verdict::Impossible {
                return Break(Err(Denied::of(decision)));
            }
            // The prediction is computed only if a max wait depends on it.
            let wait = max_wait.map_or(Ticks::ZERO, |_| queue.outlook(target, &account, now, ask));
            (decision, wait, None)
        }
    };
    // Under a concurrency limit no end of the wait is known, so the waiter is denied by its deadline instead.
    let is_too_long = terms.foretells() && max_wait.is_some_and(|max_wait| wait > max_wait);
    let is_full = state.is_full();
    let queue = known.and_then(|id| state.queue(id));
    let units = queue.as_ref().map_or(0, |queue| queue.state.units).saturating_add(ask.units());
    if is_too_long || is_full || terms.is_queue_full(now, units, || target.state(&account)) {
        if let Some(taken) = serving {
            taken.give_back(target);
        }
        let wait = queue.map_or(wait, |queue| queue.outlook(target, &account, now, ask));
        let decision = decision.denied_for(wait.max(Ticks::new(1)));
        let reason = if is_too_long { Reason::Limit } else { Reason::LineFull };
        return Break(Err(Denied::because(reason, decision)));
    }
    let id = known.unwrap_or_else(|| {
        let key = KeyState { name: name.clone(), serving, units: 0, tail: None };
        let id = state.open(name.key().into(), key);
        state.set_due(id, Some(now.saturating_add(wait)));
        id
    });
    let queue = state.queue(id).expect("the queue was found or opened just now");
    queue.state.units = units;
    queue.foresee_one_more(&terms, ask);
    let ticket = queue.draw();
    Continue(state.join(ticket, Entry::new(asked, now, max_wait)))
}

/// Gives back the units that were taken ahead for the heads of all queues. The queues keep their waiters; each head
/// takes again when its queue is served.
fn give_all_back(state: &mut QueueState<KeyFifo>, turn: QueueTurn<'_, KeyFifo>) {
    state.queues().for_each(|queue| queue.state.give_back_serving(turn.owner));
}

/// Serves the waiters of a key after a change to its state. A key without a queue needs nothing. `change` runs before
/// the queue is served, to discard what the change has made invalid.
fn serve_key(
    state: &mut QueueState<KeyFifo>,
    turn: QueueTurn<'_, KeyFifo>,
    name: &EncodedKey,
    change: impl FnOnce(&mut KeyState),
) {
    let Some(id) = state.id_of(name.key()) else { return };
    if let Some(queue) = state.queue(id) {
        change(&mut queue.state);
        state.serve(turn, id);
    }
}

/// Returns the time that a take has to wait, for its own cost or for its turn; `None` if it can never pass. A store
/// that is full reports a denial as well, but a waiter cannot wait for room, so it counts as never.
fn wait_of(decision: &Decision) -> Option<Ticks> {
    match decision.verdict_in_ticks() {
        Verdict::Allowed { delay } => Some(delay),
        Verdict::Denied { retry_after } if !decision.is_store_full() => Some(retry_after),
        Verdict::Denied { .. } | Verdict::Impossible => None,
    }
}
