//! Counters since the start of the shop, and latencies of its attempts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::database::Fault;
use crate::outcome::Outcome;

/// The maximum of a measured latency, in microseconds.
const LONGEST: u64 = 600_000_000;

/// The counters of a shop. They only increase.
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

/// The values of the counters at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The purchase requests that arrived.
    pub requests: u64,
    /// The requests that the limiter allowed.
    pub admitted: u64,
    /// The requests that the limiter denied.
    pub refused: u64,
    /// The requests that reached the database.
    pub attempts: u64,
    /// The requests that reserved a piece.
    pub sold: u64,
    /// The requests that lost against a faster one.
    pub conflicts: u64,
    /// The requests that found no piece left.
    pub sold_out: u64,
    /// The requests for which the database failed.
    pub faults: u64,
}

/// The latencies of attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub median: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl Meter {
    /// Returns counters at zero.
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

    /// Counts a purchase request.
    pub fn requested(&self) {
        count(&self.requests);
    }

    /// Counts a denial by the limiter.
    pub fn refused(&self) {
        count(&self.refused);
    }

    /// Counts an attempt on the database, and records its latency.
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

    /// Counts a reply "sold out" that was given without the database.
    pub(crate) fn hinted_sold_out(&self) {
        count(&self.sold_out);
    }

    /// Returns the values of the counters.
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

    /// Returns the latencies of all attempts.
    pub fn latency(&self) -> Latency {
        Latency::of(&self.latencies.lock().unwrap_or_else(PoisonError::into_inner).all)
    }

    /// Returns the latencies of the attempts of the last second or two.
    pub fn latency_now(&self) -> Latency {
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        latencies.turn();
        let mut recent = latencies.now.clone();
        // Both have the same bounds, so that no value is lost.
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

    /// Moves values older than a second from `now` to `before`, and drops values older than two.
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
