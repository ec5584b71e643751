//! The state of one origin beside its waiters: its course, and the calls that are leaving or on their way.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate::wait_queue::Ticket;
use tidegate::{Ticks, Timestamp};

use crate::course::{Answer, Course, LetGo, Look, Terms};
use crate::held::{Held, Reason};
use crate::told::Told;

/// How many waiters are foreseen one by one; those behind them get a lower bound of their wait.
const FORESEEN: usize = 1000;
/// The most waits in a row that are foreseen for one call.
const MOST_WAITS: usize = 64;
/// A call that has been on its way for so long was counted by the server, or never arrives.
const SURELY_COUNTED: Ticks = Ticks::saturating_from(Duration::from_secs(10));

/// Proof that a call may leave.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) ticket: Ticket,
    /// Since when it waited.
    pub(crate) since: Timestamp,
    /// The moment of the origin at which it was let go.
    left_at: u64,
    let_go: LetGo,
}

/// The state of one origin.
#[derive(Debug, Default)]
pub(crate) struct OriginState {
    pub(crate) course: Course,
    /// How many were let go and have not left yet.
    leaving: u64,
    /// Those that have left and are not answered yet, by the moment at which they were let go, and when they left.
    on_their_way: BTreeMap<u64, Timestamp>,
    /// How many besides left so long ago that what a server says is left is without them.
    hanging: u64,
    /// Counts what happens, to tell earlier from later.
    moment: u64,
    /// When something was learned last.
    learned: u64,
    /// The course when all waiters have left, and when that is.
    pub(crate) tail: Option<(Course, Timestamp)>,
}

impl OriginState {
    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Lets a call go that has waited since this time.
    pub(crate) fn let_go(&mut self, terms: &Terms, now: Timestamp, ticket: Ticket, since: Timestamp) -> Exit {
        let let_go = self.course.let_go(terms, now);
        self.leaving += 1;
        Exit { ticket, since, left_at: self.next_moment(), let_go }
    }

    /// Foresees one more call behind those that wait; an error if it would wait for too long.
    pub(crate) fn foresee_one_more(
        &mut self,
        terms: &Terms,
        now: Timestamp,
        waiting: usize,
        max_wait: Ticks,
    ) -> Result<(), Held> {
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
            true => Err(Held::new(reason, Some(at.since(now).to_duration()))),
            false => Ok(()),
        }
    }

    /// Foresees that the waiters have left, or as many of them as are foreseen.
    fn foresee(&self, terms: &Terms, now: Timestamp, waiting: usize) -> (Course, Timestamp) {
        let (mut course, mut at) = (self.course.foreseen(), now);
        for _ in 0..waiting.min(FORESEEN) {
            pass(&mut course, terms, &mut at, now);
            course.let_go(terms, at);
        }
        (course, at)
    }

    /// Notes that a call has not left after all.
    pub(crate) fn take_back(&mut self, terms: &Terms, now: Timestamp, exit: Exit) {
        self.leaving = self.leaving.saturating_sub(1);
        self.course.give_back(terms, now, exit.let_go);
        self.tail = None;
    }

    /// Returns true if this call, which was let go, leaves now. If something was learned since, or the pace is spent by
    /// others, it has to be asked again.
    pub(crate) fn leaves(&mut self, terms: &Terms, now: Timestamp, exit: &Exit) -> bool {
        let leaves = self.learned < exit.left_at && self.course.leave(terms, now, &exit.let_go);
        if leaves {
            self.leaving = self.leaving.saturating_sub(1);
            self.on_their_way.insert(exit.left_at, now);
        }
        leaves
    }

    /// Notes that a call has ended, with an answer or without one; chance decides the jitter.
    pub(crate) fn ended(&mut self, terms: &Terms, now: Timestamp, exit: &Exit, told: &Told, chance: u64) {
        if self.on_their_way.remove(&exit.left_at).is_none() {
            self.hanging = self.hanging.saturating_sub(1);
        }
        self.course.ended(&exit.let_go, told.went);
        if told.is_nothing() {
            return;
        }
        self.set_hanging_apart(now);
        // Answers may cross: it is not known which of those on their way this one has counted.
        let others = self.leaving + self.on_their_way.len() as u64;
        self.learned = self.next_moment();
        let answer = Answer { told, left_at: exit.left_at, learned: self.learned, others, chance };
        self.course.learn(terms, now, &answer);
        self.tail = None;
    }

    fn set_hanging_apart(&mut self, now: Timestamp) {
        while let Some(eldest) = self.on_their_way.first_entry() {
            if now.since(*eldest.get()) <= SURELY_COUNTED {
                return;
            }
            eldest.remove();
            self.hanging += 1;
        }
    }

    /// Notes that the clock has stepped back by so much.
    pub(crate) fn step_back(&mut self, by: Ticks) {
        self.course.step_back(by);
        for left in self.on_their_way.values_mut() {
            *left = left.saturating_sub(by);
        }
        self.tail = None;
    }

    /// Returns how many calls may leave before anything holds them back, if none is leaving and nothing does yet.
    pub(crate) fn looseness(&mut self, terms: &Terms, now: Timestamp) -> Option<i128> {
        let is_empty = self.leaving == 0 && self.on_their_way.is_empty() && self.hanging == 0;
        if is_empty { self.course.looseness(terms, now) } else { None }
    }
}

/// Moves the time on to when one more may leave; returns what held it back last.
fn pass(course: &mut Course, terms: &Terms, at: &mut Timestamp, now: Timestamp) -> Reason {
    *at = now.max(*at);
    let mut last = Reason::Paced;
    for _ in 0..MOST_WAITS {
        let Look::Wait { until, reason } = course.look(terms, *at) else { break };
        (*at, last) = (until, reason);
    }
    last
}
