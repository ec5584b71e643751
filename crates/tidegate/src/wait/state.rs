//! The waiters of a queue, key by key, and what becomes of them; all of it is under the lock of the queue.
//!
//! Joining, leaving and passing take logarithmic time, wherever a waiter is.
//! Nothing here wakes: wakers to be woken or dropped are collected for the moment after the lock is released.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::task::{Poll, Waker};

use super::policy::{Cause, Next, QueuePolicy, Turn};
use crate::time::{Ticks, Timestamp};

/// The numbers that are counted together: a position is found in as many steps as there are blocks, and so many more.
const BLOCK: u64 = 256;

/// The place of a waiter: its queue, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The queue of its key.
    pub queue: u64,
    /// Its number there; the lowest came first.
    pub number: u64,
}

/// A waiter, as its queue has it.
#[derive(Debug)]
pub struct Entry<A> {
    /// What it asks for.
    pub ask: A,
    /// Since when it waits.
    pub since: Timestamp,
    /// How long it waits at most.
    pub max_wait: Option<Ticks>,
    waker: Option<Waker>,
}

impl<A> Entry<A> {
    /// A waiter that begins to wait at this time.
    pub fn new(ask: A, since: Timestamp, max_wait: Option<Ticks>) -> Entry<A> {
        Entry { ask, since, max_wait, waker: None }
    }

    /// Returns the time at which its max wait is over.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.max_wait.map(|max_wait| self.since.saturating_add(max_wait))
    }
}

/// The waiters of one key, in the order of their numbers.
#[derive(Debug)]
pub struct KeyQueue<P: QueuePolicy> {
    /// The number of this queue.
    pub id: u64,
    /// The policy's state of the key.
    pub state: P::State,
    due: Option<Timestamp>,
    entries: BTreeMap<u64, Entry<P::Ask>>,
    /// How many waiters each block of numbers has.
    blocks: BTreeMap<u64, usize>,
    drawn: u64,
}

impl<P: QueuePolicy> KeyQueue<P> {
    /// Returns how many wait.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if none waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the time at which it is to be served, if any is known.
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

    fn insert(&mut self, number: u64, entry: Entry<P::Ask>) {
        self.entries.insert(number, entry);
        *self.blocks.entry(number / BLOCK).or_default() += 1;
    }

    fn remove(&mut self, number: u64) -> Option<Entry<P::Ask>> {
        let entry = self.entries.remove(&number)?;
        let block = self.blocks.get_mut(&(number / BLOCK));
        if block.is_some_and(|count| {
            *count -= 1;
            *count == 0
        }) {
            self.blocks.remove(&(number / BLOCK));
        }
        Some(entry)
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.entries.get(&number)?;
        let block = number / BLOCK;
        let before: usize = self.blocks.range(..block).map(|(_, count)| count).sum();
        Some(before + self.entries.range(block * BLOCK..number).count())
    }
}

/// The waiters of all keys.
#[derive(Debug)]
pub struct QueueState<P: QueuePolicy> {
    /// The order in which they pass.
    pub policy: P,
    queues: BTreeMap<u64, KeyQueue<P>>,
    /// The times at which queues are to be served, the soonest first.
    due: BTreeSet<(Timestamp, u64)>,
    /// The times at which waiters give up.
    deadlines: BTreeSet<(Timestamp, Ticket)>,
    /// The results of waits that are over, until they are picked up.
    settled: HashMap<Ticket, Result<P::Grant, P::Denial>>,
    opened: u64,
    waiting: usize,
    max_waiters: usize,
    /// The time at which the clock was asked to call.
    alarm: Option<Timestamp>,
    /// The time that was seen last.
    seen: Timestamp,
    after: After,
}

/// Wakers to be woken or dropped once the lock is released: either may run the code of callers.
#[derive(Debug, Default)]
pub(super) struct After {
    pub(super) wake: Vec<Waker>,
    dropped: Vec<Waker>,
}

impl<P: QueuePolicy> QueueState<P> {
    pub(super) fn new(policy: P, max_waiters: usize) -> QueueState<P> {
        QueueState {
            policy,
            queues: BTreeMap::new(),
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            settled: HashMap::new(),
            opened: 0,
            waiting: 0,
            max_waiters,
            alarm: None,
            seen: Timestamp::EPOCH,
            after: After::default(),
        }
    }

    /// Returns how many wait, for any key.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns true if one more waiter would be too many.
    pub fn is_full(&self) -> bool {
        self.waiting >= self.max_waiters
    }

