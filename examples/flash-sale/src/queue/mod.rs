//! A queue of buyers: one leaves at a time, evenly, by a leaky bucket; everybody knows their place.
//!
//! A buyer has one place per sale, however many requests ask for it: a second request joins the turn of the first.
//! An address has a bounded number of places, so no address fills the queue with visitors of its own making.
//! A place goes back when the last of its requests hangs up, and all behind move up. So a place only ever falls.

mod line;
mod turn;

pub use turn::{Claim, Turn};

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::{Algorithm, Enqueued, Limit, Limiter, Timestamp};

use line::{Line, Place, lock};
use turn::Waits;

/// One bucket for all.
const EVERYBODY: &str = "everybody";

/// The wait that is reported if the limiter reports none.
const A_WHILE: Duration = Duration::from_secs(1);

/// A queue. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Queue {
    limiter: Limiter,
    /// Between two who leave.
    interval: Duration,
    per_address: usize,
    line: Arc<Mutex<Line>>,
}

/// A request for a place.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Of which sale.
    pub sale: i64,
    /// For whom.
    pub user: &'a str,
    /// The address it comes from, or the group of addresses that counts as one.
    pub address: &'a str,
}

impl Queue {
    /// A queue that moves as a leaky bucket says, such as `200/s queue 2000 leaky-bucket`, with at most so many places
    /// for each address. Another limit is of no use for a queue.
    pub fn new(limit: Limit, per_address: usize) -> Result<Queue, String> {
        if limit.algorithm() != Algorithm::LeakyBucket {
            return Err(format!(
                "queue \"{limit}\": nobody stands in line under it; write \"200/s queue 2000 leaky-bucket\""
            ));
        }
        let [_, interval, ..] = limit.numbers();
        let interval = Timestamp::from_ticks(interval).since(Timestamp::EPOCH).to_duration();
        Ok(Queue { limiter: Limiter::new(limit), interval, per_address, line: Arc::default() })
    }

    /// Joins the turn that this buyer has already, if any.
    pub fn rejoin(&self, wanted: Wanted<'_>) -> Option<Turn> {
        let place = lock(&self.line).share(wanted)?;
        Some(self.turn(place))
    }

    /// Joins the turn that this buyer has already, or takes the last place.
    ///
    /// If the queue is full, or this address has as many places as it may, the error is the time after which to try
    /// again.
    pub fn join(&self, wanted: Wanted<'_>) -> Result<Turn, Duration> {
        // The lock makes the order of the numbers that of the limiter's own queue.
        let mut line = lock(&self.line);
        if let Some(place) = line.share(wanted) {
            drop(line);
            return Ok(self.turn(place));
        }
        if let Some(ahead) = line.places_ahead_of_a_free_one(wanted.address, self.per_address) {
            return Err(self.interval.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX)).max(A_WHILE));
        }
        let queued = match self.limiter.acquire(EVERYBODY).enqueue() {
            Enqueued::Denied(denial) => return Err(denial.retry_after().unwrap_or(A_WHILE)),
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
