//! The calls to one place: those that wait, in order, those that may leave, and how many are on their way.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use std::time::Duration;

use tidegate::{Key, Ticks, Timestamp};

use super::course::{Answer, Course, LetGo, Look, Terms};
use super::held::{Held, Reason};
use super::told::Told;

/// How many are foreseen one by one; whoever comes behind them is told the least that it will wait.
const FORESEEN: usize = 1000;
/// More often than this nobody is foreseen to wait a little longer.
const MOST_WAITS: usize = 64;
/// A call that has been on its way for so long was counted by the server, or never arrives.
const SURELY_COUNTED: Ticks = Ticks::saturating_from(Duration::from_secs(10));

/// One that waits.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) deadline: Option<Timestamp>,
    pub(super) waker: Waker,
}

/// What became of one that waited and has not looked yet.
#[derive(Debug)]
enum Settled {
    MayLeave(Exit),
    Fails(Held),
}

/// Proof that a call may leave.
#[derive(Debug)]
pub(super) struct Exit {
    /// The moment of the line at which it was let go.
    left_at: u64,
    let_go: LetGo,
}

/// Wakers to be used or dropped once nobody is locked out any more.
#[derive(Debug, Default)]
pub(super) struct Afterwards {
    pub(super) wake: Vec<Waker>,
    pub(super) gone: Vec<Waker>,
}

/// The line of one place.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) key: Option<Key>,
    course: Course,
    waiters: BTreeMap<u64, Waiter>,
    settled: BTreeMap<u64, Settled>,
    /// How many were let go and have not left yet.
    leaving: u64,
    /// Those that have left and are not answered yet, by the moment at which they were let go, and when they left.
    on_their_way: BTreeMap<u64, Timestamp>,
    /// Those among them that left so long ago that what a server says is left is without them.
    hanging: BTreeSet<u64>,
    /// Counts what happens, to tell earlier from later.
    moment: u64,
    /// When something was learned last.
    learned: u64,
    /// When the first of those that wait may leave.
    pub(super) due: Option<Timestamp>,
    /// How it will be when all have left, and when that is.
    tail: Option<(Course, Timestamp)>,
}

