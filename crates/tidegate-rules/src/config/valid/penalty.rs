//! Validation of `penalty`: a ban for keys that are denied too often.

use std::time::Duration;

use tidegate_core::{PenaltyError, PreparedPenalty};
use tidegate_support::positive;

use super::super::written::{PenaltyText, RuleText, Written};
use super::Valid;
use crate::rule::Penalty;

impl Valid<'_> {
    /// Validates the penalty of a rule. The outer `None` is an error, the inner one is a rule without a penalty.
    pub(super) fn penalty(&mut self, text: &RuleText) -> Option<Option<Penalty>> {
        let Some(penalty) = &text.penalty else { return Some(None) };
        let before = self.complaints.found();
        let missing: Vec<_> =
            ["after", "within", "for"].into_iter().filter(|field| !penalty.fields.contains(field)).collect();
        if !missing.is_empty() {
            self.complain(
                &penalty.span,
                format!(
                    "penalty: has no {}; write penalty = {{ after = 3, within = \"1m\", for = \"10m\" }}",
                    missing.join(" and no ")
                ),
            );
        }
        let within = self.span("within", penalty.within.as_ref());
        let lasts = self.span("for", penalty.lasts.as_ref());
        let (Some(after), Some(within), Some(lasts)) = (&penalty.after, within, lasts) else { return None };
        let found = Penalty { after: after.value, within, lasts };
        if let Err(error) = found.prepare("") {
            self.complain(self.place(penalty, &error), format!("penalty: {error}"));
        }
        (self.complaints.found() == before).then_some(Some(found))
    }

    /// Parses a span of a penalty; `None` if it is absent or invalid.
    fn span(&mut self, name: &str, written: Option<&Written<String>>) -> Option<Duration> {
        let written = written?;
        let span = positive(&written.value);
        span.map_err(|what| self.complain(&written.span, format!("{name} {:?}: {what}", written.value))).ok()
    }

    /// Returns the place of the field that an error is about.
    fn place<'t>(&self, text: &'t PenaltyText, error: &PenaltyError) -> &'t std::ops::Range<usize> {
        let field = match error {
            PenaltyError::After(_) => text.after.as_ref().map(|after| &after.span),
            PenaltyError::Within(_) => text.within.as_ref().map(|within| &within.span),
            _ => text.lasts.as_ref().map(|lasts| &lasts.span),
        };
        field.unwrap_or(&text.span)
    }
}

impl Penalty {
    /// Prepares the penalty for takes under a rule.
    pub(crate) fn prepare(&self, rule: &str) -> Result<PreparedPenalty, PenaltyError> {
        PreparedPenalty::of_rule(rule, self.after, self.within, self.lasts)
    }
}
