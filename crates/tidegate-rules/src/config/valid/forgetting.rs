//! Limits on which `when_full = "forget"` has no effect.
//!
//! Only limits whose state is one word are kept in cells. The others are kept in a map, which forgets no live key; the
//! setting would promise a bound on memory that it does not have.

use tidegate_core::{Limit, WhenFull};

use super::super::written::{RuleText, Written};
use super::Valid;
use crate::rule::{Rule, fitting_a_cell};

impl Valid<'_> {
    /// Reports each limit of a rule, and of its windows, on which its `when_full` has no effect. A candidate inherits
    /// `when_full` from its rule.
    pub(super) fn forgetting(&mut self, rule: Option<&Rule>, text: &RuleText) {
        let limited = rule.and_then(Rule::limited);
        let Some(limited) = limited.filter(|limited| limited.when_full == WhenFull::Forget) else { return };
        let windows = text.schedule.iter().map(|window| window.limit.as_ref());
        let values = text.limit_for.iter().map(|(_, limit)| Some(limit));
        let own = text.when_full.as_ref().or(text.limit.as_ref());
        for (terms, written) in limited.all_terms().zip([own].into_iter().chain(windows).chain(values)) {
            // A window without a limit has that of the rule.
            if let Some(Written { span, .. }) = written.filter(|_| !terms.limit.fits_cell()) {
                self.complain(span, without_effect(&terms.limit, text.candidate_for.as_ref()));
            }
        }
    }
}

/// Returns the complaint, with the algorithms that would be valid as the remedy.
fn without_effect(limit: &Limit, candidate_for: Option<&Written<String>>) -> String {
    let of = candidate_for.map_or(String::new(), |base| format!(" of rule {:?}", base.value));
    format!(
        "when_full \"forget\"{of}: has no effect under limit \"{limit}\", whose keys are not kept in the cells of a zone; \
         leave it out, or write {}",
        fitting_a_cell(limit)
    )
}

#[cfg(test)]
mod tests {
    use super::super::super::{OtherTables, read};

    const FITTING: [&str; 3] = ["5/h", "5/h leaky-bucket queue 2", "5/h fixed-window"];
    const OTHERS: [&str; 7] = [
        "5/h sliding-log",
        "5/h sliding-window",
        "5/h pacer",
        "5/h concurrency",
        "5/h fixed-window align first-hit",
        "20000000/d fixed-window",
        "5/2ms fixed-window",
    ];

    /// Returns the errors of a rule, each with the text that it marks.
    fn wrong(text: &str) -> Vec<(String, String)> {
        let errors = read(text, OtherTables::Any).errors.into_iter();
        errors.map(|error| (text[error.span.expect("it has a place")].to_owned(), error.what)).collect()
    }

    fn rule(limit: &str, more: &str) -> String {
        format!("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '{limit}'\n{more}\n")
    }

    #[test]
    fn forgetting_is_an_error_under_each_limit_that_does_not_fit_a_cell() {
        for limit in FITTING {
            assert_eq!(wrong(&rule(limit, "when_full = 'forget'")), [], "{limit}");
        }
        for limit in OTHERS {
            let wrong = wrong(&rule(limit, "when_full = 'forget'"));
            assert_eq!(wrong.len(), 1, "{limit}");
            assert_eq!(wrong[0].0, "'forget'", "{limit}");
            assert!(
                wrong[0].1.starts_with("when_full \"forget\": has no effect under limit \""),
                "{wrong:?}"
            );
            assert_eq!(self::wrong(&rule(limit, "when_full = 'share'")), [], "{limit}");
        }
    }

    #[test]
    fn windows_and_candidates_are_held_to_it_as_well() {
        for (limit, count) in
            FITTING.map(|limit| (limit, 0)).into_iter().chain(OTHERS.map(|limit| (limit, 1)))
        {
            let window = format!("schedule = [{{ from = '02:00', to = '04:00', limit = '{limit}' }}]");
            let scheduled = wrong(&rule("5/h", &format!("when_full = 'forget'\n{window}")));
            let candidate = format!("[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '{limit}'\n");
            // The order in the file does not matter.
            let base = rule("5/h", "when_full = 'forget'");
            for wrong in
                [scheduled, wrong(&format!("{base}{candidate}")), wrong(&format!("{candidate}{base}"))]
            {
                assert_eq!(wrong.len(), count, "{wrong:?}");
                assert!(wrong.iter().all(|(place, _)| *place == format!("'{limit}'")), "{wrong:?}");
            }
        }
    }

    #[test]
    fn what_is_said_of_a_candidate_names_the_rule_that_says_it() {
        let base = rule("5/h", "when_full = 'forget'");
        let wrong = wrong(&format!("{base}[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '5/h pacer'\n"));
        assert_eq!(
            wrong[0].1,
            "when_full \"forget\" of rule \"a\": has no effect under limit \"5/h pacer\", whose keys are not kept in the cells \
             of a zone; leave it out, or write a token-bucket, leaky-bucket or fixed-window"
        );
    }
}