impl Line {
    pub(super) fn of(key: Option<Key>) -> Line {
        Line { key, ..Line::default() }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Leaves at once, if nobody waits and nothing holds it back.
    pub(super) fn leave_at_once(&mut self, terms: &Terms, now: Timestamp) -> Option<Exit> {
        let is_free = self.waiters.is_empty() && self.course.look(terms, now) == Look::Clear;
        is_free.then(|| self.let_go(terms, now))
    }

    fn let_go(&mut self, terms: &Terms, now: Timestamp) -> Exit {
        let let_go = self.course.let_go(terms, now);
        self.leaving += 1;
        Exit { left_at: self.next_moment(), let_go }
    }

    /// Stands in line, unless it is known already that it would stand there for too long.
    pub(super) fn join(
        &mut self,
        terms: &Terms,
        now: Timestamp,
        (number, deadline): (u64, Option<Timestamp>),
    ) -> Result<(), Held> {
        if self.waiters.is_empty() {
            self.tail = None;
        }
        if let Some(deadline) = deadline {
            let (mut course, mut at) = self.tail.take().unwrap_or_else(|| self.foresee(terms, now));
            let reason = pass(&mut course, terms, &mut at, now);
            let is_too_long = at > deadline;
            if !is_too_long {
                course.let_go(terms, at);
            }
            if is_too_long || self.waiters.len() < FORESEEN {
                self.tail = Some((course, at));
            }
            if is_too_long {
                return Err(Held::new(reason, Some(at.since(now).to_duration())));
            }
        }
        self.waiters.insert(number, Waiter { deadline, waker: Waker::noop().clone() });
        Ok(())
    }

    /// How it will be when those who wait have left, or as many of them as are foreseen.
    fn foresee(&self, terms: &Terms, now: Timestamp) -> (Course, Timestamp) {
        let (mut course, mut at) = (self.course.foreseen(), now);
        for _ in self.waiters.iter().take(FORESEEN) {
            pass(&mut course, terms, &mut at, now);
            course.let_go(terms, at);
        }
        (course, at)
    }

    /// Lets leave who may, and tells those who would wait too long.
    pub(super) fn serve(&mut self, terms: &Terms, now: Timestamp, after: &mut Afterwards) {
        self.due = None;
        while let Some((number, waiter)) = self.waiters.pop_first() {
            let settled = match self.course.look(terms, now) {
                Look::Clear => Settled::MayLeave(self.let_go(terms, now)),
                Look::Wait { until, reason } if waiter.deadline.is_some_and(|deadline| deadline < until) => {
                    Settled::Fails(Held::new(reason, Some(until.since(now).to_duration())))
                }
                // An answer may come in time; if none does, it has waited in vain.
                Look::Perhaps { until } if waiter.deadline.is_some_and(|deadline| deadline <= now) => {
                    Settled::Fails(Held::new(Reason::Told, Some(until.since(now).to_duration())))
                }
                Look::Wait { until, .. } | Look::Perhaps { until } => {
                    self.due = Some(until.min(waiter.deadline.unwrap_or(until)));
                    self.waiters.insert(number, waiter);
                    return;
                }
            };
            self.settled.insert(number, settled);
            after.wake.push(waiter.waker);
        }
        self.tail = None;
    }

    /// What became of one that waits; if nothing yet, this waker is kept.
    pub(super) fn poll(
        &mut self,
        number: u64,
        waker: Waker,
        after: &mut Afterwards,
    ) -> Option<Result<Exit, Held>> {
        if let Some(settled) = self.settled.remove(&number) {
            after.gone.push(waker);
            return Some(match settled {
                Settled::MayLeave(exit) => Ok(exit),
                Settled::Fails(held) => Err(held),
            });
        }
        match self.waiters.get_mut(&number) {
            Some(waiter) => after.gone.push(std::mem::replace(&mut waiter.waker, waker)),
            None => after.gone.push(waker),
        }
        None
    }

    /// One goes away, wherever it stands.
    pub(super) fn abandon(&mut self, terms: &Terms, now: Timestamp, number: u64, after: &mut Afterwards) {
        if let Some(waiter) = self.waiters.remove(&number) {
            after.gone.push(waiter.waker);
            self.tail = None;
        }
        if let Some(Settled::MayLeave(exit)) = self.settled.remove(&number) {
            self.take_back(terms, now, exit);
        }
    }

    /// One has not left after all.
    pub(super) fn take_back(&mut self, terms: &Terms, now: Timestamp, exit: Exit) {
        self.leaving = self.leaving.saturating_sub(1);
        self.course.give_back(terms, now, exit.let_go);
        self.tail = None;
    }

    /// Whether this one, which was let go, leaves now. If something was learned since, or the pace is spent by others,
    /// it has to be asked again.
    pub(super) fn leaves(&mut self, terms: &Terms, now: Timestamp, exit: &Exit) -> bool {
        let leaves = self.learned < exit.left_at && self.course.leave(terms, now, &exit.let_go);
        if leaves {
            self.leaving = self.leaving.saturating_sub(1);
            self.on_their_way.insert(exit.left_at, now);
        }
        leaves
    }

    /// One that was let go and is still here stands in line again, where it stood.
    pub(super) fn rejoin(
        &mut self,
        terms: &Terms,
        now: Timestamp,
        exit: Exit,
        (number, deadline): (u64, Option<Timestamp>),
    ) {
        self.take_back(terms, now, exit);
        self.waiters.insert(number, Waiter { deadline, waker: Waker::noop().clone() });
    }

    /// A call has ended, with an answer or without one.
    pub(super) fn ended(&mut self, terms: &Terms, now: Timestamp, exit: &Exit, (told, chance): (&Told, u64)) {
        if self.on_their_way.remove(&exit.left_at).is_none() {
            self.hanging.remove(&exit.left_at);
        }
        self.course.ended(&exit.let_go, told.went);
        if told.is_nothing() {
            return;
        }
        self.set_hanging_apart(now);
        // Answers may cross: nobody knows which of those on their way this one has counted.
        let others = self.leaving + self.on_their_way.len() as u64;
        let learned = self.next_moment();
        self.learned = learned;
        let answer = Answer { told, left_at: exit.left_at, learned, others, chance };
        self.course.learn(terms, now, &answer);
        self.tail = None;
    }

    fn set_hanging_apart(&mut self, now: Timestamp) {
        while let Some(eldest) = self.on_their_way.first_entry() {
            if now.since(*eldest.get()) <= SURELY_COUNTED {
                return;
            }
            self.hanging.insert(eldest.remove_entry().0);
        }
    }

    /// Nobody can be woken any more: all who wait are told so.
    pub(super) fn fail_all(&mut self, after: &mut Afterwards) {
        self.due = None;
        for (number, waiter) in std::mem::take(&mut self.waiters) {
            self.settled.insert(number, Settled::Fails(Held::new(Reason::NoTimer, None)));
            after.wake.push(waiter.waker);
        }
    }

    /// The clock has stepped back by so much.
    pub(super) fn step_back(&mut self, by: Ticks) {
        self.course.step_back(by);
        for left in self.on_their_way.values_mut() {
            *left = left.saturating_sub(by);
        }
        for waiter in self.waiters.values_mut() {
            waiter.deadline = waiter.deadline.map(|deadline| deadline.saturating_sub(by));
        }
        self.tail = None;
    }

    fn is_empty(&self) -> bool {
        let is_nobody_here = self.waiters.is_empty() && self.settled.is_empty();
        is_nobody_here && self.leaving == 0 && self.on_their_way.is_empty() && self.hanging.is_empty()
    }

    /// Whether nothing would be lost if it were forgotten.
    pub(super) fn is_idle(&mut self, terms: &Terms, now: Timestamp) -> bool {
        self.is_empty() && self.course.is_clear(terms, now)
    }

    /// How many may leave before anything holds them back, if nobody is here and nothing does yet.
    pub(super) fn looseness(&mut self, terms: &Terms, now: Timestamp) -> Option<i128> {
        if self.is_empty() { self.course.looseness(terms, now) } else { None }
    }
}

/// Moves the time on to when one more may leave; says what held it back last.
fn pass(course: &mut Course, terms: &Terms, at: &mut Timestamp, now: Timestamp) -> Reason {
    *at = now.max(*at);
    let mut last = Reason::Paced;
    for _ in 0..MOST_WAITS {
        let Look::Wait { until, reason } = course.look(terms, *at) else { break };
        (*at, last) = (until, reason);
    }
    last
}
