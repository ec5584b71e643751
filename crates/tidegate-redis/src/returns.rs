//! What goes on without anybody who waits: places in flight that come back, and what was begun for requests that are gone.
//!
//! A request that is dropped may have been given a place, or may be given one in a moment. Its permit was chosen before it
//! was asked for, so it can be given back without the answer, on the thread of the connections. One task gives all of
//! them back, each until the server has answered, or the lease is over.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate::{Clock, PermitId};
use tidegate_support::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::counts::Counts;
use crate::exchange::{Exchange, Question};
use crate::script::{self, Bid, Target};
use crate::store::{Inner, time_by};

/// The most tasks that go on for requests which are gone; what is beyond is not done.
const MOST_TASKS: usize = 4096;
/// The most places that are on their way back. A place beyond comes back with its lease.
const MOST_PLACES: usize = 1 << 17;
/// The most of them that a take under way may have got or not. So these leave room for those that are held for sure.
const MOST_DOUBTFUL: usize = MOST_PLACES / 2;
/// The number of places that the server is asked about at the same time.
const AT_ONCE: usize = 64;
/// The pause before a server that did not answer is asked again; each pause is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How many tasks go on.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<AtomicUsize>);

/// One of them.
struct Counted(Arc<AtomicUsize>);

impl Tasks {
    fn enter(&self) -> Option<Counted> {
        let more = |count: usize| (count < MOST_TASKS).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Counted(Arc::clone(&self.0)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A place that goes back.
struct Return {
    target: Target,
    permit: PermitId,
    /// Until then the take of the place may still be under way.
    doubtful_until: Option<Instant>,
    /// Its lease is over by then.
    over: Instant,
    pause: Duration,
}

impl Return {
    fn new(target: Target, permit: PermitId, doubtful_until: Option<Instant>) -> Return {
        let from = doubtful_until.unwrap_or_else(Instant::now);
        let over = from + script::longest_use(&target.limit).to_duration();
        Return { target, permit, doubtful_until, over, pause: FIRST_PAUSE }
    }
}

/// Places on their way back, by the time at which the server is asked.
#[derive(Default)]
pub(crate) struct Returns {
    waiting: Mutex<Waiting>,
    came: Notify,
}

#[derive(Default)]
struct Waiting {
    by_time: BTreeMap<(Instant, u64), Return>,
    last_number: u64,
    doubtful: usize,
}

impl Returns {
    /// Returns false if there is no room for it.
    fn put(&self, one: Return, at: Instant) -> bool {
        let mut waiting = self.waiting();
        let is_doubtful = one.doubtful_until.is_some();
        if waiting.by_time.len() >= MOST_PLACES || (is_doubtful && waiting.doubtful >= MOST_DOUBTFUL) {
            return false;
        }
        waiting.doubtful += usize::from(is_doubtful);
        waiting.last_number += 1;
        let number = waiting.last_number;
        waiting.by_time.insert((at, number), one);
        drop(waiting);
        self.came.notify_one();
        true
    }

    /// Some of those whose time has come, or else the time of the first.
    fn due(&self, now: Instant) -> Result<Vec<Return>, Option<Instant>> {
        let mut waiting = self.waiting();
        let mut due = Vec::new();
        while let Some(first) = waiting.by_time.first_entry().filter(|first| first.key().0 <= now) {
            let one = first.remove();
            waiting.doubtful -= usize::from(one.doubtful_until.is_some());
            due.push(one);
            if due.len() == AT_ONCE {
                break;
            }
        }
        if due.is_empty() { Err(waiting.by_time.keys().next().map(|(at, _)| *at)) } else { Ok(due) }
    }

    /// The number of places on their way.
    pub(crate) fn len(&self) -> usize {
        self.waiting().by_time.len()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the places of one store back.
pub(crate) struct GiveBack {
    pub(crate) returns: Arc<Returns>,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) counts: Arc<Counts>,
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl GiveBack {
    /// Runs until the thread of the connections ends.
    pub(crate) async fn run(self: Arc<GiveBack>) {
        loop {
            match self.returns.due(Instant::now()) {
                Ok(due) => {
                    join_all(due.into_iter().map(|one| Box::pin(self.give_back(one)))).await;
                }
                Err(None) => self.returns.came.notified().await,
                Err(Some(next)) => {
                    // One that came may be earlier.
                    let _ = timeout_at(next, self.returns.came.notified()).await;
                }
            }
        }
    }

    async fn give_back(&self, mut one: Return) {
        let call = script::release(&one.target, one.permit, time_by(self.clock.as_ref()));
        let answer = self.exchange.ask_beside(&Question::Run(Arc::new(call))).await;
        let was_held = answer.map(|answer| script::read_whether(answer.value) == Ok(true));
        let again = match (was_held, one.doubtful_until.take()) {
            (Ok(true), _) | (Ok(false), None) => return,
            // A take that was sent is mostly done by now. If it has got no place yet, it is looked at again.
            (Ok(false) | Err(_), Some(settled)) => settled,
            (Err(_), None) => {
                let again = Instant::now() + one.pause;
                one.pause = LONGEST_PAUSE.min(one.pause * 2);
                if again >= one.over {
                    return;
                }
                again
            }
        };
        if !self.returns.put(one, again) {
            self.counts.not_returned.add();
        }
    }
}

impl Inner {
    /// Goes on with a task on the thread of the connections.
    pub(crate) fn go_on_with(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // Nothing was begun through a store that has not started.
        let (Some(running), Some(counted)) = (self.started(), self.tasks.enter()) else { return };
        running.background.handle().spawn(async move {
            let _counted = counted;
            task.await;
        });
    }

    /// Gives a place back that is held, without anybody who waits.
    pub(crate) fn give_back_later(&self, target: Target, permit: PermitId) {
        self.return_place(Return::new(target, permit, None));
    }

    fn return_place(&self, one: Return) {
        if !self.returns.put(one, Instant::now()) {
            self.counts.not_returned.add();
        }
    }
}

/// The places of a take that is under way. Unless somebody claims them, they are given back.
pub(crate) struct Unclaimed<'a> {
    inner: &'a Inner,
    places: Vec<(Target, PermitId)>,
}

impl<'a> Unclaimed<'a> {
    pub(crate) fn of(inner: &'a Inner, bids: &[Bid]) -> Unclaimed<'a> {
        let place = |bid: &Bid| bid.permit().map(|permit| (bid.target.clone(), permit));
        Unclaimed { inner, places: bids.iter().filter_map(place).collect() }
    }

    /// Whoever asked hears of them, or they were not taken.
    pub(crate) fn claim(&mut self) {
        self.places.clear();
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        // By then the take was answered, or nobody waits for its answer. A place that it did not get is not missed.
        let Ok(settled) = self.inner.due() else { return };
        for (target, permit) in self.places.drain(..) {
            self.inner.return_place(Return::new(target, permit, Some(settled)));
        }
    }
}

#[cfg(test)]
mod tests;
