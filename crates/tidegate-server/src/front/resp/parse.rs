//! The RESP parser: splits bytes into requests without a copy. A request is an array of bulk strings, or an inline
//! line.
//!
//! No announced length causes an allocation: the parser waits until the bytes have arrived. Every length has an upper
//! bound.
//!
//! The input is parsed from its beginning each time. A [`Step::More`] names the length that is needed next, so that
//! a long word is not parsed again for each of its segments. Memory is proportional to the bytes that arrived,
//! never to the numbers in them.

use std::ops::Range;

/// The maximum number of words of one request.
pub(super) const MAX_ARGUMENTS: usize = 16_384;
/// The maximum number of bytes of one word: a permit for the longest key fits.
pub(super) const MAX_BULK_BYTES: usize = 256 << 10;
/// The maximum number of bytes of one request.
pub(super) const MAX_REQUEST_BYTES: usize = 1 << 20;
/// The maximum number of bytes of an inline request.
pub(super) const MAX_INLINE_BYTES: usize = 64 << 10;
/// The maximum number of digits of a length, with its sign.
const MAX_DIGITS: usize = 20;

/// The maximum number of digits with which a number cannot overflow an `i64`.
const MAX_SAFE_DIGITS: usize = 18;

/// The maximum number of words of one unauthenticated request: enough for `AUTH` and `HELLO`.
pub(super) const MAX_UNAUTHENTICATED_ARGUMENTS: usize = 10;
/// The maximum number of bytes of one unauthenticated request, inline or not.
pub(super) const MAX_UNAUTHENTICATED_REQUEST_BYTES: usize = 14 << 10;

/// The authentication state of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// A client that may execute any command.
    Known,
    /// A client that has not authenticated yet.
    Unauthenticated,
}

/// The result of parsing the next request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A complete request, which has `bytes` bytes. A request without words is ignored.
    Request { bytes: usize },
    /// An incomplete request, which has at least `bytes` bytes.
    More { bytes: usize },
}

/// The words of a request, as ranges of the input, or of `unquoted` if a line contained quotes.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// The ranges of the words.
    places: Vec<Range<usize>>,
    /// The words of the last line with quotes, without separators.
    unquoted: Vec<u8>,
    /// True if the ranges are those of `unquoted`.
    is_unquoted: bool,
}

impl Arguments {
    /// Returns the words of the request that was parsed from these bytes.
    pub(super) fn of<'a>(&'a self, input: &'a [u8]) -> Words<'a> {
        let bytes = if self.is_unquoted { &self.unquoted } else { input };
        Words { bytes, places: &self.places, is_input: !self.is_unquoted }
    }

    /// Parses the next request.
    ///
    /// # Errors
    ///
    /// Returns a [`ProtocolError`] for bytes that cannot become a valid request, and for one above a bound.
    #[inline]
    pub(super) fn parse(&mut self, input: &[u8], caller: Caller) -> Result<Step, ProtocolError> {
        self.places.clear();
        self.is_unquoted = false;
        match input.first() {
            None => Ok(Step::More { bytes: 1 }),
            Some(b'*') => self.array(input, caller),
            Some(0x16) => Err(ProtocolError::Tls),
            Some(_) => self.line(input, caller),
        }
    }

    /// Parses an array of bulk strings.
    #[inline]
    fn array(&mut self, input: &[u8], caller: Caller) -> Result<Step, ProtocolError> {
        let max_arguments = match caller {
            Caller::Known => MAX_ARGUMENTS,
            Caller::Unauthenticated => MAX_UNAUTHENTICATED_ARGUMENTS,
        };
        let Some((count, mut at)) = length(input, 1).ok_or(ProtocolError::ArrayLength)? else {
            return Ok(Step::More { bytes: input.len() + 1 });
        };
        if count > MAX_ARGUMENTS as i64 {
            return Err(ProtocolError::ArrayLength);
        }
        if count > max_arguments as i64 {
            return Err(ProtocolError::UnauthenticatedArrayLength);
        }
        for _ in 0..count {
            match input.get(at) {
                None => return more(input, at + 1, caller),
                Some(b'$') => {}
                Some(other) => return Err(ProtocolError::NoBulk(*other)),
            }
            let Some((bytes, begin)) = length(input, at + 1).ok_or(ProtocolError::BulkLength)? else {
                return more(input, input.len() + 1, caller);
            };
            let bytes = match usize::try_from(bytes) {
                Ok(bytes) if bytes <= MAX_BULK_BYTES => bytes,
                _ => return Err(ProtocolError::BulkLength),
            };
            let end = begin + bytes;
            match input.get(end..end + 2) {
                None => return more(input, end + 2, caller),
                Some(b"\r\n") => self.places.push(begin..end),
                Some(_) => return Err(ProtocolError::NoLineEnd),
            }
            at = end + 2;
        }
        fits(at, caller)?;
        Ok(Step::Request { bytes: at })
    }

