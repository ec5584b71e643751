//! A decision as a RESP reply: five integers as in redis-cell or throttlecrab, or named fields.
//!
//! In version 3 of the protocol named fields are a map, in version 2 a flat array of names and values. Times are
//! milliseconds in named fields, and seconds in the five integers. -1 stands for no value. The field `ban` is there
//! only if a key is banned.

use tidegate::{Adjusted, Ban, Limit};
use tidegate_rules::Admission;
use tidegate_support::{in_seconds, retry_after};

use super::reply::{Replies, or_none, saturated};
use super::throttle::ThrottleDialect;
use crate::decision_fields::{self, DecisionFields, LimitFields};
use crate::engine::Decided;
use crate::permit::Permits;

/// The number of fields of every decision.
const FIELDS: usize = 8;

/// Writes limit, remaining and times as the command does, in whole seconds, rounded up.
///
/// Rounding seconds up never lets a client retry too early; a wait of 1 ms is shown as 1. A fail-open decision counted
/// nothing, so limit, remaining and reset time are -1.
#[inline]
pub(super) fn throttled(replies: &mut Replies<'_>, decided: &Decided, dialect: ThrottleDialect) {
    five(replies, decided, dialect, decided.decision.is_allowed());
}

/// Writes the same five integers for a quantity of 0, which is always allowed.
///
/// redis-cell and throttlecrab reply the same way: a quantity of 0 asks for the current state.
pub(super) fn looked_at(replies: &mut Replies<'_>, decided: &Decided, dialect: ThrottleDialect) {
    five(replies, decided, dialect, true);
}

/// Writes the five integers of an allowed request, or of a denied one.
#[inline]
fn five(replies: &mut Replies<'_>, decided: &Decided, dialect: ThrottleDialect, is_allowed: bool) {
    let decision = &decided.decision;
    let retry_after = || or_none(retry_after(decision).map(in_seconds));
    let (limit, remaining, reset_after) = match decided.is_uncounted() {
        true => (-1, -1, -1),
        false => (
            saturated(decision.limit()),
            saturated(decision.remaining()),
            saturated(in_seconds(decision.reset_after_in_ticks())),
        ),
    };
    replies.five(match dialect {
        ThrottleDialect::RedisCell => {
            let retry_after = if is_allowed { -1 } else { retry_after() };
            [i64::from(!is_allowed), limit, remaining, retry_after, reset_after]
        }
        ThrottleDialect::Throttlecrab => {
            let retry_after = if is_allowed { 0 } else { retry_after() };
            [i64::from(is_allowed), limit, remaining, reset_after, retry_after]
        }
    });
}

/// Writes all fields, and the permit if there is one. Returns the permits that the reply contains.
///
/// The caller keeps the permits until the reply is written, and releases them if it never is.
pub(super) fn decided(
    replies: &mut Replies<'_>,
    decided: &Decided,
    limit: &Limit,
    key: &[u8],
) -> Option<Permits> {
    with_permit(replies, (*decided).into(), Permits::of_key(key, limit, decided))
}

/// The limits that the reply of `TG.ADMIT` contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyLimits {
    /// The binding one, by the fields of every decision.
    Binding,
    /// Every limit that decided, in one more field.
    All,
}

/// Writes all fields of the rules' decision, and the permit if there is one. Returns the permits that the reply
/// contains.
pub(super) fn admission(
    replies: &mut Replies<'_>,
    admission: &Admission,
    limits: ReplyLimits,
) -> Option<Permits> {
    let listed = match limits {
        ReplyLimits::Binding => None,
        ReplyLimits::All => Some(admission),
    };
    let decision = DecisionFields { by_rules: listed, ..admission.into() };
    with_permit(replies, decision, Permits::of(admission))
}

/// Writes all fields, the limits of rules if they are listed, and the permit if there is one.
fn with_permit(
    replies: &mut Replies<'_>,
    decision: DecisionFields<'_>,
    permit: Option<Permits>,
) -> Option<Permits> {
    let more = [decision.by_rules.is_some(), permit.is_some(), decision.ban.is_some()];
    replies.map(FIELDS + more.into_iter().map(usize::from).sum::<usize>());
    fields(replies, decision);
    if let Some(admission) = decision.by_rules {
        put_limits(replies, admission);
    }
    if let Some(permit) = &permit {
        replies.bulk(b"permit");
        replies.bulk(permit.to_string().as_bytes());
    }
    put_ban(replies, decision.ban);
    permit
}

/// Writes the ban as the last field; nothing if there is none.
#[inline]
fn put_ban(replies: &mut Replies<'_>, ban: Option<Ban>) {
    if let Some(ban) = ban {
        replies.bulk(b"ban");
        replies.bulk(decision_fields::ban(ban).as_bytes());
    }
}

/// Writes the limits that decided as an array of maps, the binding one first.
#[cold]
fn put_limits(replies: &mut Replies<'_>, admission: &Admission) {
    let each = LimitFields::each(admission);
    replies.bulk(b"limits");
    replies.array(each.len());
    for limit in each {
        replies.map(5 + usize::from(limit.ban.is_some()));
        replies.bulk(b"name");
        replies.bulk(limit.name.as_bytes());
        replies.bulk(b"limit");
        replies.integer(saturated(limit.limit));
        replies.bulk(b"remaining");
        replies.integer(saturated(limit.remaining));
        replies.bulk(b"retry_after");
        replies.integer_or_none(limit.retry_after_ms);
        replies.bulk(b"reset_after");
        replies.integer(saturated(limit.reset_after_ms));
        put_ban(replies, limit.ban);
    }
}

/// Writes all fields of the remaining quota, and the result of the adjustment.
///
/// `allowed` and the times describe an ask of cost 1 after the adjustment.
pub(super) fn adjusted(replies: &mut Replies<'_>, decision: DecisionFields<'_>, adjusted: Adjusted) {
    replies.map(FIELDS + 1 + usize::from(decision.ban.is_some()));
    fields(replies, decision);
    replies.bulk(b"adjusted");
    replies.bulk(decision_fields::adjusted(adjusted).as_bytes());
    put_ban(replies, decision.ban);
}

/// Writes all fields of the binding decision, and its index.
///
/// The index counts the limits of the command from 0.
pub(super) fn binding(replies: &mut Replies<'_>, decision: DecisionFields<'_>, index: usize) {
    replies.map(FIELDS + 1);
    fields(replies, decision);
    replies.bulk(b"binding");
    replies.integer(saturated(index as u64));
}

/// Writes the eight fields of every decision, in this order.
fn fields(replies: &mut Replies<'_>, decision: DecisionFields<'_>) {
    replies.bulk(b"allowed");
    replies.integer(i64::from(decision.is_allowed));
    replies.bulk(b"limit");
    replies.integer_or_none(decision.limit);
    replies.bulk(b"remaining");
    replies.integer_or_none(decision.remaining);
    replies.bulk(b"retry_after");
    replies.integer_or_none(decision.retry_after_ms);
    replies.bulk(b"reset_after");
    replies.integer_or_none(decision.reset_after_ms);
    replies.bulk(b"delay");
    replies.integer_or_none(decision.delay_ms);
    replies.bulk(b"rule");
    match decision.rule {
        Some(rule) => replies.bulk(rule.as_bytes()),
        None => replies.null(),
    }
    replies.bulk(b"decided_by");
    replies.bulk(decision.decided_by.as_str().as_bytes());
}