    /// Sets how many may wait; those who do already stay.
    pub fn set_max_waiters(&mut self, most: usize) {
        self.max_waiters = most;
    }

    /// Opens the queue of one more key; the first one is number 0.
    pub fn open(&mut self, state: P::State) -> u64 {
        let id = self.opened;
        self.opened += 1;
        let (entries, blocks) = (BTreeMap::new(), BTreeMap::new());
        self.queues.insert(id, KeyQueue { id, state, due: None, entries, blocks, drawn: 0 });
        id
    }

    /// Forgets the queue of a key that has no waiters.
    pub fn close(&mut self, id: u64) {
        self.set_due(id, None);
        self.queues.remove(&id);
    }

    /// Returns the queue of one key.
    pub fn queue(&mut self, id: u64) -> Option<&mut KeyQueue<P>> {
        self.queues.get_mut(&id)
    }

    /// Returns the queues of all keys in the order in which they were opened.
    pub fn queues(&mut self) -> impl DoubleEndedIterator<Item = &mut KeyQueue<P>> {
        self.queues.values_mut()
    }

    /// Draws the next number of a queue.
    pub fn draw(&mut self, id: u64) -> Ticket {
        let queue = self.queues.get_mut(&id).expect("a number is drawn for a queue that is open");
        queue.drawn += 1;
        Ticket { queue: id, number: queue.drawn }
    }

    /// Lets a waiter join a queue at its end, or where it was before.
    pub fn join(&mut self, ticket: Ticket, entry: Entry<P::Ask>) {
        let queue = self.queues.get_mut(&ticket.queue).expect("a waiter joins a queue that is open");
        self.deadlines.extend(entry.deadline().map(|deadline| (deadline, ticket)));
        queue.insert(ticket.number, entry);
        self.waiting += 1;
    }

