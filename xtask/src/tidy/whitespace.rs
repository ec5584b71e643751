//! Text files end with a line break, and no line ends with a space.

use super::{File, Finding};

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        for (index, line) in file.text.split('\n').enumerate() {
            if line.ends_with(char::is_whitespace) {
                findings.push(file.finding(index + 1, "whitespace at the end of the line"));
            }
        }
        if !file.text.is_empty() && !file.text.ends_with('\n') {
            findings.push(file.finding(file.text.lines().count(), "no line break at the end of the file"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn clean_and_empty_files_pass() {
        assert_eq!(check(&[file("a.md", "one\n\n  two\n"), file("b.rs", "")]), []);
    }

    #[test]
    fn spaces_tabs_and_carriage_returns_at_the_end_are_found() {
        for ending in [" ", "\t", "\r"] {
            let findings = check(&[file("a.md", &format!("one\ntwo{ending}\n"))]);
            assert_eq!(findings.len(), 1, "{ending:?}");
            assert_eq!(findings[0].line, 2, "{ending:?}");
        }
    }

    #[test]
    fn a_missing_final_line_break_is_found() {
        let findings = check(&[file("a.md", "one\ntwo")]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }
}
