//! Time as a value: ticks of 1/16 ns counted from a store's epoch.
//!
//! | item | content |
//! |---|---|
//! | [`Ticks`], [`Timestamp`] | a span and an instant, in ticks |
//! | [`Clock`] | the trait of clocks, which return the time and wake waiters |
//! | [`CounterClock`] | the clock of limiters and stores unless another one is set |
//! | [`SystemClock`] | the monotonic clock of the system |
//! | [`ManualClock`] | a clock that tests and replays set by hand |
//! | [`WallAlignment`] | the alignment of windows with the wall clock |
//! | [`CalendarPeriods`], [`TimeZone`] | hours, days, weeks, months and years of a zone's wall clock |
//! | [`MILLISECOND`] to [`DAY`] | spans for settings: `30 * SECOND` |
//!
//! Every decision takes the time as an argument, and only clocks read it. So a test, a replay or a store with its own
//! clock decides by the same code as a live process.
//!
//! A `Duration` cannot be multiplied in a constant. Write `Duration::from_secs(30)` there in place of `30 * SECOND`.

pub(crate) mod boot;
mod calendar;
mod calibrated;
mod calibration;
mod clock;
mod counter;
mod manual;
mod segment;
mod shifted;
mod source;
mod time_zone;
mod timer;
mod wall_alignment;
#[cfg(test)]
mod woken;

pub use calendar::{CalendarPeriods, CalendarUnit};
pub(crate) use clock::BEGINNING;
pub use clock::{Clock, SystemClock};
pub use counter::CounterClock;
pub use manual::ManualClock;
pub(crate) use shifted::{Mark, Shifted};
pub(crate) use source::Source;
pub use time_zone::{TimeZone, TimeZoneError};
pub(crate) use timer::wake_all;
pub use wall_alignment::WallAlignment;

use std::fmt;
use std::time::Duration;

/// One millisecond: `10 * MILLISECOND`; in a constant, `Duration::from_millis(10)`.
pub const MILLISECOND: Duration = Duration::from_millis(1);
/// One second: `30 * SECOND`; in a constant, `Duration::from_secs(30)`.
pub const SECOND: Duration = Duration::from_secs(1);
/// One minute: `10 * MINUTE`; in a constant, `Duration::from_secs(10 * 60)`.
pub const MINUTE: Duration = Duration::from_secs(60);
/// One hour: `6 * HOUR`; in a constant, `Duration::from_secs(6 * 3600)`.
pub const HOUR: Duration = Duration::from_secs(3600);
/// One day of 24 hours: `7 * DAY`; in a constant, `Duration::from_secs(7 * 24 * 3600)`.
pub const DAY: Duration = Duration::from_secs(24 * 3600);

const PER_NANOSECOND: u64 = 16;
const PER_SECOND: u64 = PER_NANOSECOND * 1_000_000_000;

/// The largest disorder of readings of one clock: a caller may read it before another caller, and be served after it. A
/// step back up to this is not treated as a step; debts stay the same.
pub(crate) const OUT_OF_ORDER: Ticks = Ticks(PER_SECOND / 10);

/// The age from which a clock reading is no longer used for a decision: a state that counted at that time may have been
/// dropped since. Stores keep states for [`OUT_OF_ORDER`] beyond their expiry; the other half of that is for readings
/// that are out of order.
pub(crate) const RECENT: Ticks = Ticks(OUT_OF_ORDER.0 / 2);

/// A span of time in ticks of 1/16 ns.
#[doc(alias = "Duration")]
#[doc(alias = "nanoseconds")]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticks(u64);

impl Ticks {
    /// The empty span.
    pub const ZERO: Ticks = Ticks(0);
    /// The longest representable span, about 36 years.
    pub const MAX: Ticks = Ticks(u64::MAX);
    /// The longest span of a limit: ten years of 365 days.
    pub const TEN_YEARS: Ticks = Ticks(3650 * 24 * 3600 * PER_SECOND);

    /// Creates a span of so many ticks. Code outside this crate converts a [`Duration`], which names its unit.
    pub(crate) const fn new(ticks: u64) -> Ticks {
        Ticks(ticks)
    }

    /// Converts a duration to ticks, or returns `None` if it exceeds [`Ticks::MAX`].
    pub const fn from_duration(duration: Duration) -> Option<Ticks> {
        let ticks = duration.as_nanos() * PER_NANOSECOND as u128;
        if ticks > u64::MAX as u128 { None } else { Some(Ticks(ticks as u64)) }
    }

