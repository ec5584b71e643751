//! The load: one thread that keeps many connections busy and knows of replies only what it has to count.
//!
//! Requests lie ready as bytes, a batch is sent by one call and replies are scanned where they were read, so that
//! a request costs less here than in redis-benchmark and the server is what is waited for.

mod closed;
mod connection;
mod histogram;
mod http;
mod open;
mod replies;
mod requests;
mod resp;

use std::net::SocketAddr;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;

pub(crate) use self::closed::Until;
use self::connection::Connection;
use self::histogram::Histogram;
use self::http::Http;
use self::replies::Replies;
pub(crate) use self::requests::{Requests, shuffled};
use self::resp::Resp;

/// What one read takes at most.
const BUFFER_BYTES: usize = 1 << 16;
/// How many ready connections the system tells of at a time.
const EVENTS: usize = 512;
/// How long all connections may be without a reply.
const SILENCE: Duration = Duration::from_secs(5);

/// Connections to one server.
pub(crate) struct Clients {
    connections: Vec<Connection>,
    epoll: OwnedFd,
    ready: Vec<epoll::Event>,
    buffer: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) tally: Tally,
    pub(crate) took: Duration,
    latencies: Histogram,
}

/// How many replies there were, and how many of them allow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) replies: u64,
    pub(crate) allowed: u64,
}

/// How replies are counted.
#[derive(Clone, Debug)]
pub(crate) enum Scanner {
    Resp(Resp),
    Replies(Replies),
    Http(Http),
}

impl Clients {
    /// So many connections, which stay open.
    pub(crate) fn connect(address: SocketAddr, count: usize, scanner: &Scanner) -> Result<Clients, String> {
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
        Load { tally: Tally::default(), took: Duration::ZERO, latencies: Histogram::new() }
    }

    /// Replies per second.
    pub(crate) fn rate(&self) -> f64 {
        self.tally.replies as f64 / self.took.as_secs_f64()
    }

    /// In microseconds, the latency that this share of the requests did not exceed.
    pub(crate) fn latency(&self, share: f64) -> f64 {
        self.latencies.quantile(share)
    }
}

impl Scanner {
    /// A line such as `+PONG`.
    pub(crate) fn word() -> Scanner {
        Scanner::Resp(Resp::word())
    }

    /// Five integers, of which the first is this digit if the request is allowed.
    pub(crate) fn five_integers(allows: u8) -> Scanner {
        Scanner::Resp(Resp::five_integers(allows))
    }

    /// Names and values by turns in so many lines; the first name is `allowed`.
    pub(crate) fn fields(lines: u8) -> Scanner {
        Scanner::Resp(Resp::fields(lines))
    }

    /// Replies of RESP of any shape, of which nothing but their number is known.
    pub(crate) fn any() -> Scanner {
        Scanner::Replies(Replies::default())
    }

    /// 200 or 429.
    pub(crate) fn http() -> Scanner {
        Scanner::Http(Http::default())
    }

    fn scan(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<(), String> {
        match self {
            Scanner::Resp(resp) => resp.scan(bytes, tally),
            Scanner::Replies(replies) => replies.scan(bytes, tally),
            Scanner::Http(http) => http.scan(bytes, tally),
        }
    }
}
