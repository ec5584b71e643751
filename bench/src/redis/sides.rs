//! Something to be measured on a server: our takes byte by byte, the scripts that they are compared with, and whether
//! the server does what it is measured for.

use std::time::Duration;

use harness::load::{Requests, command, shuffled};
use testbed::Connection;
use tidegate::{Ask, Key, Limit, Subject};
use tidegate_redis::{Options, bench};

use crate::server::CONNECTIONS;
use crate::server::candidate::{Candidate, Sample, Table, Turn};
use crate::server::host::Server;

/// How many keys there are where there are many.
pub(super) const MANY: u32 = 100_000;
/// Under which names the limits of one subject are kept.
const RULES: [&str; 5] = ["login", "burst", "daily", "plan1", "total"];
const PLAIN_SCRIPT: &str = include_str!("plain.lua");
const BARE_SCRIPT: &str = include_str!("bare.lua");
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
    /// The prefix of its keys, which no other side uses.
    mark: char,
    /// The name of the script.
    script: String,
    /// How long a request is.
    length: usize,
}

impl Question {
    /// About these limits, each a rule of its own; peers have one limit, and only buckets.
    pub(super) fn new(who: Who, mark: char, limits: &[&str], server: &Server) -> Result<Question, String> {
        let limits = limits.iter().map(|text| text.parse().map_err(|error| format!("{error}")));
        let limits: Vec<Limit> = limits.collect::<Result<_, _>>()?;
        let text = match who {
            Who::Ours => take("user:000000000", &limits)?.0,
            Who::Plain => PLAIN_SCRIPT,
            Who::Bare => BARE_SCRIPT,
        };
        let mut question = Question { who, limits, mark, script: server.load(text)?, length: 0 };
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

/// How many requests are looked at before and after something is measured.
const LOOKED_AT: u64 = 6400;

/// What scripts write with.
const WRITES: [&str; 5] = ["set", "psetex", "decrby", "mset", "zadd"];

/// What becomes of all requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Allowed,
    Denied,
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
        let question = Question::new(self.who, mark, self.limits, server)?;
        let candidate = |requests| Candidate::with_requests(self.name, server, requests, CONNECTIONS, false);
        let first = if self.keys == Keys::Many { u64::from(MANY) } else { 1 };
        candidate(question.requests(self.keys))?.ask(first)?;
        // Made anew: a permit in flight that is held already is not given away again.
        let mut candidate = candidate(question.requests(self.keys))?;
        self.judge(&mut candidate, server)?;
        Ok(candidate)
    }

    /// Whether the server does what is measured: who is allowed is written down, who is denied is not.
    fn judge(&self, candidate: &mut Candidate<'_>, server: &Server) -> Result<(), String> {
        server.wake()?;
        let before = Counted::of(server)?;
        candidate.ask(LOOKED_AT)?;
        let after = Counted::of(server)?;
        let (calls, writes) = (after.calls - before.calls, after.writes - before.writes);
        let is_right = match self.verdict {
            Verdict::Allowed => writes >= calls,
            Verdict::Denied => writes == 0,
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
        let statistics = ask(server, &["INFO", "commandstats"])?;
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
pub(super) fn ask(server: &Server, words: &[&str]) -> Result<String, String> {
    let reply = Connection::open(server.resp).and_then(|mut connection| connection.call(words));
    reply.map(|reply| reply.text()).map_err(|error| format!("{words:?}: {error}"))
}

/// How many rounds are measured; one before them warms up.
pub(super) const ROUNDS: usize = 11;
/// For how long each is asked in a round.
pub(super) const TURN: Duration = Duration::from_millis(250);

/// Sides with connections to a server that knows their keys.
pub(super) struct Sides<'a> {
    sides: &'a [Side],
    candidates: Vec<Candidate<'a>>,
    server: &'a Server,
}

impl<'a> Sides<'a> {
    /// All of them ready to be measured, and doing what they are measured for.
    pub(super) fn meet(sides: &'a [Side], server: &'a Server) -> Result<Sides<'a>, String> {
        let marked = sides.iter().zip('a'..);
        let candidates: Result<Vec<_>, _> = marked.map(|(side, mark)| side.candidate(server, mark)).collect();
        let mut candidates = candidates?;
        // A grown table of keys is moved step by step, by the requests of others, not by those that are measured.
        for candidate in &mut candidates {
            candidate.ask(u64::from(MANY))?;
        }
        Ok(Sides { sides, candidates, server })
    }

    /// Measures with so many requests in flight on each connection, and prints.
    pub(super) fn measure(&mut self, title: &str, depth: usize) -> Result<Measured, String> {
        let table = Table::measure_rounds(&mut self.candidates, Turn::Closed(depth, TURN), ROUNDS)?;
        for (side, candidate) in self.sides.iter().zip(&mut self.candidates) {
            side.judge(candidate, self.server)?;
        }
        let measured = Measured(table);
        measured.print(&format!("{title}, pipeline {depth}, {CONNECTIONS} connections"), self.sides);
        Ok(measured)
    }
}

/// What was measured.
pub(super) struct Measured(Table);

impl Measured {
    /// CPU time of one side divided by that of another, in the middle of the rounds.
    pub(super) fn ratio(&self, name: &str, base: &str) -> f64 {
        self.0.ratio(name, base, |sample| sample.cpu)
    }

    fn print(&self, title: &str, sides: &[Side]) {
        println!("{title}");
        println!(
            "{:<46} {:>7} {:>7} {:>13} {:>10} {:>5} {:>7}",
            "", "CPU \u{b5}s", "\u{f7} base", "spread", "replies/s", "busy", "load \u{b5}s"
        );
        for side in sides {
            let of = |of: fn(&Sample) -> f64| self.0.middle(side.name, of);
            let (cpu, load) = (of(|sample| sample.cpu), of(|sample| sample.load));
            let (rate, busy) = (of(|sample| sample.rate), of(|sample| sample.busy * 100.0));
            let ratio = self.ratio(side.name, side.base);
            let (least, most) = self.0.spread(side.name, side.base, |sample| sample.cpu);
            let spread = format!("{least:.2} to {most:.2}");
            println!(
                "{:<46} {cpu:>7.2} {ratio:>7.3} {spread:>13} {rate:>10.0} {busy:>4.0}% {load:>7.2}",
                side.name
            );
        }
        println!();
    }
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
    fn calls_and_writes_are_read_from_what_a_server_counts() {
        let text = "# Commandstats\r\ncmdstat_setex:calls=5,usec=1\r\ncmdstat_set:calls=7,usec=9\r\n\
                    cmdstat_evalsha:calls=12,usec=3\r\ncmdstat_zadd:calls=1,usec=3\r\n";
        assert_eq!(Counted::read(text), Counted { calls: 12, writes: 8 });
        assert_eq!(Counted::read(""), Counted { calls: 0, writes: 0 });
    }
}
