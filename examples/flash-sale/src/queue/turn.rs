//! The turn of a buyer, shared by all requests that wait for it, and used by one of them.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate::{Queued, Refusal};
use tokio::sync::OwnedMutexGuard;

use super::line::{Line, Place, lock};

/// The place of a request in the queue: a future that is ready when its turn has come.
///
/// Dropped, it leaves the place to the other requests of the same buyer; the last one gives it back.
#[derive(Debug)]
pub struct Turn {
    place: Place,
    interval: Duration,
    line: Arc<Mutex<Line>>,
}

/// The right to buy once: the first of the requests that share a turn has it.
///
/// Dropped, it is used up; the other requests go on, and a new one gets a new place.
#[derive(Debug)]
pub struct Claim {
    turn: Turn,
    _is_used: OwnedMutexGuard<bool>,
}

impl Turn {
    pub(super) fn new(place: Place, interval: Duration, line: &Arc<Mutex<Line>>) -> Turn {
        Turn { place, interval, line: Arc::clone(line) }
    }

    /// Returns how many leave the queue until it is one's turn, oneself among them; none if it has come.
    pub fn place(&self) -> u64 {
        self.place.waits.place()
    }

    /// Returns how long that takes at most.
    pub fn wait(&self, place: u64) -> Duration {
        self.interval.saturating_mul(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Uses the turn, once it has come. Only the first request gets the right to buy; the others wait until it is used
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
    type Output = Result<(), Refusal>;

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

/// The limiter's own waiter, shared by all requests of a place: none if there was nothing to wait for, or it is over.
#[derive(Clone, Debug)]
pub(super) struct Waits(Arc<Mutex<Option<Queued>>>);

impl Waits {
    pub(super) fn new(queued: Option<Queued>) -> Waits {
        Waits(Arc::new(Mutex::new(queued)))
    }

    /// Returns how many leave until its turn has come, itself among them; none if it has.
    pub(super) fn place(&self) -> u64 {
        let position = lock(&self.0).as_ref().and_then(Queued::position);
        position.map_or(0, |ahead| ahead as u64 + 1)
    }
}

impl Future for Waits {
    type Output = Result<(), Refusal>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut queued = lock(&self.0);
        let Some(waiting) = &mut *queued else { return Poll::Ready(Ok(())) };
        let result = ready!(Pin::new(waiting).poll(context));
        *queued = None;
        Poll::Ready(result.map(|_| ()))
    }
}
