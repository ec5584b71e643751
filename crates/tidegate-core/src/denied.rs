//! A denial as an error, for callers that proceed only if they were allowed.

use std::fmt;
use std::time::Duration;

use crate::decision::{Decision, Remaining, Verdict};
use crate::time::Ticks;
use crate::wait::Cause;

/// The error of a denied action: the decision, and the reason for the denial.
#[doc(alias("Refusal", "RateLimitExceeded", "429", "Too Many Requests"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Denied {
    decision: Decision,
    reason: Reason,
}

/// The reason for a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The limit denied the ask.
    Limit,
    /// The queue was full.
    LineFull,
    /// The wait ended early.
    CutShort(Cause),
    /// There is no free capacity for any caller.
    Overloaded,
    /// A newer or more important waiter evicted this one from the queue.
    PushedOut,
}

impl Denied {
    /// Creates a denial by the limit.
    pub(crate) const fn of(decision: Decision) -> Denied {
        Denied { decision, reason: Reason::Limit }
    }

    /// Creates a denial with this reason.
    pub(crate) const fn because(reason: Reason, decision: Decision) -> Denied {
        Denied { decision, reason }
    }

    /// Creates a denial because all `limit` calls are in flight; `retry_after` is the suggested wait.
    pub(crate) const fn overloaded(limit: u64, retry_after: Ticks) -> Denied {
        let verdict = Verdict::Denied { retry_after };
        let decision = Decision::new(verdict, limit, Remaining::of_units(0), retry_after);
        Denied { decision, reason: Reason::Overloaded }
    }

    /// Returns the wait after which the ask is allowed, if no other caller spends meanwhile; `None` if it can never
    /// be allowed.
    pub const fn retry_after(&self) -> Option<Duration> {
        self.decision.retry_after()
    }

    /// Returns true if no wait helps: the cost exceeds the limit.
    pub const fn is_impossible(&self) -> bool {
        matches!(self.decision.verdict(), Verdict::Impossible)
    }

    /// Returns true if the queue was full.
    pub const fn is_queue_full(&self) -> bool {
        matches!(self.reason, Reason::LineFull)
    }

    /// Returns true if the max wait passed before the ask was allowed.
    pub const fn is_timed_out(&self) -> bool {
        matches!(self.reason, Reason::CutShort(Cause::TimedOut))
    }

    /// Returns true if there was no free capacity for any caller, so the call was denied without waiting.
    /// `retry_after` is then a guess, unless an open circuit breaker has a known end.
    pub const fn is_overloaded(&self) -> bool {
        matches!(self.reason, Reason::Overloaded)
    }

    /// Returns true if a newer or more important waiter evicted this one from the queue.
    pub const fn is_pushed_out(&self) -> bool {
        matches!(self.reason, Reason::PushedOut)
    }

    /// Returns true if the store had no room for another key.
    pub const fn is_store_full(&self) -> bool {
        self.decision.is_store_full()
    }

    pub(crate) const fn cause(&self) -> Reason {
        self.reason
    }

    /// Returns the decision behind the denial.
    pub const fn decision(&self) -> Decision {
        self.decision
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decision, verdict) = (&self.decision, self.decision.verdict());
        out.write_str(match (self.reason, verdict) {
            (Reason::LineFull, _) => "denied: the queue is full; try again later",
            (Reason::CutShort(Cause::TimedOut), _) => {
                "denied: the max wait passed before the ask was allowed"
            }
            (Reason::CutShort(Cause::NoTimer), _) => {
                "denied: the system starts no more threads, so no waiter can be woken"
            }
            (Reason::Overloaded, _) => "denied: there is no capacity for more now; try again later",
            (Reason::PushedOut, _) => "denied: another waiter took its place in the queue; try again later",
            (Reason::Limit, Verdict::Denied { .. }) if decision.is_store_full() => {
                "denied: the store has no room for another key; raise max_keys or max_bytes"
            }
            (Reason::Limit, Verdict::Denied { retry_after }) if decision.ban().is_some() => {
                return write!(out, "denied: the key is banned; try again in {:?}", shown(retry_after));
            }
            (Reason::Limit, Verdict::Denied { retry_after }) => {
                return write!(out, "denied: try again in {:?}", shown(retry_after));
            }
            (Reason::Limit, Verdict::Impossible) => {
                let limit = decision.limit();
                return write!(out, "denied: this cost can never pass; at most {limit} can at once");
            }
            (Reason::Limit, Verdict::Allowed { .. }) => "denied",
        })
    }
}

