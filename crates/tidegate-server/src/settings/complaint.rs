//! What is wrong with settings: all of it at once, each with its place and what would do.

use std::error::Error;
use std::fmt;
use std::ops::Range;

use super::load::ConfigFile;

/// A longer line is not shown.
const MAX_SHOWN: usize = 160;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    /// The bytes of the file that it is about, if it is about the file.
    pub(super) span: Option<Range<usize>>,
    /// What it is about, what is wrong and what would do.
    pub(super) what: String,
}

/// Settings that do not hold.
///
/// Displays as a line for each complaint, and under it the line of the file with carets.
#[derive(Debug)]
pub(crate) struct SettingsError {
    file: Option<ConfigFile>,
    complaints: Vec<Complaint>,
}

impl SettingsError {
    /// Complaints about a file, the environment and flags, in the order of their places.
    pub(super) fn new(file: Option<ConfigFile>, mut complaints: Vec<Complaint>) -> SettingsError {
        complaints.sort_by_key(|complaint| complaint.span.as_ref().map_or(usize::MAX, |span| span.start));
        SettingsError { file, complaints }
    }

    /// One complaint that is about no place of a file.
    pub(super) fn alone(what: String) -> SettingsError {
        SettingsError { file: None, complaints: vec![Complaint { span: None, what }] }
    }

    /// Each complaint by itself.
    pub(crate) fn each(&self) -> impl Iterator<Item = String> {
        self.complaints.iter().map(|complaint| match (&self.file, &complaint.span) {
            (Some(file), Some(span)) => at_its_place(file, span, &complaint.what),
            _ => complaint.what.clone(),
        })
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.each().collect::<Vec<_>>().join("\n"))
    }
}

impl Error for SettingsError {}

/// File, line and column, what is wrong, and the line with carets under the place.
fn at_its_place(file: &ConfigFile, span: &Range<usize>, what: &str) -> String {
    let start = file.text.floor_char_boundary(span.start);
    let before = &file.text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = file.text[line_start..].lines().next().unwrap_or("");
    let (number, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count());
    let mut shown = format!("{}:{number}:{}: {what}", file.path.display(), column + 1);
    if line.len() <= MAX_SHOWN {
        let wide = file.text.get(start..span.end).map_or(1, |wrong| wrong.chars().count());
        let carets = wide.min(line.chars().count() - column).max(1);
        let margin = number.to_string();
        let line: String =
            line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        shown += &format!("\n  {margin} | {line}\n  {:indent$} | ", "", indent = margin.len());
        shown += &format!("{:column$}{:^<carets$}", "", "");
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let file = ConfigFile { path: PathBuf::from("a.toml"), text: text.to_owned() };
        at_its_place(&file, &span, "wrong")
    }

    #[test]
    fn carets_stand_under_the_place() {
        let text = "[server]\n\tresp = \"ü\"\n";
        assert_eq!(shown(text, 17..21), "a.toml:2:9: wrong\n  2 |  resp = \"ü\"\n    |         ^^^");
        assert_eq!(shown(text, 0..8), "a.toml:1:1: wrong\n  1 | [server]\n    | ^^^^^^^^");
    }

    #[test]
    fn a_place_at_an_end_has_one_caret_and_one_over_several_lines_the_first() {
        assert_eq!(shown("a = ", 4..4), "a.toml:1:5: wrong\n  1 | a = \n    |     ^");
        assert_eq!(shown("a\nb\n", 4..4), "a.toml:3:1: wrong\n  3 | \n    | ^");
        assert_eq!(shown("a = [\n1,\n]\n", 4..11), "a.toml:1:5: wrong\n  1 | a = [\n    |     ^");
    }

    #[test]
    fn a_line_that_is_too_long_is_not_shown() {
        let text = format!("a = \"{}\"", "x".repeat(MAX_SHOWN));
        assert_eq!(shown(&text, 4..8), "a.toml:1:5: wrong");
    }
}
