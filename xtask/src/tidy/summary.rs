//! Every page in `docs/` is in the table of contents of the book, once. Decision records are apart: the book lists them
//! by itself.

use super::{File, Finding};

const SUMMARY: &str = "docs/SUMMARY.md";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(summary) = files.iter().find(|file| file.path == SUMMARY) else { return Vec::new() };
    let is_page = |file: &&File| {
        file.path.starts_with("docs/")
            && file.path.ends_with(".md")
            && !file.path.starts_with("docs/decisions/")
            && file.path != SUMMARY
    };
    let pages = files.iter().filter(is_page);
    let findings = pages.filter_map(|page| {
        let link = format!("]({})", page.path.trim_start_matches("docs/"));
        match summary.text.matches(&link).count() {
            1 => None,
            0 => Some(page.finding(1, format!("the page is not in {SUMMARY}; add it under a heading"))),
            _ => Some(summary.finding(1, format!("{} is listed more than once", page.path))),
        }
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn findings(summary: &str) -> Vec<String> {
        let files = [
            file(SUMMARY, summary),
            file("docs/a.md", ""),
            file("docs/more/b.md", ""),
            file("docs/decisions/0001-c.md", ""),
            file("README.md", ""),
        ];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_page_is_listed_once() {
        assert!(findings("- [A](a.md)\n- [B](more/b.md)\n").is_empty());
        assert_eq!(
            findings("- [A](a.md)\n"),
            ["docs/more/b.md:1: the page is not in docs/SUMMARY.md; add it under a heading"]
        );
        assert_eq!(
            findings("- [A](a.md)\n- [B](more/b.md)\n- [A](a.md)\n"),
            ["docs/SUMMARY.md:1: docs/a.md is listed more than once"]
        );
    }
}