    /// Parses an inline request, as typed into telnet. A line of HTTP is recognised and rejected.
    fn line(&mut self, input: &[u8], caller: Caller) -> Result<Step, ProtocolError> {
        let (max_bytes, too_long) = match caller {
            Caller::Known => (MAX_INLINE_BYTES, ProtocolError::InlineTooLong),
            Caller::Unauthenticated => {
                (MAX_UNAUTHENTICATED_REQUEST_BYTES, ProtocolError::UnauthenticatedRequestTooLong)
            }
        };
        let window = &input[..input.len().min(max_bytes)];
        let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
            return if window.len() < max_bytes {
                Ok(Step::More { bytes: input.len() + 1 })
            } else {
                Err(too_long)
            };
        };
        let line = window[..end].strip_suffix(b"\r").unwrap_or(&window[..end]);
        if is_http(line) {
            return Err(ProtocolError::Http);
        }
        if line.iter().any(|byte| matches!(byte, b'"' | b'\'')) {
            self.is_unquoted = true;
            unquote(line, &mut self.unquoted, &mut self.places).ok_or(ProtocolError::Quotes)?;
        } else {
            let mut begin = 0;
            for word in line.split(|byte| is_space(*byte)) {
                if !word.is_empty() {
                    self.places.push(begin..begin + word.len());
                }
                begin += word.len() + 1;
            }
        }
        Ok(Step::Request { bytes: end + 1 })
    }
}

/// The words of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words<'a> {
    /// The bytes that contain the words.
    bytes: &'a [u8],
    /// The ranges of the words.
    places: &'a [Range<usize>],
    /// True if the ranges are those of the input.
    is_input: bool,
}

impl<'a> Words<'a> {
    /// Returns the number of words, including the name of the command.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns a word; `None` if there are fewer.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.places.get(index).map(|place| &self.bytes[place.clone()])
    }

    /// Returns the range of a word in the input; `None` if the word was unquoted or does not exist.
    #[inline]
    pub(super) fn place(&self, index: usize) -> Option<Range<usize>> {
        self.places.get(index).filter(|_| self.is_input).cloned()
    }

    /// Returns the bytes from the start of word `first` to the end of word `last`, with the bytes between them.
    #[inline]
    pub(super) fn span(&self, first: usize, last: usize) -> &'a [u8] {
        match (self.places.get(first), self.places.get(last)) {
            (Some(first), Some(last)) => &self.bytes[first.start..last.end],
            _ => &[],
        }
    }

    /// Returns the words from this index on.
    pub(super) fn from(&self, index: usize) -> Words<'a> {
        Words { places: self.places.get(index..).unwrap_or_default(), ..*self }
    }

    /// Returns the words in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.places.iter().map(move |place| &bytes[place.clone()])
    }
}

/// A protocol error. The client gets an error reply and is cut off, since the start of its next request is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProtocolError {
    /// The number of words is not a number, or is too large.
    ArrayLength,
    /// The number of words is too large for an unauthenticated client.
    UnauthenticatedArrayLength,
    /// The length of a word is not a number, negative, or too large.
    BulkLength,
    /// Another byte where the `$` of a word belongs.
    NoBulk(u8),
    /// A word is not followed by a line end.
    NoLineEnd,
    /// An inline request has no line end within its bound.
    InlineTooLong,
    /// The request is longer than its bound.
    RequestTooLong,
    /// The request is longer than the bound of an unauthenticated client.
    UnauthenticatedRequestTooLong,
    /// The quotes of an inline request are unbalanced.
    Quotes,
    /// The client speaks HTTP.
    Http,
    /// The client speaks TLS.
    Tls,
}

/// Asks for more bytes, unless the complete request would be too long.
fn more(input: &[u8], bytes: usize, caller: Caller) -> Result<Step, ProtocolError> {
    fits(bytes, caller)?;
    Ok(Step::More { bytes: bytes.max(input.len() + 1) })
}

