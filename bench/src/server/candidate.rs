//! Something to be measured: what one server is asked, over connections that stay open, in interleaved rounds.

use std::net::SocketAddr;
use std::time::Duration;

use harness::load::{Clients, Load, Requests, Scanner, Until, command, shuffled};
use harness::{cpu_time, median};

use super::host::Server;

/// How many keys are asked about at random.
const MILLION: u32 = 1_000_000;
/// Maximum burst, count and period in seconds over RESP: more than is asked about one of a million keys, far less
/// than about a hot one, and every key that was met stays live through all rounds.
const TERMS: [&str; 3] = ["100", "30", "3600"];

/// A request but for its key.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    /// Redis's empty answer.
    Ping,
    /// As redis-cell has it, and we.
    ClThrottle,
    /// The same of throttlecrab, which says 1 where others say 0.
    Throttle,
    /// The script with this name.
    Script(String),
    /// `TG.TAKE`, with the numbers of `CL.THROTTLE`.
    TgTake,
    /// `TG.ADMIT`, of a user and a path.
    Admit,
    /// `POST /v1/take`.
    Take,
    /// `POST /throttle`, throttlecrab's.
    HttpThrottle,
}

/// Which keys are asked about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    /// Each of a million once, in random order, again and again.
    Million,
    /// The same one.
    Hot,
    /// The call has no key.
    None,
}

impl Call {
    /// All requests, made beforehand.
    fn requests(&self, keys: Keys) -> Requests {
        match keys {
            Keys::Million => self.requests_about(shuffled(MILLION)),
            Keys::Hot | Keys::None => Requests::about_one(|key| self.write(key)),
        }
    }

    /// The requests about these keys, in this order.
    pub(crate) fn requests_about(&self, keys: impl IntoIterator<Item = u32>) -> Requests {
        Requests::about(keys, |key| self.write(key))
    }

    /// What counts its replies.
    pub(crate) fn scanner(&self) -> Scanner {
        match self {
            Call::Ping => Scanner::word(),
            Call::ClThrottle | Call::Script(_) => Scanner::integers(b'0'),
            // The first integer of `TG.TAKE` and `TG.ADMIT` is that of `allowed`.
            Call::Throttle | Call::TgTake | Call::Admit => Scanner::integers(b'1'),
            Call::Take | Call::HttpThrottle => Scanner::http(),
        }
    }

    fn write(&self, key: &str) -> Vec<u8> {
        let [burst, count, period] = TERMS;
        match self {
            Call::Ping => command(&["PING"]),
            Call::ClThrottle => command(&["CL.THROTTLE", key, burst, count, period]),
            Call::Throttle => command(&["THROTTLE", key, burst, count, period]),
            Call::Script(name) => command(&["EVALSHA", name, "1", key, burst, count, period]),
            Call::TgTake => command(&["TG.TAKE", key, "LIMIT", "30/h burst 101"]),
            Call::Admit => command(&["TG.ADMIT", "user", key, "path", "/api/orders"]),
            Call::Take => post("/v1/take", &format!(r#"{{"key":"{key}","limit":"30/60s burst 15"}}"#)),
            Call::HttpThrottle => {
                let terms = r#""max_burst":15,"count_per_period":30,"period":60"#;
                post("/throttle", &format!(r#"{{"key":"{key}",{terms}}}"#))
            }
        }
    }
}

fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    format!("{head}\r\n\r\n{body}").into_bytes()
}

/// The smallest share of a million keys that may be allowed, and the largest of a hot one.
const MOSTLY_ALLOWED: f64 = 0.99;
const HARDLY_ALLOWED: f64 = 0.05;
/// How many requests are in flight on each connection while keys are made known: a part of any number of keys here.
const MEETING_DEPTH: usize = 32;

/// A name, and who is asked what about which keys.
pub(crate) struct Candidate<'a> {
    pub(crate) name: &'static str,
    server: &'a Server,
    keys: Keys,
    requests: Requests,
    clients: Clients,
}

/// How a server is asked in one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// So many requests in flight on each connection, for so long.
    Closed(usize, Duration),
    /// So many requests per second, for so long.
    Open(f64, Duration),
}

/// What was measured in one turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Microseconds of all threads of the server per reply: seconds per million.
    pub(crate) cpu: f64,
    /// The same of the load.
    pub(crate) load: f64,
    /// Replies per second.
    pub(crate) rate: f64,
    /// Latencies in microseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// The share of the time for which the server ran.
    pub(crate) busy: f64,
    /// The share of what was allowed.
    pub(crate) allowed: f64,
}

