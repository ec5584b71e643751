//! The queue of a concurrency limit: by rank, oldest first within a class, newest first under overload.
//!
//! Whenever the lock is released, no waiter can be admitted. So a caller that arrives later and is admitted
//! overtakes none.

use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;

use super::slots::ClassSlots;
use super::{ConcurrencySettings, InFlightLimit};
use crate::adaptive::{Estimator, Outcome, Sample};
use crate::denied::{Denied, Reason};
use crate::time::{Clock, SECOND, Ticks, Timestamp};
use crate::wait::{
    Cause, Entry, Joined, KeyQueue, Next, QueuePolicy, QueueState, QueueTicket, QueueTurn, WaitQueue, Waiter,
};

/// The suggested wait before the next attempt: the time of the next release is not known.
const GUESS: Ticks = Ticks::saturating_from(SECOND);

/// The state of a concurrency limit, and its queue.
///
/// One lock guards the slots and the queues. So a slot that becomes free and its next holder change in one step.
#[derive(Debug)]
pub struct ConcurrencyState {
    pub(super) settings: ConcurrencySettings,
    pub(super) queue: WaitQueue<ClassQueues>,
}

/// The order of the waiters: classes by rank, which is the order in which their queues are opened.
#[derive(Debug)]
pub struct ClassQueues {
    pub(super) slots: ClassSlots,
    estimator: Option<Estimator>,
    /// The time since which there have been waiters without interruption.
    busy_since: Timestamp,
}

/// The order within a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    OldestFirst,
    NewestFirst,
}

impl ConcurrencyState {
    /// Creates the state, with one open queue per class.
    pub(super) fn new(settings: ConcurrencySettings) -> ConcurrencyState {
        let (limit, estimator) = match &settings.most {
            InFlightLimit::Fixed(limit) => (*limit, None),
            InFlightLimit::Adaptive(adapt) => {
                let estimator = Estimator::new(adapt);
                (estimator.limit(), Some(estimator))
            }
        };
        let slots = ClassSlots::new(limit, &settings.classes);
        let policy = ClassQueues { slots, estimator, busy_since: Timestamp::EPOCH };
        let queue = WaitQueue::new(policy, settings.line);
        queue.lock(|state| {
            for rank in 0..settings.classes.len() {
                state.open(rank, ());
            }
        });
        ConcurrencyState { settings, queue }
    }

    /// Reads the slots under the lock.
    pub(super) fn slots<R>(&self, read: impl FnOnce(&ClassSlots) -> R) -> R {
        self.queue.lock(|state| read(&state.policy.slots))
    }

    /// Returns the time of admission; `None` if the limit is fixed, because then it is not needed.
    pub(super) fn entered_at(&self) -> Option<Timestamp> {
        match self.settings.most {
            InFlightLimit::Fixed(_) => None,
            InFlightLimit::Adaptive(_) => Some(self.settings.clock.now()),
        }
    }

    /// Takes a slot now, or denies.
    #[inline]
    pub(super) fn enter(&self, class: usize) -> Result<(), Denied> {
        self.queue.lock(|state| state.policy.enter(class))
    }

    /// Takes a slot, denies, or queues a waiter.
    ///
    /// A free slot is taken at once. With a max wait of zero, or without a queue, the denial is that of a call that
    /// does not wait.
    pub(super) fn acquire(
        self: &Arc<ConcurrencyState>,
        class: usize,
        max_wait: Option<Ticks>,
    ) -> Joined<ClassQueues, Waiter<ClassQueues>> {
        if self.enter(class).is_ok() {
            return Break(Ok(()));
        }
        self.queue.join(self, |state, turn| {
            let Err(overloaded) = state.policy.enter(class) else { return Break(Ok(())) };
            if max_wait == Some(Ticks::ZERO) || self.settings.line == 0 {
                return Break(Err(overloaded));
            }
            if state.is_full() && !push_out(state, turn, class) {
                return Break(Err(Denied::because(Reason::LineFull, overloaded.decision())));
            }
            if state.waiting() == 0 {
                state.policy.busy_since = turn.now;
            }
            let ticket = queue_of(state, class).draw();
            Continue(state.join(ticket, Entry::new((), turn.now, max_wait)))
        })
    }

    /// Gives back the slot of a call that has ended; an adaptive limit uses its outcome.
    ///
    /// Under a fixed limit without waiters it only counts, and reads no clock. Otherwise the freed slot, or a raised
    /// limit, serves the queues.
    pub(super) fn leave(
        self: &Arc<ConcurrencyState>,
        class: usize,
        entered: Option<Timestamp>,
        outcome: Outcome,
    ) {
        if entered.is_none() {
            let is_done = self.queue.lock(|state| {
                let is_unwanted = state.waiting() == 0;
                if is_unwanted {
                    state.policy.slots.give_back(class);
                }
                is_unwanted
            });
            if is_done {
                return;
            }
        }
        self.queue.with(self, |state, turn| {
            let ClassQueues { slots, estimator, .. } = &mut state.policy;
            let in_flight = slots.in_flight;
            slots.give_back(class);
            if let (Some(estimator), Some(entered)) = (estimator, entered) {
                let latency = turn.now.since(entered);
                let limit = estimator.observe(Sample { now: turn.now, latency, in_flight, outcome });
                if limit != slots.limit {
                    slots.set_limit(limit);
                }
            }
            state.serve_all(turn);
        });
    }
}

