//! A FIFO queue of buyers: one leaves at a time, evenly, by a leaky bucket. Every buyer can read its place.
//!
//! A buyer has one place per sale, however many requests ask for it: a second request joins the turn of the first. An
//! address has a bounded number of places, so no address can fill the queue with its own visitors. A place is released
//! when the client of its last request disconnects, and all places behind move up. So the number of a place only
//! decreases.

mod line;

pub use line::{Claim, Turn};

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{Algorithm, Enqueued, Limit, Limiter, SECOND, Ticks};

use line::{Line, Place, Waits, lock};

/// The key of the one bucket for all buyers.
const EVERYBODY: &str = "everybody";

/// A queue of buyers. Clones share it.
#[derive(Clone, Debug)]
pub struct Queue {
    limiter: Limiter,
    /// The time between two departures.
    interval: Duration,
    per_address: usize,
    line: Arc<Mutex<Line>>,
}

/// A request for a place.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The number of the sale.
    pub sale: i64,
    /// The user.
    pub user: &'a str,
    /// The address of the request, or the network that counts as one address.
    pub address: &'a str,
}

impl Queue {
    /// Returns a queue with the rate and capacity of a leaky bucket, such as `200/s queue 2000 leaky-bucket`, and a
    /// maximum number of places for each address. Any other algorithm is an error.
    pub fn new(limit: Limit, per_address: usize) -> Result<Queue, String> {
        if limit.algorithm() != Algorithm::LeakyBucket {
            return Err(format!(
                "queue \"{limit}\": it has no queue; write \"200/s queue 2000 leaky-bucket\""
            ));
        }
        let interval = limit.interval().map_or(Duration::ZERO, Ticks::to_duration);
        Ok(Queue { limiter: Limiter::new(limit), interval, per_address, line: Arc::default() })
    }

    /// Joins the turn of this buyer, if there is one.
    pub fn rejoin(&self, wanted: Wanted<'_>) -> Option<Turn> {
        let place = lock(&self.line).share(wanted)?;
        Some(self.turn(place))
    }

    /// Joins the turn of this buyer, or takes the last place.
    ///
    /// If the queue is full, or this address has reached its maximum, the error is the time to the next try, or a second
    /// if none is known.
    pub fn join(&self, wanted: Wanted<'_>) -> Result<Turn, Duration> {
        // The lock keeps the order of the numbers equal to that of the limiter's own queue.
        let mut line = lock(&self.line);
        if let Some(place) = line.share(wanted) {
            drop(line);
            return Ok(self.turn(place));
        }
        if let Some(ahead) = line.places_ahead_of_a_free_one(wanted.address, self.per_address) {
            return Err(self.interval.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX)).max(SECOND));
        }
        let queued = match self.limiter.acquire(EVERYBODY).enqueue() {
            Enqueued::Denied(denial) => return Err(denial.retry_after().unwrap_or(SECOND)),
            Enqueued::Passed(_) => None,
            Enqueued::Waiting(queued) => Some(queued),
        };
        let place = line.hold(wanted, Waits::new(queued));
        drop(line);
        Ok(self.turn(place))
    }

    fn turn(&self, place: Place) -> Turn {
        Turn::new(place, self.interval, &self.line)
    }
}

#[cfg(test)]
mod tests;
