//! Counters since the start of the shop, and latencies of its attempts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use tidegate::SECOND;
use tokio::time::Instant;

use crate::database::Fault;
use crate::outcome::Outcome;

/// The maximum of a measured latency, in microseconds.
const LONGEST: u64 = 600_000_000;

/// The counters of a shop. They only increase.
#[derive(Debug)]
pub struct Meter(Mutex<Counted>);

#[derive(Debug)]
struct Counted {
    totals: Totals,
    all: Histogram<u64>,
    now: Histogram<u64>,
    before: Histogram<u64>,
    turned: Instant,
}

/// The values of the counters at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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

/// The latencies of attempts, in milliseconds; `None` if nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

impl Meter {
    /// Counts a purchase request.
    pub fn requested(&self) {
        self.counted().totals.requests += 1;
    }

    /// Counts a denial by the limiter.
    pub fn refused(&self) {
        self.counted().totals.refused += 1;
    }

    /// Counts an attempt on the database, and records its latency.
    pub(crate) fn attempted(&self, took: Duration, outcome: &Result<Outcome, Fault>) {
        let mut counted = self.counted();
        let totals = &mut counted.totals;
        totals.attempts += 1;
        match outcome {
            Ok(Outcome::Reserved { replayed: false, .. }) => totals.sold += 1,
            Ok(Outcome::Conflict { .. }) => totals.conflicts += 1,
            Ok(Outcome::SoldOut) => totals.sold_out += 1,
            Ok(_) => {}
            Err(_) => totals.faults += 1,
        }
        counted.record(took);
    }

    /// Counts a reply "sold out" that was given without the database.
    pub(crate) fn hinted_sold_out(&self) {
        self.counted().totals.sold_out += 1;
    }

    /// Returns the values of the counters.
    pub fn totals(&self) -> Totals {
        let totals = self.counted().totals;
        Totals { admitted: totals.requests.saturating_sub(totals.refused), ..totals }
    }

    /// Returns the latencies of all attempts.
    pub fn latency(&self) -> Latency {
        Latency::of(&self.counted().all)
    }

    /// Returns the latencies of the attempts of the last second or two.
    pub fn latency_now(&self) -> Latency {
        let mut counted = self.counted();
        counted.turn();
        let mut recent = counted.now.clone();
        // Both have the same bounds, so that no value is lost.
        let _ = recent.add(&counted.before);
        Latency::of(&recent)
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Meter {
    fn default() -> Meter {
        let empty = || Histogram::new_with_max(LONGEST, 3).expect("three digits up to ten minutes are fine");
        let [all, now, before] = [empty(), empty(), empty()];
        Meter(Mutex::new(Counted { totals: Totals::default(), all, now, before, turned: Instant::now() }))
    }
}

impl Counted {
    fn record(&mut self, took: Duration) {
        self.turn();
        let microseconds = u64::try_from(took.as_micros()).unwrap_or(LONGEST);
        self.all.saturating_record(microseconds);
        self.now.saturating_record(microseconds);
    }

    /// Moves values older than a second from `now` to `before`, and drops values older than two.
    fn turn(&mut self) {
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
        // No attempt takes zero time.
        let at = |quantile| match histogram.value_at_quantile(quantile) {
            0 => None,
            microseconds => Some(microseconds as f64 / 1000.0),
        };
        Latency { p50: at(0.5), p99: at(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_of_two_seconds_ago_are_forgotten_and_all_are_kept() {
        let meter = Meter::default();
        meter.attempted(Duration::from_millis(5), &Ok(Outcome::SoldOut));
        assert_eq!(meter.latency_now().p99.map(f64::round), Some(5.0));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(meter.latency_now(), Latency::default());
        assert_eq!(meter.latency().p50.map(f64::round), Some(5.0));
        assert_eq!((meter.totals().attempts, meter.totals().sold_out), (1, 1));
    }
}
