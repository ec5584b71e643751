//! What the shop has counted since it started, and how long its attempts took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::database::Fault;
use crate::outcome::Outcome;

/// Longer than this no attempt is told apart, in microseconds.
const LONGEST: u64 = 600_000_000;

/// Counters. All of them only grow.
#[derive(Debug)]
pub struct Meter {
    requests: AtomicU64,
    refused: AtomicU64,
    attempts: AtomicU64,
    sold: AtomicU64,
    conflicts: AtomicU64,
    sold_out: AtomicU64,
    faults: AtomicU64,
    latencies: Mutex<Latencies>,
}

#[derive(Debug)]
struct Latencies {
    all: Histogram<u64>,
    now: Histogram<u64>,
    before: Histogram<u64>,
    turned: Instant,
}

/// What was counted, at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Wishes to buy that came in.
    pub requests: u64,
    /// Those that the limiter let pass.
    pub admitted: u64,
    /// Those that the limiter did not.
    pub refused: u64,
    /// Those that reached the database.
    pub attempts: u64,
    /// Those that reserved a piece.
    pub sold: u64,
    /// Those for whom somebody else was faster.
    pub conflicts: u64,
    /// Those who came too late.
    pub sold_out: u64,
    /// Those for whom the database failed.
    pub faults: u64,
}

/// How long attempts took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of them took no longer.
    pub median: Duration,
    /// Of a hundred, one took longer.
    pub p99: Duration,
}

impl Meter {
    /// Nothing counted yet.
    pub fn new() -> Meter {
        let empty = || Histogram::new_with_max(LONGEST, 3).expect("three digits up to ten minutes are fine");
        let latencies = Latencies { all: empty(), now: empty(), before: empty(), turned: Instant::now() };
        Meter {
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            attempts: AtomicU64::new(0),
            sold: AtomicU64::new(0),
            conflicts: AtomicU64::new(0),
            sold_out: AtomicU64::new(0),
            faults: AtomicU64::new(0),
            latencies: Mutex::new(latencies),
        }
    }

    /// A wish to buy has come in.
    pub fn requested(&self) {
        count(&self.requests);
    }

    /// The limiter has refused it.
    pub fn refused(&self) {
        count(&self.refused);
    }

    /// An attempt on the database has ended, after so long.
    pub(crate) fn attempted(&self, took: Duration, outcome: &Result<Outcome, Fault>) {
        count(&self.attempts);
        match outcome {
            Ok(Outcome::Reserved { replayed: false, .. }) => count(&self.sold),
            Ok(Outcome::Conflict { .. }) => count(&self.conflicts),
            Ok(Outcome::SoldOut) => count(&self.sold_out),
            Ok(_) => {}
            Err(_) => count(&self.faults),
        }
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).record(took);
    }

    /// Somebody was told that all is sold, without a look into the database.
    pub(crate) fn hinted_sold_out(&self) {
        count(&self.sold_out);
    }

    /// What was counted so far.
    pub fn totals(&self) -> Totals {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let refused = read(&self.refused);
        let requests = read(&self.requests);
        Totals {
            requests,
            admitted: requests.saturating_sub(refused),
            refused,
            attempts: read(&self.attempts),
            sold: read(&self.sold),
            conflicts: read(&self.conflicts),
            sold_out: read(&self.sold_out),
            faults: read(&self.faults),
        }
    }

    /// How long all attempts took.
    pub fn latency(&self) -> Latency {
        Latency::of(&self.latencies.lock().unwrap_or_else(PoisonError::into_inner).all)
    }

    /// How long the attempts of the last second or two took.
    pub fn latency_now(&self) -> Latency {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.turn();
        let mut recent = latencies.now.clone();
        // Both have the same bounds, so that nothing is left out.
        let _ = recent.add(&latencies.before);
        Latency::of(&recent)
    }
}

impl Default for Meter {
    fn default() -> Meter {
        Meter::new()
    }
}

impl Latencies {
    fn record(&mut self, took: Duration) {
        self.turn();
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
        self.all.saturating_record(microseconds);
        self.now.saturating_record(microseconds);
    }

    /// What is older than a second is before; what is older than two is forgotten.
    fn turn(&mut self) {
        const SECOND: Duration = Duration::from_secs(1);
        let age = self.turned.elapsed();
        if age < SECOND {
            return;
        }
        std::mem::swap(&mut self.now, &mut self.before);
        self.now.reset();
        if age >= 2 * SECOND {
            self.before.reset();
        }
        self.turned = Instant::now();
    }
}

impl Latency {
    fn of(histogram: &Histogram<u64>) -> Latency {
        let at = |quantile| Duration::from_micros(histogram.value_at_quantile(quantile));
        Latency { median: at(0.5), p99: at(0.99) }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_of_two_seconds_ago_are_forgotten_and_all_are_kept() {
        let meter = Meter::new();
        meter.attempted(Duration::from_millis(5), &Ok(Outcome::SoldOut));
        assert_eq!(meter.latency_now().p99.as_millis(), 5);
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(meter.latency_now(), Latency::default());
        assert_eq!(meter.latency().median.as_millis(), 5);
        assert_eq!((meter.totals().attempts, meter.totals().sold_out), (1, 1));
    }
}
