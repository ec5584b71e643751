//! Fields with a fixed set of values.

use tidegate::{OnStoreFailure, WhenFull};
use tidegate_support::nearest;

use super::super::written::Written;
use super::Valid;
use crate::key::{OnMissing, OnRepeated};
use crate::rule::{Mode, StaticVerdict};

pub(in crate::config) const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];
pub(in crate::config) const MISSING: [(&str, OnMissing); 2] =
    [("share", OnMissing::Share), ("skip", OnMissing::Skip)];
pub(in crate::config) const REPEATED: [(&str, OnRepeated); 4] = [
    ("share", OnRepeated::Share),
    ("deny", OnRepeated::Deny),
    ("first", OnRepeated::First),
    ("last", OnRepeated::Last),
];
pub(in crate::config) const WHEN_FULL: [(&str, WhenFull); 2] =
    [("share", WhenFull::Share), ("forget", WhenFull::Forget)];
pub(in crate::config) const FAILURES: [(&str, OnStoreFailure); 3] =
    [("local", OnStoreFailure::Local), ("open", OnStoreFailure::Open), ("closed", OnStoreFailure::Closed)];

pub(in crate::config) const DECISIONS: [(&str, StaticVerdict); 2] =
    [("allow", StaticVerdict::Allow), ("deny", StaticVerdict::Deny)];

impl Valid<'_> {
    /// Parses one of a few words; the first is the default.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &str,
        written: Option<&Written<String>>,
        known: &[(&str, T)],
    ) -> Option<T> {
        let Some(written) = written else { return Some(known[0].1) };
        let found = known.iter().find(|(word, _)| *word == written.value);
        if found.is_none() {
            let words = known.iter().map(|(word, _)| *word);
            let what = match nearest(&written.value, words.clone()) {
                Some(near) => format!("did you mean {near:?}?"),
                None => {
                    let words: Vec<_> = words.map(|word| format!("{word:?}")).collect();
                    let (last, rest) = words.split_last().expect("there is something to choose");
                    format!("write {} or {last}", rest.join(", "))
                }
            };
            self.complain(
                &written.span,
                format!("{name} {:?}: is not known; {what}", shortened(&written.value)),
            );
        }
        found.map(|(_, value)| *value)
    }
}

pub(super) fn is_one_of<T>(written: &Written<String>, known: &[(&str, T)]) -> bool {
    known.iter().any(|(word, _)| *word == written.value)
}

/// Returns the word for a value, as a file has it.
pub(in crate::config) fn word_for<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> String {
    known.iter().find(|(_, known)| *known == value).map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// Shortens a value from the file to a readable length.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain(['…']).collect()
    }
}
