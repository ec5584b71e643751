//! Reads the conditions of `when` and `unless`.
//!
//! ```text
//!   user = "an*"                       a pattern
//!   user = ["ana", { missing = true }] a list of patterns
//!   user = { missing = true }          a pattern without a text
//!   header.x-plan = "free"             the attribute header.x-plan; TOML reads a table named header
//! ```
//!
//! A table is therefore either a namespace, whose fields are conditions of their own, or one of two patterns. It is a
//! pattern if it has a field `missing` or `present`, except in the namespaces of HTTP, where these are names of fields.

use tidegate_support::{kind_of, written_as_text};
use toml::de::{DeArray, DeTable, DeValue};

use super::reader::{Name, Reader, TomlValue};
use super::{ConditionText, MAX_LIST, PatternText, Written, empty_list, too_long_list};

/// The namespaces whose fields have any names, so also `missing` and `present`.
const OF_HTTP: [&str; 3] = ["header.", "cookie.", "query."];

/// The part of an attribute's name before the table that is read: empty, or with a dot at its end.
#[derive(Debug)]
pub(super) struct Namespace(String);

impl Namespace {
    /// Returns the namespace of `when` itself.
    pub(super) fn root() -> Namespace {
        Namespace(String::new())
    }

    /// Returns true if the table of this namespace can only be a pattern: `user = { missing = true }`.
    fn is_pattern(&self, table: &DeTable<'_>) -> bool {
        let names_one = |(name, _): (&Name<'_>, &TomlValue<'_>)| is_presence(name.get_ref());
        table.is_empty() || (!OF_HTTP.contains(&&*self.0) && table.iter().any(names_one))
    }
}

/// Returns the error for an operator of another tool in the place of an attribute, as in `path = { not = "/x" }` or
/// `or = [...]`. An attribute of such a name can be written with its whole name in quotes: `"user.prefix" = "a"`.
fn operator(before: &Namespace, name: &str, value: &TomlValue<'_>) -> Option<String> {
    let of = before.0.trim_end_matches('.');
    let text = match value.get_ref() {
        DeValue::String(text) => Some(text.as_ref()),
        _ => None,
    };
    if of.is_empty() {
        let is_list = matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
        return match name {
            "or" | "any" | "any_of" | "anyOf" if is_list => Some(format!(
                "{name}: is no attribute; write a list of values, as in user = [\"ana\", \"bob\"], or a rule for each condition"
            )),
            "and" | "all" | "all_of" | "allOf" if is_list => Some(format!(
                "{name}: is no attribute; all conditions of a rule have to match, so write them side by side"
            )),
            _ => None,
        };
    }
    if OF_HTTP.contains(&&*before.0) {
        return None;
    }
    let quoted = |text: String| format!("write {of} = {text:?}");
    let remedy = match name {
        "not" | "ne" | "neq" | "not_in" | "not_equals" => {
            let value = text.map_or("…".to_owned(), str::to_owned);
            format!("write unless = {{ {of} = {value:?} }}")
        }
        "prefix" | "starts_with" | "startswith" | "startsWith" | "begins_with" => {
            quoted(format!("{}*", text.unwrap_or("an")))
        }
        "exact" | "equals" | "eq" | "is" | "value" => quoted(text.unwrap_or("ana").to_owned()),
        "in" | "one_of" | "oneOf" | "any" | "any_of" | "or" => {
            format!("write a list, as in {of} = [\"ana\", \"bob\"]")
        }
        "exists" | "is_present" => format!("write {of} = {{ present = true }}"),
        "regex" | "regexp" | "matches" | "safe_regex" | "suffix" | "ends_with" | "contains" | "like" => {
            "write a value, a beginning such as \"an*\", a list, or a pattern of a path".to_owned()
        }
        _ => return None,
    };
    Some(format!(
        "{of}: {name} is no operator here, and {of}.{name} no attribute that a front provides; {remedy}"
    ))
}

/// Returns true for the two names of patterns without a text.
fn is_presence(name: &str) -> bool {
    ["missing", "present"].contains(&name)
}