impl<'a> Candidate<'a> {
    /// Connects, while the server is awake to accept; nothing is asked yet.
    pub(crate) fn new(
        name: &'static str,
        server: &'a Server,
        call: &Call,
        keys: Keys,
        connections: usize,
    ) -> Result<Candidate<'a>, String> {
        server.wake()?;
        let clients = Clients::connect(address(server, call)?, connections, &call.scanner())?;
        Ok(Candidate { name, server, keys, requests: call.requests(keys), clients })
    }

    /// The same with requests that lie ready, over RESP or HTTP; what is replied is for others to judge.
    pub(crate) fn with_requests(
        name: &'static str,
        server: &'a Server,
        requests: Requests,
        connections: usize,
        is_http: bool,
    ) -> Result<Candidate<'a>, String> {
        server.wake()?;
        let clients = match server.http.filter(|_| is_http) {
            Some(address) => Clients::connect(address, connections, &Scanner::http())?,
            None => Clients::connect(server.resp, connections, &Scanner::any())?,
        };
        Ok(Candidate { name, server, keys: Keys::None, requests, clients })
    }

    /// Asks about all keys once, so that they are known.
    pub(crate) fn meet(mut self) -> Result<Candidate<'a>, String> {
        if self.keys == Keys::Million {
            let load = self.ask(u64::from(MILLION))?;
            self.judge(&load)?;
        }
        self.server.rest()?;
        Ok(self)
    }

    /// Asks so many times, which is not measured; the server is awake afterwards.
    pub(crate) fn ask(&mut self, times: u64) -> Result<Load, String> {
        self.server.wake()?;
        let load = self.clients.closed(&mut self.requests, MEETING_DEPTH, Until::Requests(times));
        load.map_err(|problem| self.blame(&problem))
    }

    /// Measures one turn, while the other servers rest.
    pub(crate) fn turn(&mut self, turn: Turn) -> Result<Sample, String> {
        self.server.wake()?;
        let before = (self.server.cpu_time()?, cpu_time());
        let load = match turn {
            Turn::Closed(depth, length) => {
                self.clients.closed(&mut self.requests, depth, Until::Elapsed(length))
            }
            Turn::Open(rate, length) => self.clients.open(&mut self.requests, rate, length),
        };
        let load = load.map_err(|problem| self.blame(&problem))?;
        let after = (self.server.cpu_time()?, cpu_time());
        self.server.rest()?;
        self.judge(&load)?;
        Ok(Sample::of(&load, after.0.saturating_sub(before.0), after.1 - before.1))
    }

    /// Whether what came back can be right: a promise that is not kept is not to be measured.
    fn judge(&self, load: &Load) -> Result<(), String> {
        let share = load.tally.allowed as f64 / load.tally.replies as f64;
        let plausible = match self.keys {
            Keys::Million => share >= MOSTLY_ALLOWED,
            Keys::Hot => share <= HARDLY_ALLOWED,
            Keys::None => true,
        };
        let problem = || self.blame(&format!("{:.1}% of what is asked is allowed", share * 100.0));
        if plausible { Ok(()) } else { Err(problem()) }
    }

    fn blame(&self, problem: &str) -> String {
        format!("{}: {problem}", self.name)
    }
}

impl Sample {
    fn of(load: &Load, cpu: Duration, cpu_of_load: Duration) -> Sample {
        let replies = load.tally.replies as f64;
        Sample {
            cpu: cpu.as_secs_f64() * 1e6 / replies,
            load: cpu_of_load.as_secs_f64() * 1e6 / replies,
            rate: load.rate(),
            p50: load.latency(0.5),
            p99: load.latency(0.99),
            busy: cpu.as_secs_f64() / load.took.as_secs_f64(),
            allowed: load.tally.allowed as f64 / replies,
        }
    }
}

/// Where a server answers such calls.
pub(crate) fn address(server: &Server, call: &Call) -> Result<SocketAddr, String> {
    match call {
        Call::Take | Call::HttpThrottle => server.http.ok_or_else(|| "a server without HTTP".to_owned()),
        _ => Ok(server.resp),
    }
}

/// How many rounds are measured; one before them warms up.
pub(crate) const ROUNDS: usize = 5;

/// What was measured, a row per candidate.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: &'static str,
    rounds: Vec<Sample>,
}

