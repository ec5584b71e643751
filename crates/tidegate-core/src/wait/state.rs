//! The waiters of a queue by key, and the results of their waits; all of it is under the lock of the queue.
//!
//! Joining, leaving and passing take logarithmic time at any position. Nothing here wakes a task: wakers are
//! collected and woken after the lock is released.
//!
//! | question | structure | cost |
//! |---|---|---|
//! | next number of a key | a counter | constant |
//! | waiter by number, head | a sorted map per key | logarithmic |
//! | position of a waiter | counts per block of 256 numbers | blocks ahead, plus at most 256 |
//! | next queue to serve, next deadline | two sorted sets | logarithmic |
//!
//! A wait ends in two steps. First its result is put into `settled`, and its waker is collected; later the task polls
//! and takes the result out. If the task is dropped in between, the grant is given back.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::mem;
use std::task::{Poll, Waker};

use super::policy::{Cause, Next, QueuePolicy, QueueTurn};
use crate::time::{Ticks, Timestamp};

/// The number of tickets per block. A position costs one step per block ahead, plus at most this many.
const BLOCK: u64 = 256;

/// The position of a waiter: its queue, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueTicket {
    /// The queue of its key.
    pub queue: u64,
    /// Its number there; the lowest is the oldest.
    pub number: u64,
}

/// An entry of a queue: one waiter.
#[derive(Debug)]
pub struct Entry<A> {
    /// The ask.
    pub ask: A,
    /// The time at which the wait started.
    pub since: Timestamp,
    /// The longest wait; without one there is no deadline.
    max_wait: Option<Ticks>,
    /// The waker of the last poll; `None` before the first one.
    waker: Option<Waker>,
}

impl<A> Entry<A> {
    /// Creates a waiter that starts to wait at this time, for at most `max_wait`. The max wait counts from `since`,
    /// also if the waiter moves to another position. Without one it waits until it passes or leaves.
    pub fn new(ask: A, since: Timestamp, max_wait: Option<Ticks>) -> Entry<A> {
        Entry { ask, since, max_wait, waker: None }
    }

    /// Returns the time at which its max wait ends. Without a max wait it is `None`. The sum saturates at
    /// [`Timestamp::LAST`].
    pub fn deadline(&self) -> Option<Timestamp> {
        self.max_wait.map(|max_wait| self.since.saturating_add(max_wait))
    }
}

/// The waiters of one key, in the order of their numbers.
#[derive(Debug)]
pub struct KeyQueue<P: QueuePolicy> {
    /// The number of this queue.
    pub id: u64,
    /// The key.
    pub key: P::Key,
    /// The policy's state of the key.
    pub state: P::State,
    /// The time at which the queue is to be served; also in the set `due` of the [`QueueState`].
    due: Option<Timestamp>,
    /// The waiters by number; numbers of waiters that have left are missing.
    entries: BTreeMap<u64, Entry<P::Ask>>,
    /// The number of waiters per block of numbers.
    blocks: BTreeMap<u64, usize>,
    /// The last number that was drawn.
    drawn: u64,
}

impl<P: QueuePolicy> KeyQueue<P> {
    /// Returns the number of waiters.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no waiters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the time at which the queue is to be served, if it is known. `None` if only a change of the state can
    /// admit a waiter, as under a concurrency limit.
    pub fn due(&self) -> Option<Timestamp> {
        self.due
    }

    /// Returns the waiters, the oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = (u64, &Entry<P::Ask>)> {
        self.entries.iter().map(|(number, entry)| (*number, entry))
    }

    /// Returns the oldest waiter.
    pub fn head(&self) -> Option<(u64, &Entry<P::Ask>)> {
        self.entries().next()
    }

    /// Draws the next number. The ticket has no waiter until it [joins](QueueState::join).
    pub fn draw(&mut self) -> QueueTicket {
        self.drawn += 1;
        QueueTicket { queue: self.id, number: self.drawn }
    }

    /// Returns the number of waiters before the one with this number; `None` if that one does not wait.
    pub(super) fn position(&self, number: u64) -> Option<usize> {
        self.entries.get(&number)?;
        let block = number / BLOCK;
        let before: usize = self.blocks.range(..block).map(|(_, count)| count).sum();
        Some(before + self.entries.range(block * BLOCK..number).count())
    }

    /// Removes a waiter from the queue and from the counts of its block; the numbers of the others stay the same.
    fn remove(&mut self, number: u64) -> Option<Entry<P::Ask>> {
        let entry = self.entries.remove(&number)?;
        if let Some(count) = self.blocks.get_mut(&(number / BLOCK)) {
            *count -= 1;
            if *count == 0 {
                self.blocks.remove(&(number / BLOCK));
            }
        }
        Some(entry)
    }
}

