//! The places of a queue, by number, by buyer and by address; and turns, for which all requests of a buyer wait, and
//! which one of them uses.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use tidegate::{Denied, Queued};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::Wanted;

/// All places of a queue. Every place has a number, assigned in order.
#[derive(Debug, Default)]
pub(super) struct Line {
    next: u64,
    held: HashMap<(i64, Box<str>), Held>,
    /// The places of each address, by their numbers.
    by_address: HashMap<Box<str>, BTreeMap<u64, Waits>>,
}

/// A place that further requests of its buyer can join.
#[derive(Debug)]
pub(super) struct Held {
    place: Place,
    address: Box<str>,
    /// The number of requests that share it.
    requests: usize,
}

/// A place, shared by its requests.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) waits: Waits,
    pub(super) coming: Shared<Waits>,
    /// True if a request has used the turn; locked while it does.
    pub(super) is_used: Arc<AsyncMutex<bool>>,
    /// The sale and the user.
    buyer: (i64, Box<str>),
}

impl Line {
    /// Adds a request to the place of this buyer and returns the place, if there is one.
    pub(super) fn share(&mut self, wanted: Wanted<'_>) -> Option<Place> {
        let held = self.held.get_mut(&buyer_of(wanted))?;
        held.requests += 1;
        Some(held.place.clone())
    }

    /// Returns the number of places ahead until this address may have one more; `None` if it may now.
    pub(super) fn places_ahead_of_a_free_one(&self, address: &str, most: usize) -> Option<u64> {
        let places = self.by_address.get(address).filter(|places| places.len() >= most)?;
        Some(places.first_key_value().map_or(0, |(_, first)| first.place()))
    }

    /// Adds a place for its first request.
    pub(super) fn hold(&mut self, wanted: Wanted<'_>, waits: Waits) -> Place {
        let number = self.next;
        self.next += 1;
        let coming = waits.clone().shared();
        let place = Place { number, waits, coming, is_used: Arc::default(), buyer: buyer_of(wanted) };
        let address: Box<str> = wanted.address.into();
        self.by_address.entry(address.clone()).or_default().insert(number, place.waits.clone());
        self.held.insert(place.buyer.clone(), Held { place: place.clone(), address, requests: 1 });
        place
    }

    /// Removes a request from a place. The result must be dropped without the lock.
    pub(super) fn leave(&mut self, place: &Place) -> Option<Held> {
        let held = self.held.get_mut(&place.buyer).filter(|held| held.place.number == place.number)?;
        held.requests -= 1;
        if held.requests > 0 { None } else { self.release(place) }
    }

    /// Closes a place for further requests. The result must be dropped without the lock.
    pub(super) fn release(&mut self, place: &Place) -> Option<Held> {
        self.held.get(&place.buyer).filter(|held| held.place.number == place.number)?;
        let held = self.held.remove(&place.buyer)?;
        if let Some(numbers) = self.by_address.get_mut(&held.address) {
            numbers.remove(&place.number);
            if numbers.is_empty() {
                self.by_address.remove(&held.address);
            }
        }
        Some(held)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.by_address.is_empty()
    }
}

fn buyer_of(wanted: Wanted<'_>) -> (i64, Box<str>) {
    (wanted.sale, wanted.user.into())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
