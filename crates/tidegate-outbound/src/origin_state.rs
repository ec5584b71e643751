//! The state of one origin beside its waiters: its [`HoldState`], and the calls that are leaving or in flight.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_core::wait_queue::QueueTicket;
use tidegate_core::{Ticks, Timestamp};

use crate::hints::ServerHints;
use crate::hold_state::{Answer, HoldState, Look, PaceConfig, ReleaseReceipt};
use crate::throttled::{Reason, Throttled};

/// The number of waiters that are simulated one by one. The waiters behind them get a lower bound of their wait.
const FORESEEN: usize = 1000;
/// The maximum number of consecutive waits that are simulated for one call.
const MOST_WAITS: usize = 64;
/// The time in flight after which the server has counted a call, or will never receive it.
const SURELY_COUNTED: Ticks = Ticks::saturating_from(Duration::from_secs(10));

/// The permission of a call to leave.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) ticket: QueueTicket,
    /// The time at which its wait began.
    pub(crate) since: Timestamp,
    /// The moment of the origin at which it was released.
    left_at: u64,
    /// The receipt of the pace and of slow start.
    let_go: ReleaseReceipt,
}

/// The state of one origin.
#[derive(Debug, Default)]
pub(crate) struct OriginState {
    pub(crate) course: HoldState,
    /// The number of calls that were released and have not left yet.
    leaving: u64,
    /// The calls in flight, by the moment at which they were released, with the time at which they left.
    on_their_way: BTreeMap<u64, Timestamp>,
    /// The number of calls in flight for so long that they are not subtracted from a reported quota.
    hanging: u64,
    /// A counter of events, which orders them.
    moment: u64,
    /// The moment of the last update from a response.
    learned: u64,
    /// The simulated state after all waiters have left, and the time of that.
    pub(crate) tail: Option<(HoldState, Timestamp)>,
}

impl OriginState {
    /// Advances the counter of events.
    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Releases a call that has waited since this time.
    pub(crate) fn let_go(
        &mut self,
        terms: &PaceConfig,
        now: Timestamp,
        ticket: QueueTicket,
        since: Timestamp,
    ) -> Exit {
        let let_go = self.course.let_go(terms, now);
        self.leaving += 1;
        Exit { ticket, since, left_at: self.next_moment(), let_go }
    }

    /// Simulates one more call behind the waiters; an error if it would wait too long.
    pub(crate) fn foresee_one_more(
        &mut self,
        terms: &PaceConfig,
        now: Timestamp,
        waiting: usize,
        max_wait: Ticks,
    ) -> Result<(), Throttled> {
        let tail = self.tail.take().filter(|_| waiting > 0);
        let (mut course, mut at) = tail.unwrap_or_else(|| self.foresee(terms, now, waiting));
        let reason = pass(&mut course, terms, &mut at, now);
        let is_too_long = at > now.saturating_add(max_wait);
        if !is_too_long {
            course.let_go(terms, at);
        }
        if is_too_long || waiting < FORESEEN {
            self.tail = Some((course, at));
        }
        match is_too_long {
            true => Err(Throttled::new(reason, Some(at.since(now).to_duration()))),
            false => Ok(()),
        }
    }

    /// Simulates the departure of the waiters, or of as many as are simulated.
    fn foresee(&self, terms: &PaceConfig, now: Timestamp, waiting: usize) -> (HoldState, Timestamp) {
        let (mut course, mut at) = (self.course.foreseen(), now);
        for _ in 0..waiting.min(FORESEEN) {
            pass(&mut course, terms, &mut at, now);
            course.let_go(terms, at);
        }
        (course, at)
    }

    /// Takes back the release of a call that has not left.
    pub(crate) fn take_back(&mut self, terms: &PaceConfig, now: Timestamp, exit: Exit) {
        self.leaving = self.leaving.saturating_sub(1);
        self.course.give_back(terms, now, exit.let_go);
        self.tail = None;
    }

    /// Returns true if this call, which was released, leaves now. If a response has arrived since, or other calls have
    /// used up the pace, it has to wait again.
    pub(crate) fn leaves(&mut self, terms: &PaceConfig, now: Timestamp, exit: &Exit) -> bool {
        let leaves = self.learned < exit.left_at && self.course.leave(terms, now, &exit.let_go);
        if leaves {
            self.leaving = self.leaving.saturating_sub(1);
            self.on_their_way.insert(exit.left_at, now);
        }
        leaves
    }

    /// Records the end of a call, with a response or without one; `chance` decides the jitter.
    pub(crate) fn ended(
        &mut self,
        terms: &PaceConfig,
        now: Timestamp,
        exit: &Exit,
        hints: &ServerHints,
        chance: u64,
    ) {
        if self.on_their_way.remove(&exit.left_at).is_none() {
            self.hanging = self.hanging.saturating_sub(1);
        }
        self.course.ended(&exit.let_go, hints.went);
        if hints.is_nothing() {
            return;
        }
        self.set_hanging_apart(now);
        // Responses may overtake each other: it is unknown which of the calls in flight this one has counted.
        let others = self.leaving + self.on_their_way.len() as u64;
        self.learned = self.next_moment();
        let answer = Answer { hints, left_at: exit.left_at, learned: self.learned, others, chance };
        self.course.learn(terms, now, &answer);
        self.tail = None;
    }

    /// Moves calls that are in flight for more than ten seconds out of those that are subtracted from quotas.
    fn set_hanging_apart(&mut self, now: Timestamp) {
        while let Some(eldest) = self.on_their_way.first_entry() {
            if now.since(*eldest.get()) <= SURELY_COUNTED {
                return;
            }
            eldest.remove();
            self.hanging += 1;
        }
    }

    /// Moves all times after the clock stepped back by this much.
    pub(crate) fn step_back(&mut self, by: Ticks) {
        self.course.step_back(by);
        for left in self.on_their_way.values_mut() {
            *left = left.saturating_sub(by);
        }
        self.tail = None;
    }

    /// Returns the number of calls that may leave before something holds them back; `None` if a call is leaving or in
    /// flight, or if something does already.
    pub(crate) fn looseness(&mut self, terms: &PaceConfig, now: Timestamp) -> Option<i128> {
        let is_empty = self.leaving == 0 && self.on_their_way.is_empty() && self.hanging == 0;
        if is_empty { self.course.looseness(terms, now) } else { None }
    }
}

/// Advances the time until one more call may leave; returns the last reason for the wait.
fn pass(course: &mut HoldState, terms: &PaceConfig, at: &mut Timestamp, now: Timestamp) -> Reason {
    *at = now.max(*at);
    let mut last = Reason::Paced;
    for _ in 0..MOST_WAITS {
        let Look::Wait { until, reason } = course.look(terms, *at) else { break };
        (*at, last) = (until, reason);
    }
    last
}
