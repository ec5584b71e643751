//! The printable form of a key.
//!
//! A key is a sequence of parts, each after its length in groups of seven bits. Parts are arbitrary bytes from clients,
//! so everything that could break a terminal or a log line is escaped.

use std::fmt::Write as _;

use super::count_table::KeyCount;

/// Returns the parts of a key. If the key was cut, the last part ends in `…` and half of the hash.
pub(super) fn parts(place: &KeyCount) -> Vec<String> {
    let mut shown = Vec::new();
    let mut rest = &*place.key;
    while !rest.is_empty() {
        let (length, after) = split_length(rest);
        let (part, more) = after.split_at(length.min(after.len()));
        shown.push(if place.is_cut && more.is_empty() {
            format!("{}…{:08x}", text(whole_characters(part)), place.id >> 32)
        } else {
            text(part)
        });
        rest = more;
    }
    shown
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
