//! The load: one thread that keeps many connections busy and knows of replies only what it has to count.
//!
//! Requests lie ready as bytes, a batch is sent by one call and replies are scanned where they were read, so that
//! a request costs less here than in redis-benchmark and the server is what is waited for.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::fd::OwnedFd;

use super::{Requests, Scanner, Tally};
use crate::stopwatch::now;

/// What one read takes at most.
const BUFFER_BYTES: usize = 1 << 16;
/// How many ready connections the system tells of at a time.
const EVENTS: usize = 512;
/// How long all connections may be without a reply.
const SILENCE: Duration = Duration::from_secs(5);
/// The longest latency that is measured exactly: an hour, in nanoseconds.
const LONGEST: u64 = 3_600_000_000_000;

/// Connections to one server.
#[expect(missing_debug_implementations, reason = "what the kernel reports is not to be printed")]
pub struct Clients {
    connections: Vec<Connection>,
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
    buffer: Vec<u8>,
}

/// The replies to one loop.
#[derive(Debug)]
pub struct Load {
    /// How many, and how many of them allow.
    pub tally: Tally,
    /// From the first request to the last reply.
    pub took: Duration,
    /// In nanoseconds.
    latencies: Histogram<u64>,
}

impl Clients {
    /// Opens this many connections, which stay open.
    pub fn connect(address: SocketAddr, count: usize, scanner: &Scanner) -> Result<Clients, String> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| error.to_string())?;
        let mut connections = Vec::with_capacity(count);
        for place in 0..count {
            let connection = Connection::open(address, scanner.clone())?;
            let place = epoll::EventData::new_u64(place as u64);
            epoll::add(&epoll, &connection.stream, place, epoll::EventFlags::IN)
                .map_err(|error| error.to_string())?;
            connections.push(connection);
        }
        let ready = Vec::with_capacity(EVENTS);
        Ok(Clients { connections, epoll, ready, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Waits until there are replies; `ready` then has the places of the connections that have them.
    fn wait(&mut self, at_most: Duration) -> Result<(), String> {
        let at_most = Timespec::try_from(at_most).map_err(|error| error.to_string())?;
        self.ready.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.ready), Some(&at_most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Load {
    fn new() -> Load {
        Load { tally: Tally::default(), took: Duration::ZERO, latencies: empty() }
    }

    /// Returns the replies per second.
    pub fn rate(&self) -> f64 {
        self.tally.replies as f64 / self.took.as_secs_f64()
    }

    /// Returns, in microseconds, the latency that this share of the requests did not exceed.
    pub fn latency(&self, share: f64) -> f64 {
        match self.latencies.len() {
            0 => f64::NAN,
            _ => self.latencies.value_at_quantile(share) as f64 / 1e3,
        }
    }

    fn record(&mut self, latency: Duration, times: u64) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST);
        self.latencies.saturating_record_n(nanoseconds, times);
    }
}

fn empty() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST, 3).expect("three digits up to an hour are fine")
}

const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// How long a server may take no bytes.
const SEND_WITHIN: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// A socket that does not wait, and what is not yet answered on it.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    scanner: Scanner,
    /// Requests of the closed loop that are not yet answered.
    in_flight: u64,
    /// When these were sent.
    sent_at: Instant,
    /// Requests of the open loop that were answered.
    answered: u64,
}

