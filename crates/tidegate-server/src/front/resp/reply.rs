//! The writer of RESP replies. Input from clients is either written as a bulk string, which has a length, or escaped:
//! no client can inject a reply into the stream.

/// The maximum number of bytes of a client's input that an error repeats.
const MAX_ECHO_BYTES: usize = 128;
/// The longest error, in bytes: a request may cause thousands of them.
const MAX_ERROR_BYTES: usize = 512;
/// The error for a request without a decision, which no input causes. Without any reply the client would take the next
/// reply for this request's.
pub(super) const UNDECIDED: &str = "ERR nothing was decided, which is a bug of the server; please report it";
/// The maximum number of digits of a number, with its sign.
const MAX_DIGITS: usize = 20;

/// The protocol version of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Version 2, which every client understands and starts with.
    #[default]
    Resp2,
    /// Version 3, with maps and a null of its own, after `HELLO 3`.
    Resp3,
}

/// A writer that appends replies to a buffer.
///
/// It writes into memory and cannot fail. The connection sends the buffer once per turn.
#[derive(Debug)]
pub(super) struct Replies<'a> {
    out: &'a mut Vec<u8>,
    /// The protocol version of the client.
    pub(super) protocol: Protocol,
}

impl<'a> Replies<'a> {
    /// Creates a writer that appends to `out`.
    pub(super) fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Replies<'a> {
        Replies { out, protocol }
    }

    /// Returns the length of the buffer in bytes.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Appends replies that are already encoded.
    pub(super) fn append(&mut self, written: &[u8]) {
        self.out.extend_from_slice(written);
    }

    /// Writes `OK`.
    pub(super) fn ok(&mut self) {
        self.simple("OK");
    }

    /// Writes a simple string; it is static, so it needs no escaping.
    pub(super) fn simple(&mut self, word: &'static str) {
        self.line(b'+', word.as_bytes());
    }

    /// Writes an error. The text may contain input of a client: line ends and other control bytes are escaped, and it
    /// is cut off after `MAX_ERROR_BYTES`.
    ///
    /// Redis clients take the first word as the kind of error: `ERR`, `NOAUTH`, `WRONGPASS` and others.
    pub(super) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        let longest = self.out.len() + MAX_ERROR_BYTES;
        for byte in text.bytes() {
            match byte {
                _ if self.out.len() >= longest => {
                    self.out.extend_from_slice(b"...");
                    break;
                }
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                0..0x20 | 0x7f => self.out.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
                _ => self.out.push(byte),
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes an integer.
    pub(super) fn integer(&mut self, number: i64) {
        self.numbered(b':', number);
    }

    /// Writes an array of five integers, the most frequent reply: built on the stack, and appended once.
    #[inline]
    pub(super) fn five(&mut self, numbers: [i64; 5]) {
        let mut text = [0; 4 + 5 * (MAX_DIGITS + 3)];
        text[..4].copy_from_slice(b"*5\r\n");
        let mut at = 4;
        for number in numbers {
            text[at] = b':';
            let digits = text[at + 1..].first_chunk_mut().expect("there is room for five");
            at += 1 + put_digits(digits, number);
            text[at..at + 2].copy_from_slice(b"\r\n");
            at += 2;
        }
        // A copy of constant length compiles to a few instructions instead of a call.
        let end = self.out.len() + at;
        self.out.extend_from_slice(&text);
        self.out.truncate(end);
    }

    /// Writes a number, or -1 for `None`.
    pub(super) fn integer_or_none(&mut self, number: Option<u64>) {
        self.integer(or_none(number));
    }

    /// Writes a bulk string, which can contain any bytes.
    pub(super) fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Writes the null of the protocol version.
    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Begins an array of this number of replies.
    pub(super) fn array(&mut self, length: usize) {
        self.header(b'*', length);
    }

    /// Begins a map of this number of pairs; in RESP2 it is an array of alternating names and values.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', 2 * pairs),
            Protocol::Resp3 => self.header(b'%', pairs),
        }
    }

    /// Writes a type byte and a length.
    fn header(&mut self, kind: u8, length: usize) {
        self.numbered(kind, saturated(length as u64));
    }

    /// Writes a type byte and a number.
    fn numbered(&mut self, kind: u8, number: i64) {
        let mut digits = [0; MAX_DIGITS];
        let length = put_digits(&mut digits, number);
        self.line(kind, &digits[..length]);
    }

    /// Writes a type byte, a text and a line end.
    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Returns the number, or `i64::MAX` if it is larger.
