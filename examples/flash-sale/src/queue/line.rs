//! The places of a queue, by number, by buyer and by address.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::Shared;
use tokio::sync::Mutex as AsyncMutex;

use super::Wanted;
use super::turn::Waits;

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
