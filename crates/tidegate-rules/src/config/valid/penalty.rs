//! Validation of `penalty`: a ban for keys that are denied too often.

use std::time::Duration;

use tidegate_core::{PenaltyError, PreparedPenalty};
use tidegate_support::positive;

use super::super::written::{PenaltyText, RuleText, Written};
use super::Valid;
use crate::rule::Penalty;

/// The fields of a penalty, all of which are required.
const FIELDS: [&str; 3] = ["after", "within", "for"];

impl Valid<'_> {
    /// Validates the penalty of a rule. The outer `None` is an error, the inner one is a rule without a penalty.
    ///
    /// A candidate has that of its rule. Its own is reported with its other fields, and not validated.
    pub(super) fn penalty(&mut self, text: &RuleText) -> Option<Option<Penalty>> {
        let Some(penalty) = text.penalty.as_ref().filter(|_| text.candidate_for.is_none()) else {
            return Some(None);
        };
        let before = self.complaints.found();
        let missing = FIELDS.into_iter().filter(|field| !penalty.fields.contains(field)).collect::<Vec<_>>();
        if !missing.is_empty() && !penalty.has_unknown {
            self.complain(
                &penalty.span,
                format!(
                    "penalty: has no {}; write penalty = {{ after = 3, within = \"1m\", for = \"10m\" }}",
                    missing.join(" and no ")
                ),
            );
        }
        let within = self.span_of_penalty("within", penalty.within.as_ref());
        let lasts = self.span_of_penalty("for", penalty.lasts.as_ref());
        let after = penalty.after.as_ref().map(|after| after.value);
        // What is missing is replaced by something valid, so that all errors are reported together.
        let second = Duration::from_secs(1);
        let found = Penalty {
            after: after.unwrap_or(1),
            within: within.unwrap_or(second),
            lasts: lasts.unwrap_or(second),
        };
        if let Err(error) = found.prepare("") {
            let what = match (&error, &penalty.within) {
                // The rate is that of a log with so many entries.
                (PenaltyError::Within(_), Some(within)) => {
                    format!(
                        "within {:?}: is too short for {} denials; write something like \"1m\"",
                        within.value, found.after
                    )
                }
                _ => error.to_string(),
            };
            self.complain(place(penalty, &error), what);
        }
        after.and(within).and(lasts)?;
        (self.complaints.found() == before).then_some(Some(found))
    }

    /// Parses a span of a penalty; `None` if it is absent or invalid.
    fn span_of_penalty(&mut self, name: &str, written: Option<&Written<String>>) -> Option<Duration> {
        let written = written?;
        let span = positive(&written.value);
        span.map_err(|what| self.complain(&written.span, format!("{name} {:?}: {what}", written.value))).ok()
    }
}

/// Returns the place of the field that an error is about.
fn place<'t>(text: &'t PenaltyText, error: &PenaltyError) -> &'t std::ops::Range<usize> {
    let field = match error {
        PenaltyError::After(_) => text.after.as_ref().map(|after| &after.span),
        PenaltyError::Within(_) => text.within.as_ref().map(|within| &within.span),
        _ => text.lasts.as_ref().map(|lasts| &lasts.span),
    };
    field.unwrap_or(&text.span)
}