impl ClassQueues {
    /// Takes a slot by the counters alone. No waiter that is still queued is entitled to it.
    #[inline]
    fn enter(&mut self, class: usize) -> Result<(), Denied> {
        if self.slots.take(class) { Ok(()) } else { Err(self.overloaded()) }
    }

    /// Returns the denial of a call that finds no slot; its retry time is a guess.
    fn overloaded(&self) -> Denied {
        Denied::overloaded(self.slots.limit, GUESS)
    }

    /// Returns newest first once there have been waiters without interruption for `newest_first_after`.
    fn order(&self, turn: QueueTurn<'_, ClassQueues>) -> Order {
        match turn.owner.settings.newest_first_after {
            Some(longest) if turn.now.since(self.busy_since) >= longest => Order::NewestFirst,
            _ => Order::OldestFirst,
        }
    }
}

/// Serves the classes by rank. A waiter is given its slot before it is woken, so none has to compete for it.
impl QueuePolicy for ClassQueues {
    type Owner = ConcurrencyState;
    type Key = usize;
    type Ask = ();
    type State = ();
    type Grant = ();
    type Denial = Denied;

    fn queue(shared: &ConcurrencyState) -> &WaitQueue<ClassQueues> {
        &shared.queue
    }

    fn clock(shared: &ConcurrencyState) -> &impl Clock {
        &shared.settings.clock
    }

    fn next(
        &mut self,
        turn: &mut QueueTurn<'_, ClassQueues>,
        queue: &mut KeyQueue<ClassQueues>,
    ) -> Next<ClassQueues> {
        match queue.first_by(self.order(*turn)) {
            Some(number) if self.slots.take(queue.key) => Next::Settle(number, Ok(())),
            _ => Next::Wait(None),
        }
    }

    fn deny(
        &mut self,
        _: QueueTurn<'_, ClassQueues>,
        _: &mut KeyQueue<ClassQueues>,
        _: &(),
        cause: Cause,
    ) -> Denied {
        Denied::because(Reason::CutShort(cause), self.overloaded().decision())
    }

    fn give_back(
        state: &mut QueueState<ClassQueues>,
        turn: QueueTurn<'_, ClassQueues>,
        ticket: QueueTicket,
        (): (),
    ) {
        if let Some(rank) = state.queue(ticket.queue).map(|queue| queue.key) {
            state.policy.slots.give_back(rank);
            state.serve_all(turn);
        }
    }

    /// Restarts the overload timer if the clock was set back: its start must not be in the future.
    fn stepped_back(state: &mut QueueState<ClassQueues>, turn: QueueTurn<'_, ClassQueues>, _: Ticks) {
        state.policy.busy_since = state.policy.busy_since.min(turn.now);
    }
}

impl KeyQueue<ClassQueues> {
    /// Returns the number of the waiter that is served first in this order.
    fn first_by(&self, order: Order) -> Option<u64> {
        let mut entries = self.entries();
        let entry = match order {
            Order::OldestFirst => entries.next(),
            Order::NewestFirst => entries.next_back(),
        };
        entry.map(|(number, _)| number)
    }
}

/// Makes room for an arrival in a full queue by the eviction of one waiter. The victim is of the lowest class that
/// wants more than its reserve: the waiter that would be served last there. Returns false if there is no victim.
///
/// Under oldest first, only classes below that of the arrival are considered. Under newest first, all classes are, and
/// the arrival counts as a waiter of its own class. If that class is chosen and has no other waiter, there is no
/// victim.
fn push_out(state: &mut QueueState<ClassQueues>, turn: QueueTurn<'_, ClassQueues>, newcomer: usize) -> bool {
    let (first, last_served) = match state.policy.order(turn) {
        Order::OldestFirst => (newcomer + 1, Order::NewestFirst),
        Order::NewestFirst => (0, Order::OldestFirst),
    };
    let refusal = Denied::because(Reason::PushedOut, state.policy.overloaded().decision());
    let wants_more = |class: &usize| {
        let waiting = queue_of(state, *class).len() + usize::from(*class == newcomer);
        waiting as u64 > state.policy.slots.left_of_reserve(*class)
    };
    let victim = (first..turn.owner.settings.classes.len()).rev().find(wants_more);
    let victim = victim.and_then(|class| {
        let queue = queue_of(state, class);
        Some(QueueTicket { queue: queue.id, number: queue.first_by(last_served)? })
    });
    if let Some(ticket) = victim {
        state.settle(ticket, Err(refusal));
    }
    victim.is_some()
}

/// Returns the queue of a class. It stays open as long as the limiter exists.
pub(super) fn queue_of(state: &mut QueueState<ClassQueues>, class: usize) -> &mut KeyQueue<ClassQueues> {
    let id = state.id_of(&class).expect("every class has a queue");
    state.queue(id).expect("every class keeps its queue")
}
