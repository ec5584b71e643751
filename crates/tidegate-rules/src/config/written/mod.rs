//! The contents of a policy before validation: tables and fields by name, values by type.
//!
//! The reader of a file and the builders in code both produce this form, so that every check exists once.
//!
//! Every field is optional here, and its value is text or a number as written. Validation needs to know which fields
//! are present even if their value has the wrong type: a rule whose limit is a number has a limit, and must not be
//! reported as a rule without one.

mod conditions;
mod fields;
mod reader;

use std::ops::Range;

pub(super) use reader::Reader;

/// The maximum number of values of a list.
pub(super) const MAX_LIST: usize = 65_536;

/// A value with its position: the bytes in the file, or the index of the rule or zone for a policy made in code.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

impl<T> Written<T> {
    /// Creates a value that was not read from a file. Its position is set later.
    pub(super) fn in_code(value: T) -> Written<T> {
        Written { value, span: 0..0 }
    }
}

/// A rule as written.
///
/// The fields have the names that they have in a file. [`super::builder`] fills in the same fields from typed values.
#[derive(Clone, Debug, Default)]
pub(crate) struct RuleText {
    /// The position of the rule.
    pub(crate) span: Range<usize>,
    pub(crate) name: Option<Written<String>>,
    pub(crate) when: Vec<ConditionText>,
    pub(crate) unless: Vec<ConditionText>,
    pub(crate) group: Option<Written<String>>,
    pub(crate) key: Option<Vec<Written<String>>>,
    pub(crate) limit: Option<Written<String>>,
    /// Values of the key, each with its limit.
    pub(crate) limit_for: Vec<(Written<String>, Written<String>)>,
    pub(crate) penalty: Option<PenaltyText>,
    pub(crate) mode: Option<Written<String>>,
    pub(crate) candidate_for: Option<Written<String>>,
    pub(crate) decision: Option<Written<String>>,
    pub(crate) cost: Option<Written<u64>>,
    pub(crate) max_wait: Option<Written<String>>,
    pub(crate) schedule: Vec<WindowText>,
    pub(crate) on_missing: Option<Written<String>>,
    pub(crate) on_repeated: Option<Written<String>>,
    pub(crate) on_store_failure: Option<Written<String>>,
    pub(crate) when_full: Option<Written<String>>,
    pub(crate) zone: Option<Written<String>>,
    pub(crate) ipv4_prefix: Option<Written<u64>>,
    pub(crate) ipv6_prefix: Option<Written<u64>>,
    pub(crate) trusted: Option<Vec<Written<String>>>,
    /// The names of all fields that are present.
    pub(crate) fields: Vec<Written<&'static str>>,
}

/// A condition as written: an attribute and its patterns.
#[derive(Clone, Debug)]
pub(crate) struct ConditionText {
    pub(crate) attribute: Written<String>,
    pub(crate) any_of: Vec<Written<PatternText>>,
}

/// A pattern as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternText {
    /// The text of a pattern.
    Text(String),
    /// `{ present = true }`
    Present,
    /// `{ missing = true }`
    Missing,
}

impl RuleText {
    /// Returns true if a field is present, valid or not.
    ///
    /// Use it before reporting a field as missing.
    pub(super) fn says(&self, field: &str) -> bool {
        self.fields.iter().any(|known| known.value == field)
    }