/// The waiters of all keys.
#[derive(Debug)]
pub struct QueueState<P: QueuePolicy> {
    /// The policy, which determines the order of the waiters.
    pub policy: P,
    /// The number of the queue of each key.
    ids: HashMap<P::Key, u64>,
    /// The queues by number, which is the order in which they were opened.
    queues: BTreeMap<u64, KeyQueue<P>>,
    /// The number of queues opened so far; numbers are not reused, so an old ticket finds no other queue.
    opened: u64,
    /// The times at which queues are to be served, the soonest first.
    due: BTreeSet<(Timestamp, u64)>,
    /// The deadlines of the waiters.
    deadlines: BTreeSet<(Timestamp, QueueTicket)>,
    /// The results of waits that are over, until they are picked up.
    settled: HashMap<QueueTicket, Result<P::Grant, P::Denial>>,
    /// The number of waiters of all queues.
    waiting: usize,
    /// The bound of `waiting`; joining beyond it is the decision of the policy.
    max_waiters: usize,
    /// The time for which the alarm is set.
    pub(super) alarm: Option<Timestamp>,
    /// The last reading of the clock.
    seen: Timestamp,
    /// The wakers to wake once the lock is released, because they may run code of callers.
    pub(super) wakers: Vec<Waker>,
}

impl<P: QueuePolicy> QueueState<P> {
    /// Creates a state without queues. No memory is allocated before the first queue is opened.
    pub(super) fn new(policy: P, max_waiters: usize) -> QueueState<P> {
        QueueState {
            policy,
            ids: HashMap::new(),
            queues: BTreeMap::new(),
            opened: 0,
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            settled: HashMap::new(),
            waiting: 0,
            max_waiters,
            alarm: None,
            seen: Timestamp::EPOCH,
            wakers: Vec::new(),
        }
    }

    /// Returns the number of waiters of all keys.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns true if there is no room for one more waiter. The policy asks before it adds a waiter;
    /// [`QueueState::join`] itself has no bound.
    pub fn is_full(&self) -> bool {
        self.waiting >= self.max_waiters
    }

    /// Sets the largest number of waiters; those that already wait stay.
    pub fn set_max_waiters(&mut self, most: usize) {
        self.max_waiters = most;
    }

    /// Opens the queue of one more key, and returns its number. The key must not have a queue yet; otherwise the older
    /// queue is no longer found by its key.
    pub fn open(&mut self, key: P::Key, state: P::State) -> u64 {
        let id = self.opened;
        self.opened += 1;
        self.ids.insert(key.clone(), id);
        let (entries, blocks) = (BTreeMap::new(), BTreeMap::new());
        self.queues.insert(id, KeyQueue { id, key, state, due: None, entries, blocks, drawn: 0 });
        id
    }

    /// Removes the queue of a key that has no waiters. Results that were not picked up stay available, because they are
    /// found by ticket.
    pub fn close(&mut self, id: u64) {
        self.set_due(id, None);
        if let Some(queue) = self.queues.remove(&id) {
            self.ids.remove(&queue.key);
        }
    }

    /// Returns the number of the queue of a key.
    pub fn id_of<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<u64>
    where
        P::Key: Borrow<Q>,
    {
        self.ids.get(key).copied()
    }

    /// Returns the queue of one key.
    pub fn queue(&mut self, id: u64) -> Option<&mut KeyQueue<P>> {
        self.queues.get_mut(&id)
    }

    /// Returns the queues of all keys in the order in which they were opened.
    pub fn queues(&mut self) -> impl ExactSizeIterator<Item = &mut KeyQueue<P>> {
        self.queues.values_mut()
    }

