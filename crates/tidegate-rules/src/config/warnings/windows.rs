//! Warnings about the windows of a schedule.

use tidegate_support::Complaint;

use super::super::written::RuleText;
use crate::rule::{Limited, Rule};

/// Returns warnings about windows whose limit has another algorithm, and therefore separate counts.
pub(super) fn other_algorithms<'a>(
    rule: &'a Rule,
    limited: &'a Limited,
    text: &'a RuleText,
) -> impl Iterator<Item = Complaint> + 'a {
    let usual = limited.usual.limit.algorithm();
    let windows = limited.schedule.terms.iter().zip(&text.schedule);
    windows.filter(move |(terms, _)| terms.limit.algorithm() != usual).map(move |(terms, window)| {
        let span = window.limit.as_ref().map(|written| written.span.clone());
        let what = format!(
            "rule {:?}: is a {} in this window and a {} otherwise, so what a key has used does not count in the \
             window, nor the other way round; write limits of one algorithm",
            rule.name(),
            terms.limit.algorithm().name(),
            usual.name()
        );
        Complaint { span, what }
    })
}

/// Returns warnings about windows that occur once and have ended.
pub(super) fn ended<'a>(
    rule: &'a Rule,
    limited: &'a Limited,
    text: &'a RuleText,
    now: i64,
) -> impl Iterator<Item = Complaint> + 'a {
    let windows = limited.schedule.timetable.windows().iter().zip(&text.schedule);
    windows.filter(move |(window, _)| window.has_ended(now)).map(|(window, written)| {
        let span = written.to.as_ref().map(|to| to.span.clone());
        let what = format!(
            "rule {:?}: the window {window} has ended and comes once; leave it out, or leave out the year if it comes \
             every year",
            rule.name()
        );
        Complaint { span, what }
    })
}