impl Reader {
    /// Reads conditions. `header.x = "…"` may also be written as a nested table.
    ///
    /// A single pattern is a list of one. An empty list is an error, because it would match no request at all.
    pub(super) fn conditions(
        &mut self,
        before: &Namespace,
        table: &DeTable<'_>,
        found: &mut Vec<ConditionText>,
    ) {
        for (name, value) in table {
            let attribute = format!("{}{}", before.0, name.get_ref());
            let inner = Namespace(format!("{attribute}."));
            if let Some(what) = operator(before, name.get_ref(), value) {
                self.complain(name.span(), what);
                continue;
            }
            let any_of = match value.get_ref() {
                DeValue::Table(table) if !inner.is_pattern(table) => {
                    self.conditions(&inner, table, found);
                    continue;
                }
                DeValue::Array(list) => {
                    if list.is_empty() {
                        self.complain(value.span(), empty_list(&attribute));
                    }
                    self.patterns(&attribute, list)
                }
                _ => match self.pattern(before, &attribute, value) {
                    Some(only) => vec![only],
                    None => continue,
                },
            };
            found.push(ConditionText { attribute: Written { value: attribute, span: name.span() }, any_of });
        }
    }

    /// Reads the only pattern of a condition.
    fn pattern(
        &mut self,
        before: &Namespace,
        attribute: &str,
        value: &TomlValue<'_>,
    ) -> Option<Written<PatternText>> {
        match value.get_ref() {
            DeValue::String(text) => Some(text_at(text.as_ref(), value)),
            DeValue::Table(table) => self.presence(attribute, table, value),
            DeValue::Boolean(_) if !before.0.is_empty() && !OF_HTTP.contains(&&*before.0) => {
                // A misspelled `user = { mising = true }`.
                self.no_presence(before.0.trim_end_matches('.'), value);
                None
            }
            other => {
                let example = written_as_text(value).unwrap_or_else(|| "text".to_owned());
                let or_present = match other {
                    DeValue::Boolean(true) => {
                        format!(", or {attribute} = {{ present = true }} for every request that has it")
                    }
                    _ => String::new(),
                };
                let what = format!(
                    "{attribute}: is {}; write it in quotes, as in {attribute} = {example:?}{or_present}",
                    kind_of(other)
                );
                self.complain(value.span(), what);
                None
            }
        }
    }

    /// Reads `{ missing = true }` or `{ present = true }`.
    fn presence(
        &mut self,
        attribute: &str,
        table: &DeTable<'_>,
        value: &TomlValue<'_>,
    ) -> Option<Written<PatternText>> {
        let mut fields = table.iter();
        let (Some((name, is_so)), None) = (fields.next(), fields.next()) else {
            self.no_presence(attribute, value);
            return None;
        };
        let (this, other) = match name.get_ref().as_ref() {
            "missing" => (PatternText::Missing, "present"),
            "present" => (PatternText::Present, "missing"),
            _ => {
                self.no_presence(attribute, value);
                return None;
            }
        };
        match is_so.get_ref() {
            DeValue::Boolean(true) => return Some(Written { value: this, span: value.span() }),
            DeValue::Boolean(false) => {
                let what = format!(
                    "{attribute}: {} = false is not a condition; write {attribute} = {{ {other} = true }}",
                    name.get_ref()
                );
                self.complain(value.span(), what);
            }
            _ => self.no_presence(attribute, value),
        }
        None
    }

    /// Reports a table that is neither of the two patterns.
    fn no_presence(&mut self, attribute: &str, value: &TomlValue<'_>) {
        let what = format!(
            "{attribute}: is no pattern; write {{ missing = true }} for requests without {attribute}, {{ present = true }} \
             for those with it, or a text such as \"ana\""
        );
        self.complain(value.span(), what);
    }

    /// Reads the patterns of a list. Those of the wrong type are reported and left out. After [`MAX_LIST`] values the
    /// rest is not read.
    fn patterns(&mut self, of: &str, list: &DeArray<'_>) -> Vec<Written<PatternText>> {
        let mut patterns = Vec::new();
        for value in list.iter() {
            match value.get_ref() {
                DeValue::String(text) => patterns.push(text_at(text.as_ref(), value)),
                DeValue::Table(table) => patterns.extend(self.presence(of, table, value)),
                other => {
                    let what = format!("{of}: has {} in its list; write it in quotes", kind_of(other));
                    self.complain(value.span(), what);
                }
            }
            if patterns.len() > MAX_LIST {
                self.complain(value.span(), too_long_list(of));
                break;
            }
        }
        patterns
    }
}

/// Returns the text of a pattern with its position.
fn text_at(text: &str, value: &TomlValue<'_>) -> Written<PatternText> {
    Written { value: PatternText::Text(text.to_owned()), span: value.span() }
}