    /// Sets the position of the rule and of all its values, for a rule made in code.
    pub(super) fn move_to(&mut self, index: usize) {
        let put = |span: &mut Range<usize>| *span = index..index;
        put(&mut self.span);
        for ConditionText { attribute, any_of } in self.when.iter_mut().chain(&mut self.unless) {
            put(&mut attribute.span);
            any_of.iter_mut().for_each(|pattern| put(&mut pattern.span));
        }
        for (value, limit) in &mut self.limit_for {
            put(&mut value.span);
            put(&mut limit.span);
        }
        if let Some(penalty) = &mut self.penalty {
            put(&mut penalty.span);
            penalty.after.iter_mut().for_each(|after| put(&mut after.span));
            let spans = penalty.within.iter_mut().chain(&mut penalty.lasts);
            spans.for_each(|span| put(&mut span.span));
        }
        let lists = self.key.iter_mut().chain(&mut self.trusted).flatten();
        let texts = [
            &mut self.name,
            &mut self.limit,
            &mut self.mode,
            &mut self.candidate_for,
            &mut self.decision,
            &mut self.max_wait,
            &mut self.on_missing,
            &mut self.on_repeated,
            &mut self.on_store_failure,
            &mut self.when_full,
            &mut self.zone,
            &mut self.group,
        ];
        texts.into_iter().flatten().chain(lists).for_each(|text| put(&mut text.span));
        let numbers = [&mut self.cost, &mut self.ipv4_prefix, &mut self.ipv6_prefix];
        numbers.into_iter().flatten().for_each(|number| put(&mut number.span));
        self.fields.iter_mut().for_each(|field| put(&mut field.span));
        self.schedule.iter_mut().for_each(|window| window.move_to(index));
    }
}

/// A penalty as written.
#[derive(Clone, Debug, Default)]
pub(crate) struct PenaltyText {
    pub(crate) span: Range<usize>,
    /// The number of denials.
    pub(crate) after: Option<Written<u64>>,
    /// The span within which they count.
    pub(crate) within: Option<Written<String>>,
    /// The span of the ban.
    pub(crate) lasts: Option<Written<String>>,
    /// The names of all fields that are present.
    pub(crate) fields: Vec<&'static str>,
    /// True if there is another field, which has been reported and may be one of the three.
    pub(crate) has_unknown: bool,
}

/// A window of a schedule as written.
///
/// A window has a beginning and an end, and the parameters that replace those of its rule. A parameter that is absent
/// is that of the rule.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowText {
    pub(crate) span: Range<usize>,
    /// The names of all fields that are present.
    pub(crate) fields: Vec<&'static str>,
    pub(crate) from: Option<Written<String>>,
    pub(crate) to: Option<Written<String>>,
    pub(crate) days: Option<Vec<Written<String>>>,
    pub(crate) timezone: Option<Written<String>>,
    pub(crate) limit: Option<Written<String>>,
    pub(crate) cost: Option<Written<u64>>,
    pub(crate) max_wait: Option<Written<String>>,
    pub(crate) mode: Option<Written<String>>,
}

impl WindowText {
    fn move_to(&mut self, index: usize) {
        let put = |span: &mut Range<usize>| *span = index..index;
        put(&mut self.span);
        let texts = [
            &mut self.from,
            &mut self.to,
            &mut self.timezone,
            &mut self.limit,
            &mut self.max_wait,
            &mut self.mode,
        ];
        let days = self.days.iter_mut().flatten();
        texts.into_iter().flatten().chain(days).for_each(|text| put(&mut text.span));
        self.cost.iter_mut().for_each(|cost| put(&mut cost.span));
    }
}

/// A zone as written.
#[derive(Debug)]
pub(crate) struct ZoneText {
    pub(crate) name: Written<String>,
    /// True if it has any fields, valid or not.
    pub(crate) has_fields: bool,
    pub(crate) size: Option<Written<String>>,
}

/// All rules and zones of a file, and the settings for all of its rules.
#[derive(Debug, Default)]
pub(crate) struct PolicyText {
    pub(crate) rules: Vec<RuleText>,
    pub(crate) zones: Vec<ZoneText>,
    /// The verdict for requests to which no rule applies.
    pub(crate) unmatched: Option<Written<String>>,
    /// The declared attributes; `None` if attributes need no declaration.
    pub(crate) attributes: Option<Vec<Written<String>>>,
}

/// Returns the error for an `unless` without conditions, which every request would meet.
pub(super) fn empty_unless() -> &'static str {
    "unless: is empty, so the rule would never apply; write what it is not for, as in unless = { path = \"/healthz\" }, \
     or leave it out"
}

/// Returns the error for a condition without values.
pub(super) fn empty_list(attribute: &str) -> String {
    format!("{attribute}: is an empty list, which nothing matches; write a value, or leave it out")
}

/// Returns the error for a list with more than [`MAX_LIST`] values.
pub(super) fn too_long_list(of: &str) -> String {
    format!("{of}: has more than {MAX_LIST} values; use fewer, or several rules")
}
