//! Counts replies in a stream, whatever it is cut into.
//!
//! A reply of RESP is whole when nothing is missing any more: an array lacks as many parts as it says, a text so many
//! bytes. One of HTTP has a length.

const ALLOWED: u16 = 200;
const DENIED: u16 = 429;
/// More than any reply over HTTP has here.
const MOST_BYTES: usize = 1 << 16;

/// How many replies there were, and how many of them allow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// All.
    pub replies: u64,
    /// Those that allow.
    pub allowed: u64,
}

/// A counter of the replies on one connection.
#[derive(Clone, Debug)]
pub enum Scanner {
    /// Replies of RESP.
    Resp(Resp),
    /// Replies over HTTP, by the bytes of the one that is not yet complete.
    Http(Vec<u8>),
}

impl Scanner {
    /// Replies that are a line such as `+PONG`; each counts as allowed.
    pub fn word() -> Scanner {
        Scanner::Resp(Resp { first: Some(b'+'), ..Resp::default() })
    }

    /// Arrays, of which the first integer is this digit if the request is allowed.
    pub fn integers(allows: u8) -> Scanner {
        Scanner::Resp(Resp { first: Some(b'*'), allows: Some(allows), ..Resp::default() })
    }

    /// Replies of RESP of any shape, of which only their number is known.
    pub fn any() -> Scanner {
        Scanner::Resp(Resp::default())
    }

    /// Replies of HTTP with status 200 or 429.
    pub fn http() -> Scanner {
        Scanner::Http(Vec::new())
    }

    /// Counts the replies that become complete; an error, and what has another shape, is a problem.
    pub(super) fn scan(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
        match self {
            Scanner::Resp(resp) => resp.scan(bytes, tally),
            Scanner::Http(held) => scan_http(held, bytes, tally),
        }
    }
}

/// What has been seen of the reply of RESP that is not yet complete.
#[derive(Clone, Debug, Default)]
pub struct Resp {
    /// The byte that every reply begins with, if it is known.
    first: Option<u8>,
    /// The first digit of an allowing reply's first integer.
    allows: Option<u8>,
    /// A line that has not ended.
    line: Vec<u8>,
    /// Bytes of a text that are still to come, with the end of its line.
    text: usize,
    /// Parts that are still to come; none between replies.
    parts: usize,
    awaits_verdict: bool,
    is_denied: bool,
}

impl Resp {
    fn scan(&mut self, mut bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
        while !bytes.is_empty() {
            if self.text > 0 {
                let count = self.text.min(bytes.len());
                (bytes, self.text) = (&bytes[count..], self.text - count);
                if self.text == 0 {
                    self.end_part(tally);
                }
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                self.line.extend_from_slice(bytes);
                break;
            };
            if self.line.is_empty() {
                self.end_line(&bytes[..end], tally)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&bytes[..end]);
                self.end_line(&line, tally)?;
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), String> {
        let text = || String::from_utf8_lossy(line).trim_end().to_owned();
        let kind = line.first().copied().unwrap_or_default();
        let is_new = self.parts == 0;
        let is_expected = !is_new || kind == b'-' || self.first.is_none_or(|first| first == kind);
        if is_new {
            (self.parts, self.is_denied, self.awaits_verdict) = (1, false, self.allows.is_some());
        }
        let number = || text()[1..].parse::<i64>().map_err(|_| format!("unexpected reply {:?}", text()));
        match kind {
            b'-' => return Err(text()),
            b'+' if is_expected => self.end_part(tally),
            b':' if is_expected => {
                // Only the first integer is a verdict.
                if std::mem::take(&mut self.awaits_verdict) {
                    self.is_denied = line.get(1).copied() != self.allows;
                }
                self.end_part(tally);
            }
            b'$' if is_expected => match usize::try_from(number()?) {
                Ok(bytes) => self.text = bytes + 2,
                Err(_) => self.end_part(tally),
            },
            b'*' if is_expected => {
                self.parts += usize::try_from(number()?).unwrap_or(0);
                self.end_part(tally);
            }
            _ => return Err(format!("unexpected reply {:?}", text())),
        }
        Ok(())
    }

    fn end_part(&mut self, tally: &mut Tally) {
        self.parts -= 1;
        if self.parts == 0 {
            tally.replies += 1;
            tally.allowed += u64::from(!self.is_denied);
        }
    }
}

fn scan_http(held: &mut Vec<u8>, bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
    if held.is_empty() {
        let counted = count_http(bytes, tally)?;
        held.extend_from_slice(&bytes[counted..]);
    } else {
        held.extend_from_slice(bytes);
        let counted = count_http(held, tally)?;
        held.drain(..counted);
    }
    if held.len() > MOST_BYTES { Err(format!("a reply of over {MOST_BYTES} bytes")) } else { Ok(()) }
}

/// How many bytes the whole replies have that these begin with.
fn count_http(bytes: &[u8], tally: &mut Tally) -> Result<usize, String> {
    let mut counted = 0;
    loop {
        let rest = &bytes[counted..];
        let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(counted) };
        let head = String::from_utf8_lossy(&rest[..end]);
        let status: Option<u16> = head.get(9..12).and_then(|digits| digits.parse().ok());
        let (Some(status), Some(length)) = (status, head.lines().find_map(length)) else {
            return Err(format!("a reply without status or content-length: {head}"));
        };
        let Some(body) = rest.get(end + 4..end + 4 + length) else { return Ok(counted) };
        // Some say 200 and that it is denied.
        let says_denied = body.windows(15).any(|window| window == b"\"allowed\":false");
        match status {
            ALLOWED => tally.allowed += u64::from(!says_denied),
            DENIED => {}
            _ => return Err(String::from_utf8_lossy(&rest[..end + 4 + length]).into_owned()),
        }
        tally.replies += 1;
        counted += end + 4 + length;
    }
}

