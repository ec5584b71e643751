//! The turn of a buyer: all its requests wait for it, and one of them uses it.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate::{Denied, Queued};
use tokio::sync::OwnedMutexGuard;

use super::line::{Line, Place, lock};

/// The place of a request in the queue: a future that completes when its turn has come.
///
/// Dropping it leaves the place to the other requests of the same buyer; the last one releases it.
#[derive(Debug)]
pub struct Turn {
    place: Place,
    interval: Duration,
    line: Arc<Mutex<Line>>,
}

/// The right to buy once, which the first of the requests that share a turn gets.
///
/// Dropping it uses it up; the other requests continue, and a new one gets a new place.
#[derive(Debug)]
pub struct Claim {
    turn: Turn,
    _is_used: OwnedMutexGuard<bool>,
}

impl Turn {
    pub(super) fn new(place: Place, interval: Duration, line: &Arc<Mutex<Line>>) -> Turn {
        Turn { place, interval, line: Arc::clone(line) }
    }

    /// Returns the number of departures until its turn, including its own; 0 if it has come.
    pub fn place(&self) -> u64 {
        self.place.waits.place()
    }

    /// Returns an upper bound of the wait for this place.
    pub fn wait(&self, place: u64) -> Duration {
        self.interval.saturating_mul(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Uses the turn, once it has come. Only the first request gets the right to buy. The others wait until it is used
    /// up, and get `None`: one turn is one attempt, however many requests waited for it.
    pub async fn claim(self) -> Option<Claim> {
        let mut is_used = Arc::clone(&self.place.is_used).lock_owned().await;
        if *is_used {
            return None;
        }
        *is_used = true;
        Some(Claim { turn: self, _is_used: is_used })
    }
}

impl Future for Turn {
    type Output = Result<(), Denied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.place.coming).poll(context)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let left = lock(&self.line).leave(&self.place);
        drop(left);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let released = lock(&self.turn.line).release(&self.turn.place);
        drop(released);
    }
}

/// The limiter's waiter, shared by all requests of a place; `None` if there was no wait, or if it is over.
#[derive(Clone, Debug)]
pub(super) struct Waits(Arc<Mutex<Option<Queued>>>);

impl Waits {
    pub(super) fn new(queued: Option<Queued>) -> Waits {
        Waits(Arc::new(Mutex::new(queued)))
    }

    /// Returns the number of departures until its turn, including its own; 0 if it has come.
    pub(super) fn place(&self) -> u64 {
        let position = lock(&self.0).as_ref().and_then(Queued::position);
        position.map_or(0, |ahead| ahead as u64 + 1)
    }
}

impl Future for Waits {
    type Output = Result<(), Denied>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut queued = lock(&self.0);
        let Some(waiting) = &mut *queued else { return Poll::Ready(Ok(())) };
        let result = ready!(Pin::new(waiting).poll(context));
        *queued = None;
        Poll::Ready(result.map(|_| ()))
    }
}
