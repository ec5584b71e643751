//! Patterns in the notation of other tools, each with the pattern to write in its place.
//!
//! | notation | where it is used | here |
//! |---|---|---|
//! | `!ana` | ingress annotations, CODEOWNERS, shells | `unless = { user = "ana" }` |
//! | `/users/:id`, `/users/<id>` | Express, Rails, Flask | `/users/{id}` |
//! | `/api/**` | Ant patterns, gitignore | `/api/{*rest}` |
//! | `/api/...` | Bazel, Go | `/api/{*rest}` |
//! | `GET,POST` | Spring, CORS | a list |
//! | `^/api/.*`, `~ ^/api`, `(a\|b)` | nginx, Envoy | `/api/{*rest}`, a list |
//!
//! Most of these would parse as patterns that match nothing, so each is an error. A backslash before a punctuation
//! character makes it an ordinary one, for values that look like such a notation.

use super::text::read_pattern;

/// Returns the error for a pattern in the notation of another tool, with the remedy.
pub(super) fn of_another_tool(attribute: &str, text: &str) -> Option<String> {
    negated(attribute, text)
        .or_else(|| several_methods(text).filter(|_| attribute == "method"))
        .or_else(|| of_another_router(text).filter(|_| attribute == "path"))
        .or_else(|| regular_expression(attribute, text).filter(|_| attribute != "ip"))
}

/// Returns the error for a leading exclamation mark. The remedy has a valid pattern.
fn negated(attribute: &str, text: &str) -> Option<String> {
    let rest = text.strip_prefix('!')?;
    let is_valid = !rest.starts_with('!') && read_pattern(attribute, rest.trim_start()).is_ok();
    let without = if is_valid { rest.trim_start() } else { "…" };
    let or_itself = match attribute {
        "ip" | "path" | "host" | "method" => String::new(),
        _ => format!(", or {:?} for a value that begins so", format!("\\!{rest}")),
    };
    Some(format!(
        "begins with \"!\", which negates nothing; write unless = {{ {attribute} = {without:?} }}{or_itself}"
    ))
}

/// Returns the error for several methods in one text.
fn several_methods(text: &str) -> Option<String> {
    let is_method = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let words: Vec<_> = text.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    let is_several = words.len() > 1 && words.iter().all(|word| is_method(word));
    is_several.then(|| format!("has several methods in one text, which no request has; write {words:?}"))
}

/// Returns the error for a path pattern in the notation of another router: `**`, `...`, `:id` or `<id>`.
///
/// The remedy contains the whole pattern in the notation of this crate, ready to be copied.
fn of_another_router(text: &str) -> Option<String> {
    let without_plain_stars = text.replace("\\*", "");
    if without_plain_stars.contains("**") {
        let before = text.split("**").next().unwrap_or_default();
        let below = format!("{}/{{*rest}}", before.rsplit_once('/').map_or("", |(above, _)| above));
        return Some(format!(
            "has two stars, which mean nothing more than one; write {below:?} for all below"
        ));
    }
    if let Some(above) = text.strip_suffix("/...") {
        let below = format!("{above}/{{*rest}}");
        return Some(format!("has \"...\", which is a name here; write {below:?} for all below"));
    }
    let is_named = |piece: &&str| {
        (piece.starts_with(':') && piece.len() > 1) || (piece.starts_with('<') && piece.ends_with('>'))
    };
    let named = text.split('/').find(is_named)?;
    let braced = text.split('/').map(|piece| match piece {
        "*" => "{*rest}".to_owned(),
        piece if is_named(&piece) => format!("{{{}}}", name_in(piece)),
        piece => piece.to_owned(),
    });
    let braced = braced.collect::<Vec<_>>().join("/");
    let coded = format!("%{:02X}{}", named.as_bytes()[0], &named[1..]);
    Some(format!(
        "has {named:?} between slashes, which is no name here; write {braced:?} for any piece there, or {coded:?} for this text"
    ))
}

