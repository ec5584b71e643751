//! What is known about a counter, and the lines that are laid from it, as pairs of readings come in.
//!
//! ```text
//!  time │            ahead: the next line is flatter
//!       │             ╭─────────╯         ╭── behind: the next line starts higher
//!       │       ╭─────╯           ╭───────╯
//!       │ · · ·─╯
//!       └─first─10 ms─────────────────────────────── counter
//! ```
//!
//! The slope is that of everything since the first pair. A line that missed the system's clock by more than
//! was ever an error of measuring says that one of them jumped: then everything begins with the pair at hand.
//! Only a counter that jumps back to where its line holds deceives everybody, by less than a line.

use super::line::{Line, Pair, SPAN, Slope};
use super::{PER_SECOND, Ticks, Timestamp};

/// How long to measure before there is a slope.
const MEASURED: Ticks = Ticks::new(PER_SECOND / 100);

/// What a slope may miss between two lines: one in a hundred if they follow each other at once, and relatively
/// less after a pause. To be wrong about this costs a new measurement, nothing else.
const MISSED: u64 = SPAN / 100;

/// The state of what turns counts into time.
#[derive(Debug)]
pub(super) struct Calibration {
    first: Pair,
    /// Where the line in force was laid, and the slope as it was known then; nothing while measuring.
    last: Option<(Pair, Slope)>,
    line: Line,
    /// No time before this is told any more.
    floor: Timestamp,
}

impl Calibration {
    /// Begins to measure.
    pub(super) fn new(first: Pair) -> Calibration {
        Calibration { first, last: None, line: Line::NONE, floor: first.time }
    }

    /// The line in force; it may have ended.
    pub(super) fn line(&self) -> Line {
        self.line
    }

    /// The time when the system's clock shows this, while it is too early to lay a line.
    pub(super) fn while_measuring(&mut self, system: Timestamp) -> Option<Timestamp> {
        if self.last.is_some() || system.since(self.first.time) >= MEASURED {
            return None;
        }
        self.floor = self.floor.max(system);
        Some(self.floor)
    }

    /// The time at a pair behind the end of the line in force. Lays the next line, if it can.
    pub(super) fn anchor(&mut self, pair: Pair) -> Timestamp {
        let time = self.floor.max(pair.time);
        match self.slope_at(pair) {
            Some(slope) => {
                self.last = Some((pair, slope));
                self.line = Line::new(Pair { time, ..pair }, slope, time.since(pair.time));
                self.floor = self.line.end();
            }
            None => *self = Calibration { floor: time, ..Calibration::new(pair) },
        }
        time
    }

    /// The slope since the first pair, unless something jumped since the last.
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
