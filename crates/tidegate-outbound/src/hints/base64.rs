//! Base64 of header fields: the standard alphabet, with or without padding.
//!
//! The decoder is lenient about padding alone, because gRPC libraries omit it. Everything else that is invalid makes
//! the whole field invalid.

/// Decodes the text; `None` if it is invalid.
///
/// Padding may be omitted, wholly or in part. Padding that is present has to be at its place.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let symbols = text.len() - text.iter().rev().take_while(|byte| **byte == b'=').count();
    let most_padding = match symbols % 4 {
        0 => 0,
        1 => return None,
        remainder => 4 - remainder,
    };
    if text.len() - symbols > most_padding {
        return None;
    }
    let mut bytes = Vec::with_capacity(symbols / 4 * 3 + 2);
    for group in text[..symbols].chunks(4) {
        let mut bits = 0_u32;
        for symbol in group {
            bits = bits << 6 | u32::from(value(*symbol)?);
        }
        // A group of n symbols contains n - 1 bytes; the remaining bits are ignored.
        let aligned = bits << (6 * (4 - group.len()) + 8);
        bytes.extend_from_slice(&aligned.to_be_bytes()[..group.len() - 1]);
    }
    Some(bytes)
}

/// Returns the six bits of a symbol.
fn value(symbol: u8) -> Option<u8> {
    match symbol {
        b'A'..=b'Z' => Some(symbol - b'A'),
        b'a'..=b'z' => Some(symbol - b'a' + 26),
        b'0'..=b'9' => Some(symbol - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_examples_are_read_with_and_without_padding() {
        let examples = [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
        ];
        for (text, bytes) in examples {
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(
                decode(text.trim_end_matches('=').as_bytes()).as_deref(),
                Some(bytes.as_bytes()),
                "{text}"
            );
        }
        assert_eq!(decode(b"+/+/").as_deref(), Some([0xfb, 0xff, 0xbf].as_slice()));
    }

    #[test]
    fn what_is_no_base64_is_not_read() {
        for text in ["Z", "Zg===", "Zm9v=", "Zm8==", "Z=g=", "Zm 9", "Zm-_", "=", "Zm9vZ"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
