//! The windows of a rule. The first window that covers the current time is in force.
//!
//! A timetable is asked for every request of its rule. Its last result is cached with the span of time in which it
//! stays the same, so the calendar is consulted only when the rule changes, and at clock changes of its time zones.

use std::ops::Range;

use jiff::Timestamp;

use super::last_answer::LastAnswer;
use super::window::Window;
use super::zone::end_of_time;

/// The maximum number of windows. The cached choice is one byte, which also encodes "none".
pub(crate) const MAX_WINDOWS: usize = 255;
/// The maximum number of edges without effect that are skipped, such as the midnights of an all-day window: eleven
/// years.
const MAX_EDGES: usize = 4096;

/// Windows in the order of the file. Two timetables are equal if their windows are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timetable {
    windows: Vec<Window>,
    last_answer: LastAnswer,
}

impl Timetable {
    /// Creates a timetable. There should be at most [`MAX_WINDOWS`] windows.
    pub(crate) fn new(windows: Vec<Window>) -> Timetable {
        Timetable { windows, last_answer: LastAnswer::default() }
    }

    pub(crate) fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// Returns the index of the first window that covers this Unix second. Accepts any clock value.
    #[inline]
    pub(crate) fn at(&self, now: i64) -> Option<usize> {
        self.last_answer.recall(now).unwrap_or_else(|| self.look_and_keep(now))
    }

    /// Returns the next second at which the result of [`Timetable::at`] changes; `None` if there is none in the
    /// foreseeable future.
    pub(crate) fn next_change(&self, now: i64) -> Option<i64> {
        let (choice, mut span) = self.look(now);
        for _ in 0..MAX_EDGES {
            let edge = span.end;
            if edge == i64::MAX {
                return None;
            }
            let next;
            (next, span) = self.look(edge);
            if next != choice {
                return Some(edge);
            }
        }
        None
    }

    #[cold]
    fn look_and_keep(&self, now: i64) -> Option<usize> {
        let (choice, span) = self.look(now);
        self.last_answer.keep(choice, &span, now);
        choice
    }

    /// Returns the choice for now, and a span around now in which it stays the same.
    pub(super) fn look(&self, now: i64) -> (Option<usize>, Range<i64>) {
        let Ok(timestamp) = Timestamp::from_second(now) else {
            let before = i64::MIN..Timestamp::MIN.as_second();
            return (None, if before.contains(&now) { before } else { end_of_time()..i64::MAX });
        };
        let mut common = Timestamp::MIN.as_second()..end_of_time();
        for (index, window) in self.windows.iter().enumerate() {
            let (covers, span) = window.look(timestamp);
            common = common.start.max(span.start)..common.end.min(span.end);
            if covers {
                return (Some(index), common);
            }
        }
        (None, common)
    }
}

impl PartialEq for Timetable {
    fn eq(&self, other: &Timetable) -> bool {
        self.windows == other.windows
    }
}

impl Eq for Timetable {}
