//! Counts replies of RESP of any shape in a stream, whatever it is cut into.
//!
//! A reply is whole when nothing is missing any more: an array lacks as many parts as it says, a text so many bytes.

use super::Tally;

/// What has been seen of the reply that is not yet complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    /// A line that has not ended.
    line: Vec<u8>,
    /// Bytes of a text that are still to come, with the end of its line.
    text: usize,
    /// Parts that are still to come; none between replies.
    parts: usize,
}

impl Replies {
    /// Counts the replies that become complete; an error in any of them is a problem.
    pub(crate) fn scan(&mut self, mut bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
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
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.end_line(&line, tally)?;
            self.line = line;
            self.line.clear();
        }
        Ok(())
    }

    fn end_line(&mut self, line: &[u8], tally: &mut Tally) -> Result<(), String> {
        self.parts = self.parts.max(1);
        let text = std::str::from_utf8(line).map_err(|error| format!("a reply that is no text: {error}"))?;
        let (kind, rest) = text.trim_end().split_at_checked(1).ok_or("a reply without a beginning")?;
        let number = || rest.parse::<i64>().map_err(|_| format!("unexpected reply {text:?}"));
        match kind {
            "-" => return Err(text.trim_end().to_owned()),
            "+" | ":" => self.end_part(tally),
            "$" => match usize::try_from(number()?) {
                Ok(bytes) => self.text = bytes + 2,
                Err(_) => self.end_part(tally),
            },
            "*" => {
                self.parts += usize::try_from(number()?).unwrap_or(0);
                self.end_part(tally);
            }
            _ => return Err(format!("unexpected reply {text:?}")),
        }
        Ok(())
    }

    fn end_part(&mut self, tally: &mut Tally) {
        self.parts -= 1;
        tally.replies += u64::from(self.parts == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: [&str; 6] = [
        ":1\r\n",
        "$8\r\n17 29 \r\n\r\n",
        "*2\r\n$-1\r\n$2\r\n17\r\n",
        "*3\r\n*2\r\n:1\r\n*0\r\n$0\r\n\r\n:3\r\n",
        "*-1\r\n",
        "+OK\r\n",
    ];

    #[test]
    fn replies_are_counted_wherever_they_are_cut() {
        let stream = REPLIES.concat();
        for size in 1..=stream.len() {
            let (mut scanner, mut tally) = (Replies::default(), Tally::default());
            for part in stream.as_bytes().chunks(size) {
                scanner.scan(part, &mut tally).unwrap();
            }
            assert_eq!(tally.replies, 6, "cut to {size}");
        }
    }

    #[test]
    fn part_of_a_reply_is_none() {
        for reply in REPLIES {
            let (mut scanner, mut tally) = (Replies::default(), Tally::default());
            scanner.scan(&reply.as_bytes()[..reply.len() - 1], &mut tally).unwrap();
            assert_eq!(tally.replies, 0, "{reply:?}");
        }
    }

    #[test]
    fn an_error_is_told_as_a_whole() {
        let (mut scanner, mut tally) = (Replies::default(), Tally::default());
        scanner.scan(b"*2\r\n:1\r\n-ERR no ", &mut tally).unwrap();
        assert_eq!(scanner.scan(b"such script\r\n", &mut tally), Err("-ERR no such script".to_owned()));
    }
}
