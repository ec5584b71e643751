//! Stop words: words that stand where the field has a term of its own. Readers search for that term.
//!
//! Code, documents and messages are checked, names of functions and tests too: each part of a name is a word.
//! Decision records are history and may quote older words.

use super::{File, Finding};

/// A stop word, or two that follow each other, and the terms to use instead.
const STOP_WORDS: [(&[&str], &str); 9] = [
    (&["whoever"], "the caller, the thread, the request"),
    (&["nobody"], "no caller, no request, none"),
    (&["somebody"], "a caller, another process"),
    (&["elsewhere"], "the remote store, another file"),
    (&["told"], "reported, sent; the reply"),
    (&["patience"], "max_wait, the longest delay a caller accepts"),
    (&["like", "new"], "full, unused"),
    (&["does", "not", "hold"], "invalid, is false"),
    (&["let", "through"], "admitted"),
];

const PLACES: [&str; 5] = ["crates/", "docs/", "examples/", "README.md", "ARCHITECTURE.md"];
const HISTORY: &str = "docs/decisions/";
const EXTENSIONS: [&str; 9] = ["rs", "md", "toml", "lua", "js", "html", "json", "txt", "stderr"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let is_checked = |file: &&File| {
        PLACES.iter().any(|place| file.path.starts_with(place))
            && !file.path.starts_with(HISTORY)
            && file.extension().is_some_and(|found| EXTENSIONS.contains(&found))
    };
    let mut findings = Vec::new();
    for file in files.iter().filter(is_checked) {
        for (index, line) in file.text.lines().enumerate() {
            findings.extend(stop_words(line).map(|(words, instead)| {
                let words = words.join(" ");
                file.finding(index + 1, format!("stop word \"{words}\": write {instead}"))
            }));
        }
    }
    findings
}

fn stop_words(line: &str) -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    let words: Vec<String> = parts(line).collect();
    let occurs = move |stop: &[&str]| words.windows(stop.len()).any(|window| window == stop);
    STOP_WORDS.into_iter().filter(move |(stop, _)| occurs(stop))
}

/// Returns the words of a line in lower case; an identifier is several words.
fn parts(line: &str) -> impl Iterator<Item = String> {
    let words = line.split(|character: char| !character.is_alphanumeric());
    words.flat_map(humps).filter(|word| !word.is_empty()).map(|word| word.to_lowercase())
}

/// Splits `CamelCase` into its words.
fn humps(word: &str) -> impl Iterator<Item = &str> {
    let bytes = word.as_bytes();
    let is_start = |at: usize| bytes[at].is_ascii_uppercase() && bytes[at - 1].is_ascii_lowercase();
    let starts: Vec<usize> = (1..bytes.len()).filter(|at| is_start(*at)).collect();
    let ends: Vec<usize> = starts.iter().copied().chain([word.len()]).collect();
    std::iter::once(0).chain(starts).zip(ends).filter_map(move |(start, end)| word.get(start..end))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        check(&[file(path, text)]).iter().map(|finding| finding.message.clone()).collect()
    }

    #[test]
    fn words_and_parts_of_names_are_found() {
        for text in ["/// Nobody waits.", "fn nobody_waits() {}", "struct NobodyWaits;", "a(\"nobody\")"] {
            let found = messages("crates/a/src/lib.rs", text);
            assert_eq!(found, ["stop word \"nobody\": write no caller, no request, none"], "{text}");
        }
        assert_eq!(messages("docs/a.md", "It is then like new, and\n").len(), 1);
        assert_eq!(messages("README.md", "a rule that does not hold\n").len(), 1);
    }

    #[test]
    fn other_words_and_other_places_pass() {
        assert_eq!(messages("crates/a/src/lib.rs", "It stolds. Like a new one. It holds not."), [""; 0]);
        assert_eq!(messages("docs/decisions/0001-a.md", "Nobody waits."), [""; 0]);
        assert_eq!(messages("xtask/src/a.rs", "Nobody waits."), [""; 0]);
        assert_eq!(messages("docs/a.png", "nobody"), [""; 0]);
    }
}
