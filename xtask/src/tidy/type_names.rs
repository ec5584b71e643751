//! A type name is used once in a crate, so that a name leads to one definition.

use std::collections::BTreeMap;

use super::source::{Token, is_at, item_end, tokens};
use super::{File, Finding};

/// Names of private parts that every reader knows, and that say nothing without their module.
const IDIOMS: [&str; 8] = ["Inner", "Kind", "Entry", "View", "Iter", "Error", "Builder", "State"];
const TEST_MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let mut first_uses = BTreeMap::new();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let Some(of_crate) = crate_of(&file.path) else { continue };
        for (name, line) in types(&tokens(&file.text)) {
            let first: &mut &str = first_uses.entry((of_crate, name.clone())).or_insert(&file.path);
            // A file may define a type twice, for two targets.
            if *first != file.path {
                let message =
                    format!("`{name}` is also a type of {first}: a type name is used once in a crate");
                findings.push(file.finding(line, message));
            }
        }
    }
    findings
}

/// Returns the crate whose code a file is; none for tests.
fn crate_of(path: &str) -> Option<&str> {
    let (of_crate, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test =
        |part: &str| matches!(part, "tests" | "models") || part.ends_with("tests.rs") || part == "models.rs";
    (!inside.split('/').any(is_test)).then_some(of_crate)
}

/// Returns the types that are defined outside of tests, without associated types and idioms.
fn types(tokens: &[Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let (mut at, mut block_ends) = (0, Vec::new());
    while at < tokens.len() {
        if is_at(tokens, at, &TEST_MARK) {
            at = item_end(tokens, at + TEST_MARK.len()) + 1;
            continue;
        }
        block_ends.retain(|end| *end > at);
        let name = tokens.get(at + 1).map(|token| token.text.as_str()).filter(|name| is_type_name(name));
        let is_definition = match tokens[at].text.as_str() {
            "struct" | "enum" | "union" | "trait" => true,
            "type" => block_ends.is_empty(),
            _ => false,
        };
        if let Some(name) = name.filter(|_| is_definition) {
            found.push((name.to_owned(), tokens[at].line));
        }
        if matches!(tokens[at].text.as_str(), "impl" | "trait") && is_item_start(tokens, at) {
            block_ends.push(item_end(tokens, at));
        }
        at += 1;
    }
    found
}

fn is_type_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) && !IDIOMS.contains(&name)
}

/// Returns whether an item begins here, rather than `impl Trait` in a type.
fn is_item_start(tokens: &[Token], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| tokens[before].text.as_str());
    matches!(before, None | Some("}" | ";" | "]" | "{" | "pub" | ")" | "unsafe"))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn messages(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files.iter().map(|(path, text)| file(path, text)).collect();
        check(&files).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_name_that_two_files_of_a_crate_define_is_found() {
        let found = messages(&[
            ("crates/a/src/one.rs", "struct Told;\n"),
            ("crates/a/src/two.rs", "\npub(crate) enum Told {}\n"),
            ("crates/b/src/two.rs", "type Told = u8;\n"),
        ]);
        let expected = "crates/a/src/two.rs:2: `Told` is also a type of crates/a/src/one.rs: a type name is used once in a crate";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn idioms_tests_associated_types_and_variants_for_targets_pass() {
        let one = "struct Inner; struct A; trait B { type Output; } #[cfg(loom)] struct C; #[cfg(not(loom))] struct C;";
        let two = "struct Inner; impl B for A { type Output = u8; } #[cfg(test)] mod tests { struct A; }";
        let three = "fn a() -> impl B { struct D; }";
        let found = messages(&[
            ("crates/a/src/one.rs", one),
            ("crates/a/src/two.rs", two),
            ("crates/a/src/three.rs", three),
            ("crates/a/src/two/tests.rs", "struct A;"),
            ("crates/a/tests/it/main.rs", "struct A;"),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
