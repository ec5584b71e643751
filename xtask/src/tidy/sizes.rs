//! Points at Rust files and functions that have grown large; a reader may still decide that they are right.

use super::source::{code, continues_a_word, first_word, item_end, line_of};
use super::{File, Finding};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;
const TEST_MARK: &str = "#[cfg(test)]";

/// One note per large file or function; unlike findings, notes fail nothing.
pub(super) fn notes(files: &[File]) -> Vec<Finding> {
    let mut notes = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let code = code(&file.text);
        let lines = lines_without_tests(&code);
        if lines > FILE_LINES {
            notes.push(
                file.finding(1, format!("note: {lines} lines without tests, look again above {FILE_LINES}")),
            );
        }
        for (line, name, lines) in functions(&code).into_iter().filter(|found| found.2 > FUNCTION_LINES) {
            let message = format!("note: `{name}` has {lines} lines, look again above {FUNCTION_LINES}");
            notes.push(file.finding(line, message));
        }
    }
    notes
}

fn lines_without_tests(code: &str) -> usize {
    let mut lines = code.lines().count();
    let mut at = 0;
    while let Some(found) = code[at..].find(TEST_MARK) {
        let start = at + found;
        at = item_end(code, start + TEST_MARK.len());
        lines -= line_of(code, at) - line_of(code, start) + 1;
    }
    lines
}

/// First line, name and length of every function.
fn functions(code: &str) -> Vec<(usize, &str, usize)> {
    let mut found = Vec::new();
    for (at, keyword) in code.match_indices("fn ").filter(|(at, _)| !continues_a_word(code, *at)) {
        let name = first_word(&code[at + keyword.len()..]);
        let first = line_of(code, at);
        let last = line_of(code, item_end(code, at));
        found.push((first, name, last - first + 1));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    fn messages(text: &str) -> Vec<String> {
        notes(&[file("src/a.rs", text)]).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn small_functions_and_long_test_modules_pass() {
        let function = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(58));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "    // {\n".repeat(400));
        assert_eq!(messages(&format!("{function}{tests}")), [""; 0]);
    }

    #[test]
    fn a_function_of_more_than_sixty_lines_is_noted() {
        let text = format!("\nfn long(a: [u8; 4]) {{\n{}}}\nfn short() {{}}\n", "    b('{');\n".repeat(59));
        assert_eq!(messages(&text), ["src/a.rs:2: note: `long` has 61 lines, look again above 60"]);
    }

    #[test]
    fn a_file_of_more_than_four_hundred_lines_is_noted() {
        let text = "const A: u8 = 1;\n".repeat(401);
        let tests = "#[cfg(test)]\nmod tests;\n";
        let expected = ["src/a.rs:1: note: 401 lines without tests, look again above 400"];
        assert_eq!(messages(&format!("{text}{tests}")), expected);
    }
}
