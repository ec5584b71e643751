//! Fields with a fixed set of values.
//!
//! Each table maps the words of a file to values. The first entry is the default, which a file may also write. Builders
//! in code use the same tables in the other direction.

use tidegate_core::{OnStoreFailure, WhenFull};
use tidegate_support::nearest;

use super::super::written::Written;
use super::Valid;
use crate::key::{OnMissing, OnRepeated};
use crate::rule::{Mode, StaticVerdict};

/// The words for the mode of a rule or of a window.
pub(in crate::config) const MODES: [(&str, Mode); 2] = [("enforce", Mode::Enforce), ("shadow", Mode::Shadow)];
/// The words for requests in which a part of the key is missing.
pub(in crate::config) const MISSING: [(&str, OnMissing); 2] =
    [("share", OnMissing::Share), ("skip", OnMissing::Skip)];
/// The words for requests with several values for a part of the key.
pub(in crate::config) const REPEATED: [(&str, OnRepeated); 4] = [
    ("share", OnRepeated::Share),
    ("deny", OnRepeated::Deny),
    ("first", OnRepeated::First),
    ("last", OnRepeated::Last),
];
/// The words for keys that find no free cell.
pub(in crate::config) const WHEN_FULL: [(&str, WhenFull); 2] =
    [("share", WhenFull::Share), ("forget", WhenFull::Forget)];
/// The words for requests during a failure of the store.
pub(in crate::config) const FAILURES: [(&str, OnStoreFailure); 3] =
    [("local", OnStoreFailure::Local), ("open", OnStoreFailure::Open), ("closed", OnStoreFailure::Closed)];

/// The words for a decision without a limit. It has no default.
pub(in crate::config) const DECISIONS: [(&str, StaticVerdict); 2] =
    [("allow", StaticVerdict::Allow), ("deny", StaticVerdict::Deny)];

impl Valid<'_> {
    /// Parses one of a few words; the first is the default.
    ///
    /// A word that is unknown is reported with a similar one, or with all words if none is similar.
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

/// Returns true if the word is known. With it a value that is checked twice is reported once.
pub(super) fn is_one_of<T>(written: &Written<String>, known: &[(&str, T)]) -> bool {
    known.iter().any(|(word, _)| *word == written.value)
}

/// Returns the word for a value, as a file has it.
pub(in crate::config) fn word_for<T: Copy + PartialEq>(known: &[(&'static str, T)], value: T) -> String {
    known.iter().find(|(_, known)| *known == value).map_or_else(String::new, |(word, _)| (*word).to_owned())
}

/// Shortens a value from the file to a readable length.
///
/// A value of a megabyte in a message would hide the other errors. At most 60 characters are shown.
pub(super) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        text.to_owned()
    } else {
        text.chars().take(MOST).chain(['…']).collect()
    }
}
