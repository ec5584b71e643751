//! Something to be measured on a server, and whether it does what it is measured for.

use testbed::Connection;

use super::question::{Keys, MANY, Question, Who};
use crate::server::CONNECTIONS;
use crate::server::candidate::Candidate;
use crate::server::host::Server;

/// How many requests are looked at before and after something is measured.
const LOOKED_AT: u64 = 6400;

/// What scripts write with.
const WRITES: [&str; 5] = ["set", "psetex", "decrby", "mset", "zadd"];

/// What becomes of all requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Allowed,
    Refused,
}

/// A name, whose script is called, under which limits, about which keys, and what it says to all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) name: &'static str,
    /// The name of whom it is compared with.
    pub(super) base: &'static str,
    pub(super) who: Who,
    pub(super) limits: &'static [&'static str],
    pub(super) keys: Keys,
    pub(super) verdict: Verdict,
}

impl Side {
    /// Connects, asks about all keys once, and looks at what becomes of more. Its keys begin with the mark.
    pub(super) fn candidate<'a>(&self, server: &'a Server, mark: char) -> Result<Candidate<'a>, String> {
        let question = Question::new((self.who, mark), self.limits, server)?;
        let candidate = |requests| Candidate::with_requests(self.name, server, requests, CONNECTIONS);
        let first = if self.keys == Keys::Many { u64::from(MANY) } else { 1 };
        candidate(question.requests(self.keys))?.ask(first)?;
        // Made anew: a permit in flight that is held already is not given away again.
        let mut candidate = candidate(question.requests(self.keys))?;
        self.judge(&mut candidate, server)?;
        Ok(candidate)
    }

    /// Whether the server does what is measured: who is allowed is written down, who is refused is not.
    pub(super) fn judge(&self, candidate: &mut Candidate<'_>, server: &Server) -> Result<(), String> {
        server.wake()?;
        let before = Counted::of(server)?;
        candidate.ask(LOOKED_AT)?;
        let after = Counted::of(server)?;
        let (calls, writes) = (after.calls - before.calls, after.writes - before.writes);
        let is_right = match self.verdict {
            Verdict::Allowed => writes >= calls,
            Verdict::Refused => writes == 0,
        };
        let problem = || format!("{}: {calls} calls wrote {writes} times, not {:?}", self.name, self.verdict);
        if is_right { Ok(()) } else { Err(problem()) }
    }
}

/// What a server has been asked to do so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Counted {
    /// Scripts that were called by their name.
    pub(super) calls: u64,
    /// States that were written.
    pub(super) writes: u64,
}

impl Counted {
    pub(super) fn of(server: &Server) -> Result<Counted, String> {
        let statistics = command(server, &["INFO", "commandstats"])?;
        Ok(Counted::read(&statistics))
    }

    fn read(statistics: &str) -> Counted {
        let calls = |command: &str| {
            let count = |line: &str| {
                let rest = line.strip_prefix("cmdstat_")?.strip_prefix(command)?.strip_prefix(":calls=")?;
                rest.split(',').next()?.parse::<u64>().ok()
            };
            statistics.lines().find_map(count).unwrap_or(0)
        };
        Counted { calls: calls("evalsha"), writes: WRITES.iter().map(|command| calls(command)).sum() }
    }
}

/// Asks a server something else.
pub(super) fn command(server: &Server, words: &[&str]) -> Result<String, String> {
    let reply = Connection::open(server.resp).and_then(|mut connection| connection.call(words));
    reply.map(|reply| reply.text()).map_err(|error| format!("{words:?}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_writes_are_read_from_what_a_server_counts() {
        let text = "# Commandstats\r\ncmdstat_setex:calls=5,usec=1\r\ncmdstat_set:calls=7,usec=9\r\n\
                    cmdstat_evalsha:calls=12,usec=3\r\ncmdstat_zadd:calls=1,usec=3\r\n";
        assert_eq!(Counted::read(text), Counted { calls: 12, writes: 8 });
        assert_eq!(Counted::read(""), Counted { calls: 0, writes: 0 });
    }
}