/// Returns the name in a segment such as `:id`, `:id(\\d+)` or `<int:id>`.
///
/// The part before the last colon is a type in some routers, and what follows the name is a regular expression. If no
/// letter is left, the name is `name`.
fn name_in(piece: &str) -> &str {
    let name = piece.trim_start_matches([':', '<']).trim_end_matches('>');
    let name = name.rsplit_once(':').map_or(name, |(_, name)| name);
    let end =
        name.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(name.len());
    if end == 0 { "name" } else { &name[..end] }
}

/// Returns the remedy for a star that stands for a segment of a path.
///
/// `/users/*/edit` is common in other systems. `None` if the text has another star, for which no remedy is certain.
pub(super) fn piece_in_braces(text: &str) -> Option<String> {
    let is_piece = text.split('/').any(|piece| piece == "*") && text.matches('*').count() == 1;
    let braced = text.replace("/*/", "/{name}/");
    is_piece.then(|| format!("has a star that is not at its end; write {braced:?} for any one piece there"))
}

/// Returns the error for a regular expression. The remedy is a pattern or a list with the same meaning, if there is
/// one.
fn regular_expression(attribute: &str, text: &str) -> Option<String> {
    if !is_foreign(attribute, text) {
        return None;
    }
    let example = match attribute {
        "path" => "\"/api/{*rest}\" for all below, \"/users/{id}\" for any piece, or a list",
        "method" => "a list such as [\"GET\", \"HEAD\"]",
        _ => "a beginning such as \"an*\", or a list of values",
    };
    let same = equivalents(attribute, text);
    let remedy = match &same[..] {
        [] => example.to_owned(),
        [only] => format!("{only:?}"),
        several => format!("{several:?}"),
    };
    let or_itself = match (attribute, text.strip_suffix('*')) {
        (_, Some(before)) if !is_regular_expression(before) => {
            format!(", or {:?} for all that begin with {before:?}", escaped(attribute, before, "*"))
        }
        ("path" | "host" | "method", _) => String::new(),
        _ => format!(", or {:?} for this very text", escaped(attribute, text, "")),
    };
    Some(format!("looks like a regular expression, which has no meaning here; write {remedy}{or_itself}"))
}

/// Returns true if a pattern looks like a regular expression. The names of a host are separated by dots, so `www.*` is
/// an ordinary beginning of one.
fn is_foreign(attribute: &str, text: &str) -> bool {
    let text = if attribute == "host" { text.strip_suffix(".*").unwrap_or(text) } else { text };
    is_regular_expression(text)
}

/// Returns true if a text has a sign of a regular expression that is not escaped.
fn is_regular_expression(text: &str) -> bool {
    // Each character, and whether a backslash is before it. A letter after a backslash is a class.
    let (mut signs, mut letters) = (Vec::new(), text.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(class) if "dDwWsSbB".contains(class) => return true,
                Some(_) => signs.push('\\'),
                None => {}
            },
            letter => signs.push(letter),
        }
    }
    let plain: String = signs.iter().collect();
    let is_anchored = plain.starts_with(['^', '~']) || (plain.len() > 1 && plain.ends_with('$'));
    let within = |open: char, close: char, sign: char| {
        let inner = plain.split_once(open).and_then(|(_, rest)| rest.split_once(close));
        inner.is_some_and(|(inner, _)| inner.contains(sign))
    };
    is_anchored
        || [".*", ".+", "(?", "]+", "]*", ")+", ")*"].iter().any(|sign| plain.contains(sign))
        || within('[', ']', '-')
        || within('(', ')', '|')
        || (plain.contains('|') && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'|'))
}