    /// Converts a duration to ticks, at most [`Ticks::MAX`].
    pub const fn saturating_from(duration: Duration) -> Ticks {
        match Ticks::from_duration(duration) {
            Some(ticks) => ticks,
            None => Ticks::MAX,
        }
    }

    /// Returns the number of ticks.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the span rounded **up** to whole nanoseconds, so that a wait of this duration is long enough.
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0.div_ceil(PER_NANOSECOND))
    }

    pub(crate) const fn checked_mul(self, times: u64) -> Option<Ticks> {
        match self.0.checked_mul(times) {
            Some(ticks) => Some(Ticks(ticks)),
            None => None,
        }
    }

    /// Returns the difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_sub(other.0))
    }

    /// Returns the sum, at most [`Ticks::MAX`].
    pub const fn saturating_add(self, other: Ticks) -> Ticks {
        Ticks(self.0.saturating_add(other.0))
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}t", self.0)
    }
}

/// An instant: ticks since the epoch of the store that decides.
#[doc(alias = "Instant")]
#[doc(alias = "theoretical arrival time")]
#[doc(alias = "TAT")]
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch itself.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// The last representable instant, about 36 years after the epoch.
    pub const LAST: Timestamp = Timestamp(u64::MAX);

    /// Returns the instant so many ticks after the epoch.
    pub const fn from_ticks(ticks: u64) -> Timestamp {
        Timestamp(ticks)
    }

    /// Returns the instant so long after the epoch, at most [`Timestamp::LAST`].
    pub const fn after_epoch(duration: Duration) -> Timestamp {
        Timestamp(Ticks::saturating_from(duration).0)
    }

    /// Returns the ticks since the epoch.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Returns the span from `earlier` to this instant, or zero if `earlier` is later.
    pub const fn since(self, earlier: Timestamp) -> Ticks {
        Ticks(self.0.saturating_sub(earlier.0))
    }

    /// Returns the instant a span later, or `None` if it is after [`Timestamp::LAST`].
    pub const fn checked_add(self, span: Ticks) -> Option<Timestamp> {
        match self.0.checked_add(span.0) {
            Some(ticks) => Some(Timestamp(ticks)),
            None => None,
        }
    }

    /// Returns the instant a span earlier, or `None` if it is before the epoch.
    pub const fn checked_sub(self, span: Ticks) -> Option<Timestamp> {
        match self.0.checked_sub(span.0) {
            Some(ticks) => Some(Timestamp(ticks)),
            None => None,
        }
    }

    /// Returns the instant a span later, at most [`Timestamp::LAST`].
    pub const fn saturating_add(self, span: Ticks) -> Timestamp {
        Timestamp(self.0.saturating_add(span.0))
    }

    /// Returns the instant a span earlier, at least the epoch.
    pub const fn saturating_sub(self, span: Ticks) -> Timestamp {
        Timestamp(self.0.saturating_sub(span.0))
    }

    /// Returns the span from this instant to [`Timestamp::LAST`].
    pub(crate) const fn left(self) -> Ticks {
        Ticks(u64::MAX - self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "@{}t", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_becomes_nanoseconds_rounded_up() {
        assert_eq!(Ticks::new(0).to_duration(), Duration::ZERO);
        assert_eq!(Ticks::new(1).to_duration(), Duration::from_nanos(1));
        assert_eq!(Ticks::new(16).to_duration(), Duration::from_nanos(1));
        assert_eq!(Ticks::new(17).to_duration(), Duration::from_nanos(2));
        assert!(Ticks::MAX.to_duration() > 36 * 365 * 24 * HOUR);
    }

    #[test]
    fn a_duration_that_cannot_be_counted_saturates_only_where_asked() {
        assert_eq!(Ticks::from_duration(Duration::MAX), None);
        assert_eq!(Ticks::saturating_from(Duration::MAX), Ticks::MAX);
        assert_eq!(Ticks::from_duration(SECOND), Some(Ticks(16_000_000_000)));
        assert_eq!(Timestamp::after_epoch(Duration::MAX), Timestamp::LAST);
    }

    #[test]
    fn time_before_the_epoch_and_after_the_end_does_not_exist() {
        let one = Ticks::new(1);
        assert_eq!(Timestamp::LAST.checked_add(one), None);
        assert_eq!(Timestamp::EPOCH.checked_sub(one), None);
        assert_eq!(Timestamp::LAST.saturating_add(one), Timestamp::LAST);
        assert_eq!(Timestamp::EPOCH.saturating_sub(one), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::LAST), Ticks::ZERO);
        assert_eq!(Timestamp::EPOCH.left(), Ticks::MAX);
    }
}