impl Connection {
    fn open(address: SocketAddr, scanner: Scanner) -> Result<Connection, String> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN);
        let stream = stream.and_then(|stream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        let stream = stream.map_err(|error| format!("no connection to {address}: {error}"))?;
        Ok(Connection { stream, scanner, in_flight: 0, sent_at: now(), answered: 0 })
    }

    /// Sends all of it; what is prepared is far less than a socket holds, so this hardly ever waits.
    fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(error) => return Err(format!("not sent: {error}")),
            }
        }
        Ok(())
    }

    /// Reads what is there, once; how many replies became complete.
    fn receive(&mut self, buffer: &mut [u8], tally: &mut Tally) -> Result<u64, String> {
        let before = tally.replies;
        match self.stream.read(buffer) {
            Ok(0) => return Err("the server closed a connection".to_owned()),
            Ok(count) => self.scanner.scan(&buffer[..count], tally)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(format!("not received: {error}")),
        }
        Ok(tally.replies - before)
    }

    fn wait_for_room(&self) -> Result<(), String> {
        let mut sockets = [PollFd::new(&self.stream, PollFlags::OUT)];
        match poll(&mut sockets, Some(&SEND_WITHIN)) {
            Ok(0) => Err("the server takes no more requests".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// When no more is sent; what was sent is still waited for.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After this time.
    Elapsed(Duration),
    /// After so many requests, and those that fill the last batch.
    Requests(u64),
}

impl Clients {
    /// Keeps all connections busy with so many requests in flight on each.
    pub fn closed(&mut self, requests: &mut Requests, depth: usize, until: Until) -> Result<Load, String> {
        let (start, mut load, mut sent) = (now(), Load::new(), 0);
        let mut busy = 0;
        for place in 0..self.connections.len() {
            if until.goes_on(start, start, sent) {
                self.send_batch(place, requests, depth, start)?;
                (sent, busy) = (sent + depth as u64, busy + 1);
            }
        }
        while busy > 0 {
            self.wait(SILENCE)?;
            if self.ready.is_empty() {
                return Err(format!("no reply for {SILENCE:?}"));
            }
            for event in 0..self.ready.len() {
                let place = self.ready[event].data.u64() as usize;
                let Some(now) = self.receive_some(place, &mut load)? else { continue };
                if until.goes_on(start, now, sent) {
                    self.send_batch(place, requests, depth, now)?;
                    sent += depth as u64;
                } else {
                    busy -= 1;
                }
            }
        }
        load.took = start.elapsed();
        Ok(load)
    }

    fn send_batch(
        &mut self,
        place: usize,
        requests: &mut Requests,
        depth: usize,
        now: Instant,
    ) -> Result<(), String> {
        let connection = &mut self.connections[place];
        (connection.in_flight, connection.sent_at) = (depth as u64, now);
        connection.send(requests.take(depth))
    }

    /// Counts the replies on a connection; the time, if none is missing any more.
    fn receive_some(&mut self, place: usize, load: &mut Load) -> Result<Option<Instant>, String> {
        let connection = &mut self.connections[place];
        let complete = connection.receive(&mut self.buffer, &mut load.tally)?;
        let at = now();
        load.record(at - connection.sent_at, complete);
        if complete > connection.in_flight {
            return Err("more replies than requests".to_owned());
        }
        connection.in_flight -= complete;
        Ok((complete > 0 && connection.in_flight == 0).then_some(at))
    }
}

impl Until {
    fn goes_on(self, start: Instant, now: Instant, sent: u64) -> bool {
        match self {
            Until::Elapsed(time) => now - start < time,
            Until::Requests(count) => sent < count,
        }
    }
}

/// How many are sent before replies are looked at again.
const SENT_TOGETHER: u64 = 16;

/// Evenly spaced times, dealt to the connections in turn.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: Instant,
    /// Requests per second.
    rate: f64,
    total: u64,
}

impl Clients {
    /// Sends so many requests per second, for so long; waits for all replies.
    pub fn open(&mut self, requests: &mut Requests, rate: f64, length: Duration) -> Result<Load, String> {
        let total = (rate * length.as_secs_f64()) as u64;
        let schedule = Schedule { start: now(), rate, total };
        let (mut load, mut sent, mut last_reply) = (Load::new(), 0, schedule.start);
        self.connections.iter_mut().for_each(|connection| connection.answered = 0);
        while load.tally.replies < total {
            let at = now();
            let due = schedule.due(at).min(sent + SENT_TOGETHER);
            while sent < due {
                let place = sent as usize % self.connections.len();
                self.connections[place].send(requests.take(1))?;
                sent += 1;
            }
            self.wait(Duration::ZERO)?;
            for event in 0..self.ready.len() {
                let place = self.ready[event].data.u64() as usize;
                last_reply = self.receive_due(place, &schedule, &mut load)?;
            }
            if at.saturating_duration_since(last_reply) > SILENCE {
                return Err(format!("no reply for {SILENCE:?}"));
            }
        }
        load.took = schedule.start.elapsed();
        Ok(load)
    }

    /// Counts the replies on a connection from when their requests were due; when that was.
    fn receive_due(&mut self, place: usize, schedule: &Schedule, load: &mut Load) -> Result<Instant, String> {
        let count = self.connections.len() as u64;
        let connection = &mut self.connections[place];
        let complete = connection.receive(&mut self.buffer, &mut load.tally)?;
        let at = now();
        for answered in connection.answered..connection.answered + complete {
            let due = schedule.time_of(place as u64 + answered * count);
            load.record(at.saturating_duration_since(due), 1);
        }
        connection.answered += complete;
        Ok(at)
    }
}

impl Schedule {
    /// How many requests are due by then.
    fn due(&self, now: Instant) -> u64 {
        let due = (now - self.start).as_secs_f64() * self.rate;
        (due as u64 + 1).min(self.total)
    }

    /// When this request is due.
    fn time_of(&self, request: u64) -> Instant {
        self.start + Duration::from_secs_f64(request as f64 / self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_latency_that_so_many_did_not_exceed() {
        let mut load = Load::new();
        assert!(load.latency(0.5).is_nan());
        load.record(Duration::from_micros(10), 98);
        load.record(Duration::from_millis(1), 2);
        let close = |share: f64, expected: f64| (load.latency(share) / expected - 1.0).abs() < 0.02;
        assert!(close(0.5, 10.0) && close(0.98, 10.0) && close(0.99, 1000.0) && close(1.0, 1000.0));
        load.record(Duration::MAX, 1);
        assert!(load.latency(1.0) > 3.59e9);
    }

    #[test]
    fn a_loop_ends_after_its_time_or_its_requests() {
        let start = now();
        let (second, later) = (Duration::from_secs(1), start + Duration::from_secs(1));
        assert!(Until::Elapsed(second).goes_on(start, start, u64::MAX));
        assert!(!Until::Elapsed(second).goes_on(start, later, 0));
        assert!(Until::Requests(10).goes_on(start, later, 9));
        assert!(!Until::Requests(10).goes_on(start, start, 10));
    }

    #[test]
    fn a_request_is_due_at_its_time_and_not_before() {
        let schedule = Schedule { start: now(), rate: 1000.0, total: 5 };
        assert_eq!(schedule.due(schedule.start), 1);
        for request in 1..5 {
            let time = schedule.time_of(request);
            assert_eq!(schedule.due(time + Duration::from_micros(1)), request + 1);
            assert_eq!(schedule.due(time - Duration::from_micros(1)), request);
        }
        assert_eq!(schedule.due(schedule.start + Duration::from_secs(1)), 5);
    }
}
