//! The alignment of a store's windows with the wall clock.

use std::fmt;
use std::time::Duration;

use super::boot::{since_epoch, wall};
use super::{Source, Timestamp};

/// The tolerated difference: clocks drift, so a smaller one is not reported.
const TOLERATED: Duration = Duration::from_secs(5);

/// The alignment of a store's windows with the wall clock.
///
/// Windows and slots are aligned to 2024-01-01T00:00Z, so days begin at midnight UTC and weeks on Monday. The wall
/// clock is read when a process starts, or when a file is created; setting it later moves no window.
#[doc(alias = "NTP")]
#[doc(alias = "UTC")]
#[doc(alias = "midnight")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallAlignment {
    /// Days begin at midnight UTC.
    Aligned,
    /// The wall clock shows this time since 1970, which is before 2024 or after 2049, and is ignored.
    NotBelieved {
        /// The time since 1970.
        wall: Duration,
    },
    /// The store differs from the wall clock, which was set since: days do not begin at midnight UTC.
    Off {
        /// The difference.
        by: Duration,
    },
}

impl WallAlignment {
    /// It reads both clocks once, so it is for the start of a process and for health checks.
    pub(crate) fn of(source: &Source) -> WallAlignment {
        match source {
            // The owner of a custom clock defines the start of its days.
            Source::Given(_) => WallAlignment::Aligned,
            Source::Process | Source::Shifted(_) => WallAlignment::between(source.now(), wall()),
        }
    }

    fn between(now: Timestamp, wall: Duration) -> WallAlignment {
        let Some(expected) = since_epoch(wall) else { return WallAlignment::NotBelieved { wall } };
        let by = now.since(Timestamp::EPOCH).to_duration().abs_diff(expected);
        if by < TOLERATED { WallAlignment::Aligned } else { WallAlignment::Off { by } }
    }
}

impl fmt::Display for WallAlignment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WallAlignment::Aligned => out.write_str("days begin at midnight UTC"),
            WallAlignment::NotBelieved { wall } => write!(
                out,
                "the wall clock shows {} seconds since 1970, which is not between 2024 and 2049 and is not believed, so days of \
                 windows do not begin at midnight UTC; set the clock and start again",
                wall.as_secs()
            ),
            WallAlignment::Off { by } => write!(
                out,
                "the store is {} seconds from the wall clock, which was wrong when the store was made or was set since, so \
                 days of windows do not begin at midnight UTC; start again, and move a file away that was made by a wrong clock",
                by.as_secs()
            ),
        }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ManualClock;
    use crate::time::boot::EPOCH;

    #[test]
    fn a_store_is_aligned_off_or_made_by_a_clock_that_is_not_believed() {
        let day = Duration::from_secs(24 * 3600);
        let (second, now) = (Duration::from_secs(1), Timestamp::after_epoch(day));
        let between = |wall: Duration| WallAlignment::between(now, wall);
        for wall in [EPOCH + day, EPOCH + day + 4 * second, EPOCH + day - 4 * second] {
            assert_eq!(between(wall), WallAlignment::Aligned);
        }
        assert_eq!(between(EPOCH), WallAlignment::Off { by: day });
        assert_eq!(between(EPOCH + 3 * day), WallAlignment::Off { by: 2 * day });
        for wall in [Duration::ZERO, EPOCH - second, Duration::MAX] {
            assert_eq!(between(wall), WallAlignment::NotBelieved { wall });
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "it needs the system's clock")]
    fn the_clock_of_a_process_is_aligned_and_a_given_one_says_so_itself() {
        assert_eq!(WallAlignment::of(&Source::Process), WallAlignment::Aligned);
        assert_eq!(WallAlignment::of(&Source::Given(Arc::new(ManualClock::new()))), WallAlignment::Aligned);
    }

    #[test]
    fn each_says_what_to_do() {
        let message = WallAlignment::NotBelieved { wall: Duration::from_secs(7) }.to_string();
        assert!(
            message.contains("shows 7 seconds since 1970")
                && message.ends_with("set the clock and start again")
        );
        let message = WallAlignment::Off { by: Duration::from_secs(90) }.to_string();
        assert!(message.contains("90 seconds from the wall clock") && message.contains("move a file away"));
    }
}
