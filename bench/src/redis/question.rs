//! What a server is asked, byte by byte: our takes, and the scripts that they are compared with.

use testbed::{Connection, Reply};
use tidegate::{Ask, Key, Limit, Subject};
use tidegate_redis::{Options, bench};

use crate::server::host::Server;
use crate::server::load::{Requests, shuffled};

/// How many keys there are where there are many.
pub(super) const MANY: u32 = 100_000;
/// Under which names the limits of one subject are kept.
const RULES: [&str; 5] = ["login", "burst", "daily", "plan1", "total"];
const PLAIN: &str = include_str!("plain.lua");
const BARE: &str = include_str!("bare.lua");
/// Ticks in a microsecond.
const TICKS: u64 = 16_000;
/// How often a request is made to see how long they are: the name of a permit is a random number.
const TRIES: usize = 16;

/// Whose script is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Who {
    /// Ours, exactly as a store calls it.
    Ours,
    /// The least that a limiter can be: one bucket, one number as the answer.
    Plain,
    /// `TIME`, `GET` and `SET` with a time to live, without a decision.
    Bare,
}

/// Which keys are asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    /// Each of many once, in random order, again and again.
    Many,
    /// The same one.
    Hot,
}

/// A script that a server knows, and under which limits it is asked.
#[derive(Clone, Debug)]
pub(super) struct Question {
    who: Who,
    limits: Vec<Limit>,
    /// With what its keys begin, so that nobody else asks about them.
    mark: char,
    /// The name of the script.
    script: String,
    /// How long a request is.
    length: usize,
}

impl Question {
    /// About these limits, each a rule of its own; peers have one limit, and only buckets.
    pub(super) fn new(
        (who, mark): (Who, char),
        limits: &[&str],
        server: &Server,
    ) -> Result<Question, String> {
        let limits = limits.iter().map(|text| text.parse().map_err(|error| format!("{error}")));
        let limits: Vec<Limit> = limits.collect::<Result<_, _>>()?;
        let text = match who {
            Who::Ours => take("user:000000000", &limits)?.0,
            Who::Plain => PLAIN,
            Who::Bare => BARE,
        };
        let mut question = Question { who, limits, mark, script: load(text, server)?, length: 0 };
        question.length = (0..TRIES).map(|_| question.request("user:000000000").len()).max().unwrap_or(0);
        Ok(question)
    }

    /// All requests, made beforehand.
    pub(super) fn requests(&self, keys: Keys) -> Requests {
        match keys {
            Keys::Many => Requests::about(shuffled(MANY), |key| self.write(key)),
            Keys::Hot => Requests::about_one(|key| self.write(key)),
        }
    }

    /// A request as long as all others.
    fn write(&self, key: &str) -> Vec<u8> {
        let mut request = self.request(key);
        while request.len() != self.length {
            request = self.request(key);
        }
        request
    }

    fn request(&self, key: &str) -> Vec<u8> {
        let key = format!("{}{key}", self.mark);
        let key_of_peer = format!("limit:{key}");
        let [_, interval, capacity, ..] = self.limits[0].numbers().map(|ticks| (ticks / TICKS).to_string());
        match self.who {
            Who::Ours => take(&key, &self.limits).expect("the first was made too").1,
            Who::Plain => command(&["EVALSHA", &self.script, "1", &key_of_peer, &interval, &capacity]),
            Who::Bare => {
                command(&["EVALSHA", &self.script, "1", &key_of_peer, "1704067200000000", "36000000"])
            }
        }
    }
}

/// The text of the script that takes under these limits, and the call of it.
fn take(key: &str, limits: &[Limit]) -> Result<(&'static str, Vec<u8>), String> {
    let key = Key::new(key);
    let asks = RULES.iter().zip(limits).map(|(rule, limit)| (Subject::new(rule, &key, limit), Ask::ONE));
    bench::take(&asks.collect::<Vec<_>>(), Options::PREFIX)
}

/// Hands a script to the server; the name under which it is called.
fn load(text: &str, server: &Server) -> Result<String, String> {
    server.wake()?;
    let mut connection = Connection::open(server.resp).map_err(|error| error.to_string())?;
    match connection.call(&["SCRIPT", "LOAD", text]) {
        Ok(Reply::Bulk(name)) => Ok(String::from_utf8_lossy(&name).into_owned()),
        other => Err(format!("the script is not loaded: {other:?}")),
    }
}

/// A command as an array of bulk strings.
pub(super) fn command(words: &[&str]) -> Vec<u8> {
    let texts = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), texts.collect::<String>()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_a_call_of_the_script_that_is_loaded() {
        let limits = ["1/h".parse().unwrap(), "5/h".parse().unwrap()];
        let (text, call) = take("user:000000001", &limits).unwrap();
        let call = String::from_utf8_lossy(&call);
        assert!(text.contains("TIME"), "{text}");
        let (_, words) = call.split_once("\r\n").unwrap();
        assert!(words.starts_with("$7\r\nEVALSHA\r\n$40\r\n"), "{call}");
        assert_eq!(call.matches("user:000000001").count(), 2, "{call}");
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        assert_eq!(command(&["GET", "k"]), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
