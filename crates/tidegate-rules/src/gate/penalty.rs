//! The penalties of the rules in force, prepared once for all their decisions.
//!
//! The store decides about them, in one step with the limits: see [`PreparedPenalty`]. A penalty that did not change
//! keeps its prepared form across a replacement of the policy, and a changed one carries strikes and bans over.

use tidegate_core::PreparedPenalty;

use crate::rule::Rule;

/// Returns the penalty of a rule. Reuses that of the previous policy if it is unchanged.
pub(super) fn prepared_penalty(
    rule: &Rule,
    before: Option<(&Rule, Option<&PreparedPenalty>)>,
) -> Option<PreparedPenalty> {
    let new = rule.penalty()?.prepare(rule.name()).expect("a valid rule has a valid penalty");
    // A prepared limit belongs to the first zone that uses it.
    let before = before.filter(|(old, _)| old.zone() == rule.zone());
    let known = before.and_then(|(_, penalty)| penalty).filter(|known| known.is_same(&new));
    Some(known.cloned().unwrap_or(new))
}
