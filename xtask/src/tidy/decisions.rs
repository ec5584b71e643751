//! Decision records are named `NNNN-words.md` and numbered from 0001 without gaps.

use super::{File, Finding};

const FOLDER: &str = "docs/decisions/";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut numbered = Vec::new();
    for file in files {
        let Some(name) = file.path.strip_prefix(FOLDER) else { continue };
        match number(name) {
            Some(number) => numbered.push((number, file)),
            None => findings.push(file.finding(1, "a decision is named NNNN-words.md, in lower case")),
        }
    }
    numbered.sort_by_key(|(number, _)| *number);
    let misnumbered = (1..).zip(numbered).find(|(expected, (number, _))| expected != number);
    findings.extend(misnumbered.map(|(expected, (_, file))| {
        file.finding(1, format!("decisions are numbered without gaps: {expected:04} is expected here"))
    }));
    findings
}

/// The number in a well-formed file name.
fn number(name: &str) -> Option<u32> {
    let (digits, words) = name.strip_suffix(".md")?.split_once('-')?;
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    let well_formed = digits.len() == 4 && digits.chars().all(|digit| digit.is_ascii_digit());
    (well_formed && words.split('-').all(is_word)).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn decisions(names: &[&str]) -> Vec<Finding> {
        let files: Vec<File> = names.iter().map(|name| file(&format!("{FOLDER}{name}"), "# A\n")).collect();
        check(&files)
    }

    #[test]
    fn well_named_decisions_without_gaps_pass() {
        assert_eq!(decisions(&["0002-the-store-owns-the-clock.md", "0001-ticks.md"]), []);
        assert_eq!(decisions(&[]), []);
    }

    #[test]
    fn other_names_are_found() {
        for name in ["notes.md", "1-ticks.md", "0001-Ticks.md", "0001-.md", "0001-ticks.txt", "0001_ticks.md"]
        {
            assert_eq!(decisions(&[name]).len(), 1, "{name}");
        }
    }

    #[test]
    fn gaps_and_doubles_are_found() {
        assert!(decisions(&["0001-a.md", "0003-b.md"])[0].message.contains("0002 is expected"));
        assert!(decisions(&["0001-a.md", "0001-b.md"])[0].message.contains("0002 is expected"));
    }
}
