//! What a file says, before anybody knows whether it makes sense: tables and fields by name, values by kind.

mod fields;
mod reader;

use std::ops::Range;

pub(super) use reader::Reader;

/// A value, and where it was written.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// A rule as it was written.
#[derive(Debug, Default)]
pub(crate) struct RuleText {
    /// Where it begins.
    pub(crate) span: Range<usize>,
    pub(crate) name: Option<Written<String>>,
    pub(crate) when: Vec<(Written<String>, Vec<Written<String>>)>,
    pub(crate) key: Option<Vec<Written<String>>>,
    pub(crate) limit: Option<Written<String>>,
    pub(crate) mode: Option<Written<String>>,
    pub(crate) candidate_for: Option<Written<String>>,
    pub(crate) decision: Option<Written<String>>,
    pub(crate) cost: Option<Written<u64>>,
    pub(crate) patience: Option<Written<String>>,
    pub(crate) schedule: Vec<WindowText>,
    pub(crate) on_missing: Option<Written<String>>,
    pub(crate) on_repeated: Option<Written<String>>,
    pub(crate) on_store_failure: Option<Written<String>>,
    pub(crate) when_full: Option<Written<String>>,
    pub(crate) zone: Option<Written<String>>,
    pub(crate) ipv4_prefix: Option<Written<u64>>,
    pub(crate) ipv6_prefix: Option<Written<u64>>,
    pub(crate) trusted: Option<Vec<Written<String>>>,
    /// The names of all fields that are there.
    pub(crate) fields: Vec<Written<&'static str>>,
}

impl RuleText {
    /// Whether a field is there, right or wrong.
    pub(super) fn says(&self, field: &str) -> bool {
        self.fields.iter().any(|known| known.value == field)
    }
}

/// A window of a schedule as it was written.
#[derive(Debug, Default)]
pub(crate) struct WindowText {
    pub(crate) span: Range<usize>,
    /// The names of all fields that are there.
    pub(crate) fields: Vec<&'static str>,
    pub(crate) from: Option<Written<String>>,
    pub(crate) to: Option<Written<String>>,
    pub(crate) days: Option<Vec<Written<String>>>,
    pub(crate) timezone: Option<Written<String>>,
    pub(crate) limit: Option<Written<String>>,
    pub(crate) cost: Option<Written<u64>>,
    pub(crate) patience: Option<Written<String>>,
    pub(crate) mode: Option<Written<String>>,
}

/// A zone as it was written.
#[derive(Debug)]
pub(crate) struct ZoneText {
    pub(crate) name: Written<String>,
    /// Whether it says anything, right or wrong.
    pub(crate) has_fields: bool,
    pub(crate) size: Option<Written<String>>,
}

/// All that a file says about rules.
#[derive(Debug, Default)]
pub(crate) struct PolicyText {
    pub(crate) rules: Vec<RuleText>,
    pub(crate) zones: Vec<ZoneText>,
}
