//! First in, first out for each key: waiters have spent nothing, and only the head of a queue takes.

use std::collections::HashMap;
use std::sync::Arc;

use super::outlook::{FORESEEN, Tail};
use super::policy::{Cause, Next, QueuePolicy, Turn};
use super::state::{Entry, KeyQueue, QueueState, Ticket};
use super::taken::Taken;
use super::wait_queue::{Joined, WaitQueue, Waiter};
use super::{WaitTarget, Waited};
use crate::ask::Ask;
use crate::decision::{Decision, Verdict};
use crate::refusal::Refusal;
use crate::store::name::{Account, Name};
use crate::time::{Clock, Ticks, Timestamp};

/// Where the promise is spacing, a head that is served up to this late passes as of the time at which it was
/// due, so that the lateness of timers does not add up: 1 ms.
const LATENESS: Ticks = Ticks::new(16_000_000);

/// The queues of the waiters of limiters, shapers, pacers and permits: one for each key that has waiters.
#[derive(Debug, Default)]
pub(crate) struct KeyFifo {
    ids: HashMap<Box<[u8]>, u64>,
}

/// The ask of a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaiterAsk {
    pub(super) ask: Ask,
    /// Whether it wants a receipt of its take.
    pub(super) is_tracked: bool,
}

/// The state of a key that has waiters.
#[derive(Debug)]
pub(crate) struct KeyState {
    name: Name,
    /// What the head has taken already, if it has to wait for its own cost.
    pub(super) serving: Option<Taken>,
    /// The cost of all waiters.
    pub(super) units: u64,
    pub(super) tail: Option<Tail>,
}

/// A request to pass now, or to wait for at most this long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) name: &'a Name,
    pub(super) ask: WaiterAsk,
    pub(super) max_wait: Option<Ticks>,
}

/// A waiter that has passed, and its take.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(super) waited: Waited,
    pub(super) taken: Taken,
}

impl Passed {
    pub(super) fn after(wait: Ticks, taken: Taken) -> Passed {
        Passed { waited: Waited::new(wait, taken.decision), taken }
    }
}

impl WaitQueue<KeyFifo> {
    /// Passes at once, is denied at once, or waits. Without waiters an ask that passes takes no lock.
    pub(super) fn acquire(
        &self,
        target: &Arc<dyn WaitTarget>,
        request: Request<'_>,
    ) -> Joined<KeyFifo, Waiter<KeyFifo>> {
        if self.is_empty() {
            let (WaiterAsk { ask, is_tracked }, account) = (request.ask, target.account(request.name));
            if account.terms().in_line(ask) == ask {
                let taken = match is_tracked {
                    true => Taken::take(&**target, &account, request.ask, None),
                    false => Taken::take_now(&**target, &account, ask),
                };
                if taken.decision.is_allowed() {
                    return Joined::Over(Ok(Passed::after(Ticks::ZERO, taken)));
                }
            }
        }
        self.join(target, |state, turn| enter(state, turn, request))
    }

    /// Returns how long an ask has to wait because its key has waiters; `None` if it has none.
    pub(crate) fn wait_behind(&self, target: &dyn WaitTarget, name: &Name, ask: Ask) -> Option<Ticks> {
        let account = target.account(name);
        self.lock(|state| {
            let id = *state.policy.ids.get(name.key())?;
            let wait = state.queue(id)?.outlook(target, &account, target.clock().now(), ask);
            Some(wait.max(Ticks::new(1)))
        })
    }

    /// Serves the waiters of a key, because something was given back or charged.
    pub(crate) fn serve_key(&self, target: &Arc<dyn WaitTarget>, name: &Name) {
        if self.has_waiters() {
            self.with(target, |state, turn| serve_key(state, turn, name));
        }
    }

    /// Begins anew with the waiters of a key, because its state was forgotten.
    pub(crate) fn begin_anew(&self, target: &Arc<dyn WaitTarget>, name: &Name) {
        if self.has_waiters() {
            self.with(target, |state, turn| {
                if let Some(id) = state.policy.ids.get(name.key()).copied() {
                    begin_anew(state, turn, id);
                }
            });
        }
    }

    /// Begins anew with all waiters, because the limit was changed.
    pub(crate) fn begin_all_anew(&self, target: &Arc<dyn WaitTarget>) {
        if self.has_waiters() {
            self.with(target, begin_all_anew);
        }
    }