/// Returns the patterns that match what a regular expression matches; none if it cannot be translated.
fn equivalents(attribute: &str, text: &str) -> Vec<String> {
    // An expression that only begins at the beginning matches all that begin so.
    let is_open = text.starts_with(['^', '~']) && !text.ends_with('$');
    let bare = text.trim_start_matches(['~', '*', ' ']).trim_start_matches('^').trim_end_matches('$');
    let inner = bare.strip_prefix('(').and_then(|bare| bare.strip_suffix(')')).unwrap_or(bare);
    let each: Vec<_> = match attribute {
        "path" => inner.split('|').map(path_of).collect(),
        _ => inner.split('|').map(value_of).collect(),
    };
    let open = |pattern: String| {
        if !is_open || pattern.contains(['*', '{']) {
            pattern
        } else if attribute == "path" && pattern.ends_with('/') {
            pattern + "{*rest}"
        } else {
            pattern + "*"
        }
    };
    let each: Vec<_> = each.into_iter().map(open).collect();
    let is_valid = |pattern: &String| {
        !is_regular_expression(pattern)
            && !pattern.contains(['(', ')', '[', ']', '|', '?', '+'])
            && read_pattern(attribute, pattern).is_ok()
    };
    if each.iter().all(is_valid) { each } else { Vec::new() }
}

/// Returns a path pattern for a regular expression without alternatives.
fn path_of(text: &str) -> String {
    let pieces: Vec<_> = text.split('/').collect();
    let each = pieces.iter().enumerate().map(|(at, piece)| match *piece {
        ".*" | ".+" | "(.*)" | "(.+)" if at + 1 == pieces.len() => "{*rest}".to_owned(),
        piece if is_regular_expression(piece) || piece.contains(['[', '(']) => "{name}".to_owned(),
        piece => piece.replace("\\.", ".").replace("\\-", "-"),
    });
    each.collect::<Vec<_>>().join("/")
}

/// Returns a pattern of a value for a regular expression without alternatives.
fn value_of(text: &str) -> String {
    let (text, end) = match text.strip_suffix(".*").or_else(|| text.strip_suffix(".+")) {
        Some(before) => (before, "*"),
        None => (text, ""),
    };
    format!("{}{end}", text.replace("\\.", ".").replace("\\-", "-"))
}

