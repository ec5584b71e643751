//! Just enough reading of Rust text for rules about code: what is code, which words it has, where an item ends.
//!
//! Rules about code must not trip over prose or test data, so comments and literals are blanked first.

/// The text with comments, strings and character literals replaced by spaces; lines stay where they are.
pub(super) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let joined = code.chars().next_back().is_some_and(is_word_character);
        let blanked = comment_or_literal(rest, joined);
        if blanked == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..blanked].chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
            rest = &rest[blanked..];
        }
    }
    code
}

/// The bytes of the comment or literal at the start of `rest`, or 0; `joined` says that a word goes on here.
fn comment_or_literal(rest: &str, joined: bool) -> usize {
    match rest.as_bytes() {
        [b'/', b'/', ..] => rest.find('\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => string(rest),
        [b'\'', ..] => character(rest),
        [b'r' | b'b' | b'c', ..] if !joined => raw_string(rest),
        _ => 0,
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A quote that does not close after one character begins a lifetime, which is code.
fn character(rest: &str) -> usize {
    let mut characters = rest.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((escaped, _))) => {
            rest[escaped + 1..].find('\'').map_or(0, |at| escaped + at + 2)
        }
        (Some(_), Some((close, '\''))) => close + 1,
        _ => 0,
    }
}

fn raw_string(rest: &str) -> usize {
    let unprefixed = rest.strip_prefix(['b', 'c']).unwrap_or(rest);
    let Some(after) = unprefixed.strip_prefix('r') else { return 0 };
    let body = after.trim_start_matches('#');
    if !body.starts_with('"') {
        return 0;
    }
    let hashes = &after[..after.len() - body.len()];
    let open = rest.len() - body.len() + 1;
    let close = format!("\"{hashes}");
    rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len())
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The words of a line: runs of letters, digits and underscores.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character| !is_word_character(character)).filter(|word| !word.is_empty())
}

/// The word at the very start of `text`, after spaces; empty if there is none.
pub(super) fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    &text[..text.find(|character| !is_word_character(character)).unwrap_or(text.len())]
}

/// Whether a word ends right before byte `at`, so that what starts there only continues it.
pub(super) fn continues_a_word(code: &str, at: usize) -> bool {
    code[..at].chars().next_back().is_some_and(is_word_character)
}

/// The line number, from 1, of byte `at`.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The byte after the item that starts at `start`: after its body in braces, or after its semicolon.
///
/// Takes text from [`code`]. A semicolon inside brackets, as in `[u8; 4]`, ends nothing.
pub(super) fn item_end(code: &str, start: usize) -> usize {
    let mut braces = 0_usize;
    let mut brackets = 0_usize;
    for (at, character) in code[start..].char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces <= 1 => return start + at + 1,
            '}' => braces -= 1,
            ';' if braces == 0 && brackets == 0 => return start + at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squeezed(text: &str) -> String {
        code(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        assert_eq!(squeezed("a // b\nc"), "a c");
        assert_eq!(squeezed("a /* b /* c */ d */ e"), "a e");
        assert_eq!(squeezed(r#"a("b \" c", d)"#), "a( , d)");
        assert_eq!(squeezed(r##"a(r#"b " \"#, br"\", d)"##), "a( , , d)");
        assert_eq!(squeezed(r"a('{', '\'', '\u{7d}', d)"), "a( , , , d)");
    }

    #[test]
    fn lifetimes_and_words_that_end_like_a_prefix_are_code() {
        assert_eq!(squeezed("fn a<'b>(c: &'b str)"), "fn a<'b>(c: &'b str)");
        assert_eq!(squeezed("for bar in r { c }"), "for bar in r { c }");
    }

    #[test]
    fn blanking_keeps_lines() {
        let text = "a\n/* b\nc */ d\n\"e\nf\" g\n";
        assert_eq!(code(text).lines().count(), text.lines().count());
        assert_eq!(code(text).lines().nth(4).map(str::trim), Some("g"));
    }

    #[test]
    fn an_item_ends_after_its_body_or_semicolon() {
        let end = |text: &str| text[item_end(text, 0)..].to_owned();
        assert_eq!(end("fn a(b: [u8; 4]) { if c { d } } e"), " e");
        assert_eq!(end("mod a; b"), " b");
    }
}
