//! Complaints about a text: all of them at once, each with its place and a remedy.
//!
//! A checker of a configuration file collects complaints instead of failing at the first fault. So a file is corrected
//! in one pass. The output has the form of a compiler's.

use std::ops::Range;

/// The longest line that is shown.
const MAX_SHOWN: usize = 160;
/// The largest number of complaints that are shown, before one more that counts the others.
pub const MAX_COMPLAINTS: usize = 100;
/// The largest number of complaints that are kept, enough to select the first ones.
const MAX_KEPT: usize = 10 * MAX_COMPLAINTS;

/// A fault of a text, or a probable mistake. Errors and warnings have the same type.
#[doc(alias = "diagnostic")]
#[doc(alias = "error message")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The bytes of the text that it concerns; `None` if it concerns no place.
    pub span: Option<Range<usize>>,
    /// The context, the fault and a remedy.
    pub what: String,
}

impl Complaint {
    /// Returns a complaint about these bytes of the text.
    pub fn at(span: Range<usize>, what: impl Into<String>) -> Complaint {
        Complaint { span: Some(span), what: what.into() }
    }

    /// Returns a complaint without a place in the text.
    pub fn alone(what: impl Into<String>) -> Complaint {
        Complaint { span: None, what: what.into() }
    }

    /// Returns file, line and column, the fault, and the line with carets under the place. Without a place, only the
    /// fault. Control characters of the line are shown as spaces. A line of more than 160 bytes is left out, for
    /// example a certificate.
    pub fn shown(&self, file: &str, text: &str) -> String {
        let Some((place, mut shown)) = self.place(text).map(|place| {
            let shown = format!("{file}:{}:{}: {}", place.line, place.column, self.what);
            (place, shown)
        }) else {
            return self.what.clone();
        };
        if place.whole.len() <= MAX_SHOWN {
            let margin = place.line.to_string();
            let (indent, before) = (margin.len(), place.column - 1);
            let line: String =
                place.whole.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
            shown += &format!("\n  {margin} | {line}\n  {:indent$} | ", "");
            shown += &format!("{:before$}{0:^<1$}", "", place.carets);
        }
        shown
    }

    /// Returns the place in the text, or `None` if the complaint has none.
    pub fn place<'t>(&self, text: &'t str) -> Option<TextPlace<'t>> {
        let span = self.span.as_ref()?;
        let start = (0..=span.start.min(text.len())).rev().find(|at| text.is_char_boundary(*at))?;
        let before = &text[..start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let whole = text[line_start..].lines().next().unwrap_or("");
        let column = before[line_start..].chars().count();
        let wide = text.get(start..span.end).map_or(1, |wrong| wrong.chars().count());
        let carets = wide.min(whole.chars().count().saturating_sub(column)).max(1);
        Some(TextPlace {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: column + 1,
            whole,
            carets,
        })
    }
}

/// A place in a text, by line and column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPlace<'t> {
    /// The line number, from 1.
    pub line: usize,
    /// The column of its first character, from 1.
    pub column: usize,
    /// The whole line, without its end.
    whole: &'t str,
    /// The number of characters to mark, at least one.
    carets: usize,
}

/// The line ends of a text, for many lookups. A lookup is a bisection, so the lines of many values cost one pass over
/// the text.
#[derive(Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// Finds the ends of all lines.
    pub fn of(text: &str) -> Lines {
        Lines(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect())
    }

    /// Returns the number of the line of this byte, from 1.
    pub fn number(&self, at: usize) -> usize {
        self.0.partition_point(|end| *end < at) + 1
    }
}

/// Sorts complaints by their places; those without a place come last.
pub fn in_order(complaints: &mut [Complaint]) {
    complaints.sort_by_key(|complaint| complaint.span.as_ref().map_or(usize::MAX, |span| span.start));
}

/// A collection of complaints: the number kept is bounded, and all are counted.
#[derive(Debug, Default)]
pub struct Complaints {
    kept: Vec<Complaint>,
    found: usize,
}

impl Complaints {
    /// Adds a complaint.
    pub fn push(&mut self, complaint: Complaint) {
        self.found += 1;
        if self.kept.len() < MAX_KEPT {
            self.kept.push(complaint);
        }
    }

    /// Returns the number of complaints found.
    pub fn found(&self) -> usize {
        self.found
    }

    /// Removes all but the first `all_but` complaints.
    pub fn take_back(&mut self, all_but: usize) {
        self.found = all_but;
        self.kept.truncate(all_but);
    }

    /// Returns the first complaints in the order of their places, and one more with the number of the others.
    pub fn shown(mut self) -> Vec<Complaint> {
        in_order(&mut self.kept);
        self.kept.truncate(MAX_COMPLAINTS);
        if self.found > self.kept.len() {
            let more = self.found - self.kept.len();
            self.kept.push(Complaint::alone(format!("and {more} more; these come first")));
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        Complaint::at(span, "wrong").shown("a.toml", text)
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
    fn lines_are_counted_from_one() {
        let lines = Lines::of("a\nbc\n\n");
        let numbers: Vec<_> = (0..6).map(|at| lines.number(at)).collect();
        assert_eq!(numbers, [1, 1, 2, 2, 2, 3]);
    }

    #[test]
    fn all_complaints_are_counted_and_the_first_are_shown() {
        let found = |many: usize| {
            let mut found = Complaints::default();
            (0..many).rev().for_each(|at| found.push(Complaint::at(at..at, "wrong")));
            found
        };
        assert_eq!(found(MAX_COMPLAINTS).shown().len(), MAX_COMPLAINTS);
        let shown = found(MAX_COMPLAINTS + 1).shown();
        assert_eq!((shown.len(), &*shown[MAX_COMPLAINTS].what), (101, "and 1 more; these come first"));
        assert_eq!(shown[0].span, Some(0..0));
        let mut many = found(1_000_000);
        assert_eq!(many.kept.len(), MAX_KEPT);
        assert_eq!(many.shown()[MAX_COMPLAINTS].what, "and 999900 more; these come first");
        many = found(3);
        many.take_back(2);
        assert_eq!((many.found(), many.shown().len()), (2, 2));
    }

    #[test]
    fn a_line_that_is_too_long_is_not_shown() {
        let text = format!("a = \"{}\"", "x".repeat(MAX_SHOWN));
        assert_eq!(shown(&text, 4..8), "a.toml:1:5: wrong");
    }
}
