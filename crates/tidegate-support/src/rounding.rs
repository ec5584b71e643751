//! The rounding of spans in replies: up, so that a caller that waits for the reported time is not denied again.

use std::time::Duration;

use tidegate_core::{Decision, Ticks, Verdict};

/// A tick is a sixteenth of a nanosecond.
const TICKS_PER_MS: u64 = 16_000_000;
const TICKS_PER_SECOND: u64 = 1000 * TICKS_PER_MS;
const NANOS_PER_MS: u128 = 1_000_000;

/// Returns whole milliseconds, rounded up.
///
/// Zero stays zero; one tick is a millisecond.
#[inline]
pub fn in_ms(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_MS)
}

/// Returns whole seconds, rounded up.
#[inline]
pub fn in_seconds(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_SECOND)
}

/// Returns whole milliseconds, rounded up. Saturates.
pub fn ceil_ms(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(NANOS_PER_MS)).unwrap_or(u64::MAX)
}

/// Returns whole seconds, rounded up. Saturates.
pub fn ceil_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

/// Returns the wait until the same ask passes; `None` if it was allowed or can never pass.
#[doc(alias = "Retry-After")]
#[inline]
pub fn retry_after(decision: &Decision) -> Option<Ticks> {
    match decision.verdict_in_ticks() {
        Verdict::Denied { retry_after } => Some(retry_after),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_unit_is_a_whole_one_in_ticks_and_in_durations() {
        for (nanos, ms, seconds) in [
            (0, 0, 0),
            (1, 1, 1),
            (999_999, 1, 1),
            (1_000_000, 1, 1),
            (1_000_001, 2, 1),
            (999_000_001, 1000, 1),
            (1_000_000_000, 1000, 1),
            (1_000_000_001, 1001, 2),
        ] {
            let span = Duration::from_nanos(nanos);
            assert_eq!((ceil_ms(span), ceil_seconds(span)), (ms, seconds), "{span:?}");
            let span = Ticks::saturating_from(span);
            assert_eq!((in_ms(span), in_seconds(span)), (ms, seconds), "{span:?}");
        }
        assert_eq!((ceil_ms(Duration::MAX), ceil_seconds(Duration::MAX)), (u64::MAX, u64::MAX));
    }
}
