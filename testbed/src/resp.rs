//! The language of Redis, as much as is needed to ask a server and to see where messages end.
//!
//! It shares nothing with what is tested: a fault in a client's parser is not to be seen with the same eyes.

mod connection;

pub use connection::Connection;

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A line.
    Simple(String),
    /// A refusal, without its minus.
    Error(String),
    /// A number, or whether something is so.
    Integer(i64),
    /// Any bytes.
    Bulk(Vec<u8>),
    /// Nothing.
    Nil,
    /// Several; of a map, its keys and values in turn.
    Array(Vec<Reply>),
    /// A push, which is no reply to a request.
    Push(Vec<Reply>),
}

impl Reply {
    /// What it says: lines and bytes as they are, several one per line, a refusal with its minus.
    pub fn text(&self) -> String {
        match self {
            Reply::Simple(text) => text.clone(),
            Reply::Error(text) => format!("-{text}"),
            Reply::Integer(number) => number.to_string(),
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Reply::Nil => "(nil)".to_owned(),
            Reply::Array(several) | Reply::Push(several) => {
                several.iter().map(Reply::text).collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// The parts of several; of anything else, none.
    pub fn parts(&self) -> &[Reply] {
        match self {
            Reply::Array(several) | Reply::Push(several) => several,
            _ => &[],
        }
    }

    /// The number that it is, or that its text says.
    pub fn number(&self) -> Option<i64> {
        match self {
            Reply::Integer(number) => Some(*number),
            other => other.text().parse().ok(),
        }
    }
}

/// What bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Begins<T> {
    /// A whole message, and how many bytes it has.
    Whole(T, usize),
    /// A message whose end has not come yet.
    Part,
    /// Something in another language.
    Foreign,
}

/// The reply that these bytes begin with.
pub(crate) fn reply(bytes: &[u8]) -> Begins<Reply> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.reply() {
        Ok(reply) => Begins::Whole(reply, reader.at),
        Err(Stop::Part) => Begins::Part,
        Err(Stop::Foreign) => Begins::Foreign,
    }
}

/// The request that these bytes begin with: the name of its command, in capitals.
pub(crate) fn request(bytes: &[u8]) -> Begins<String> {
    let first_word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    match bytes.first() {
        None => Begins::Part,
        Some(b'*') => match reply(bytes) {
            Begins::Whole(words, length) => Begins::Whole(
                words.parts().first().map(Reply::text).unwrap_or_default().to_ascii_uppercase(),
                length,
            ),
            Begins::Part => Begins::Part,
            Begins::Foreign => Begins::Foreign,
        },
        Some(byte) if byte.is_ascii_alphabetic() || b"\r\n".contains(byte) => {
            match bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => Begins::Whole(first_word(&String::from_utf8_lossy(&bytes[..end])), end + 1),
                None => Begins::Part,
            }
        }
        Some(_) => Begins::Foreign,
    }
}

/// A request as clients send it.
pub(crate) fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// What replies begin with.
const KINDS: &[u8] = b"+-:$*_#,(!=%~>|";

enum Stop {
    Part,
    Foreign,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn reply(&mut self) -> Result<Reply, Stop> {
        // A foreign language may never end a line.
        if self.bytes.get(self.at).is_some_and(|kind| !KINDS.contains(kind)) {
            return Err(Stop::Foreign);
        }
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or(Stop::Foreign)?;
        let integer = || rest.parse::<i64>().map_err(|_| Stop::Foreign);
        Ok(match kind {
            "+" | "," | "(" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(integer()?),
            "#" => Reply::Integer(i64::from(rest == "t")),
            "_" => Reply::Nil,
            "$" | "=" => self.bulk(integer()?)?.map_or(Reply::Nil, Reply::Bulk),
            "!" => Reply::Error(
                String::from_utf8_lossy(&self.bulk(integer()?)?.unwrap_or_default()).into_owned(),
            ),
            "*" | "~" => self.several(integer()?)?.map_or(Reply::Nil, Reply::Array),
            "%" => self.several(integer()?.saturating_mul(2))?.map_or(Reply::Nil, Reply::Array),
            ">" => Reply::Push(self.several(integer()?)?.unwrap_or_default()),
            // Attributes stand before the reply that they belong to.
            "|" => {
                self.several(integer()?.saturating_mul(2))?;
                self.reply()?
            }
            _ => return Err(Stop::Foreign),
        })
    }

    fn line(&mut self) -> Result<String, Stop> {
        let rest = &self.bytes[self.at..];
        let end = rest.windows(2).position(|pair| pair == b"\r\n").ok_or(Stop::Part)?;
        self.at += end + 2;
        Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
    }

    fn bulk(&mut self, length: i64) -> Result<Option<Vec<u8>>, Stop> {
        let Ok(length) = usize::try_from(length) else { return Ok(None) };
        let end = self.at.checked_add(length).ok_or(Stop::Foreign)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Stop::Part)?.to_vec();
        self.at = end;
        match self.bytes.get(end..end + 2) {
            Some(b"\r\n") => self.at += 2,
            Some(_) => return Err(Stop::Foreign),
            None => return Err(Stop::Part),
        }
        Ok(Some(bytes))
    }

    fn several(&mut self, count: i64) -> Result<Option<Vec<Reply>>, Stop> {
        let Ok(count) = usize::try_from(count) else { return Ok(None) };
        (0..count).map(|_| self.reply()).collect::<Result<_, _>>().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_ends_where_it_ends_however_much_has_come() {
        let messages: [&[u8]; 9] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":-7\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"$-1\r\n",
            b"*2\r\n*1\r\n:1\r\n$0\r\n\r\n",
            b"%1\r\n+a\r\n#t\r\n",
            b">2\r\n+a\r\n_\r\n",
            b"|1\r\n+ttl\r\n:3\r\n*0\r\n",
        ];
        for message in messages {
            for length in 0..message.len() {
                assert_eq!(reply(&message[..length]), Begins::Part, "{length} of {message:?}");
            }
            let two = [message, message].concat();
            let Begins::Whole(_, length) = reply(&two) else { panic!("{message:?} is whole") };
            assert_eq!(length, message.len());
        }
        assert_eq!(reply(b"HTTP/1.1 200 OK\r\n"), Begins::Foreign);
        assert_eq!(reply(b"\x16\x03"), Begins::Foreign);
    }

    #[test]
    fn a_request_tells_its_command_in_either_spelling() {
        let bytes = encode(&[b"evalsha", b"a\r\nb"]);
        assert_eq!(request(&bytes), Begins::Whole("EVALSHA".to_owned(), bytes.len()));
        assert_eq!(request(&bytes[..bytes.len() - 1]), Begins::Part);
        assert_eq!(request(b"ping x\r\nget"), Begins::Whole("PING".to_owned(), 8));
        assert_eq!(request(b"\x16\x03\x01"), Begins::Foreign);
    }

    #[test]
    fn what_was_said_can_be_read() {
        let Begins::Whole(several, _) = reply(b"*3\r\n:1\r\n$1\r\na\r\n-ERR b\r\n") else {
            panic!("it is whole")
        };
        assert_eq!(several.text(), "1\na\n-ERR b");
        assert_eq!(several.parts()[0].number(), Some(1));
    }
}
