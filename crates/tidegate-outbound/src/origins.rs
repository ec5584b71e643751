//! The queue of outgoing calls: for each origin its waiters, in FIFO order, and the time at which the first may leave.
//!
//! The number of origins is bounded. An origin that is over (no waiters, no calls in flight, no state that still
//! counts) is forgotten first, then the one with the largest remaining quota. If all of them hold calls back, new
//! origins share one: their calls may wait for each other, and none leaves too early. The keys that share it are
//! stored, so that no other key waits for them once there is space again.

use std::collections::HashSet;
use std::ops::ControlFlow::{Break, Continue};
use std::time::Duration;

use tidegate_core::wait_queue::{
    Cause, Entry, Joined, KeyQueue, Next, QueuePolicy, QueueState, QueueTicket, QueueTurn, WaitQueue,
};
use tidegate_core::{Clock, Key, Ticks};

use crate::departure::Shared;
use crate::hold_state::Look;
use crate::origin_state::{Exit, OriginState};
use crate::throttled::{Reason, Throttled};

/// The maximum number of origins with a state of their own.
pub(crate) const MAX_KEYS: usize = 1024;

/// The maximum number of waiters in all, as a multiple of that for one origin.
pub(crate) const QUEUES: usize = 16;

/// The smallest step of a clock. Smaller differences are noise; if they counted, many of them would end a hold too
/// early.
const STEP: Ticks = Ticks::saturating_from(Duration::from_millis(1));

/// The order of outgoing calls: FIFO for each origin, as soon as nothing holds it back.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The keys of calls in the shared queue, while its state still counts.
    sharing: HashSet<Key>,
}

impl QueuePolicy for Origins {
    type Owner = Shared;
    /// `None` is the origin that all keys share for which there is no other.
    type Key = Option<Key>;
    type Ask = ();
    type State = OriginState;
    type Grant = Exit;
    type Denial = Throttled;

    fn queue(shared: &Shared) -> &WaitQueue<Origins> {
        &shared.queue
    }

    fn clock(shared: &Shared) -> &impl Clock {
        &shared.settings.clock
    }

    /// Settles the first waiter: it may leave, or it fails because it would wait beyond its deadline. Else returns the
    /// time to look again.
    fn next(&mut self, turn: &mut QueueTurn<'_, Origins>, queue: &mut KeyQueue<Origins>) -> Next<Origins> {
        let (terms, now) = (&turn.owner.settings.terms, turn.now);
        let Some((number, head)) = queue.head() else { return Next::Wait(None) };
        let (since, deadline) = (head.since, head.deadline());
        let result = match queue.state.course.look(terms, now) {
            Look::Clear => {
                let ticket = QueueTicket { queue: queue.id, number };
                Ok(queue.state.let_go(terms, now, ticket, since))
            }
            Look::Wait { until, reason } if deadline.is_some_and(|deadline| deadline < until) => {
                Err(Throttled::new(reason, Some(until.since(now).to_duration())))
            }
            Look::Wait { until, .. } | Look::Perhaps { until } => return Next::Wait(Some(until)),
        };
        if queue.len() == 1 {
            queue.state.tail = None;
        }
        Next::Settle(number, result)
    }

    /// Returns the error of a waiter whose max wait is over, with the time that it would have to wait still.
    fn deny(
        &mut self,
        turn: QueueTurn<'_, Origins>,
        queue: &mut KeyQueue<Origins>,
        (): &(),
        cause: Cause,
    ) -> Throttled {
        if cause == Cause::NoTimer {
            return Throttled::new(Reason::NoTimer, None);
        }
        // A response might have come in time; none did.
        let (until, reason) = match queue.state.course.look(&turn.owner.settings.terms, turn.now) {
            Look::Wait { until, reason } => (until, reason),
            Look::Perhaps { until } => (until, Reason::Reported),
            Look::Clear => (turn.now, Reason::Paced),
        };
        Throttled::new(reason, Some(until.since(turn.now).to_duration()))
    }

    /// Takes back the release of a waiter that was dropped before it could leave.
    fn give_back(
        state: &mut QueueState<Origins>,
        turn: QueueTurn<'_, Origins>,
        ticket: QueueTicket,
        exit: Exit,
    ) {
        if let Some(queue) = state.queue(ticket.queue) {
            queue.state.take_back(&turn.owner.settings.terms, turn.now, exit);
            state.serve(turn, ticket.queue);
        }
    }

    /// Discards the simulation behind a waiter that has left the queue.
    fn left(&mut self, _: QueueTurn<'_, Origins>, queue: &mut KeyQueue<Origins>, _: &Entry<()>, _: bool) {
        queue.state.tail = None;
    }