/// Checks the length of a request.
#[inline]
fn fits(bytes: usize, caller: Caller) -> Result<(), ProtocolError> {
    match caller {
        Caller::Known if bytes > MAX_REQUEST_BYTES => Err(ProtocolError::RequestTooLong),
        Caller::Unauthenticated if bytes > MAX_UNAUTHENTICATED_REQUEST_BYTES => {
            Err(ProtocolError::UnauthenticatedRequestTooLong)
        }
        _ => Ok(()),
    }
}

/// Parses the number from here to the end of the line. Returns it with the index after the line; `Some(None)` if the
/// line is incomplete, and `None` if it is not a number.
#[inline]
fn length(input: &[u8], from: usize) -> Option<Option<(i64, usize)>> {
    // Nearly all lengths have one or two digits.
    match input.get(from..) {
        Some([ones @ b'0'..=b'9', b'\r', b'\n', ..]) => Some(Some((i64::from(ones - b'0'), from + 3))),
        Some([tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', ..]) => {
            Some(Some((i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), from + 4)))
        }
        _ => long_length(input, from),
    }
}

/// Parses a number of more than two digits, or an incomplete or invalid one.
fn long_length(input: &[u8], from: usize) -> Option<Option<(i64, usize)>> {
    let rest = &input[from.min(input.len())..];
    let Some(end) = rest.iter().take(MAX_DIGITS + 1).position(|byte| *byte == b'\r') else {
        return (rest.len() <= MAX_DIGITS).then_some(None);
    };
    let number = integer(&rest[..end])?;
    match rest.get(end + 1) {
        None => Some(None),
        Some(b'\n') => Some(Some((number, from + end + 2))),
        Some(_) => None,
    }
}

/// Parses a whole number as Redis does: no plus, no leading zeros, no spaces.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    if digits.len() <= MAX_SAFE_DIGITS {
        let number = digits.iter().try_fold(0_i64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })?;
        return Some(if is_negative { -number } else { number });
    }
    digits.iter().try_fold(0_i64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        let shifted = number.checked_mul(10)?;
        if is_negative { shifted.checked_sub(digit.into()) } else { shifted.checked_add(digit.into()) }
    })
}

/// Returns true for a byte that separates the words of an inline request.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0)
}

/// Returns true if a line belongs to an HTTP request, sent to the wrong port.
fn is_http(line: &[u8]) -> bool {
    let has = |beginning: &[u8]| {
        line.get(..beginning.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(beginning))
    };
    has(b"post ") || has(b"host:") || line.windows(6).any(|part| part == b"HTTP/1" || part == b"HTTP/2")
}

/// Splits a line into words by the quoting rules of Redis: `"a\x01\n"` and `'it\'s'`. Returns `None` if quotes are
/// unbalanced.
fn unquote(line: &[u8], words: &mut Vec<u8>, places: &mut Vec<Range<usize>>) -> Option<()> {
    words.clear();
    let mut rest = line;
    loop {
        while let [first, more @ ..] = rest {
            if !is_space(*first) {
                break;
            }
            rest = more;
        }
        if rest.is_empty() {
            return Some(());
        }
        let begin = words.len();
        rest = word(rest, words)?;
        places.push(begin..words.len());
    }
}

/// Appends one word to `word`. Returns the bytes after it.
fn word<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return Some(rest),
            [space, ..] if is_space(*space) => return Some(rest),
            [quote @ (b'"' | b'\''), more @ ..] => {
                let behind = quoted(*quote, more, word)?;
                // A closing quote ends the word.
                return behind.first().is_none_or(|byte| is_space(*byte)).then_some(behind);
            }
            [byte, more @ ..] => {
                word.push(*byte);
                more
            }
        };
    }
}

/// Appends the bytes up to the closing quote. Returns the bytes after it, or `None` if the quote is not closed.
fn quoted<'a>(quote: u8, mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (byte, more) = match rest {
            [] => return None,
            [byte, more @ ..] if *byte == quote => return Some(more),
            [b'\\', b'x', high, low, more @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                (hex(*high) * 16 + hex(*low), more)
            }
            [b'\\', escaped, more @ ..] if quote == b'"' => (unescape(*escaped), more),
            [b'\\', b'\'', more @ ..] => (b'\'', more),
            [byte, more @ ..] => (*byte, more),
        };
        word.push(byte);
        rest = more;
    }
}

/// Returns the value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Returns the byte that an escape stands for. An unknown escape stands for its own letter.
fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

#[cfg(test)]
mod tests;
