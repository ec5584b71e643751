//! Counts HTTP replies with a length in a stream, whatever it is cut into.

use super::Tally;

const ALLOWED: u16 = 200;
const DENIED: u16 = 429;
/// More than any reply to a take has.
const MOST_BYTES: usize = 1 << 16;

/// What has been seen of the reply that is not yet complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Http {
    held: Vec<u8>,
}

/// A whole reply.
struct Reply {
    status: u16,
    bytes: usize,
    /// Some say 200 and that it is denied.
    says_denied: bool,
}

impl Http {
    /// Counts the replies that become complete; any status but 200 and 429 is a problem.
    pub(crate) fn scan(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
        if self.held.is_empty() {
            let counted = count(bytes, tally)?;
            self.held.extend_from_slice(&bytes[counted..]);
        } else {
            self.held.extend_from_slice(bytes);
            let counted = count(&self.held, tally)?;
            self.held.drain(..counted);
        }
        if self.held.len() > MOST_BYTES { Err(format!("a reply of over {MOST_BYTES} bytes")) } else { Ok(()) }
    }
}

/// How many bytes the whole replies have that these begin with.
fn count(bytes: &[u8], tally: &mut Tally) -> Result<usize, String> {
    let mut counted = 0;
    while let Some(reply) = read(&bytes[counted..])? {
        let text = || String::from_utf8_lossy(&bytes[counted..counted + reply.bytes]).into_owned();
        match reply.status {
            ALLOWED => tally.allowed += u64::from(!reply.says_denied),
            DENIED => {}
            _ => return Err(text()),
        }
        tally.replies += 1;
        counted += reply.bytes;
    }
    Ok(counted)
}

/// The reply that these begin with, if it is complete.
fn read(bytes: &[u8]) -> Result<Option<Reply>, String> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&bytes[..end]);
    let status = head.get(9..12).and_then(|digits| digits.parse().ok());
    let length = head.lines().find_map(length).and_then(|digits| digits.parse::<usize>().ok());
    let (Some(status), Some(length)) = (status, length) else {
        return Err(format!("a reply without status or content-length: {head}"));
    };
    let total = end + 4 + length;
    Ok(bytes.get(end + 4..total).map(|body| Reply {
        status,
        bytes: total,
        says_denied: body.windows(15).any(|window| window == b"\"allowed\":false"),
    }))
}

fn length(line: &str) -> Option<&str> {
    let (name, value) = line.split_once(':')?;
    name.eq_ignore_ascii_case("content-length").then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: [&str; 3] = [
        "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"allowed\":true}",
        "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n{\"allowed\":false}",
    ];

    #[test]
    fn replies_are_counted_wherever_they_are_cut() {
        let stream = REPLIES.concat();
        for size in 1..=stream.len() {
            let (mut scanner, mut tally) = (Http::default(), Tally::default());
            for part in stream.as_bytes().chunks(size) {
                scanner.scan(part, &mut tally).unwrap();
            }
            assert_eq!(tally, Tally { replies: 3, allowed: 1 }, "cut to {size}");
        }
    }

    #[test]
    fn another_status_is_a_problem_with_its_text() {
        let reply = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 7\r\n\r\nbad key";
        let problem = Http::default().scan(reply, &mut Tally::default()).unwrap_err();
        assert!(problem.contains("400") && problem.ends_with("bad key"), "{problem}");
    }

    #[test]
    fn a_reply_without_an_end_is_a_problem() {
        let mut tally = Tally::default();
        assert!(Http::default().scan(b"HTTP/1.1 200 OK\r\n\r\n", &mut tally).is_err());
        assert!(Http::default().scan(&[b'x'; MOST_BYTES + 1], &mut tally).is_err());
    }
}
