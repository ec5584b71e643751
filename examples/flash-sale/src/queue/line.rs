//! The places of a queue, by number, by buyer and by address.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::Shared;
use tokio::sync::Mutex as AsyncMutex;

use super::Wanted;
use super::turn::Coming;

/// All places. Every place has a number, drawn in order; those that wait are in `waiting`, too.
#[derive(Debug, Default)]
pub(super) struct Line {
    next: u64,
    waiting: BTreeSet<u64>,
    held: HashMap<(i64, Box<str>), Held>,
    /// The numbers of the held places of each address.
    by_address: HashMap<Box<str>, BTreeSet<u64>>,
}

/// A place that requests of its buyer still join.
#[derive(Debug)]
pub(super) struct Held {
    place: Place,
    address: Box<str>,
    /// How many requests share it.
    requests: usize,
}

/// A place, as each of its requests has it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) coming: Shared<Coming>,
    /// Whether a request has used the turn; locked while it does.
    pub(super) is_used: Arc<AsyncMutex<bool>>,
    /// Whose it is.
    buyer: (i64, Box<str>),
}

impl Line {
    /// Returns the place that this buyer has, with one more request that shares it.
    pub(super) fn share(&mut self, wanted: Wanted<'_>) -> Option<Place> {
        let held = self.held.get_mut(&buyer_of(wanted))?;
        held.requests += 1;
        Some(held.place.clone())
    }

    /// Returns how many leave the queue until this address may have one more place; `None` if it may now.
    pub(super) fn places_ahead_of_a_free_one(&self, address: &str, most: usize) -> Option<u64> {
        let numbers = self.by_address.get(address).filter(|numbers| numbers.len() >= most)?;
        Some(numbers.first().map_or(0, |first| self.place_of(*first)))
    }

    /// Draws a number.
    pub(super) fn next_number(&mut self, is_waiting: bool) -> u64 {
        let number = self.next;
        self.next += 1;
        if is_waiting {
            self.waiting.insert(number);
        }
        number
    }

    /// Keeps a place for its first request.
    pub(super) fn hold(&mut self, wanted: Wanted<'_>, number: u64, coming: Shared<Coming>) -> Place {
        let place = Place { number, coming, is_used: Arc::default(), buyer: buyer_of(wanted) };
        let address: Box<str> = wanted.address.into();
        self.by_address.entry(address.clone()).or_default().insert(place.number);
        self.held.insert(place.buyer.clone(), Held { place: place.clone(), address, requests: 1 });
        place
    }

    /// Notes that a request of a place has gone. What is returned must be dropped without the lock.
    pub(super) fn leave(&mut self, place: &Place) -> Option<Held> {
        let held = self.held.get_mut(&place.buyer).filter(|held| held.place.number == place.number)?;
        held.requests -= 1;
        if held.requests > 0 { None } else { self.release(place) }
    }

    /// Lets no request join a place any more. What is returned must be dropped without the lock.
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

    /// Notes that a number waits no more.
    pub(super) fn is_over(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// Returns how many leave until a number has its turn, itself among them; none if it waits no more.
    pub(super) fn place_of(&self, number: u64) -> u64 {
        if !self.waiting.contains(&number) {
            return 0;
        }
        self.waiting.range(..=number).count() as u64
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.held.is_empty() && self.by_address.is_empty()
    }
}

fn buyer_of(wanted: Wanted<'_>) -> (i64, Box<str>) {
    (wanted.sale, wanted.user.into())
}

pub(super) fn lock(line: &Mutex<Line>) -> MutexGuard<'_, Line> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}