    /// Replaces the limit. What was taken ahead for the head of a queue goes back before its counts are carried over,
    /// or it would be charged under both limits.
    pub(crate) fn replace_limit<R>(&self, target: &Arc<dyn WaitTarget>, replace: impl FnOnce() -> R) -> R {
        if self.is_empty() {
            let replaced = replace();
            self.begin_all_anew(target);
            return replaced;
        }
        self.with(target, |state, turn| {
            state.queues().for_each(|queue| queue.give_back_serving(turn.owner));
            let replaced = replace();
            begin_all_anew(state, turn);
            replaced
        })
    }
}

impl QueuePolicy for KeyFifo {
    type Owner = dyn WaitTarget;
    type Ask = WaiterAsk;
    type State = KeyState;
    type Grant = Passed;
    type Denial = Refusal;

    fn queue(target: &Self::Owner) -> &WaitQueue<KeyFifo> {
        target.queue()
    }

    fn clock(target: &Self::Owner) -> &impl Clock {
        target.clock()
    }

    fn next(&mut self, turn: &mut Turn<'_, KeyFifo>, queue: &mut KeyQueue<KeyFifo>) -> Next<KeyFifo> {
        let (target, now) = (turn.owner, turn.now);
        let account = target.account(&queue.state.name);
        turn.at = turn.at.max(if account.terms().spaces() { now.saturating_sub(LATENESS) } else { now });
        if queue.due().is_none_or(|due| turn.at > due) || queue.len() > FORESEEN {
            queue.state.tail = None;
        }
        if let Some(taken) = queue.state.serving.take() {
            // It never waits longer than the reported delay, even if the clock stepped back since.
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
        turn: Turn<'_, KeyFifo>,
        queue: &mut KeyQueue<KeyFifo>,
        ask: &WaiterAsk,
        cause: Cause,
    ) -> Refusal {
        let decision = turn.owner.look(&turn.owner.account(&queue.state.name), ask.ask);
        match cause {
            // It was not its turn, whatever the limit would say to a caller alone.
            Cause::TimedOut if decision.is_allowed() => Refusal::timed_out(decision.put_off(Ticks::new(1))),
            Cause::TimedOut => Refusal::timed_out(decision),
            Cause::NoTimer => Refusal::no_timer(decision),
        }
    }

    fn give_back(state: &mut QueueState<KeyFifo>, turn: Turn<'_, KeyFifo>, _: Ticket, passed: Passed) {
        let name = passed.taken.account.name().clone();
        passed.taken.give_back(turn.owner);
        serve_key(state, turn, &name);
    }

    fn left(
        &mut self,
        turn: Turn<'_, KeyFifo>,
        queue: &mut KeyQueue<KeyFifo>,
        entry: &Entry<WaiterAsk>,
        was_head: bool,
    ) {
        queue.state.units = queue.state.units.saturating_sub(entry.ask.ask.units());
        queue.state.tail = None;
        if was_head {
            queue.give_back_serving(turn.owner);
        }
    }

    fn is_over(&mut self, queue: &KeyQueue<KeyFifo>) -> bool {
        self.ids.remove(queue.state.name.key()).is_some()
    }

    fn stepped_back(state: &mut QueueState<KeyFifo>, _: Turn<'_, KeyFifo>, _: Ticks) {
        state.queues().for_each(|queue| queue.state.tail = None);
    }
}

impl KeyQueue<KeyFifo> {
    /// Takes for the head, as of the time of the turn or later times up to now.
    fn take_for_head(&mut self, turn: &mut Turn<'_, KeyFifo>, account: &Account) -> Next<KeyFifo> {
        let Some((_, head)) = self.head() else { return Next::Wait(None) };
        let ask = WaiterAsk { ask: account.terms().in_line(head.ask.ask), ..head.ask };
        loop {
            let taken = Taken::take(turn.owner, account, ask, Some(turn.at));
            let decision = taken.decision;
            let (wait, is_taken) = match decision.verdict_in_ticks() {
                Verdict::Allowed { delay } => (delay, true),
                Verdict::Denied { retry_after } if !decision.is_store_full() => (retry_after, false),
                _ => return self.settle_head(turn.now, Err(decision)),
            };
            let due = turn.at.saturating_add(wait);
            if due > turn.now {
                self.state.serving = is_taken.then_some(taken);
                return Next::Wait(Some(due));
            }
            if is_taken {
                turn.at = due;
                return self.settle_head(turn.now, Ok(taken));
            }
            if due == turn.at {
                // Time itself is over.
                return self.settle_head(turn.now, Err(decision));
            }
            turn.at = due;
        }
    }

