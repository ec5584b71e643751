//! A one-word cache of a timetable's last result, with the span of time for which it is valid.
//!
//! A single atomic word holds one complete result, whichever thread wrote it. No lock and no memory ordering is needed.
//!
//! ```text
//!  63                32 31               8 7        0
//!  └ end, Unix second ┘ └ length, seconds ┘ └ choice ┘   0: none, else its index + 1
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The last second that fits, in 2106. A result whose span ends later, or before 1970, is not cached.
const LAST_SECOND: i64 = u32::MAX as i64;
/// The maximum distance of both ends from now. Twice that fits into 24 bits.
const REACH: i64 = (1 << 23) - 1;
const LENGTH_MASK: u64 = (1 << 24) - 1;

/// The cached result. It starts with an empty span, so it is never valid.
#[derive(Debug, Default)]
pub(super) struct LastAnswer(AtomicU64);

impl LastAnswer {
    /// Returns the cached choice, if it is valid now.
    #[inline]
    pub(super) fn recall(&self, now: i64) -> Option<Option<usize>> {
        let word = self.0.load(Ordering::Relaxed);
        let end = (word >> 32).cast_signed();
        let start = end - (word >> 8 & LENGTH_MASK).cast_signed();
        let [choice, ..] = word.to_le_bytes();
        (start..end).contains(&now).then(|| usize::from(choice).checked_sub(1))
    }

    /// Caches the part of the span around now that fits; nothing if the choice does not fit.
    pub(super) fn keep(&self, choice: Option<usize>, span: &Range<i64>, now: i64) {
        let start = span.start.max(now.saturating_sub(REACH));
        let end = span.end.min(now.saturating_add(REACH)).min(LAST_SECOND);
        let choice = u8::try_from(choice.map_or(0, |index| index + 1));
        if let Ok(choice) = choice
            && end > now.max(0)
        {
            let (end, length) = (end.cast_unsigned(), (end - start).cast_unsigned());
            self.0.store(end << 32 | length << 8 | u64::from(choice), Ordering::Relaxed);
        }
    }
}

impl Clone for LastAnswer {
    /// Returns an empty cache.
    fn clone(&self) -> LastAnswer {
        LastAnswer::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_WINDOWS;
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn kept(choice: Option<usize>, span: Range<i64>, now: i64) -> LastAnswer {
        let answer = LastAnswer::default();
        answer.keep(choice, &span, now);
        answer
    }

    #[test]
    fn an_answer_holds_in_its_span_only() {
        for choice in [None, Some(0), Some(MAX_WINDOWS - 1)] {
            let answer = kept(choice, NOW - 10..NOW + 10, NOW);
            for now in [NOW - 10, NOW, NOW + 9] {
                assert_eq!(answer.recall(now), Some(choice), "{now}");
            }
            for now in [i64::MIN, 0, NOW - 11, NOW + 10, NOW + 10 + (1 << 32), i64::MAX] {
                assert_eq!(answer.recall(now), None, "{now}");
            }
        }
    }

    #[test]
    fn nothing_is_recalled_before_something_was_kept() {
        for now in [i64::MIN, -1, 0, 1, NOW, LAST_SECOND, i64::MAX] {
            assert_eq!(LastAnswer::default().recall(now), None, "{now}");
        }
    }

    #[test]
    fn of_a_long_span_the_part_around_now_is_kept() {
        let answer = kept(Some(7), i64::MIN..i64::MAX, NOW);
        for (now, expected) in [
            (NOW - REACH - 1, None),
            (NOW - REACH, Some(Some(7))),
            (NOW + REACH - 1, Some(Some(7))),
            (NOW + REACH, None),
        ] {
            assert_eq!(answer.recall(now), expected, "{now}");
        }
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        for now in [i64::MIN, -REACH, LAST_SECOND, LAST_SECOND + 1, i64::MAX] {
            let answer = kept(Some(7), i64::MIN..i64::MAX, now);
            assert_eq!(answer.recall(now), None, "{now}");
            assert_eq!(answer.0.into_inner(), 0, "{now}");
        }
        assert_eq!(kept(Some(MAX_WINDOWS), NOW..NOW + 1, NOW).recall(NOW), None);
        for now in [1 - REACH, -1, 0, LAST_SECOND - 1] {
            assert_eq!(kept(Some(7), i64::MIN..i64::MAX, now).recall(now), Some(Some(7)), "{now}");
        }
    }
}
