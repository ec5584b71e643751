//! Decision fields in the units of the protocols: whole milliseconds and seconds, rounded up.
//!
//! Both fronts write replies from this one type, so that a decision has the same numbers over HTTP and RESP.
//! Rounding up keeps the promise of a retry: a client that waits as long as it reads never comes too early. The
//! clock and the store count in ticks, which are finer than milliseconds.

use tidegate::{Adjusted, Ban, DecidedBy, Decision, Ticks, Verdict};
use tidegate_rules::{Admission, Binding};
use tidegate_support::{in_ms, retry_after};

use crate::engine::Decided;

/// The fields of a reply about a decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecisionFields<'a> {
    /// The verdict. With a delay it is allowed as well, after the delay.
    pub(crate) is_allowed: bool,
    /// The most that can pass at one instant from rest, in units of cost; `None` if nothing was counted.
    pub(crate) limit: Option<u64>,
    /// The largest cost that would pass now; `None` if nothing was counted.
    pub(crate) remaining: Option<u64>,
    /// Milliseconds until the same request passes if no other request spends meanwhile. `None` if the request was
    /// allowed, or can never be.
    pub(crate) retry_after_ms: Option<u64>,
    /// Milliseconds until the quota is full again; `None` if nothing was counted.
    pub(crate) reset_after_ms: Option<u64>,
    /// Milliseconds to wait before the action; 0 under limits that do not queue. `None` if the request was denied.
    pub(crate) delay_ms: Option<u64>,
    /// The rule that the decision is about; `None` for a limit that came with the request.
    pub(crate) rule: Option<&'a str>,
    /// The source of the decision: memory, the remote store, or the fallback.
    pub(crate) decided_by: DecidedBy,
    /// The ban by which the request was denied. A reply contains it only if there is one.
    pub(crate) ban: Option<Ban>,
    /// True if an override of the key decided in place of a limit. A reply contains it only then.
    pub(crate) is_overridden: bool,
    /// The decision of rules, whose limits the reply lists; `None` for a limit that came with the request.
    pub(crate) by_rules: Option<&'a Admission>,
}

/// The fields of one limit of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitFields<'a> {
    /// The rule of the limit.
    pub(crate) name: &'a str,
    /// The most that can pass at one instant from rest, in units of cost.
    pub(crate) limit: u64,
    /// The largest cost that would pass now.
    pub(crate) remaining: u64,
    /// Milliseconds until the same request passes under this limit; `None` if it passes, or never does.
    pub(crate) retry_after_ms: Option<u64>,
    /// Milliseconds until the quota is full again.
    pub(crate) reset_after_ms: u64,
    /// The ban by which this limit denied.
    pub(crate) ban: Option<Ban>,
}

impl<'a> LimitFields<'a> {
    /// Returns the fields of each limit that decided, the binding one first.
    pub(crate) fn each(admission: &'a Admission) -> impl ExactSizeIterator<Item = LimitFields<'a>> {
        admission.limits().map(|Binding { rule, decision, .. }| LimitFields {
            name: rule,
            limit: decision.limit(),
            remaining: decision.remaining(),
            retry_after_ms: retry_after(decision).map(in_ms),
            reset_after_ms: in_ms(decision.reset_after_in_ticks()),
            ban: decision.ban(),
        })
    }
}

/// Fields of a decision about a limit that came with its request. A fail-open decision counted nothing, so it has no
/// remaining quota.
impl From<Decided> for DecisionFields<'static> {
    fn from(decided: Decided) -> DecisionFields<'static> {
        let fields = DecisionFields { decided_by: decided.by, ..DecisionFields::from(decided.decision) };
        if decided.is_uncounted() {
            return DecisionFields { limit: None, remaining: None, reset_after_ms: None, ..fields };
        }
        fields
    }
}

/// Fields of a decision by the memory of this server, without a rule.
impl From<Decision> for DecisionFields<'static> {
    fn from(decision: Decision) -> DecisionFields<'static> {
        DecisionFields {
            is_allowed: decision.is_allowed(),
            limit: Some(decision.limit()),
            remaining: Some(decision.remaining()),
            retry_after_ms: retry_after(&decision).map(in_ms),
            reset_after_ms: Some(in_ms(decision.reset_after_in_ticks())),
            delay_ms: match decision.verdict_in_ticks() {
                Verdict::Allowed { delay } => Some(in_ms(delay)),
                _ => None,
            },
            rule: None,
            decided_by: DecidedBy::Memory,
            ban: decision.ban(),
            is_overridden: false,
            by_rules: None,
        }
    }
}

/// Fields of a decision by rules. They are those of the binding rule: the one with the longest wait, or else with
/// the smallest fraction remaining. Without a binding rule there are no counts.
impl<'a> From<&'a Admission> for DecisionFields<'a> {
    fn from(admission: &'a Admission) -> DecisionFields<'a> {
        let (is_allowed, rule) = (admission.is_allowed(), admission.rule());
        match admission.binding() {
            Some(binding) => DecisionFields {
                is_allowed,
                delay_ms: is_allowed.then(|| in_ms(binding.delay)),
                rule,
                decided_by: admission.decided_by(),
                by_rules: Some(admission),
                ..DecisionFields::from(binding.decision)
            },
            // No rule counted this request.
            None => DecisionFields {
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
                ban: None,
                is_overridden: admission.is_overridden(),
                by_rules: Some(admission),
            },
        }
    }
}

/// Returns the word for the outcome of an adjustment.
///
/// `whole`: all of it was charged or refunded. `capped`: only a part, since a refund returns at most what is still
/// owed. `needs-permit`: permits are released by their own text.
pub(crate) fn adjusted(adjusted: Adjusted) -> &'static str {
    match adjusted {
        Adjusted::Whole => "whole",
        Adjusted::Capped => "capped",
        Adjusted::NeedsPermit => "needs-permit",
    }
}

/// Returns the word for a ban: `begun` if this denial began it, `in_force` if it was in force.
pub(crate) fn ban(ban: Ban) -> &'static str {
    match ban {
        Ban::Begun => "begun",
        Ban::InForce => "in_force",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate::{Ask, Clock, DynamicLimiter, Limit, MILLISECOND, ManualClock, Zone};

    use super::*;

    #[test]
    fn spans_are_rounded_up() {
        let clock = Arc::new(ManualClock::new());
        let adhoc = DynamicLimiter::on(&Zone::with_clock(1 << 16, clock.clone()), "");
        let limit = adhoc.prepare(Limit::per_minute(30).burst(1));
        let take = || DecisionFields::from(adhoc.admit("ana", &limit, Ask::ONE));

        let first = take();
        assert_eq!((first.retry_after_ms, first.delay_ms, first.reset_after_ms), (None, Some(0), Some(2000)));
        clock.advance(999 * MILLISECOND + MILLISECOND / 2);
        let second = take();
        assert_eq!(
            (second.retry_after_ms, second.delay_ms, second.reset_after_ms),
            (Some(1001), None, Some(1001))
        );
        assert!(clock.now().ticks() > 0);
    }
}
