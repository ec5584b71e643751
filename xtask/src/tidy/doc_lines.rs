//! The first line of a doc comment says what an item is, or begins with a verb: it is read in a list of such lines.

use super::{File, Finding};

/// Openings of a clause, which make a line that cannot be skimmed.
const OPENINGS: [&str; 6] = ["What", "How", "Whether", "Where", "Who", "Whose"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let in_crates = files.iter().filter(|file| file.is_rust() && file.path.starts_with("crates/"));
    let in_sources = in_crates.filter(|file| file.path.contains("/src/"));
    in_sources
        .flat_map(|file| first_lines(&file.text).filter_map(|(line, text)| finding(file, line, text)))
        .collect()
}

fn finding(file: &File, line: usize, text: &str) -> Option<Finding> {
    let opening = text.split_whitespace().next().filter(|word| OPENINGS.contains(word))?;
    let message = format!(
        "a doc line that opens with \"{opening}\": begin with the noun that the item is, or with a verb as in \"Returns\""
    );
    Some(file.finding(line, message))
}

/// Returns the first line of each doc comment, with its number.
fn first_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut was_doc = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let doc = line.trim_start().strip_prefix("///").or_else(|| line.trim_start().strip_prefix("//!"));
        let is_first = !was_doc;
        was_doc = doc.is_some();
        doc.filter(|_| is_first).map(|doc| (index + 1, doc))
    })
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&[file("crates/a/src/lib.rs", text)]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn clauses_are_found_where_a_comment_begins() {
        assert_eq!(lines("//! What a file is.\n\n    /// Whether it waits.\nfn a() {}\n"), [1, 3]);
    }

    #[test]
    fn nouns_and_verbs_pass_and_so_do_later_lines() {
        assert_eq!(lines("/// A queue.\n/// What it holds is bounded.\n/// Returns the length.\n"), []);
        assert_eq!(lines("// What comes is a plain comment.\n/// Whatever happens, it ends.\n"), []);
        assert_eq!(check(&[file("xtask/src/a.rs", "/// What.\n")]), []);
    }
}
