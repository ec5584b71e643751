//! Points at Rust files and functions that have grown large; a reader may still decide that they are right.

use super::source::{Token, is_at, item_end, tokens};
use super::{File, Finding};

const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 60;
const TEST_MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// One note per large file or function; unlike findings, notes fail nothing.
pub(super) fn notes(files: &[File]) -> Vec<Finding> {
    let mut notes = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let tokens = tokens(&file.text);
        let lines = file.text.lines().count() - lines_of_tests(&tokens);
        if lines > FILE_LINES {
            notes.push(
                file.finding(1, format!("note: {lines} lines without tests, look again above {FILE_LINES}")),
            );
        }
        for (line, name, lines) in functions(&tokens).filter(|found| found.2 > FUNCTION_LINES) {
            let message = format!("note: `{name}` has {lines} lines, look again above {FUNCTION_LINES}");
            notes.push(file.finding(line, message));
        }
    }
    notes
}

fn lines_of_tests(tokens: &[Token]) -> usize {
    let marks = (0..tokens.len()).filter(|at| is_at(tokens, *at, &TEST_MARK));
    marks.map(|at| lines(tokens, at, item_end(tokens, at + TEST_MARK.len()))).sum()
}

/// First line, name and length of every function.
fn functions(tokens: &[Token]) -> impl Iterator<Item = (usize, &str, usize)> {
    let is_name = |text: &str| text.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let starts =
        (1..tokens.len()).filter(move |at| tokens[at - 1].text == "fn" && is_name(&tokens[*at].text));
    starts.map(|at| (tokens[at].line, tokens[at].text.as_str(), lines(tokens, at, item_end(tokens, at))))
}

fn lines(tokens: &[Token], first: usize, last: usize) -> usize {
    tokens[last].line - tokens[first].line + 1
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