    /// Sets the time at which a queue is to be served.
    pub fn set_due(&mut self, id: u64, due: Option<Timestamp>) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let before = mem::replace(&mut queue.due, due);
        if before != due {
            before.map(|before| self.due.remove(&(before, id)));
            due.map(|due| self.due.insert((due, id)));
        }
    }

    /// Ends the wait of a waiter, and has it woken.
    pub fn settle(&mut self, ticket: Ticket, result: Result<P::Grant, P::Denial>) {
        if let Some(entry) = self.take_out(ticket) {
            self.settled.insert(ticket, result);
            self.after.wake.extend(entry.waker);
        }
    }

    fn take_out(&mut self, ticket: Ticket) -> Option<Entry<P::Ask>> {
        let entry = self.queues.get_mut(&ticket.queue)?.remove(ticket.number)?;
        self.waiting -= 1;
        if let Some(deadline) = entry.deadline() {
            self.deadlines.remove(&(deadline, ticket));
        }
        Some(entry)
    }

    /// Takes a waiter out that will not pass; those behind it move up.
    fn step_out(&mut self, turn: Turn<'_, P>, ticket: Ticket) -> Option<Entry<P::Ask>> {
        let was_head = self.queues.get(&ticket.queue)?.head().is_some_and(|(head, _)| head == ticket.number);
        let entry = self.take_out(ticket)?;
        let queue = self.queues.get_mut(&ticket.queue)?;
        self.policy.left(turn, queue, &entry, was_head);
        if was_head {
            self.advance(turn, ticket.queue);
        }
        Some(entry)
    }

    /// Serves a queue: settles the waiters whose turn has come.
    pub fn serve(&mut self, turn: Turn<'_, P>, id: u64) {
        self.advance(turn, id);
        self.close_if_over(id);
    }

    fn advance(&mut self, mut turn: Turn<'_, P>, id: u64) {
        while let Some(queue) = self.queues.get_mut(&id) {
            let next = match queue.is_empty() {
                true => Next::Wait(None),
                false => self.policy.next(&mut turn, queue),
            };
            match next {
                Next::Settle(number, result) => self.settle(Ticket { queue: id, number }, result),
                Next::Wait(due) => return self.set_due(id, due),
            }
        }
    }

    fn close_if_over(&mut self, id: u64) {
        if self.queues.get(&id).is_some_and(|queue| queue.is_empty() && self.policy.is_over(queue)) {
            self.close(id);
        }
    }

    /// Serves all queues that have waiters, those that were opened first before the others.
    pub fn serve_all(&mut self, turn: Turn<'_, P>) {
        if self.waiting > 0 {
            let ids: Vec<u64> =
                self.queues.values().filter(|queue| !queue.is_empty()).map(|queue| queue.id).collect();
            ids.into_iter().for_each(|id| self.serve(turn, id));
        }
    }

    /// Serves the queues whose time has come, and denies the waiters whose max wait is over.
    pub(super) fn serve_due(&mut self, turn: Turn<'_, P>) {
        while let Some((at, id)) = self.due.first().copied().filter(|(due, _)| *due <= turn.now) {
            self.serve(Turn { at, ..turn }, id);
        }
        while let Some((_, ticket)) = self.deadlines.first().copied().filter(|(at, _)| *at <= turn.now) {
            self.deny(turn, ticket, Cause::TimedOut);
        }
    }

    fn deny(&mut self, turn: Turn<'_, P>, ticket: Ticket, cause: Cause) {
        let Some(entry) = self.step_out(turn, ticket) else { return };
        if let Some(queue) = self.queues.get_mut(&ticket.queue) {
            let denial = self.policy.deny(turn, queue, &entry.ask, cause);
            self.settled.insert(ticket, Err(denial));
            self.after.wake.extend(entry.waker);
        }
        self.close_if_over(ticket.queue);
    }

    /// Denies every waiter that would need a timer, because there is none.
    pub(super) fn deny_without_timer(&mut self, turn: Turn<'_, P>) {
        self.alarm = None;
        let needs_timer =
            |queue: &KeyQueue<P>, entry: &Entry<P::Ask>| queue.due.is_some() || entry.max_wait.is_some();
        let tickets = self.queues.values().flat_map(|queue| {
            let entries = queue.entries().rev().filter(move |(_, entry)| needs_timer(queue, entry));
            entries.map(|(number, _)| Ticket { queue: queue.id, number })
        });
        let tickets: Vec<_> = tickets.collect();
        tickets.into_iter().for_each(|ticket| self.deny(turn, ticket, Cause::NoTimer));
    }

    /// Lets a waiter go that does not want to wait any longer, or to pick up what was taken for it.
    pub(super) fn leave(&mut self, turn: Turn<'_, P>, ticket: Ticket) {
        match self.settled.remove(&ticket) {
            Some(Ok(grant)) => P::give_back(self, turn, ticket, grant),
            Some(Err(_)) => {}
            None => {
                if let Some(entry) = self.step_out(turn, ticket) {
                    self.after.dropped.extend(entry.waker);
                }
                self.close_if_over(ticket.queue);
            }
        }
    }

    /// Returns the result of a wait that is over; else this waker is kept.
    pub(super) fn poll(
        &mut self,
        ticket: Ticket,
        waker: &mut Option<Waker>,
    ) -> Poll<Result<P::Grant, P::Denial>> {
        if let Some(result) = self.settled.remove(&ticket) {
            return Poll::Ready(result);
        }
        let entry =
            self.queues.get_mut(&ticket.queue).and_then(|queue| queue.entries.get_mut(&ticket.number));
        if let (Some(entry), Some(_)) = (entry, &waker) {
            mem::swap(&mut entry.waker, waker);
        }
        Poll::Pending
    }

    pub(super) fn position(&self, ticket: Ticket) -> Option<usize> {
        self.queues.get(&ticket.queue)?.position(ticket.number)
    }

    /// Notes the time. After a step back of the clock all queues are served, and none waits longer than its max wait
    /// from now on.
    pub(super) fn see(&mut self, turn: Turn<'_, P>) {
        let by = mem::replace(&mut self.seen, turn.now).since(turn.now);
        if by == Ticks::ZERO {
            return;
        }
        self.alarm = None;
        self.deadlines.clear();
        for queue in self.queues.values_mut() {
            for (number, entry) in &mut queue.entries {
                entry.since = entry.since.min(turn.now);
                let ticket = Ticket { queue: queue.id, number: *number };
                self.deadlines.extend(entry.deadline().map(|deadline| (deadline, ticket)));
            }
        }
        P::stepped_back(self, turn, by);
        self.serve_all(turn);
    }

    /// Notes that the clock has called, or will not.
    pub(super) fn forget_alarm(&mut self) {
        self.alarm = None;
    }

    /// Returns the time at which the clock is to call, if it does not know yet.
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

    pub(super) fn move_after(&mut self, after: &mut After) {
        after.wake.append(&mut self.after.wake);
        after.dropped.append(&mut self.after.dropped);
    }
}
