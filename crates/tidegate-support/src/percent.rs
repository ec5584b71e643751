//! Percent-encoding: `%41` for `A`.
//!
//! Decoding never fails: a text that is not percent-encoded is itself. A caller that has to reject such a text checks
//! it with [`is_percent_encoded`] first. The result is bytes, and may be invalid UTF-8.

use std::borrow::Cow;

/// Decodes `%41` to `A`; a `%` without two hexadecimal digits is kept. Without a `%`, the text is borrowed and nothing
/// is allocated.
#[doc(alias = "urldecode")]
pub fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    decode(text, b'%')
}

/// Decodes a name or a value of a query, in which `+` is a space. It is the format of HTML forms,
/// `application/x-www-form-urlencoded`.
pub fn decoded_query(text: &[u8]) -> Cow<'_, [u8]> {
    decode(text, b'+')
}

/// Returns true if each `%` is followed by two hexadecimal digits.
pub fn is_percent_encoded(text: &[u8]) -> bool {
    let mut percents = text.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    percents.all(|(at, _)| byte_at(text, at).is_some())
}

/// Decodes bytes; `space` is an additional byte that means a space.
fn decode(text: &[u8], space: u8) -> Cow<'_, [u8]> {
    let Some(first) = text.iter().position(|byte| *byte == b'%' || *byte == space) else {
        return Cow::Borrowed(text);
    };
    let (mut plain, mut at) = (text[..first].to_vec(), first);
    while let Some(byte) = text.get(at) {
        match (byte, byte_at(text, at)) {
            (b'%', Some(code)) => {
                plain.push(code);
                at += 2;
            }
            (b'+', _) if space == b'+' => plain.push(b' '),
            _ => plain.push(*byte),
        }
        at += 1;
    }
    Cow::Owned(plain)
}

/// Returns the byte of the two hexadecimal digits after this place.
fn byte_at(text: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (high, low) = (digit(at + 1)?, digit(at + 2)?);
    u8::try_from(high * 16 + low).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_code_stays() {
        for (text, path, query) in [
            ("plain", "plain", "plain"),
            ("%41%6c", "Al", "Al"),
            ("a+b%20c%2B", "a+b c+", "a b c+"),
            ("%", "%", "%"),
            ("%4", "%4", "%4"),
            ("%zz%41", "%zzA", "%zzA"),
            ("%%41", "%A", "%A"),
            ("%2541", "%41", "%41"),
            ("x%+1", "x%+1", "x% 1"),
        ] {
            assert_eq!(decoded(text.as_bytes()), path.as_bytes(), "{text}");
            assert_eq!(decoded_query(text.as_bytes()), query.as_bytes(), "{text}");
        }
        assert!(matches!(decoded(b"a+b"), Cow::Borrowed(_)));
    }

    #[test]
    fn only_a_percent_sign_with_two_digits_is_encoded() {
        for (text, is_encoded) in
            [("", true), ("a+b", true), ("%41%fF", true), ("%", false), ("%4", false), ("%%41", false)]
        {
            assert_eq!(is_percent_encoded(text.as_bytes()), is_encoded, "{text}");
        }
    }
}