impl Penalty {
    /// Prepares the penalty for takes under a rule.
    pub(crate) fn prepare(&self, rule: &str) -> Result<PreparedPenalty, PenaltyError> {
        PreparedPenalty::of_rule(rule, self.after, self.within, self.lasts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::{OtherTables, read};
    use crate::{Policy, Rule};

    fn rule(penalty: &str) -> String {
        format!("[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '5/h'\npenalty = {penalty}\n")
    }

    /// Asserts that a file has this one error, at this place.
    fn assert_error(text: &str, what: &str, marked: &str) {
        let errors = read(text, OtherTables::Any).errors;
        assert!(errors.len() == 1 && errors[0].what == what, "{text}\n{errors:?}");
        let span = errors[0].span.clone().expect("it has a place");
        assert_eq!(&text[span], marked, "{text}");
    }

    #[test]
    fn a_penalty_has_a_number_of_denials_and_two_spans() {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
        for (penalty, after, within, lasts) in [
            ("{ after = 3, within = '1m', for = '10m' }", 3, 60 * second, 600 * second),
            ("{ for = '1s', within = '1s', after = 1 }", 1, second, second),
            ("{ after = 0x3_e8, within = '365d', for = '365d' }", 1000, 365 * day, 365 * day),
            ("{ after = 2, within = '1us', for = '1us' }", 2, second / 1_000_000, second / 1_000_000),
            ("{ after = 2, within = '1h', for = '1m30s' }", 2, 3600 * second, 90 * second),
        ] {
            let text = rule(penalty);
            let policy = Policy::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
            let found = policy.rules()[0].penalty().expect("the rule has a penalty");
            assert_eq!((found.after, found.within, found.lasts), (after, within, lasts), "{penalty}");
            assert!(read(&text, OtherTables::Any).warnings.is_empty(), "{penalty}");
            let in_code = Rule::builder("a").key(["user"]).limit("5/h").penalty(after, within, lasts);
            assert_eq!(Policy::builder().rule(in_code).build().expect("it is valid").rules(), policy.rules());
        }
        assert_eq!(
            Policy::from_toml(&rule("{ after = 1, within = '1s', for = '1s' }").replace("penalty", "#"))
                .expect("it is valid")
                .rules()[0]
                .penalty(),
            None
        );
    }

    #[test]
    fn a_number_or_a_span_out_of_range_is_reported_at_its_place() {
        for after in ["0", "1001", "-1", "18446744073709551616"] {
            let what = format!("after {after}: is out of range; write 1 to 1000 denials, such as 3");
            assert_error(&rule(&format!("{{ after = {after}, within = '1m', for = '10m' }}")), &what, after);
        }
        for (after, kind) in
            [("'3'", "text"), ("3.0", "a number with a fraction"), ("true", "a boolean"), ("[3]", "a list")]
        {
            let text = rule(&format!("{{ after = {after}, within = '1m', for = '10m' }}"));
            assert_error(&text, &format!("after: is {kind}; write after = 3"), after);
        }
        for (span, what) in [
            ("0s", "no time at all; write something like \"10s\""),
            ("0", "\"0\" has no unit; write \"0s\" if seconds are meant"),
            ("60", "\"60\" has no unit; write \"60s\" if seconds are meant"),
            ("366d", "longer than a year; write at most \"365d\""),
            ("53w", "longer than a year; write at most \"365d\""),
            ("99999999999999999999999d", "longer than a year; write at most \"365d\""),
            ("10 min", "unknown unit \"min\"; write \"10m\""),
            ("-1m", "a time begins with a whole number; write something like \"10s\""),
            ("", "there is nothing here; write something like \"10s\""),
        ] {
            let marked = format!("'{span}'");
            let within = rule(&format!("{{ after = 3, within = {marked}, for = '10m' }}"));
            assert_error(&within, &format!("within {span:?}: {what}"), &marked);
            let lasts = rule(&format!("{{ after = 3, within = '1m', for = {marked} }}"));
            assert_error(&lasts, &format!("for {span:?}: {what}"), &marked);
        }
        let number = rule("{ after = 3, within = '1m', for = 600 }");
        assert_error(&number, "for: is a whole number; write for = \"10m\"", "600");
        for (after, within) in [(1000, "99us"), (11, "1us")] {
            let text = rule(&format!("{{ after = {after}, within = '{within}', for = '10m' }}"));
            let what =
                format!("within \"{within}\": is too short for {after} denials; write something like \"1m\"");
            assert_error(&text, &what, &format!("'{within}'"));
        }
        assert!(Policy::from_toml(&rule("{ after = 1000, within = '100us', for = '10m' }")).is_ok());
        let all = read(&rule("{ after = 0, within = '60', for = '0s' }"), OtherTables::Any).errors;
        assert_eq!(all.len(), 3, "each is reported: {all:?}");
    }

    #[test]
    fn a_missing_field_is_named_once() {
        for (penalty, missing) in [
            ("{ within = '1m', for = '10m' }", "after"),
            ("{ after = 3, for = '10m' }", "within"),
            ("{ after = 3 }", "within and no for"),
            ("{}", "after and no within and no for"),
        ] {
            let what = format!(
                "penalty: has no {missing}; write penalty = {{ after = 3, within = \"1m\", for = \"10m\" }}"
            );
            assert_error(&rule(penalty), &what, penalty);
        }
        assert_error(
            &rule("{ after = '3', within = '1m', for = '10m' }"),
            "after: is text; write after = 3",
            "'3'",
        );
    }

    #[test]
    fn another_name_is_reported_with_the_field_that_is_meant() {
        let is_no_field = "is no field of a penalty; write";
        for (name, meant) in [
            ("strikes", "the number of denials as after = 3"),
            ("count", "the number of denials as after = 3"),
            ("maxretry", "the number of denials as after = 3"),
            ("window", "the span within which denials count as within = \"1m\""),
            ("period", "the span within which denials count as within = \"1m\""),
            ("findtime", "the span within which denials count as within = \"1m\""),
            ("duration", "the length of the ban as for = \"10m\""),
            ("ban", "the length of the ban as for = \"10m\""),
            ("bantime", "the length of the ban as for = \"10m\""),
        ] {
            let text = rule(&format!("{{ after = 3, within = '1m', for = '10m', {name} = 5 }}"));
            assert_error(&text, &format!("{name}: {is_no_field} {meant}"), name);
            // The field that it stands for is not reported as missing in addition.
            assert_error(
                &rule(&format!("{{ {name} = 5 }}")),
                &format!("{name}: {is_no_field} {meant}"),
                name,
            );
        }
        let unit = "seconds: is no field of a penalty; a span has its unit, as in within = \"60s\" and for = \"10m\"";
        assert_error(&rule("{ after = 3, within = '1m', seconds = 600 }"), unit, "seconds");
        for (name, what) in [
            ("affter", "did you mean \"after\"?"),
            ("witin", "did you mean \"within\"?"),
            ("fore", "did you mean \"for\"?"),
            ("For", "did you mean \"for\"?"),
            ("limit", "known are after, within, for"),
            ("key", "known are after, within, for"),
            ("burst", "known are after, within, for"),
            ("user", "known are after, within, for"),
        ] {
            assert_error(
                &rule(&format!("{{ {name} = 5 }}")),
                &format!("unknown field {name:?}; {what}"),
                name,
            );
        }
    }

    #[test]
    fn a_penalty_in_another_place_is_reported_with_the_right_one() {
        let limit = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '5/h'\n";
        for name in ["after", "within", "for", "strikes", "ban", "bantime", "maxretry", "lockout"] {
            let what = format!(
                "{name}: is part of a penalty; write it there, as in penalty = {{ after = 3, within = \"1m\", for = \"10m\" }}"
            );
            assert_error(&format!("{limit}{name} = 3\n"), &what, name);
        }
        let window = "schedule = [{ from = '09:00', to = '17:00', cost = 2, penalty = {} }]\n";
        let what = "penalty: belongs to the rule, at all times; write it beside the schedule, as in penalty = { after = 3, \
                    within = \"1m\", for = \"10m\" }";
        assert_error(&format!("{limit}{window}"), what, "penalty");
        assert_error(
            &format!("{limit}penalti = {{}}\n"),
            "unknown field \"penalti\"; did you mean \"penalty\"?",
            "penalti",
        );
        for (penalty, kind) in [("'10m'", "text"), ("3", "a whole number"), ("[{ after = 3 }]", "a list")] {
            let what = format!(
                "penalty: is {kind} and no table; write penalty = {{ after = 3, within = \"1m\", for = \"10m\" }}"
            );
            assert_error(&rule(penalty), &what, penalty);
        }
    }

    #[test]
    fn a_candidate_has_the_penalty_of_its_rule_and_a_decision_none() {
        let penalty = "{ after = 3, within = '1m', for = '10m' }";
        let candidate = "[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '6/h'\n";
        let policy = Policy::from_toml(&(rule(penalty) + candidate)).expect("it is valid");
        assert!(policy.rules()[0].penalty().is_some());
        assert_eq!(policy.rules()[1].penalty(), policy.rules()[0].penalty());
        for own in [penalty, "{ after = 0 }"] {
            let what = "penalty: a candidate has that of \"a\", beside which it is measured; leave it out";
            assert_error(&format!("{}{candidate}penalty = {own}\n", rule(penalty)), what, "penalty");
        }
        let decision = format!("[[rule]]\nname = 'b'\ndecision = 'deny'\npenalty = {penalty}\n");
        let what = "penalty: belongs to a limit, and this rule decides without one; leave it out";
        let errors = read(&decision, OtherTables::Any).errors;
        assert!(errors.len() == 1 && errors[0].what == what, "{errors:?}");
    }

    #[test]
    fn faults_of_a_penalty_in_code_are_those_of_a_file() {
        let of = |after, within, lasts| {
            let rule = Rule::builder("a").limit("5/h").penalty(after, within, lasts);
            Policy::builder().rule(rule).build().expect_err("it is out of range").to_string()
        };
        let (none, second) = (Duration::ZERO, Duration::from_secs(1));
        assert_eq!(
            of(0, second, second),
            "rule \"a\": after 0: is out of range; write 1 to 1000 denials, such as 3"
        );
        assert!(of(1, none, second).contains("within \"0us\": no time at all"), "{}", of(1, none, second));
        assert!(
            of(1, second, Duration::MAX).contains("longer than a year"),
            "{}",
            of(1, second, Duration::MAX)
        );
    }
}
