//! The calibration of a counter: the lines that are laid as pairs of readings arrive.
//!
//! ```text
//!  time │            ahead: the next line is flatter
//!       │             ╭─────────╯         ╭── behind: the next line starts higher
//!       │       ╭─────╯           ╭───────╯
//!       │ · · ·─╯
//!       └─first─10 ms─────────────────────────────── counter
//! ```
//!
//! The slope is measured over everything since the first pair. A line that missed the system's clock by more than any
//! measuring error shows that one of the two jumped: then the calibration starts again with the current pair. Only a
//! counter that jumps back to a value that its line covers is undetectable; the error is less than a line.

use super::segment::{ClockSegment, Pair, SPAN, Slope};
use super::{PER_SECOND, Ticks, Timestamp};

/// The time of measurement before the first slope.
const MEASURED: Ticks = Ticks::new(PER_SECOND / 100);

/// The largest error of a slope between two lines: one in a hundred if they follow each other at once, and relatively
/// less after a pause. A wrong bound only costs a new measurement.
const MISSED: u64 = SPAN / 100;

/// The state of the conversion from counts to time.
#[derive(Debug)]
pub(super) struct Calibration {
    first: Pair,
    /// The pair at which the line in force was laid, and the slope at that time; `None` while measuring.
    last: Option<(Pair, Slope)>,
    line: ClockSegment,
    /// The lowest time that may be returned.
    floor: Timestamp,
}

impl Calibration {
    /// Begins to measure.
    pub(super) fn new(first: Pair) -> Calibration {
        Calibration { first, last: None, line: ClockSegment::NONE, floor: first.time }
    }

    /// Returns the line in force, which may have ended.
    pub(super) fn line(&self) -> ClockSegment {
        self.line
    }

    /// Returns the time at this reading of the system's clock, while it is too early to lay a line.
    pub(super) fn while_measuring(&mut self, system: Timestamp) -> Option<Timestamp> {
        if self.last.is_some() || system.since(self.first.time) >= MEASURED {
            return None;
        }
        self.floor = self.floor.max(system);
        Some(self.floor)
    }

    /// Returns the time at a pair after the end of the line in force. Lays the next line, if possible.
    pub(super) fn anchor(&mut self, pair: Pair) -> Timestamp {
        let time = self.floor.max(pair.time);
        match self.slope_at(pair) {
            Some(slope) => {
                self.last = Some((pair, slope));
                self.line = ClockSegment::new(Pair { time, ..pair }, slope, time.since(pair.time));
                self.floor = self.line.end();
            }
            None => *self = Calibration { floor: time, ..Calibration::new(pair) },
        }
        time
    }

    /// Returns the slope since the first pair, unless a clock jumped since the last.
    fn slope_at(&self, pair: Pair) -> Option<Slope> {
        if let Some((last, slope)) = self.last {
            let expected = slope.time_of(pair.counter.checked_sub(last.counter)?);
            if expected.get().abs_diff(pair.time.since(last.time).get()) > MISSED {
                return None;
            }
        }
        Slope::between(self.first, pair)
    }
}

#[cfg(test)]
mod tests;
