//! The printable form of a key.
//!
//! A key of a rule is a sequence of parts, each after its length in groups of seven bits. A key of a limit that came with
//! the request is one part without a length. Parts are arbitrary bytes from clients,
//! so everything that could break a terminal or a log line is escaped.

use std::fmt::Write as _;

use super::DYNAMIC;
use super::count_table::KeyCount;

/// Returns the parts of a key. If the key was cut, the last part ends in `…` and half of the hash.
pub(super) fn parts(place: &KeyCount) -> Vec<String> {
    if place.rule == DYNAMIC {
        return vec![part(place, &place.key, true)];
    }
    split(&place.key, |bytes, is_last| part(place, bytes, is_last))
}

/// Returns the parts of a whole key of a rule.
pub(crate) fn parts_of_key(key: &[u8]) -> Vec<String> {
    split(key, |bytes, _| text(bytes))
}

/// Splits a key into its parts, and passes each with true if it is the last.
fn split(key: &[u8], show: impl Fn(&[u8], bool) -> String) -> Vec<String> {
    let (mut shown, mut rest) = (Vec::new(), key);
    while !rest.is_empty() {
        let (length, after) = split_length(rest);
        let (bytes, more) = after.split_at(length.min(after.len()));
        shown.push(show(bytes, more.is_empty()));
        rest = more;
    }
    shown
}

/// Returns the text of a part, with half of the hash if the key was cut in it.
fn part(place: &KeyCount, bytes: &[u8], is_last: bool) -> String {
    match place.is_cut && is_last {
        true => format!("{}…{:08x}", text(whole_characters(bytes)), place.id >> 32),
        false => text(bytes),
    }
}

/// Splits off the leading length, encoded in groups of seven bits, and returns it with the rest.
fn split_length(mut rest: &[u8]) -> (usize, &[u8]) {
    let (mut length, mut shift) = (0, 0);
    while let Some((group, more)) = rest.split_first() {
        rest = more;
        length |= usize::from(group & 0x7f) << shift;
        shift += 7;
        if group & 0x80 == 0 {
            break;
        }
    }
    (length, rest)
}

/// Returns the bytes without an incomplete character at the end.
fn whole_characters(part: &[u8]) -> &[u8] {
    match str::from_utf8(part) {
        Err(error) if error.error_len().is_none() => &part[..error.valid_up_to()],
        _ => part,
    }
}

/// Escapes unprintable characters, backslashes, `…` and bytes that are not UTF-8; other text stays unchanged.
fn text(part: &[u8]) -> String {
    let mut shown = String::with_capacity(part.len());
    for chunk in part.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' | '"' => shown.push(character),
                '…' => shown.extend(character.escape_unicode()),
                _ => shown.extend(character.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}
