//! Reports about reloads, for operators.
//!
//! A report is some lines about one event: the file and the outcome, then differences or errors, then warnings.
//! `tidegate serve` prints them to standard error.

use std::fmt;

use crate::settings::SettingsError;

/// The maximum number of lines of one list in a report.
const MAX_LINES: usize = 100;

/// The listener for reports. Each call receives some whole lines.
pub(crate) struct ReportListener(Box<dyn Fn(&str) + Send + Sync>);

impl ReportListener {
    /// Creates a listener. It is called on the thread that reads the file.
    pub(crate) fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> ReportListener {
        ReportListener(Box::new(tell))
    }

    /// Reports a line about the file, the differences and the warnings.
    pub(crate) fn list(&self, first: &str, differences: &[String], warnings: &[String]) {
        let lines = beginning(differences, |line| format!("  {line}"));
        let warnings = beginning(warnings, |warning| format!("warning: {warning}"));
        self.tell(first, [lines, warnings].concat());
    }

    /// Reports that a file is invalid, with the complaints.
    pub(crate) fn rejected(&self, file: &str, error: &SettingsError) {
        let complaints: Vec<_> = error.each().collect();
        let lines = beginning(&complaints, |complaint| format!("error: {complaint}"));
        self.tell(&format!("{file} is invalid; the previous rules stay in force"), lines);
    }

    /// Passes all lines in one call, so that no other output comes between them.
    fn tell(&self, first: &str, lines: Vec<String>) {
        let lines: Vec<_> = [format!("rules: {first}")].into_iter().chain(lines).collect();
        (self.0)(&lines.join("\n"));
    }
}

/// Returns the first [`MAX_LINES`] entries of a list, and the number of the others.
fn beginning(list: &[String], shown: impl Fn(&String) -> String) -> Vec<String> {
    let more = list.len().saturating_sub(MAX_LINES);
    let rest = (more > 0).then(|| format!("  and {more} more"));
    list.iter().take(MAX_LINES).map(shown).chain(rest).collect()
}

impl fmt::Debug for ReportListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ReportListener").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_reported_up_to_its_bound() {
        let list = |length: usize| (0..length).map(|number| number.to_string()).collect::<Vec<_>>();
        let lines = |length| beginning(&list(length), |line| format!("- {line}"));
        assert_eq!((lines(MAX_LINES).len(), &*lines(MAX_LINES)[MAX_LINES - 1]), (MAX_LINES, "- 99"));
        assert_eq!(lines(MAX_LINES + 2)[MAX_LINES - 1..], ["- 99", "  and 2 more"]);
        assert_eq!(lines(0), Vec::<String>::new());
    }
}
