//! The wall clock. It determines when a schedule changes a rule and when an override ends. It never decides whether a
//! request is allowed.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of the date, in seconds since 1970.
pub trait WallClock: fmt::Debug + Send + Sync {
    /// Returns the seconds since 1970.
    fn now(&self) -> i64;
}

/// The date of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemCalendar;

impl WallClock for SystemCalendar {
    #[expect(clippy::disallowed_methods, reason = "a schedule goes by the wall clock")]
    fn now(&self) -> i64 {
        let seconds = |span: std::time::Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => seconds(since),
            Err(before) => -seconds(before.duration()),
        }
    }
}

/// A date that is set manually, for tests.
#[derive(Debug, Default)]
pub struct ManualCalendar(AtomicI64);

impl ManualCalendar {
    /// Creates a calendar with this date.
    pub fn at(now: i64) -> ManualCalendar {
        ManualCalendar(AtomicI64::new(now))
    }

    /// Sets the date.
    pub fn set(&self, now: i64) {
        self.0.store(now, Ordering::SeqCst);
    }
}

impl WallClock for ManualCalendar {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
