//! The repository's own rules, which no compiler or linter knows.
//!
//! Each rule is a pure function from all files to findings, one file per rule.
//! A finding fails the command; a note about size is only printed.

mod decisions;
mod dependencies;
mod doc_lines;
mod layers;
mod links;
mod marks;
mod sizes;
mod source;
mod stop_words;
mod summary;
mod traces;
mod type_names;
mod unsafe_code;
mod whitespace;

use std::fmt;
use std::fs;

pub(crate) use links::{links, resolved};

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::workspace::{files, root};

/// A file of the repository, with its text if it is one; the path starts at the root and has forward slashes.
#[derive(Debug)]
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.extension() == Some("rs")
    }

    fn extension(&self) -> Option<&str> {
        self.path.rsplit_once('.').map(|(_, extension)| extension)
    }

    fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }
}

/// Something to repair, and where.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}

type Rule = fn(&[File]) -> Vec<Finding>;

const RULES: [Rule; 12] = [
    marks::check,
    dependencies::check,
    layers::check,
    unsafe_code::check,
    traces::check,
    decisions::check,
    links::check,
    summary::check,
    whitespace::check,
    stop_words::check,
    type_names::check,
    doc_lines::check,
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("tidy", arguments)?;
    check()
}

/// Prints every finding and every note; fails if there is a finding.
pub(crate) fn check() -> Result<(), Failure> {
    let files = all_files()?;
    for note in sizes::notes(&files) {
        println!("{note}");
    }
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&files)).collect();
    findings.sort();
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: files {}, findings {}", files.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err(Failure::new(format!("findings: {}", findings.len()))) }
}

fn all_files() -> Result<Vec<File>, Failure> {
    let mut found = Vec::new();
    for path in files()? {
        let place = root().join(&path);
        let bytes = fs::read(&place).map_err(Failure::at(&place))?;
        // What is not text, such as a picture, has no lines to judge, but links may lead to it.
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).unwrap_or_default();
        found.push(File { path, text });
    }
    Ok(found)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> File {
    File { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_file_line_message() {
        let finding = file("docs/map.md", "").finding(7, "no such arrow");
        assert_eq!(finding.to_string(), "docs/map.md:7: no such arrow");
    }
}
