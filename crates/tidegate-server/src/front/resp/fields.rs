//! A decision as a client sees it: five numbers for those who know redis-cell, names and values for others.

use tidegate::{Adjusted, Decision, Limit};

use super::reply::{Replies, or_none, saturated};
use crate::answer::{Answer, DECIDED_BY};
use crate::permit::Permit;

/// How many fields every answer has.
const FIELDS: usize = 8;

/// Limited, limit, remaining, retry after, reset after; in whole seconds.
#[inline]
pub(super) fn throttled(replies: &mut Replies<'_>, decision: &Decision) {
    let answer = Answer(*decision);
    replies.five([
        i64::from(!answer.is_allowed()),
        saturated(decision.limit()),
        saturated(decision.remaining()),
        or_none(answer.retry_after_seconds()),
        saturated(answer.reset_after_seconds()),
    ]);
}

/// The same for somebody who wanted nothing, and therefore is not limited.
pub(super) fn looked_at(replies: &mut Replies<'_>, decision: &Decision) {
    let reset_after = Answer(*decision).reset_after_seconds();
    replies.five([
        0,
        saturated(decision.limit()),
        saturated(decision.remaining()),
        -1,
        saturated(reset_after),
    ]);
}

/// All fields, and the permit if there is one.
pub(super) fn decision(replies: &mut Replies<'_>, decision: &Decision, limit: &Limit, key: &[u8]) {
    let permit = decision.permit().map(|id| Permit { key: key.to_vec(), limit: *limit, id });
    replies.map(FIELDS + usize::from(permit.is_some()));
    fields(replies, decision);
    if let Some(permit) = permit {
        replies.bulk(b"permit");
        replies.bulk(permit.to_string().as_bytes());
    }
}

/// All fields of what is left, and how an adjustment went.
pub(super) fn adjusted(replies: &mut Replies<'_>, left: &Decision, adjusted: Adjusted) {
    replies.map(FIELDS + 1);
    fields(replies, left);
    replies.bulk(b"adjusted");
    replies.bulk(crate::answer::adjusted(adjusted).as_bytes());
}

/// All fields of the decision that speaks for all, and which one it is.
pub(super) fn binding(replies: &mut Replies<'_>, decision: &Decision, index: usize) {
    replies.map(FIELDS + 1);
    fields(replies, decision);
    replies.bulk(b"binding");
    replies.integer(saturated(index as u64));
}

fn fields(replies: &mut Replies<'_>, decision: &Decision) {
    let answer = Answer(*decision);
    replies.bulk(b"allowed");
    replies.integer(i64::from(answer.is_allowed()));
    replies.bulk(b"limit");
    replies.integer(saturated(decision.limit()));
    replies.bulk(b"remaining");
    replies.integer(saturated(decision.remaining()));
    replies.bulk(b"retry_after");
    replies.integer_or_none(answer.retry_after_ms());
    replies.bulk(b"reset_after");
    replies.integer(saturated(answer.reset_after_ms()));
    replies.bulk(b"delay");
    replies.integer_or_none(answer.delay_ms());
    replies.bulk(b"rule");
    replies.null();
    replies.bulk(b"decided_by");
    replies.bulk(DECIDED_BY.as_bytes());
}
