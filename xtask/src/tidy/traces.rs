//! Every conformance trace says in its first line what it shows.

use super::{File, Finding};

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let is_trace =
        |file: &&File| file.path.starts_with("conformance/traces/") && file.path.ends_with(".trace");
    let untold = files.iter().filter(is_trace).filter(|file| !file.text.starts_with('#'));
    untold.map(|file| file.finding(1, "a trace begins with a `#` line that says what it shows")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn a_trace_that_says_what_it_shows_passes() {
        let told =
            file("conformance/traces/token/fresh.trace", "# A fresh key may spend its burst.\nlimit 1/s\n");
        let other = file("conformance/traces/README.md", "Traces.\n");
        assert_eq!(check(&[told, other]), []);
    }

    #[test]
    fn a_trace_without_words_is_found() {
        let untold = file("conformance/traces/fresh.trace", "limit 1/s\n");
        assert_eq!(check(&[untold]).len(), 1);
    }
}