    /// Adds a waiter to a queue, at its end or at its former position.
    ///
    /// # Panics
    /// If the queue of the ticket is not open.
    pub fn join(&mut self, ticket: QueueTicket, entry: Entry<P::Ask>) -> QueueTicket {
        let queue = self.queues.get_mut(&ticket.queue).expect("a waiter joins a queue that is open");
        self.deadlines.extend(entry.deadline().map(|deadline| (deadline, ticket)));
        queue.entries.insert(ticket.number, entry);
        *queue.blocks.entry(ticket.number / BLOCK).or_default() += 1;
        self.waiting += 1;
        ticket
    }

    /// Sets the time at which a queue is to be served.
    pub fn set_due(&mut self, id: u64, due: Option<Timestamp>) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let before = mem::replace(&mut queue.due, due);
        before.map(|before| self.due.remove(&(before, id)));
        self.due.extend(due.map(|due| (due, id)));
    }

    /// Ends the wait of a waiter, and schedules its waker. A waiter that has already left is ignored. The waker runs
    /// after the lock is released.
    pub fn settle(&mut self, ticket: QueueTicket, result: Result<P::Grant, P::Denial>) {
        if let Some(entry) = self.take_out(ticket) {
            self.settled.insert(ticket, result);
            self.wakers.extend(entry.waker);
        }
    }

    /// Removes a waiter and its deadline, and counts one waiter less.
    fn take_out(&mut self, ticket: QueueTicket) -> Option<Entry<P::Ask>> {
        let entry = self.queues.get_mut(&ticket.queue)?.remove(ticket.number)?;
        self.waiting -= 1;
        entry.deadline().map(|deadline| self.deadlines.remove(&(deadline, ticket)));
        Some(entry)
    }

    /// Serves a queue: settles the waiters whose turn has come.
    pub fn serve(&mut self, turn: QueueTurn<'_, P>, id: u64) {
        self.advance(turn, id);
        self.close_if_over(id);
    }

    /// Repeats the choice of the policy until it waits, and then stores the time of the next turn. An empty queue has
    /// none.
    fn advance(&mut self, mut turn: QueueTurn<'_, P>, id: u64) {
        while let Some(queue) = self.queues.get_mut(&id) {
            let next = match queue.is_empty() {
                true => Next::Wait(None),
                false => self.policy.next(&mut turn, queue),
            };
            match next {
                Next::Settle(number, result) => self.settle(QueueTicket { queue: id, number }, result),
                Next::Wait(due) => return self.set_due(id, due),
            }
        }
    }

    /// Closes a queue without waiters, if the policy opens one per key and call.
    fn close_if_over(&mut self, id: u64) {
        if P::FORGETS_KEYS && self.queues.get(&id).is_some_and(KeyQueue::is_empty) {
            self.close(id);
        }
    }

    /// Serves all queues that have waiters, in the order in which they were opened. Queues that are opened meanwhile
    /// are not served. The cost grows with the number of queues that have waiters.
    pub fn serve_all(&mut self, turn: QueueTurn<'_, P>) {
        if self.waiting > 0 {
            let waited_for = self.queues.values().filter(|queue| !queue.is_empty());
            let ids: Vec<u64> = waited_for.map(|queue| queue.id).collect();
            ids.into_iter().for_each(|id| self.serve(turn, id));
        }
    }

    /// Removes a waiter that has not passed, and returns its waker. The waiters behind it move up. Then, if there
    /// is a cause, the waiter is denied.
    fn step_out(
        &mut self,
        turn: QueueTurn<'_, P>,
        ticket: QueueTicket,
        cause: Option<Cause>,
    ) -> Option<Waker> {
        let id = ticket.queue;
        let was_head = self.queues.get(&id)?.head().is_some_and(|(head, _)| head == ticket.number);
        let entry = self.take_out(ticket)?;
        self.policy.left(turn, self.queues.get_mut(&id)?, &entry, was_head);
        if was_head {
            self.advance(turn, id);
        }
        if let Some(cause) = cause {
            let denial = self.policy.deny(turn, self.queues.get_mut(&id)?, &entry.ask, cause);
            self.settled.insert(ticket, Err(denial));
        }
        self.close_if_over(id);
        entry.waker
    }

    /// Denies a waiter for a cause outside of the limit, and collects its waker.
    fn deny(&mut self, turn: QueueTurn<'_, P>, ticket: QueueTicket, cause: Cause) {
        let waker = self.step_out(turn, ticket, Some(cause));
        self.wakers.extend(waker);
    }

    /// Denies every waiter that needs a timer, because none is available. It starts with the newest, so that no
    /// waiter moves up.
    pub(super) fn deny_without_timer(&mut self, turn: QueueTurn<'_, P>) {
        self.alarm = None;
        let tickets = self.queues.values().flat_map(|queue| {
            let needs_timer = |entry: &Entry<_>| queue.due.is_some() || entry.max_wait.is_some();
            let denied = queue.entries().rev().filter(move |(_, entry)| needs_timer(entry));
            denied.map(|(number, _)| QueueTicket { queue: queue.id, number })
        });
        tickets.collect::<Vec<_>>().into_iter().for_each(|ticket| self.deny(turn, ticket, Cause::NoTimer));
    }

    /// Removes a waiter that gives up, or that does not pick up its grant. Returns its waker. The caller drops the
    /// waker after the lock is released, because that may run code of the task.
    pub(super) fn leave(&mut self, turn: QueueTurn<'_, P>, ticket: QueueTicket) -> Option<Waker> {
        match self.settled.remove(&ticket) {
            Some(Ok(grant)) => P::give_back(self, turn, ticket, grant),
            Some(Err(_)) => {}
            None => return self.step_out(turn, ticket, None),
        }
        None
    }

    /// Returns the result of a wait that is over; else stores this waker and returns the previous one through
    /// `waker`.
    ///
    /// # Panics
    /// If the ticket has no waiter and no result: its result was taken before.
    pub(super) fn poll(
        &mut self,
        ticket: QueueTicket,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<P::Grant, P::Denial>> {
        if let Some(result) = self.settled.remove(&ticket) {
            return Poll::Ready(result);
        }
        let queue = self.queues.get_mut(&ticket.queue);
        let entry = queue.and_then(|queue| queue.entries.get_mut(&ticket.number));
        mem::swap(&mut entry.expect("who waits is in its queue").waker, waker);
        Poll::Pending
    }

    /// Handles the current time: serves the queues that are due, and denies the waiters whose max wait is over. It runs
    /// at the start of every call under the lock, so no call sees a queue that is overdue. Each queue is served as of
    /// the time at which it was due.
    pub(super) fn see(&mut self, turn: QueueTurn<'_, P>) {
        let by = mem::replace(&mut self.seen, turn.now).since(turn.now);
        if by > Ticks::ZERO {
            self.step_back(turn, by);
        }
        while let Some((at, id)) = self.due.first().copied().filter(|(due, _)| *due <= turn.now) {
            self.serve(QueueTurn { at, ..turn }, id);
        }
        while let Some((_, ticket)) = self.deadlines.first().copied().filter(|(at, _)| *at <= turn.now) {
            self.deny(turn, ticket, Cause::TimedOut);
        }
    }

    /// Handles a backward clock step: serves all queues, and lets no waiter wait longer than its max wait from now on.
    /// The start of each wait is moved to the current time at the latest, or its deadline would be too far away by the
    /// step.
    fn step_back(&mut self, turn: QueueTurn<'_, P>, by: Ticks) {
        self.alarm = None;
        self.deadlines.clear();
        for queue in self.queues.values_mut() {
            for (number, entry) in &mut queue.entries {
                entry.since = entry.since.min(turn.now);
                let ticket = QueueTicket { queue: queue.id, number: *number };
                self.deadlines.extend(entry.deadline().map(|deadline| (deadline, ticket)));
            }
        }
        P::stepped_back(self, turn, by);
        self.serve_all(turn);
    }

    /// Returns the time for which the alarm has to be set; `None` if it is set early enough. An alarm that fires too
    /// early is harmless: the queue is served, and the next alarm is set.
    pub(super) fn next_alarm(&mut self) -> Option<Timestamp> {
        let due = self.due.first().map(|(due, _)| *due);
        let deadline = self.deadlines.first().map(|(deadline, _)| *deadline);
        let next = due.into_iter().chain(deadline).min()?;
        if self.alarm.is_some_and(|alarm| alarm <= next) {
            return None;
        }
        self.alarm = Some(next);
        self.alarm
    }
}
