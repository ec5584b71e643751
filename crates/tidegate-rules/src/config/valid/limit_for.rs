//! Validation of `limit_for`: limits of single values of a key.
//!
//! A value is compared with the key of a request, so it has to be in the spelling in which the rule counts. Another
//! spelling would be a limit that no request has; it is an error with the right spelling as the remedy.

use super::super::written::{RuleText, Written};
use super::Valid;
use super::choice::shortened;
use crate::attributes::Attributes;
use crate::key::KeyParts;
use crate::rule::{LimitFor, RuleParams};

/// The maximum number of values of a rule.
const MAX_VALUES: usize = 10_000;

impl Valid<'_> {
    /// Validates the limits of single values. With one invalid value the rule is invalid.
    pub(super) fn limit_for(
        &mut self,
        text: &RuleText,
        key: Option<&KeyParts>,
        usual: &RuleParams,
    ) -> Option<LimitFor> {
        let before = self.complaints.found();
        if let Some((beyond, _)) = text.limit_for.get(MAX_VALUES) {
            self.complain(&beyond.span, format!("limit_for: has more than {MAX_VALUES} values; use fewer"));
        }
        // A candidate has no limits of single values at all, which is reported with its other fields.
        let is_own = |field: &&Written<&str>| field.value == "limit_for" && text.candidate_for.is_none();
        let field = text.fields.iter().find(is_own);
        if let (Some(field), Some(key)) = (field, key.filter(|key| key.parts.len() != 1)) {
            let count = key.parts.len();
            self.complain(
                &field.span,
                format!(
                    "limit_for: is for single values of a key with one part, and this key has {count}; write \
                     key = [\"user\"], or a rule for each value with a condition"
                ),
            );
        }
        let mut found = LimitFor::default();
        for (value, limit) in text.limit_for.iter().take(MAX_VALUES) {
            if let Some(counted) = key.and_then(|key| self.counted(key, &value.value)) {
                if counted != value.value {
                    let is_ip = key.is_some_and(|key| &*key.parts[0].name == "ip");
                    let is_network = is_ip && value.value.contains('/') && !counted.contains('/');
                    let networks = if is_network {
                        ", or count by networks with ipv4_prefix or ipv6_prefix"
                    } else {
                        ""
                    };
                    let what = format!(
                        "limit_for {:?}: is counted as {counted:?}; write that{networks}",
                        shortened(&value.value)
                    );
                    self.complain(&value.span, what);
                }
            } else if key.is_some_and(|key| key.parts.len() == 1) {
                let what = format!(
                    "limit_for {:?}: is no address; write one, or its network as the rule counts it",
                    shortened(&value.value)
                );
                self.complain(&value.span, what);
            }
            let limit = self.limit(limit);
            found.values.push(value.value.as_str().into());
            found.terms.push(RuleParams { limit: limit.unwrap_or(usual.limit), ..*usual });
        }
        (self.complaints.found() == before).then_some(found)
    }

    /// Returns a value as a key of one part counts it; `None` if the part is the address and the value is none.
    fn counted(&self, key: &KeyParts, value: &str) -> Option<String> {
        let [part] = &*key.parts else { return None };
        let value = match &*part.name {
            "ip" => value.split_once('/').map_or(value, |(first, _)| first),
            _ => value,
        };
        let attributes = Attributes::new().try_set(part.name.to_string(), value.to_owned()).ok()?;
        let seen = self.slots.see(&attributes);
        key.named(&seen).pop()?.1
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{OtherTables, read};
    use crate::Policy;

    fn rule(key: &str, limit_for: &str) -> String {
        format!("[[rule]]\nname = 'a'\nkey = [{key}]\nlimit = '5/h'\nlimit_for = {limit_for}\n")
    }

    #[test]
    fn a_value_is_in_the_spelling_in_which_the_rule_counts() {
        for (key, limit_for) in [
            ("'user'", "{ ana = '50/m', 'b.o.b' = '1/d sliding-log', '' = '1/s' }"),
            ("'ip'", "{ '192.0.2.7' = '50/m', '2001:db8::/64' = '9/m' }"),
            ("'header.X-Key'", "{ 'A b' = '50/m' }"),
            ("'method'", "{ GET = '50/m' }"),
            ("'path'", "{ '/login' = '50/m' }"),
            ("'user'", "{}"),
        ] {
            let policy = Policy::from_toml(&rule(key, limit_for)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(policy.rules()[0].limit_for().count(), limit_for.matches('=').count());
        }
        for (key, limit_for, said, marked) in [
            (
                "'ip'",
                "{ '2001:db8::7' = '5/m' }",
                "is counted as \"2001:db8::/64\"; write that",
                "'2001:db8::7'",
            ),
            (
                "'ip'",
                "{ '192.0.2.0/24' = '5/m' }",
                "is counted as \"192.0.2.0\"; write that, or count by networks with ipv4_prefix",
                "'192.0.2.0/24'",
            ),
            ("'ip'", "{ ana = '5/m' }", "limit_for \"ana\": is no address; write one", "ana"),
            ("'path'", "{ '/a//b' = '5/m' }", "is counted as \"/a/b\"; write that", "'/a//b'"),
            (
                "'user', 'ip'",
                "{ ana = '5/m' }",
                "for single values of a key with one part, and this key has 2",
                "limit_for",
            ),
            ("", "{ ana = '5/m' }", "and this key has 0; write key = [\"user\"]", "limit_for"),
            ("'user'", "{ ana = '60/min' }", "unknown unit \"min\"", "min"),
            (
                "'user'",
                "{ ana = 5 }",
                "limit_for: the limit of \"ana\" is a whole number; write a limit in quotes",
                "5",
            ),
            ("'user'", "{ a.b = '5/m' }", "write the whole value in quotes, as in \"a.x\" = \"50/m\"", "a"),
            (
                "'user'",
                "'5/m'",
                "limit_for: is text and no table; write limit_for = { \"ana\" = \"50/m\" }",
                "'5/m'",
            ),
        ] {
            let text = rule(key, limit_for);
            let errors = read(&text, OtherTables::Any).errors;
            assert!(errors.len() == 1 && errors[0].what.contains(said), "{limit_for}: {errors:?}");
            let span = errors[0].span.clone().expect("it has a place");
            assert_eq!(&text[span], marked, "{limit_for}");
        }
        let policy = Policy::from_toml(&(rule("'ip'", "{ '192.0.2.0/24' = '5/m' }") + "ipv4_prefix = 24\n"));
        assert!(policy.is_ok(), "{policy:?}");
    }

    #[test]
    fn a_candidate_and_a_decision_have_no_limits_of_single_values() {
        let limit_for = "limit_for = { ana = '5/m' }\n";
        for (more, said) in [
            (
                "[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '6/h'\n",
                "limit_for: a candidate has that of \"a\"",
            ),
            ("[[rule]]\nname = 'b'\ndecision = 'allow'\n", "limit_for: belongs to a limit"),
        ] {
            let text = rule("'user'", "{}") + more + limit_for;
            let errors = read(&text, OtherTables::Any).errors;
            assert!(errors.len() == 1 && errors[0].what.contains(said), "{errors:?}");
        }
    }

    #[test]
    fn there_are_only_so_many_values() {
        let many = |count: usize| {
            let each: Vec<_> = (0..count).map(|user| format!("u{user} = '5/m'")).collect();
            rule("'user'", &format!("{{ {} }}", each.join(", ")))
        };
        assert!(read(&many(super::MAX_VALUES), OtherTables::Any).errors.is_empty());
        let errors = read(&many(super::MAX_VALUES + 1), OtherTables::Any).errors;
        assert_eq!(errors[0].what, "limit_for: has more than 10000 values; use fewer");
    }
}
