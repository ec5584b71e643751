//! Counts replies of one known shape in a stream of RESP, whatever it is cut into.
//!
//! A reply is so many lines: `+PONG`, or `*5` and five integers, of which the first is the verdict.

use super::Tally;

/// What has been seen of the reply that is not yet complete.
#[derive(Clone, Debug)]
pub(crate) struct Resp {
    shape: Shape,
    line: u8,
    column: usize,
    verdict: u8,
    /// An error that is not yet complete.
    problem: Vec<u8>,
}

/// How a reply begins, its number of lines, the line of its verdict, and the digit that says that it allows.
#[derive(Clone, Copy, Debug)]
struct Shape {
    first: u8,
    lines: u8,
    verdict_at: u8,
    allows: u8,
}

impl Resp {
    /// `+PONG`, or another line like it; each is counted as allowed.
    pub(crate) fn word() -> Resp {
        Resp::new(Shape { first: b'+', lines: 1, verdict_at: 0, allows: 0 })
    }

    /// Five integers, of which the first is this digit if the request is allowed.
    pub(crate) fn five_integers(allows: u8) -> Resp {
        Resp::new(Shape { first: b'*', lines: 6, verdict_at: 1, allows })
    }

    /// Names and values by turns in so many lines; the first name is `allowed`.
    pub(crate) fn fields(lines: u8) -> Resp {
        Resp::new(Shape { first: b'*', lines, verdict_at: 3, allows: b'1' })
    }

    fn new(shape: Shape) -> Resp {
        Resp { shape, line: 0, column: 0, verdict: 0, problem: Vec::new() }
    }

    /// Counts the replies that become complete; an error, and what has another shape, is a problem.
    pub(crate) fn scan(&mut self, mut bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.look_at(&bytes[..end])?;
            self.end_line(tally)?;
            bytes = &bytes[end + 1..];
        }
        self.look_at(bytes)
    }

    /// Looks at a part of a line.
    fn look_at(&mut self, part: &[u8]) -> Result<(), String> {
        let Some(first) = part.first() else { return Ok(()) };
        match (self.line, self.column) {
            (0, 0) if *first == b'-' => self.problem.extend_from_slice(part),
            (0, 0) if *first != self.shape.first => {
                return Err(format!("unexpected reply {:?}", String::from_utf8_lossy(part)));
            }
            (0, _) if !self.problem.is_empty() => self.problem.extend_from_slice(part),
            (line, 0) if line == self.shape.verdict_at => {
                self.verdict = part.get(1).copied().unwrap_or_default();
            }
            (line, 1) if line == self.shape.verdict_at => self.verdict = *first,
            _ => {}
        }
        self.column += part.len();
        Ok(())
    }

    fn end_line(&mut self, tally: &mut Tally) -> Result<(), String> {
        if !self.problem.is_empty() {
            return Err(String::from_utf8_lossy(&self.problem).trim_end().to_owned());
        }
        (self.line, self.column) = (self.line + 1, 0);
        if self.line == self.shape.lines {
            tally.replies += 1;
            tally.allowed += u64::from(self.shape.lines == 1 || self.verdict == self.shape.allows);
            self.line = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &[u8] = b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n";
    const DENIED: &[u8] = b"*5\r\n:1\r\n:16\r\n:0\r\n:96\r\n:1000\r\n";

    #[test]
    fn replies_are_counted_wherever_they_are_cut() {
        let stream = [ALLOWED, DENIED, ALLOWED].concat();
        for size in 1..=stream.len() {
            let (mut scanner, mut tally) = (Resp::five_integers(b'0'), Tally::default());
            for part in stream.chunks(size) {
                scanner.scan(part, &mut tally).unwrap();
            }
            assert_eq!(tally, Tally { replies: 3, allowed: 2 }, "cut to {size}");
        }
    }

    #[test]
    fn a_peer_may_say_one_where_others_say_zero() {
        let mut tally = Tally::default();
        Resp::five_integers(b'1').scan(&[ALLOWED, DENIED].concat(), &mut tally).unwrap();
        assert_eq!(tally, Tally { replies: 2, allowed: 1 });
    }

    #[test]
    fn fields_are_counted_by_their_lines_and_allowed_is_the_first() {
        let reply = |allowed| format!("*4\r\n$7\r\nallowed\r\n:{allowed}\r\n$5\r\nlimit\r\n:16\r\n");
        let stream = [reply(1), reply(0), reply(1)].concat();
        for size in 1..=stream.len() {
            let (mut scanner, mut tally) = (Resp::fields(7), Tally::default());
            for part in stream.as_bytes().chunks(size) {
                scanner.scan(part, &mut tally).unwrap();
            }
            assert_eq!(tally, Tally { replies: 3, allowed: 2 }, "cut to {size}");
        }
    }

    #[test]
    fn words_are_counted() {
        let (mut scanner, mut tally) = (Resp::word(), Tally::default());
        scanner.scan(b"+PONG\r\n+PO", &mut tally).unwrap();
        scanner.scan(b"NG\r\n", &mut tally).unwrap();
        assert_eq!(tally, Tally { replies: 2, allowed: 2 });
    }

    #[test]
    fn an_error_is_told_as_a_whole() {
        let (mut scanner, mut tally) = (Resp::five_integers(b'0'), Tally::default());
        scanner.scan(b"-ERR no ", &mut tally).unwrap();
        assert_eq!(scanner.scan(b"such command\r\n", &mut tally), Err("-ERR no such command".to_owned()));
        assert!(Resp::five_integers(b'0').scan(b"+OK\r\n", &mut tally).unwrap_err().contains("+OK"));
    }
}