    /// Moves the times of all origins with a clock that stepped back, so that holds keep their length.
    fn stepped_back(state: &mut QueueState<Origins>, _: QueueTurn<'_, Origins>, by: Ticks) {
        if by >= STEP {
            state.queues().for_each(|queue| queue.state.step_back(by));
        }
    }
}

/// Adds a call: it leaves at once, waits, or fails.
///
/// With a max wait the departure of all waiters before it is simulated, so that a call which would wait too long fails
/// now.
pub(crate) fn enter(
    state: &mut QueueState<Origins>,
    turn: QueueTurn<'_, Origins>,
    key: &Key,
) -> Joined<Origins> {
    let (settings, now, is_full) = (&turn.owner.settings, turn.now, state.is_full());
    let id = origin_of(state, turn, key);
    let queue = state.queue(id).expect("the queue was found or opened just now");
    let (ticket, waiting) = (queue.draw(), queue.len());
    if waiting == 0 && queue.state.course.look(&settings.terms, now) == Look::Clear {
        return Break(Ok(queue.state.let_go(&settings.terms, now, ticket, now)));
    }
    if is_full || waiting >= settings.most_waiting {
        return Break(Err(Throttled::new(Reason::LineFull, None)));
    }
    let max_wait = settings.max_wait();
    if let Some(max_wait) = max_wait
        && let Err(held) = queue.state.foresee_one_more(&settings.terms, now, waiting, max_wait)
    {
        return Break(Err(held));
    }
    state.join(ticket, Entry::new((), now, max_wait));
    state.serve(turn, id);
    Continue(ticket)
}

/// Confirms that a released call leaves now; or puts it back at its place in the queue, if it has to wait again.
pub(crate) fn confirm(
    state: &mut QueueState<Origins>,
    turn: QueueTurn<'_, Origins>,
    exit: Exit,
) -> Result<Exit, QueueTicket> {
    let (settings, ticket) = (&turn.owner.settings, exit.ticket);
    // Without its origin it is unknown whether it may leave.
    let queue = state.queue(ticket.queue).expect("an origin stays while a call of it is leaving");
    if queue.state.leaves(&settings.terms, turn.now, &exit) {
        return Ok(exit);
    }
    let entry = Entry::new((), exit.since, settings.max_wait());
    queue.state.take_back(&settings.terms, turn.now, exit);
    state.join(ticket, entry);
    state.serve(turn, ticket.queue);
    Err(ticket)
}

/// Returns the queue of this key: its own, one that is opened for it, or the shared one.
fn origin_of(state: &mut QueueState<Origins>, turn: QueueTurn<'_, Origins>, key: &Key) -> u64 {
    let own = Some(key.clone());
    if let Some(id) = state.id_of(&own) {
        return id;
    }
    let shared = state.id_of(&None);
    if let Some(queue) = shared.and_then(|id| state.queue(id)) {
        let looseness = queue.state.looseness(&turn.owner.settings.terms, turn.now);
        if queue.is_empty() && looseness == Some(i128::MAX) {
            state.policy.sharing.clear();
        }
    }
    let is_room = |state: &mut QueueState<_>| count(state) < MAX_KEYS || forget_some(state, turn);
    if !state.policy.sharing.contains(key) && is_room(state) {
        return state.open(own, OriginState::default());
    }
    if state.policy.sharing.len() < MAX_KEYS {
        state.policy.sharing.insert(key.clone());
    }
    shared.unwrap_or_else(|| state.open(None, OriginState::default()))
}

/// Forgets the origins that are over, or else the one that would hold calls back last; returns true if there were any.
fn forget_some(state: &mut QueueState<Origins>, turn: QueueTurn<'_, Origins>) -> bool {
    let (terms, now) = (&turn.owner.settings.terms, turn.now);
    let idle = state.queues().filter(|queue| queue.key.is_some() && queue.is_empty());
    let loose = idle.filter_map(|queue| Some((queue.state.looseness(terms, now)?, queue.id)));
    let loose: Vec<_> = loose.collect();
    let loosest = loose.iter().copied().max();
    let is_over = |origin: &&(i128, u64)| origin.0 == i128::MAX || loosest == Some(**origin);
    loose.iter().filter(is_over).for_each(|(_, id)| state.close(*id));
    !loose.is_empty()
}

/// Returns the number of origins with a state of their own.
pub(crate) fn count(state: &mut QueueState<Origins>) -> usize {
    let shared = state.id_of(&None);
    state.queues().len() - usize::from(shared.is_some())
}
