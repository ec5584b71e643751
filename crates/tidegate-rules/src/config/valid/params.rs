//! Validation of limits and schedules.
//!
//! The parameters of a rule are its limit, cost, max wait and mode. A window of its schedule replaces some of them, and
//! takes the others from the rule.

use std::ops::Range;
use std::time::Duration;

use tidegate_core::{Limit, LimitError};
use tidegate_support::duration;

use super::super::window::window;
use super::super::written::{RuleText, WindowText, Written};
use super::Valid;
use super::choice::{FAILURES, MODES, WHEN_FULL, is_one_of};
use crate::limit_text::parse_limit;
use crate::policy::NamedZone;
use crate::rule::{Limited, RuleParams, Schedule};
use crate::schedule::{MAX_WINDOWS, Timetable};

/// The largest cost that any limit can allow.
///
/// A larger one would deny every request, so it is an error and no warning.
pub(in crate::config) const MAX_COST: u64 = 1 << 62;

impl Valid<'_> {
    /// Validates a rule with a limit. Every field is checked before the first invalid one ends the validation, so that
    /// all errors of the rule are reported together.
    pub(super) fn limited(
        &mut self,
        text: &RuleText,
        limit: &Written<String>,
        zones: &[NamedZone],
    ) -> Option<Box<Limited>> {
        let mode = self.choice("mode", text.mode.as_ref().filter(|mode| is_one_of(mode, &MODES)), &MODES);
        let (limit, cost) = (self.limit(limit), self.cost(text.cost.as_ref()));
        let (max_wait, key) = (self.max_wait(text.max_wait.as_ref()), self.key(text));
        let on_store_failure = self.choice("on_store_failure", text.on_store_failure.as_ref(), &FAILURES);
        let when_full = self.choice("when_full", text.when_full.as_ref(), &WHEN_FULL);
        let zone = self.zone(text.zone.as_ref(), zones);
        let group = self.group(text);
        // The schedule is validated even if the rest is invalid.
        let usual = RuleParams {
            limit: limit.unwrap_or(Limit::per_second(1)),
            cost: cost.unwrap_or(1),
            max_wait: max_wait.unwrap_or(None),
            mode: mode.unwrap_or_default(),
        };
        let schedule = self.schedule(&text.schedule, &usual);
        let limit_for = self.limit_for(text, key.as_ref(), &usual);
        let penalty = self.penalty(text);
        limit.and(cost).and(max_wait).and(mode)?;
        Some(Box::new(Limited {
            key: key?,
            usual,
            schedule: schedule?,
            limit_for: limit_for?,
            penalty: penalty?,
            candidate_for: None,
            candidates: Vec::new(),
            on_store_failure: on_store_failure?,
            when_full: when_full?,
            zone: zone?,
            group,
        }))
    }

    /// Validates a schedule. With one invalid window the whole schedule is invalid: without it another window might be
    /// in force at that time.
    pub(super) fn schedule(&mut self, texts: &[WindowText], usual: &RuleParams) -> Option<Schedule> {
        if let Some(beyond) = texts.get(MAX_WINDOWS) {
            self.complain(&beyond.span, format!("schedule: has more than {MAX_WINDOWS} windows; use fewer"));
        }
        let (mut windows, mut terms) = (Vec::new(), Vec::new());
        let before = self.complaints.found();
        for text in texts.iter().take(MAX_WINDOWS) {
            let window = window(text, &mut self.complaints);
            let says = self.terms_of_window(text, usual);
            if let (Some(window), Some(says)) = (window, says) {
                windows.push(window);
                terms.push(says);
            }
        }
        (self.complaints.found() == before).then(|| Schedule { timetable: Timetable::new(windows), terms })
    }

    /// Returns the parameters in a window. A window without any parameter is reported, because it would change nothing.
    pub(super) fn terms_of_window(&mut self, text: &WindowText, usual: &RuleParams) -> Option<RuleParams> {
        if !text.fields.iter().any(|field| ["limit", "cost", "max_wait", "mode"].contains(field)) {
            self.complain(
                &text.span,
                "schedule: the window changes nothing; say what holds in it, as in limit = \"50/s\"",
            );
        }
        let limit = text.limit.as_ref().map_or(Some(usual.limit), |limit| self.limit(limit));
        let cost = text.cost.as_ref().map_or(Some(usual.cost), |cost| self.cost(Some(cost)));
        let max_wait = match &text.max_wait {
            Some(max_wait) => self.max_wait(Some(max_wait)),
            None => Some(usual.max_wait),
        };
        let mode =
            text.mode.as_ref().map_or(Some(usual.mode), |mode| self.choice("mode", Some(mode), &MODES));
        Some(RuleParams { limit: limit?, cost: cost?, max_wait: max_wait?, mode: mode? })
    }

    /// Parses a limit. The complaint marks the part of the text that is wrong, not the whole value.
    pub(super) fn limit(&mut self, written: &Written<String>) -> Option<Limit> {
        parse_limit(&written.value)
            .map_err(|error: LimitError| {
                let place = error.place();
                let span = if place.is_empty() { written.span.clone() } else { self.within(written, place) };
                self.complain(&span, error.to_string());
            })
            .ok()
    }

    /// Returns the byte range in the file of a part of a quoted text.
    ///
    /// Falls back to the whole value if it contains escapes, or if the policy was made in code.
    pub(super) fn within(&self, written: &Written<String>, place: Range<usize>) -> Range<usize> {
        let raw = self.text.and_then(|text| text.get(written.span.clone())).unwrap_or_default();
        match raw.get(1..).filter(|raw| raw.starts_with(&written.value)) {
            Some(_) => written.span.start + 1 + place.start..written.span.start + 1 + place.end,
            None => written.span.clone(),
        }
    }

    /// Validates a cost of 1 to [`MAX_COST`]; 1 if it is absent.
    pub(super) fn cost(&mut self, written: Option<&Written<u64>>) -> Option<u64> {
        match written {
            None => Some(1),
            Some(cost) if (1..=MAX_COST).contains(&cost.value) => Some(cost.value),
            Some(cost) => {
                self.complain(
                    &cost.span,
                    format!(
                        "cost {}: is out of range; write 1 to {MAX_COST}, or leave it out for 1",
                        cost.value
                    ),
                );
                None
            }
        }
    }

    /// Parses a max wait. The outer `None` is an error, the inner one leaves the max wait to the caller.
    pub(super) fn max_wait(&mut self, written: Option<&Written<String>>) -> Option<Option<Duration>> {
        let Some(written) = written else { return Some(None) };
        match duration(&written.value) {
            Ok(longest) => Some(Some(longest)),
            Err(what) => {
                self.complain(&written.span, format!("max_wait {:?}: {what}", written.value));
                None
            }
        }
    }
}
