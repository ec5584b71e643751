//! The reason for a denial.

use std::fmt;

use crate::decision::Verdict;
use crate::denied::{Denied, Reason};
use crate::wait::Cause;

/// The reason for a denial; see [`Denied::reason`].
///
/// ```
/// use tidegate::{DenialReason, Limit, Limiter, ask};
///
/// let limiter = Limiter::new(Limit::per_hour(1));
/// assert!(limiter.admit("ana").is_allowed());
/// let reason = |units| limiter.admit(ask("ana").cost(units)).into_result().map_err(|denied| denied.reason());
/// assert_eq!(reason(1), Err(DenialReason::Limit));
/// assert_eq!(reason(2), Err(DenialReason::Impossible));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DenialReason {
    /// The limit does not allow it now. [`Denied::retry_after`] is exact.
    Limit,
    /// The cost exceeds the limit, so no wait helps.
    Impossible,
    /// The key is banned by a [penalty](crate::PreparedPenalty).
    Banned,
    /// The store has no room for another key. [`Denied::retry_after`] is a guess.
    StoreFull,
    /// The queue of waiters is full.
    QueueFull,
    /// The max wait passed before it was allowed.
    TimedOut,
    /// The wait ended early, because the system starts no thread that could wake it.
    NoTimer,
    /// There is no free capacity for any caller. [`Denied::retry_after`] is a guess, unless an open circuit breaker has
    /// a known end.
    Overloaded,
    /// A newer or more important waiter evicted it from the queue.
    PushedOut,
}

impl DenialReason {
    /// Returns the name in `snake_case`, for a label of a metric or a field of a log.
    pub const fn name(self) -> &'static str {
        match self {
            DenialReason::Limit => "limit",
            DenialReason::Impossible => "impossible",
            DenialReason::Banned => "banned",
            DenialReason::StoreFull => "store_full",
            DenialReason::QueueFull => "queue_full",
            DenialReason::TimedOut => "timed_out",
            DenialReason::NoTimer => "no_timer",
            DenialReason::Overloaded => "overloaded",
            DenialReason::PushedOut => "pushed_out",
        }
    }
}

/// Writes the name.
impl fmt::Display for DenialReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Denied {
    /// Returns the reason for the denial.
    pub const fn reason(&self) -> DenialReason {
        match self.cause() {
            Reason::Limit if self.decision().ban().is_some() => DenialReason::Banned,
            Reason::Limit if self.is_store_full() => DenialReason::StoreFull,
            Reason::Limit => match self.decision().verdict() {
                Verdict::Impossible => DenialReason::Impossible,
                _ => DenialReason::Limit,
            },
            Reason::LineFull => DenialReason::QueueFull,
            Reason::CutShort(Cause::TimedOut) => DenialReason::TimedOut,
            Reason::CutShort(Cause::NoTimer) => DenialReason::NoTimer,
            Reason::Overloaded => DenialReason::Overloaded,
            Reason::PushedOut => DenialReason::PushedOut,
        }
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Ban, Cost, Limit, State, Ticks, Timestamp};

    #[test]
    fn each_denial_has_its_reason() {
        let limit = Limit::per_second(1);
        let mut state = State::default();
        let mut take = |units| limit.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(units)));
        assert!(take(1).is_allowed());
        let (denied, never) = (take(1), take(2));
        let reasons = [
            (Denied::of(denied), DenialReason::Limit),
            (Denied::of(never), DenialReason::Impossible),
            (Denied::of(denied.banned_for(Ticks::new(1), Ban::Begun)), DenialReason::Banned),
            (Denied::of(denied.store_full()), DenialReason::StoreFull),
            (Denied::because(Reason::LineFull, denied), DenialReason::QueueFull),
            (Denied::because(Reason::CutShort(Cause::TimedOut), denied), DenialReason::TimedOut),
            (Denied::because(Reason::CutShort(Cause::NoTimer), denied), DenialReason::NoTimer),
            (Denied::overloaded(1, Ticks::ZERO), DenialReason::Overloaded),
            (Denied::because(Reason::PushedOut, denied), DenialReason::PushedOut),
        ];
        for (denied, expected) in reasons {
            assert_eq!(
                (denied.reason(), denied.reason().to_string()),
                (expected, expected.name().to_owned())
            );
        }
        let names: std::collections::HashSet<_> = reasons.iter().map(|(_, reason)| reason.name()).collect();
        assert_eq!(names.len(), reasons.len());
    }
}