/// Escapes a text, so that it is a pattern of exactly this text, or with a star as its end a pattern of this prefix.
///
/// Only what would have a meaning is escaped: backslashes, stars, and the signs of another notation.
pub(super) fn escaped(attribute: &str, text: &str, end: &str) -> String {
    let mut plain = text.replace('\\', "\\\\").replace('*', "\\*");
    if plain.starts_with('!') {
        plain.insert(0, '\\');
    }
    let whole = format!("{plain}{end}");
    if !is_foreign(attribute, &whole) {
        return whole;
    }
    let escape = |letter: char| match letter {
        '.' | '^' | '$' | '~' | '[' | ']' | '(' | ')' | '|' | '+' | '?' => format!("\\{letter}"),
        letter => letter.to_string(),
    };
    // A backslash escapes the character after it, which is a backslash, a star or an exclamation mark.
    let (mut all, mut letters) = (String::new(), plain.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => all.extend(['\\', letters.next().unwrap_or('\\')]),
            letter => all += &escape(letter),
        }
    }
    all + end
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::*;

    fn what(attribute: &str, text: &str) -> String {
        of_another_tool(attribute, text).unwrap_or_default()
    }

    #[test]
    fn a_regular_expression_is_an_error_with_the_pattern_that_means_it() {
        for (attribute, text, remedy) in [
            ("path", "^/api/.*", "write \"/api/{*rest}\""),
            ("path", "~ ^/api/.*$", "write \"/api/{*rest}\""),
            ("path", "~* ^/login$", "write \"/login\""),
            ("path", "~ ^/static/", "write \"/static/{*rest}\""),
            ("path", "^/api", "write \"/api*\""),
            ("user", "^(ana|bob)", "write [\"ana*\", \"bob*\"]"),
            ("path", "/users/[0-9]+/posts", "write \"/users/{name}/posts\""),
            ("path", r"/users/\d+", "write \"/users/{name}\""),
            ("path", "/(a|b)", "write \"/api/{*rest}\" for all below"),
            ("path", "^(/a|/b/.*)$", "write [\"/a\", \"/b/{*rest}\"]"),
            ("path", "/api/.*", "write \"/api/{*rest}\""),
            ("user", "^ana$", "write \"ana\", or \"\\\\^ana\\\\$\" for this very text"),
            ("user", "ana.*", "write \"ana*\", or \"ana\\\\.*\" for all that begin with \"ana.\""),
            ("path", "/.*", "write \"/{*rest}\", or \"/\\\\.*\" for all that begin with \"/.\""),
            ("user", "(ana|bob)", "write [\"ana\", \"bob\"]"),
            ("user", "[a-f]+", "write a beginning such as \"an*\", or a list of values"),
            ("host", r"^.*\.example\.com$", "write a beginning such as"),
            ("method", "GET|POST", "write [\"GET\", \"POST\"]"),
            ("method", "^(GET|POST)$", "write [\"GET\", \"POST\"]"),
        ] {
            let what = what(attribute, text);
            assert!(what.starts_with("looks like a regular expression"), "{attribute} {text}: {what}");
            assert!(what.contains(remedy), "{attribute} {text}: {what}");
        }
    }

    #[test]
    fn ordinary_values_are_no_regular_expressions() {
        assert_eq!(what("host", "www.*"), "");
        assert_eq!(read_pattern("host", "www.*").unwrap().shown("host").to_string(), "\"www.*\"");
        for text in [
            "",
            "a",
            "$",
            "a.b",
            "a.b.c*",
            "ana@example.com",
            "a+b@example.com",
            "Mozilla/5.0 (X11; Linux)",
            "a[1]",
            "[::1]",
            "5$ off",
            "a^b",
            "a~",
            "x-y",
            "a|b c",
            "/v1.0/x",
            "/a(b)/c",
            r"ana\.*",
            r"\^ana\$",
            "C++",
        ] {
            assert_eq!(what("user", text), "", "{text}");
        }
    }

    #[test]
    fn an_escaped_text_is_the_pattern_of_itself() {
        for text in [
            "^ana$", "ana.*", "a|b", "!x", "!.*", "[a-z]+", r"\d", r"a\", "(?i)x", "~root", "plain", "*",
            ".", "a.+b",
        ] {
            let [pattern, prefix] = ["", "*"].map(|end| read_pattern("user", &escaped("user", text, end)));
            assert_eq!(pattern, Ok(Pattern::Exact(text.as_bytes().into())), "{text}");
            assert_eq!(prefix, Ok(Pattern::Prefix(text.as_bytes().into())), "{text}");
        }
    }

    #[test]
    fn several_methods_and_the_rest_of_a_path_are_written_otherwise() {
        let in_one = "has several methods in one text, which no request has; write [\"GET\", \"POST\"]";
        assert_eq!([what("method", "GET,POST"), what("method", "GET, POST")], [in_one; 2]);
        assert_eq!(what("method", "GET") + &what("user", "GET,POST"), "");
        assert!(what("path", "/api/...").ends_with("write \"/api/{*rest}\" for all below"));
    }

    #[test]
    fn a_negation_is_written_by_unless() {
        for (attribute, text, said) in [
            ("user", "!ana", "write unless = { user = \"ana\" }, or \"\\\\!ana\" for a value that begins so"),
            ("path", "! /x", "write unless = { path = \"/x\" }"),
            ("ip", "!10.0.0.0/8", "write unless = { ip = \"10.0.0.0/8\" }"),
            ("ip", "!office", "write unless = { ip = \"…\" }"),
        ] {
            let what = what(attribute, text);
            assert!(what.contains("negates nothing") && what.contains(said), "{attribute} {text}: {what}");
        }
    }
}
