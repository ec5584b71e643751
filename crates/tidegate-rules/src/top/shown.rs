//! A key as text that can be printed anywhere.

use std::fmt::Write as _;

use super::shelf::Place;

/// The parts of a key, of which the last ends in `…` and half of the hash if it was cut.
pub(super) fn parts(place: &Place) -> Vec<String> {
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

/// The length at the beginning, in groups of seven bits, and what follows it.
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

/// All but the beginning of a character at the end.
fn whole_characters(part: &[u8]) -> &[u8] {
    match str::from_utf8(part) {
        Err(error) if error.error_len().is_none() => &part[..error.valid_up_to()],
        _ => part,
    }
}

/// Text as it is, but for what does not print, backslashes, our own `…` and bytes that are no text.
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
            // Writing to a string does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}