    fn settle_head(&mut self, now: Timestamp, result: Result<Taken, Decision>) -> Next<KeyFifo> {
        let Some((number, head)) = self.head() else { return Next::Wait(None) };
        let (waited, units) = (now.since(head.since), head.ask.ask.units());
        self.state.units = self.state.units.saturating_sub(units);
        Next::Settle(
            number,
            match result {
                Ok(taken) => Ok(Passed::after(waited, taken)),
                Err(decision) => {
                    self.state.tail = None;
                    Err(Refusal::of(decision))
                }
            },
        )
    }

    fn give_back_serving(&mut self, target: &dyn WaitTarget) {
        if let Some(taken) = self.state.serving.take() {
            taken.give_back(target);
        }
    }
}

/// Passes at once, is denied at once, or waits.
fn enter(state: &mut QueueState<KeyFifo>, turn: Turn<'_, KeyFifo>, request: Request<'_>) -> Joined<KeyFifo> {
    let Turn { owner: target, now, .. } = turn;
    let Request { name, ask: WaiterAsk { ask, is_tracked }, max_wait } = request;
    let account = target.account(name);
    let terms = *account.terms();
    let known = state.policy.ids.get(name.key()).copied();
    let (decision, wait, serving) = match known.and_then(|id| state.queue(id)) {
        None => {
            let asked = WaiterAsk { ask: terms.in_line(ask), is_tracked };
            let taken = Taken::take(target, &account, asked, Some(now));
            let decision = taken.decision;
            match decision.verdict_in_ticks() {
                Verdict::Allowed { delay: Ticks::ZERO } => {
                    return Joined::Over(Ok(Passed::after(Ticks::ZERO, taken)));
                }
                Verdict::Allowed { delay } => (decision, delay, Some(taken)),
                Verdict::Denied { retry_after } if !decision.is_store_full() => (decision, retry_after, None),
                _ => return Joined::Over(Err(Refusal::of(decision))),
            }
        }
        Some(queue) => {
            let decision = target.look(&account, terms.in_line(ask));
            if decision.verdict_in_ticks() == Verdict::Impossible {
                return Joined::Over(Err(Refusal::of(decision)));
            }
            let wait = max_wait.map_or(Ticks::ZERO, |_| queue.outlook(target, &account, now, ask));
            (decision, wait, None)
        }
    };
    let is_too_long = terms.foretells() && max_wait.is_some_and(|max_wait| wait > max_wait);
    let is_full = state.is_full();
    let queue = known.and_then(|id| state.queue(id));
    let units = queue.as_ref().map_or(0, |queue| queue.state.units).saturating_add(ask.units());
    if is_too_long || is_full || terms.is_queue_full(now, units, || target.state(&account)) {
        if let Some(taken) = serving {
            taken.give_back(target);
        }
        let wait = queue.map_or(wait, |queue| queue.outlook(target, &account, now, ask));
        let decision = decision.put_off(wait.max(Ticks::new(1)));
        let refusal = if is_too_long { Refusal::of(decision) } else { Refusal::line_full(decision) };
        return Joined::Over(Err(refusal));
    }
    let id = known.unwrap_or_else(|| open(state, name, now.saturating_add(wait), serving));
    let ticket = state.draw(id);
    if let Some(queue) = state.queue(id) {
        queue.state.units = units;
        queue.foresee_one_more(&terms, ask);
    }
    state.join(ticket, Entry::new(request.ask, now, max_wait));
    Joined::Waiting(ticket)
}

fn open(state: &mut QueueState<KeyFifo>, name: &Name, due: Timestamp, serving: Option<Taken>) -> u64 {
    let id = state.open(KeyState { name: name.clone(), serving, units: 0, tail: None });
    state.policy.ids.insert(name.key().into(), id);
    state.set_due(id, Some(due));
    id
}

fn serve_key(state: &mut QueueState<KeyFifo>, turn: Turn<'_, KeyFifo>, name: &Name) {
    let Some(id) = state.policy.ids.get(name.key()).copied() else { return };
    if let Some(queue) = state.queue(id) {
        queue.state.tail = None;
        state.serve(turn, id);
    }
}

/// Begins anew with the waiters of a key: what the head has taken ahead goes back.
fn begin_anew(state: &mut QueueState<KeyFifo>, turn: Turn<'_, KeyFifo>, id: u64) {
    if let Some(queue) = state.queue(id) {
        queue.give_back_serving(turn.owner);
        queue.state.tail = None;
        state.serve(turn, id);
    }
}

fn begin_all_anew(state: &mut QueueState<KeyFifo>, turn: Turn<'_, KeyFifo>) {
    let ids: Vec<_> = state.policy.ids.values().copied().collect();
    ids.into_iter().for_each(|id| begin_anew(state, turn, id));
}
