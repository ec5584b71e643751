//! Unsafe code lives in a few known files, each small enough to be read whole.

use super::source::tokens;
use super::{File, Finding};

/// The files that may contain unsafe code.
const ALLOWED: [&str; 5] = [
    "crates/tidegate-core/src/store/zone/atomic.rs",
    "crates/tidegate-core/src/store/zone/memory/mapping.rs",
    "crates/tidegate-core/src/store/zone/table.rs",
    "crates/tidegate-core/src/time/counter.rs",
    "drills/src/allocations.rs",
];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    find(files, &ALLOWED)
}

fn find(files: &[File], allowed: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| {
        file.is_rust() && file.text.contains("unsafe") && !allowed.contains(&file.path.as_str())
    }) {
        for token in tokens(&file.text).iter().filter(|token| token.text == "unsafe") {
            let message = "unsafe code in a file that is not on the list in xtask/src/tidy/unsafe_code.rs";
            findings.push(file.finding(token.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn talk_about_unsafe_and_listed_files_pass() {
        let talk =
            file("src/a.rs", "// unsafe is not used\n#![deny(unsafe_code)]\nconst A: &str = \"unsafe\";\n");
        let listed = file("src/zone.rs", "unsafe { a() }\n");
        assert_eq!(find(&[talk, listed], &["src/zone.rs"]), []);
    }

    #[test]
    fn the_counter_may_be_unsafe_but_not_its_neighbours() {
        let text = "unsafe { read() }\n";
        assert_eq!(check(&[file("crates/tidegate-core/src/time/counter.rs", text)]), []);
        assert_eq!(check(&[file("crates/tidegate-core/src/time/clock.rs", text)]).len(), 1);
    }

    #[test]
    fn an_unsafe_block_elsewhere_is_found() {
        let findings = check(&[file("src/a.rs", "fn a() {\n    unsafe { b() }\n}\n")]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
    }
}