fn length(line: &str) -> Option<usize> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then_some(value.trim().parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERDICTS: &[u8] =
        b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n*5\r\n:1\r\n:16\r\n:0\r\n:96\r\n:1000\r\n";
    const FIELDS: &[u8] = b"*4\r\n$7\r\nallowed\r\n:1\r\n$5\r\nlimit\r\n:16\r\n\
        *4\r\n$7\r\nallowed\r\n:0\r\n$5\r\nlimit\r\n:16\r\n";
    const ANY: &[u8] =
        b":1\r\n$8\r\n17 29 \r\n\r\n*2\r\n$-1\r\n$2\r\n17\r\n*3\r\n*2\r\n:1\r\n*0\r\n$0\r\n\r\n:3\r\n*-1\r\n+OK\r\n";
    const HTTP: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"allowed\":true}\
        HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\
        HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":false}";

    #[test]
    fn replies_are_counted_wherever_they_are_cut() {
        for (scanner, stream, replies, allowed) in [
            (Scanner::integers(b'0'), VERDICTS, 2, 1),
            (Scanner::integers(b'1'), VERDICTS, 2, 1),
            (Scanner::integers(b'9'), VERDICTS, 2, 0),
            (Scanner::integers(b'1'), FIELDS, 2, 1),
            (Scanner::word(), b"+PONG\r\n+PONG\r\n".as_slice(), 2, 2),
            (Scanner::any(), ANY, 6, 6),
            (Scanner::http(), HTTP, 3, 1),
        ] {
            for size in 1..=stream.len() {
                let (mut scanner, mut tally) = (scanner.clone(), Tally::default());
                stream.chunks(size).for_each(|part| scanner.scan(part, &mut tally).unwrap());
                assert_eq!(tally, Tally { replies, allowed }, "{scanner:?} cut to {size}");
            }
            let (mut scanner, mut tally) = (scanner, Tally::default());
            scanner.scan(&stream[..stream.len() - 1], &mut tally).unwrap();
            assert_eq!(tally.replies, replies - 1, "part of a reply is none");
        }
    }

    #[test]
    fn an_error_is_returned_whole_and_another_shape_is_a_problem() {
        let mut tally = Tally::default();
        for (mut scanner, begun) in [(Scanner::any(), "*2\r\n:1\r\n"), (Scanner::integers(b'0'), "")] {
            scanner.scan(format!("{begun}-ERR no ").as_bytes(), &mut tally).unwrap();
            assert_eq!(scanner.scan(b"such command\r\n", &mut tally), Err("-ERR no such command".to_owned()));
        }
        assert!(Scanner::integers(b'0').scan(b"+OK\r\n", &mut tally).unwrap_err().contains("+OK"));
        let reply = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 7\r\n\r\nbad key";
        let problem = Scanner::http().scan(reply, &mut tally).unwrap_err();
        assert!(problem.contains("400") && problem.ends_with("bad key"), "{problem}");
    }

    #[test]
    fn a_reply_over_http_without_an_end_is_a_problem() {
        let mut tally = Tally::default();
        assert!(Scanner::http().scan(b"HTTP/1.1 200 OK\r\n\r\n", &mut tally).is_err());
        assert!(Scanner::http().scan(&[b'x'; MOST_BYTES + 1], &mut tally).is_err());
    }
}
