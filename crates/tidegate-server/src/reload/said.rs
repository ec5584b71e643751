//! What people are told about rules that were read again.

use std::fmt;

use crate::settings::SettingsError;

/// Longer lists are not told to their end.
const MAX_LINES: usize = 100;

/// Who is told, some lines at a time.
pub(crate) struct Tell(Box<dyn Fn(&str) + Send + Sync>);

impl Tell {
    pub(crate) fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Tell {
        Tell(Box::new(tell))
    }

    /// A line about the file, then what is different and what is probably not meant so.
    pub(crate) fn list(&self, first: &str, differences: &[String], warnings: &[String]) {
        let lines = beginning(differences, |line| format!("  {line}"));
        let warnings = beginning(warnings, |warning| format!("warning: {warning}"));
        self.tell(first, [lines, warnings].concat());
    }

    /// A file does not hold.
    pub(crate) fn rejected(&self, file: &str, error: &SettingsError) {
        let complaints: Vec<_> = error.each().collect();
        let lines = beginning(&complaints, |complaint| format!("error: {complaint}"));
        self.tell(&format!("{file} does not hold; the rules before it stay in force"), lines);
    }

    /// All lines at once, so that nobody else speaks between them.
    fn tell(&self, first: &str, lines: Vec<String>) {
        let lines: Vec<_> = [format!("rules: {first}")].into_iter().chain(lines).collect();
        (self.0)(&lines.join("\n"));
    }
}

/// The beginning of a list, and how much more there is.
fn beginning(list: &[String], shown: impl Fn(&String) -> String) -> Vec<String> {
    let more = list.len().saturating_sub(MAX_LINES);
    let rest = (more > 0).then(|| format!("  and {more} more"));
    list.iter().take(MAX_LINES).map(shown).chain(rest).collect()
}

impl fmt::Debug for Tell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Tell").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_told_to_its_bound_and_not_beyond() {
        let list = |length: usize| (0..length).map(|number| number.to_string()).collect::<Vec<_>>();
        let told = |length| beginning(&list(length), |line| format!("- {line}"));
        assert_eq!((told(MAX_LINES).len(), &*told(MAX_LINES)[MAX_LINES - 1]), (MAX_LINES, "- 99"));
        assert_eq!(told(MAX_LINES + 2)[MAX_LINES - 1..], ["- 99", "  and 2 more"]);
        assert_eq!(told(0), Vec::<String>::new());
    }
}
