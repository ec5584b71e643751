//! A writer of the Prometheus text format.

use std::fmt::Write as _;

/// The text of a page while it is written.
#[derive(Debug, Default)]
pub(super) struct MetricsPage(pub(super) String);

impl MetricsPage {
    /// Begins a family: a counter if its name ends with `_total`, else a gauge.
    ///
    /// All series of a family have to follow it directly, as the format requires.
    pub(super) fn family(&mut self, name: &str, help: &str) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes one series with its labels and its value.
    pub(super) fn labelled(&mut self, name: &str, labels: &[(&str, &str)], number: u64) {
        self.0.push_str(name);
        for (index, (label, of)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"", if index == 0 { "{" } else { "," });
            self.put_escaped(of);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {number}");
    }

    /// Writes a family of one number without labels.
    pub(super) fn number(&mut self, name: &str, help: &str, number: u64) {
        self.family(name, help);
        self.labelled(name, &[], number);
    }

    /// Writes the value of a label, with quotes, backslashes and line ends escaped.
    fn put_escaped(&mut self, text: &str) {
        for letter in text.chars() {
            match letter {
                '"' => self.0.push_str("\\\""),
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                plain => self.0.push(plain),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_label_is_escaped() {
        let mut page = MetricsPage::default();
        page.labelled("a_total", &[("rule", "a\"b\\c\nd"), ("verdict", "é")], 7);
        page.labelled("b", &[], 8);
        assert_eq!(page.0, "a_total{rule=\"a\\\"b\\\\c\\nd\",verdict=\"é\"} 7\nb 8\n");
    }
}
