//! Nothing in the repository is marked as unfinished: what is not done is not written, or is written in the plan.

use super::source::words;
use super::{File, Finding};

const EXTENSIONS: [&str; 6] = ["rs", "toml", "md", "sh", "lua", "js"];

// Put together from halves, or this file would find itself.
const WORDS: [&str; 4] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];
const CALLS: [&str; 3] = [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("dbg", "!(")];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|found| EXTENSIONS.contains(&found)))
    {
        for (index, line) in file.text.lines().enumerate() {
            let marks = marks(line).map(|mark| format!("unfinished mark `{mark}`: finish it or remove it"));
            findings.extend(marks.map(|message| file.finding(index + 1, message)));
        }
    }
    findings
}

fn marks(line: &str) -> impl Iterator<Item = &'static str> {
    let marked_words = WORDS.into_iter().filter(|mark| words(line).any(|word| word == *mark));
    marked_words.chain(CALLS.into_iter().filter(|call| line.contains(call)))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn finished_text_passes() {
        let clean = file("src/a.rs", "// Hackers like XXXL todos.\nfn todo() {}\n");
        let other = file("notes.txt", &format!("{} later\n", WORDS[0]));
        assert_eq!(check(&[clean, other]), []);
    }

    #[test]
    fn each_mark_is_found_on_its_line() {
        for mark in WORDS.into_iter().chain(CALLS) {
            let marked = file("docs/a.md", &format!("fine\n<!-- {mark}: later -->\n"));
            let findings = check(&[marked]);
            assert_eq!(findings.len(), 1, "{mark}");
            assert_eq!(findings[0].line, 2, "{mark}");
        }
    }
}