impl Table {
    /// Each candidate once per round.
    pub(crate) fn measure(candidates: &mut [Candidate<'_>], turn: Turn) -> Result<Table, String> {
        Table::measure_rounds(candidates, turn, ROUNDS)
    }

    /// The same with so many rounds.
    pub(crate) fn measure_rounds(
        candidates: &mut [Candidate<'_>],
        turn: Turn,
        rounds: usize,
    ) -> Result<Table, String> {
        let row = |candidate: &Candidate<'_>| Row { name: candidate.name, rounds: Vec::new() };
        let mut rows: Vec<_> = candidates.iter().map(row).collect();
        for round in 0..=rounds {
            for (row, candidate) in rows.iter_mut().zip(&mut *candidates) {
                let sample = candidate.turn(turn)?;
                if round > 0 {
                    row.rounds.push(sample);
                }
            }
        }
        Ok(Table { rows })
    }

    /// Prints all rows, with the ratio of their CPU time to that of the base.
    pub(crate) fn print(&self, title: &str, base: &str) {
        println!("{title}");
        println!(
            "{:<42} {:>8} {:>7} {:>10} {:>9} {:>9} {:>6} {:>8} {:>8}",
            "",
            "CPU s/M",
            "\u{f7} base",
            "replies/s",
            "p50 \u{b5}s",
            "p99 \u{b5}s",
            "busy",
            "allowed",
            "load s/M"
        );
        for Row { name, .. } in &self.rows {
            let of = |of| self.middle(name, of);
            let (cpu, load) = (of(|sample| sample.cpu), of(|sample| sample.load));
            let (p50, p99) = (of(|sample| sample.p50), of(|sample| sample.p99));
            let (busy, allowed) = (of(|sample| sample.busy * 100.0), of(|sample| sample.allowed * 100.0));
            let (rate, ratio) = (of(|sample| sample.rate), self.ratio(name, base, |sample| sample.cpu));
            let costs = format!("{cpu:>8.3} {ratio:>7.3} {rate:>10.0} {p50:>9.1} {p99:>9.1}");
            println!("{name:<42} {costs} {busy:>5.0}% {allowed:>7.1}% {load:>8.3}");
        }
        println!();
    }

    /// The one in the middle of the rounds; not a number if no candidate has this name.
    pub(crate) fn middle(&self, name: &str, of: fn(&Sample) -> f64) -> f64 {
        median(self.rounds(name).iter().map(of))
    }

    /// One divided by another in the same round, in the middle of the rounds; not a number if one is missing.
    pub(crate) fn ratio(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> f64 {
        median(self.ratios(name, other, of))
    }

    /// The smallest and the largest of the same ratio.
    pub(crate) fn spread(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> (f64, f64) {
        self.ratios(name, other, of)
            .fold((f64::NAN, f64::NAN), |(least, most), ratio| (ratio.min(least), ratio.max(most)))
    }

    fn ratios(&self, name: &str, other: &str, of: fn(&Sample) -> f64) -> impl Iterator<Item = f64> {
        let pairs = self.rounds(name).iter().zip(self.rounds(other));
        pairs.map(move |(one, other)| of(one) / of(other))
    }

    fn rounds(&self, name: &str) -> &[Sample] {
        self.rows.iter().find(|row| row.name == name).map_or(&[], |row| &row.rounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(call: &Call) -> String {
        String::from_utf8(call.write("user:000000001")).unwrap()
    }

    #[test]
    fn commands_are_arrays_of_bulk_strings() {
        let throttle = "$8\r\nTHROTTLE\r\n$14\r\nuser:000000001\r\n$3\r\n100\r\n$2\r\n30\r\n$4\r\n3600\r\n";
        assert_eq!(text(&Call::Throttle), format!("*5\r\n{throttle}"));
        assert!(
            text(&Call::Script("ab".to_owned()))
                .starts_with("*7\r\n$7\r\nEVALSHA\r\n$2\r\nab\r\n$1\r\n1\r\n")
        );
    }

    #[test]
    fn a_take_says_how_long_it_is() {
        let take = text(&Call::Take);
        let (head, body) = take.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"key":"user:000000001","limit":"30/60s burst 15"}"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
    }

    fn row(name: &'static str, times: &[f64]) -> Row {
        let sample = |cpu: &f64| Sample {
            cpu: *cpu,
            load: 1.0,
            rate: 1.0,
            p50: 1.0,
            p99: 2.0 * cpu,
            busy: 1.0,
            allowed: 1.0,
        };
        Row { name, rounds: times.iter().map(sample).collect() }
    }

    #[test]
    fn a_ratio_is_that_of_the_same_round() {
        let table = Table { rows: vec![row("a", &[1.0, 10.0, 3.0]), row("b", &[2.0, 20.0, 1.0])] };
        assert_eq!(table.middle("a", |sample| sample.cpu), 3.0);
        assert_eq!(table.middle("b", |sample| sample.p99), 4.0);
        assert_eq!(table.ratio("a", "b", |sample| sample.cpu), 0.5);
        assert_eq!(table.spread("a", "b", |sample| sample.cpu), (0.5, 3.0));
    }

    #[test]
    fn a_candidate_that_was_left_out_has_no_figures() {
        let table = Table { rows: vec![row("a", &[1.0])] };
        assert!(table.middle("b", |sample| sample.cpu).is_nan());
        assert!(table.ratio("a", "b", |sample| sample.cpu).is_nan());
    }
}