/// Returns a wait for people: rounded up to whole milliseconds, unless it is shorter than one.
fn shown(wait: Duration) -> Duration {
    let ms = u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    if wait < Duration::from_millis(1) { wait } else { Duration::from_millis(ms) }
}

impl std::error::Error for Denied {}

impl Decision {
    /// Returns the decision if it was allowed, else a [`Denied`], for `?`.
    pub const fn into_result(self) -> Result<Decision, Denied> {
        if self.is_allowed() { Ok(self) } else { Err(Denied::of(self)) }
    }
}

/// Conversion of a denial into the return value of a rate-limited function.
///
/// Every `Result` whose error implements `From<Denied>` implements this trait. Other types implement it
/// themselves.
///
/// ```
/// use tidegate::{FromDenied, Denied};
///
/// enum Reply {
///     Page(String),
///     TooMany,
/// }
///
/// impl FromDenied for Reply {
///     fn from_denied(_: Denied) -> Reply {
///         Reply::TooMany
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a denial cannot become `{Self}`, which this function returns",
    label = "nothing says what to return when the limit denies the call",
    note = "return a `Result<_, E>` where `E` is `tidegate::Denied` or has `From<tidegate::Denied>`",
    note = "or say what to return instead: `otherwise = |denied| …`, or `otherwise = some_function`"
)]
pub trait FromDenied {
    /// Returns the value to return in place of the denied call.
    fn from_denied(denied: Denied) -> Self;
}

impl<T, E: From<Denied>> FromDenied for Result<T, E> {
    fn from_denied(refusal: Denied) -> Result<T, E> {
        Err(E::from(refusal))
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, Limit, State, Timestamp};

    #[test]
    fn a_denial_displays_the_wait_or_the_reason() {
        let limit = Limit::per_second(10).burst(2);
        let mut state = State::default();
        let mut take = |cost| limit.decide(&mut state, Timestamp::EPOCH, Ask::new(Cost::of(cost)));
        assert!(take(2).into_result().is_ok());
        let refusal = take(1).into_result().unwrap_err();
        assert_eq!(refusal.to_string(), "denied: try again in 100ms");
        assert_eq!(refusal.retry_after(), Some(Duration::from_millis(100)));
        let shown = |nanos| shown(Duration::from_nanos(nanos)).as_nanos();
        assert_eq!([1, 999_999, 1_000_000, 1_000_001].map(shown), [1, 999_999, 1_000_000, 2_000_000]);
        let never = take(3).into_result().unwrap_err();
        assert_eq!(never.to_string(), "denied: this cost can never pass; at most 2 can at once");
        assert!(never.is_impossible() && !refusal.is_impossible());
        let full = take(1).store_full().into_result().unwrap_err();
        assert!(full.is_store_full() && full.decision().is_store_full() && !refusal.is_store_full());
        assert!(full.to_string().contains("max_keys"), "{full}");
    }

    #[test]
    fn each_reason_answers_only_its_own_question() {
        let decision = Limit::per_second(1).peek(&State::default(), Timestamp::EPOCH, Ask::ONE);
        let reasons = [
            (Denied::of(decision), [false, false, false, false]),
            (Denied::because(Reason::LineFull, decision), [true, false, false, false]),
            (Denied::because(Reason::CutShort(Cause::TimedOut), decision), [false, true, false, false]),
            (Denied::overloaded(7, Ticks::new(16)), [false, false, true, false]),
            (Denied::because(Reason::PushedOut, decision), [false, false, false, true]),
            (Denied::because(Reason::CutShort(Cause::NoTimer), decision), [false, false, false, false]),
        ];
        let texts: std::collections::HashSet<_> =
            reasons.iter().map(|(refusal, _)| refusal.to_string()).collect();
        assert_eq!(texts.len(), 6);
        for (refusal, expected) in reasons {
            let (line_full, timed_out) = (refusal.is_queue_full(), refusal.is_timed_out());
            let (overloaded, pushed_out) = (refusal.is_overloaded(), refusal.is_pushed_out());
            assert_eq!([line_full, timed_out, overloaded, pushed_out], expected);
        }
    }

    #[test]
    fn without_capacity_nothing_remains_and_the_wait_is_reported() {
        let refusal = Denied::overloaded(7, Ticks::new(16));
        assert_eq!((refusal.decision().limit(), refusal.decision().remaining()), (7, 0));
        assert_eq!(refusal.retry_after(), Some(Duration::from_nanos(1)));
        assert!(!refusal.decision().is_allowed() && !refusal.is_impossible());
    }
}
