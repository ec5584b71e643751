//! A decision in the units of the protocols: whole milliseconds and seconds, rounded up.

use tidegate::{Adjusted, DecidedBy, Decision, Ticks, Verdict};
use tidegate_rules::Admission;

use crate::engine::Decided;

const TICKS_PER_MILLISECOND: u64 = 16_000_000;
const TICKS_PER_SECOND: u64 = 1000 * TICKS_PER_MILLISECOND;

/// What a caller is told about one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer(pub(crate) Decision);

impl Answer {
    pub(crate) fn is_allowed(self) -> bool {
        self.0.is_allowed()
    }

    /// Milliseconds until the same ask passes; nothing if it was allowed or can never pass.
    pub(crate) fn retry_after_ms(self) -> Option<u64> {
        self.retry_after().map(in_ms)
    }

    /// Milliseconds until the subject is like new.
    pub(crate) fn reset_after_ms(self) -> u64 {
        in_ms(self.0.reset_after_in_ticks())
    }

    /// Milliseconds to wait before acting; nothing if it was refused.
    pub(crate) fn delay_ms(self) -> Option<u64> {
        match self.0.verdict_in_ticks() {
            Verdict::Allowed { delay } => Some(in_ms(delay)),
            _ => None,
        }
    }

    /// Seconds until the same ask passes; nothing if it was allowed or can never pass.
    #[inline]
    pub(crate) fn retry_after_seconds(self) -> Option<u64> {
        self.retry_after().map(in_seconds)
    }

    #[inline]
    pub(crate) fn reset_after_seconds(self) -> u64 {
        in_seconds(self.0.reset_after_in_ticks())
    }

    #[inline]
    fn retry_after(self) -> Option<Ticks> {
        match self.0.verdict_in_ticks() {
            Verdict::Denied { retry_after } => Some(retry_after),
            _ => None,
        }
    }
}

#[inline]
fn in_ms(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_MILLISECOND)
}

#[inline]
fn in_seconds(span: Ticks) -> u64 {
    span.get().div_ceil(TICKS_PER_SECOND)
}

/// What a caller is told, whoever decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told<'a> {
    pub(crate) is_allowed: bool,
    pub(crate) limit: Option<u64>,
    pub(crate) remaining: Option<u64>,
    /// Nothing if it was allowed or can never pass.
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) reset_after_ms: Option<u64>,
    /// Nothing if it was refused.
    pub(crate) delay_ms: Option<u64>,
    pub(crate) rule: Option<&'a str>,
    pub(crate) decided_by: DecidedBy,
}

/// A decision about a limit that came with its ask. Where nothing counted there is no remaining quota.
impl From<Decided> for Told<'static> {
    fn from(Decided { decision, by: decided_by }: Decided) -> Told<'static> {
        let told = Told { decided_by, ..Told::from(Answer(decision)) };
        if decided_by == DecidedBy::Open && told.is_allowed {
            return Told { limit: None, remaining: None, reset_after_ms: None, ..told };
        }
        told
    }
}

impl From<Answer> for Told<'static> {
    fn from(answer: Answer) -> Told<'static> {
        Told {
            is_allowed: answer.is_allowed(),
            limit: Some(answer.0.limit()),
            remaining: Some(answer.0.remaining()),
            retry_after_ms: answer.retry_after_ms(),
            reset_after_ms: Some(answer.reset_after_ms()),
            delay_ms: answer.delay_ms(),
            rule: None,
            decided_by: DecidedBy::Memory,
        }
    }
}

impl<'a> From<&'a Admission> for Told<'a> {
    fn from(admission: &'a Admission) -> Told<'a> {
        let (is_allowed, rule) = (admission.is_allowed(), admission.rule());
        match admission.binding() {
            Some(binding) => Told {
                is_allowed,
                delay_ms: is_allowed.then(|| in_ms(binding.delay)),
                rule,
                decided_by: admission.decided_by(),
                ..Told::from(Answer(binding.decision))
            },
            // Nothing was counted.
            None => Told {
                is_allowed,
                limit: None,
                remaining: None,
                retry_after_ms: None,
                reset_after_ms: None,
                delay_ms: match admission.verdict() {
                    Verdict::Allowed { delay } => Some(in_ms(Ticks::saturating_from(delay))),
                    _ => None,
                },
                rule,
                decided_by: admission.decided_by(),
            },
        }
    }
}

/// How an adjustment went, in a word.
pub(crate) fn adjusted(adjusted: Adjusted) -> &'static str {
    match adjusted {
        Adjusted::Whole => "whole",
        Adjusted::Capped => "capped",
        Adjusted::NeedsPermit => "needs-permit",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate::{AdHoc, Ask, Clock, Limit, MILLISECOND, ManualClock, Zone};

    use super::*;

    #[test]
    fn spans_are_rounded_up() {
        let clock = Arc::new(ManualClock::new());
        let adhoc = AdHoc::on(&Zone::with_clock(1 << 16, clock.clone()), "");
        let limit = adhoc.prepare(Limit::per_minute(30).burst(1));
        let take = || Answer(adhoc.take("ana", &limit, Ask::ONE));

        let first = take();
        assert_eq!((first.retry_after_ms(), first.delay_ms(), first.reset_after_ms()), (None, Some(0), 2000));
        assert_eq!((first.retry_after_seconds(), first.reset_after_seconds()), (None, 2));
        clock.advance(999 * MILLISECOND + MILLISECOND / 2);
        let second = take();
        assert_eq!((second.retry_after_ms(), second.delay_ms()), (Some(1001), None));
        assert_eq!((second.retry_after_seconds(), second.reset_after_seconds()), (Some(2), 2));
        assert!(clock.now().ticks() > 0);
    }
}
