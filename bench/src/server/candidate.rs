//! Something to be measured: what one server is asked, over connections that stay open.

use std::net::SocketAddr;
use std::time::Duration;

use super::call::{Call, Keys, MILLION};
use super::host::Server;
use super::load::{Clients, Load, Requests, Scanner, Until};
use crate::cpu::cpu_time;

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
    pub(super) fn new(
        name: &'static str,
        server: &'a Server,
        (call, keys): (Call, Keys),
        connections: usize,
    ) -> Result<Candidate<'a>, String> {
        server.wake()?;
        let clients = Clients::connect(address(server, &call)?, connections, &call.scanner())?;
        let requests = call.requests(keys);
        Ok(Candidate { name, server, keys, requests, clients })
    }

    /// The same with requests that lie ready, over RESP; what is replied is for others to judge.
    pub(crate) fn with_requests(
        name: &'static str,
        server: &'a Server,
        requests: Requests,
        connections: usize,
    ) -> Result<Candidate<'a>, String> {
        server.wake()?;
        let clients = Clients::connect(server.resp, connections, &Scanner::any())?;
        Ok(Candidate { name, server, keys: Keys::None, requests, clients })
    }

    /// The same over HTTP.
    pub(crate) fn over_http(
        name: &'static str,
        server: &'a Server,
        requests: Requests,
        connections: usize,
    ) -> Result<Candidate<'a>, String> {
        server.wake()?;
        let address = server.http.ok_or_else(|| "a server without HTTP".to_owned())?;
        let clients = Clients::connect(address, connections, &Scanner::http())?;
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
pub(super) fn address(server: &Server, call: &Call) -> Result<SocketAddr, String> {
    match call {
        Call::Take | Call::HttpThrottle => server.http.ok_or_else(|| "a server without HTTP".to_owned()),
        _ => Ok(server.resp),
    }
}
