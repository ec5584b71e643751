//! Background work without a waiting caller: the release of permits, and the tasks of abandoned requests.
//!
//! A request that is dropped may hold a permit, or may get one in a moment. Its permit id was chosen before the request
//! was sent, so it can be released without the reply, on the connection thread. One task releases all of them. Each is
//! retried until the server has answered, or the lease is over.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_core::{Clock, PermitId};
use tidegate_support::join_all;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::counts::Counts;
use crate::exchange::{Exchange, Question};
use crate::script::{self, Bid, Target};
use crate::store::{Inner, time_by};

/// The maximum number of tasks for abandoned requests. Further ones are dropped.
const MOST_TASKS: usize = 4096;
/// The maximum number of pending releases. A permit beyond that expires with its lease.
const MOST_PLACES: usize = 1 << 17;
/// The maximum number of pending releases for takes in flight, whose permit may not exist. It leaves room for permits
/// that are certainly held.
const MOST_DOUBTFUL: usize = MOST_PLACES / 2;
/// The maximum number of concurrent releases.
const AT_ONCE: usize = 64;
/// The pause before a retry after a failure. Each pause is twice the previous one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The number of running tasks.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Arc<AtomicUsize>);

/// A guard that counts one task.
struct Counted(Arc<AtomicUsize>);

impl Tasks {
    /// Counts one more task; `None` at the maximum.
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

/// A pending release of a permit.
struct Return {
    /// The state that has the permit.
    target: Target,
    /// The permit.
    permit: PermitId,
    /// The time until which the take of the permit may still be in flight.
    doubtful_until: Option<Instant>,
    /// The end of its lease.
    over: Instant,
    /// The pause after the next failure.
    pause: Duration,
}

impl Return {
    /// Creates a release that is tried until the lease is certainly over.
    fn new(target: Target, permit: PermitId, doubtful_until: Option<Instant>) -> Return {
        let from = doubtful_until.unwrap_or_else(Instant::now);
        let over = from + script::longest_use(&target.limit).to_duration();
        Return { target, permit, doubtful_until, over, pause: FIRST_PAUSE }
    }
}

/// The pending releases, by the time of the next attempt.
#[derive(Default)]
pub(crate) struct Returns {
    /// The queue.
    waiting: Mutex<PendingReturn>,
    /// Notified when a release is queued.
    came: Notify,
}

/// The queue by time, and the counters that bound it.
#[derive(Default)]
struct PendingReturn {
    /// The releases, by their time and a unique number.
    by_time: BTreeMap<(Instant, u64), Return>,
    /// The number that was used last.
    last_number: u64,
    /// The number of releases whose permit may not exist.
    doubtful: usize,
}

impl Returns {
    /// Queues a release. Returns false if the queue is full.
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

    /// Removes and returns releases that are due, or returns the time of the first one. At most [`AT_ONCE`] are
    /// returned, so that a backlog does not flood the server.
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

    /// Returns the number of pending releases.
    pub(crate) fn len(&self) -> usize {
        self.waiting().by_time.len()
    }

    /// Locks the queue.
    fn waiting(&self) -> MutexGuard<'_, PendingReturn> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that releases the permits of one store.
pub(crate) struct GiveBack {
    /// The queue.
    pub(crate) returns: Arc<Returns>,
    /// The sender of calls.
    pub(crate) exchange: Arc<Exchange>,
    /// The counters of the store.
    pub(crate) counts: Arc<Counts>,
    /// The clock that replaces that of the server.
    pub(crate) clock: Option<Arc<dyn Clock>>,
}

impl GiveBack {
    /// Runs until the connection thread ends.
    pub(crate) async fn run(self: Arc<GiveBack>) {
        loop {
            match self.returns.due(Instant::now()) {
                Ok(due) => {
                    join_all(due.into_iter().map(|one| Box::pin(self.give_back(one)))).await;
                }
                Err(None) => self.returns.came.notified().await,
                Err(Some(next)) => {
                    // A new release may be due earlier.
                    let _ = timeout_at(next, self.returns.came.notified()).await;
                }
            }
        }
    }

    /// Tries one release, and queues it again if the server did not answer or the permit may still be acquired.
    async fn give_back(&self, mut one: Return) {
        let call = script::release(&one.target, one.permit, time_by(self.clock.as_ref()));
        let answer = self.exchange.ask_beside(&Question::Run(Arc::new(call))).await;
        let was_held = answer.map(|answer| script::read_whether(answer.value) == Ok(true));
        let again = match (was_held, one.doubtful_until.take()) {
            (Ok(true), _) | (Ok(false), None) => return,
            // A take that was sent is usually done by now. If it has no permit yet, the release is tried again.
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
    /// Runs a task on the connection thread. The task is dropped if too many run, or if the store was never used.
    pub(crate) fn go_on_with(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        // A store that has not started has no work to complete.
        let (Some(running), Some(counted)) = (self.started(), self.tasks.enter()) else { return };
        running.background.handle().spawn(async move {
            let _counted = counted;
            task.await;
        });
    }

    /// Releases a held permit in the background.
    pub(crate) fn give_back_later(&self, target: Target, permit: PermitId) {
        self.return_place(Return::new(target, permit, None));
    }

    /// Queues a release for now. A full queue leaves the permit to its lease, and counts that.
    fn return_place(&self, one: Return) {
        if !self.returns.put(one, Instant::now()) {
            self.counts.not_returned.add();
        }
    }
}

/// The permits of a take in flight. Unless they are claimed, they are released on drop.
pub(crate) struct Unclaimed<'a> {
    /// The store.
    inner: &'a Inner,
    /// The permits that the take may get.
    places: Vec<(Target, PermitId)>,
}

impl<'a> Unclaimed<'a> {
    /// Collects the permits of concurrency limits. For other algorithms the list is empty, and a drop does nothing.
    pub(crate) fn of(inner: &'a Inner, bids: &[Bid]) -> Unclaimed<'a> {
        let place = |bid: &Bid| bid.permit().map(|permit| (bid.target.clone(), permit));
        Unclaimed { inner, places: bids.iter().filter_map(place).collect() }
    }

    /// Claims the permits: the caller gets them, or they were not acquired.
    pub(crate) fn claim(&mut self) {
        self.places.clear();
    }
}

impl Drop for Unclaimed<'_> {
    fn drop(&mut self) {
        if self.places.is_empty() {
            return;
        }
        // By then the take was answered or has timed out. Releasing a permit that was not acquired is harmless.
        let Ok(settled) = self.inner.due() else { return };
        for (target, permit) in self.places.drain(..) {
            self.inner.return_place(Return::new(target, permit, Some(settled)));
        }
    }
}

#[cfg(test)]
mod tests;
