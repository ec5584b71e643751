//! Messages about TOML files.
//!
//! The parser's errors name a token that was expected. These messages name the value that was probably meant, because
//! rules are written by people who know another format.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeInteger, DeValue};

use crate::complaint::Complaint;

/// Returns the complaint about a syntax error, with a remedy.
///
/// The text is needed to recognize other languages (JSON, YAML) and to quote the value. Without a known remedy, the
/// message is that of the parser.
pub fn syntax(error: &toml::de::Error, text: &str) -> Complaint {
    let mut what = error.message().trim().replace('\n', ", ");
    // Only the error about a key that is nested too deep comes without a place.
    let span = error.span().unwrap_or_else(|| deepest_key(text));
    if let Some(language) = another_language(text) {
        what = format!(
            "this looks like {language}, and rules are TOML; begin each with [[rule]] on a line of its own, and write name = \"login\" under it"
        );
    } else if what.contains("recurs") {
        what = "too many parts within others; use fewer dots and brackets".to_owned();
    } else if ["quote", "float", "integer", "date"].iter().any(|of_a_value| what.contains(of_a_value)) {
        // The list of expected tokens is removed: it does not contain the intended value.
        what.truncate(what.find(", expected").unwrap_or(what.len()));
        what += &format!("; write text in quotes, as in {}", in_quotes(text, span.clone()));
    } else if what.contains("duplicate") {
        what += "; leave one of them out";
    }
    Complaint::at(span, what)
}

/// Returns the language of a text that is not TOML, by its first line that is neither empty nor a comment. A first line
/// with a brace is JSON. `---`, or a bare name with a colon and a space, is YAML.
fn another_language(text: &str) -> Option<&'static str> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next()?;
    if first.starts_with('{') {
        return Some("JSON");
    }
    let entry = first.strip_prefix("- ").unwrap_or(first).split_once(':');
    let is_entry =
        |(name, value): (&str, &str)| is_bare(name) && (value.is_empty() || value.starts_with(' '));
    (first == "---" || entry.is_some_and(is_entry)).then_some("YAML")
}

/// Returns the place of the key with the most dots. The parser rejects such a key by its depth, without a place.
/// Returns an empty range at the start if no line has a dot.
fn deepest_key(text: &str) -> Range<usize> {
    let (mut start, mut most, mut found) = (0, 0, 0..0);
    for line in text.split_inclusive('\n') {
        let key = line.split('=').next().unwrap_or_default().trim_end();
        let dots = key.bytes().filter(|byte| *byte == b'.').count();
        if dots > most && !key.contains(',') {
            (most, found) = (dots, start..start + key.len());
        }
        start += line.len();
    }
    found
}

/// Returns the value of the file in quotes, or an example if the value has no clear beginning and end.
fn in_quotes(text: &str, span: Range<usize>) -> String {
    let before = text.get(..span.start).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
    match line.split_once('=') {
        Some((name, value)) if is_bare(name.trim()) && is_lone(value.trim()) => {
            format!("{} = \"{}\"", name.trim(), value.trim())
        }
        _ => "limit = \"10/s\"".to_owned(),
    }
}

/// Returns true for a name that needs no quotes in TOML.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns true if this is a single value without quotes, brackets and comments.
fn is_lone(value: &str) -> bool {
    !value.is_empty() && !value.contains(['"', '\'', '[', ']', '{', '}', '#', ',', '=', '\\'])
}

/// Returns a whole number in decimal digits. A number in another base, such as `0xff`, is converted. One beyond 128
/// bits is returned as it was written.
pub fn decimal(number: &DeInteger<'_>) -> String {
    match i128::from_str_radix(number.as_str(), number.radix()) {
        Ok(number) => number.to_string(),
        Err(_) => number.to_string(),
    }
}

/// Returns the kind of a value, in words. It is for messages about a value of the wrong kind.
pub fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns a value without quotes as text; `None` for text, lists and tables. A setting that expects text can then
/// accept `port = 6379` without quotes, or suggest the quotes.
pub fn written_as_text(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::Integer(number) => Some(decimal(number)),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(is_so) => Some(is_so.to_string()),
        DeValue::Datetime(moment) => Some(moment.to_string()),
        _ => None,
    }
}