#[inline]
pub(super) fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number, or -1 for `None`.
#[inline]
pub(super) fn or_none(number: Option<u64>) -> i64 {
    number.map_or(-1, saturated)
}

/// Returns a client's input as a part of an error: shortened to `MAX_ECHO_BYTES`, and escaped.
///
/// A long or binary input can neither fill a log nor confuse a terminal.
pub(super) fn echo(bytes: &[u8]) -> String {
    let shown = &bytes[..bytes.len().min(MAX_ECHO_BYTES)];
    let dots = if shown.len() < bytes.len() { "..." } else { "" };
    format!("{}{dots}", shown.escape_ascii())
}

/// Writes a number to the beginning of `text`. Returns its length.
#[inline]
fn put_digits(text: &mut [u8; MAX_DIGITS], number: i64) -> usize {
    match number {
        0..10 => {
            text[0] = b'0' + number as u8;
            1
        }
        10..100 => {
            text[..2].copy_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
            2
        }
        -1 => {
            text[..2].copy_from_slice(b"-1");
            2
        }
        _ => put_many_digits(text, number),
    }
}

/// Writes a number of three digits or more, or a negative one.
fn put_many_digits(text: &mut [u8; MAX_DIGITS], number: i64) -> usize {
    let (mut rest, mut at) = (number.unsigned_abs(), MAX_DIGITS);
    while rest > 0 {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if number < 0 {
        at -= 1;
        text[at] = b'-';
    }
    text.copy_within(at.., 0);
    MAX_DIGITS - at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl FnOnce(&mut Replies<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut Replies::new(&mut out, protocol));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn integers_are_written_whole() {
        for number in [0, 1, 9, 10, 42, 99, 100, 12_345, -1, -2, -10, i64::MAX, i64::MIN] {
            assert_eq!(written(Protocol::Resp2, |replies| replies.integer(number)), format!(":{number}\r\n"));
            let five = written(Protocol::Resp2, |replies| replies.five([number, 0, number, 99, number]));
            assert_eq!(five, format!("*5\r\n:{number}\r\n:0\r\n:{number}\r\n:99\r\n:{number}\r\n"));
        }
        assert_eq!(written(Protocol::Resp2, |replies| replies.integer_or_none(None)), ":-1\r\n");
        let most = written(Protocol::Resp2, |replies| replies.integer_or_none(Some(u64::MAX)));
        assert_eq!(most, format!(":{}\r\n", i64::MAX));
    }

    #[test]
    fn no_input_puts_a_reply_into_an_error() {
        let error = written(Protocol::Resp2, |replies| replies.error("ERR a\r\n+OK\r\n\0\x1b\x7f"));
        assert_eq!(error, "-ERR a\\r\\n+OK\\r\\n\\x00\\x1b\\x7f\r\n");
        let long = written(Protocol::Resp2, |replies| replies.error(&"\n".repeat(1000)));
        assert!((500..520).contains(&long.len()) && long.ends_with("...\r\n"), "{long}");
        assert_eq!(echo(b"a\r\n\xff'"), "a\\r\\n\\xff\\'");
        assert_eq!(echo(&[b'x'; MAX_ECHO_BYTES]).len(), MAX_ECHO_BYTES);
        assert_eq!(echo(&[b'x'; MAX_ECHO_BYTES + 1]).len(), MAX_ECHO_BYTES + 3);
    }

    #[test]
    fn each_version_has_its_own_maps_and_nulls() {
        let both =
            |write: fn(&mut Replies<'_>)| [written(Protocol::Resp2, write), written(Protocol::Resp3, write)];
        assert_eq!(both(|replies| replies.map(2)), ["*4\r\n", "%2\r\n"]);
        assert_eq!(both(|replies| replies.null()), ["$-1\r\n", "_\r\n"]);
        assert_eq!(both(|replies| replies.array(12)), ["*12\r\n", "*12\r\n"]);
        assert_eq!(both(|replies| replies.bulk(b"a\r\n")), ["$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"]);
    }
}
