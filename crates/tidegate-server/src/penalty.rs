//! Penalties of rules in replies: as members for programs, and as text for people.

use std::fmt;

use tidegate::{Limit, PreparedPenalty};
use tidegate_rules::{Penalty, Rule};
use tidegate_support::ceil_ms;

use crate::spans::{number, span};

/// A penalty as members of a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct PenaltyFields {
    /// The number of denials that begin a ban.
    after: u64,
    /// The milliseconds within which they count.
    within_ms: u64,
    /// The length of a ban in milliseconds.
    for_ms: u64,
}

impl From<Penalty> for PenaltyFields {
    fn from(penalty: Penalty) -> PenaltyFields {
        let Penalty { after, within, lasts, .. } = penalty;
        PenaltyFields { after, within_ms: ceil_ms(within), for_ms: ceil_ms(lasts) }
    }
}

/// The strikes of a penalty as text: `3 denials within 1m`.
pub(crate) struct Strikes<'a>(pub(crate) &'a Penalty);

impl fmt::Display for Strikes<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Penalty { after, within, .. } = *self.0;
        let denials = if after == 1 { "denial" } else { "denials" };
        write!(out, "{} {denials} within {}", number(after), span(within))
    }
}

/// Returns the limits of the states that a penalty adds to a key, each with the suffix of its namespace: its ban, and its
/// strikes. The last strike removes the others only after the ban has begun, so both count.
pub(crate) fn states(rule: &Rule) -> impl Iterator<Item = (&'static str, Limit)> {
    let prepared = rule.penalty().and_then(|Penalty { after, within, lasts, .. }| {
        PreparedPenalty::of_rule(rule.name(), after, within, lasts).ok()
    });
    let limits = prepared.map(|prepared| prepared.limits().map(|limit| *limit));
    limits.into_iter().flat_map(|limits| ["!ban", "!strikes"].into_iter().zip(limits))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidegate_rules::Policy;

    use super::*;

    #[test]
    fn a_penalty_has_its_numbers_in_milliseconds_and_as_text() {
        let penalty = |after, within, lasts| {
            let rule = Rule::builder("login").key(["user"]).limit("5/m").penalty(after, within, lasts);
            let policy = Policy::builder().rule(rule).build().expect("a valid policy");
            policy.rules()[0].penalty().expect("it has one")
        };
        let minute = Duration::from_secs(60);
        let usual = penalty(3, minute, 10 * minute);
        assert_eq!(
            serde_json::to_string(&PenaltyFields::from(usual)).unwrap(),
            r#"{"after":3,"within_ms":60000,"for_ms":600000}"#
        );
        assert_eq!(Strikes(&usual).to_string(), "3 denials within 1m");
        assert_eq!(Strikes(&penalty(1, minute / 2, minute)).to_string(), "1 denial within 30s");
    }
}
