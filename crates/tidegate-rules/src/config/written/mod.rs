//! The contents of a policy file before validation: tables and fields by name, values by type.

mod fields;
mod reader;

use std::ops::Range;

pub(super) use reader::Reader;

/// A value with its position in the file.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// A rule as written.
#[derive(Debug, Default)]
pub(crate) struct RuleText {
    /// The position of the rule.
    pub(crate) span: Range<usize>,
    pub(crate) name: Option<Written<String>>,
    pub(crate) when: Vec<(Written<String>, Vec<Written<String>>)>,
    pub(crate) key: Option<Vec<Written<String>>>,
    pub(crate) limit: Option<Written<String>>,
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

impl RuleText {
    /// Returns true if a field is present, valid or not.
    pub(super) fn says(&self, field: &str) -> bool {
        self.fields.iter().any(|known| known.value == field)
    }
}

/// A window of a schedule as written.
#[derive(Debug, Default)]
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

/// A zone as written.
#[derive(Debug)]
pub(crate) struct ZoneText {
    pub(crate) name: Written<String>,
    /// True if it has any fields, valid or not.
    pub(crate) has_fields: bool,
    pub(crate) size: Option<Written<String>>,
}

/// All rules and zones of a file.
#[derive(Debug, Default)]
pub(crate) struct PolicyText {
    pub(crate) rules: Vec<RuleText>,
    pub(crate) zones: Vec<ZoneText>,
}
