//! The status of a store.
//!
//! All counters start at zero when the store is opened and never decrease. They use relaxed atomics: two fields of one
//! status may differ by requests that ended in between.

use crate::store::Inner;

/// The availability of the server, and counters since the store was opened.
///
/// The fields `answered`, `timed_out`, `lost`, `rejected`, `unreachable`, `overloaded` and `unreadable` partition the
/// requests by outcome: each request is counted in exactly one of them.
///
/// # Examples
///
/// ```
/// use tidegate::redis::{Options, RedisStore};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = RedisStore::open(Options::new("redis://127.0.0.1:6379".parse()?))?;
/// let status = store.status();
/// assert!(!status.is_available, "no request was made yet");
/// assert_eq!((status.answered, status.connects), (0, 0));
/// # Ok(())
/// # }
/// ```
#[doc(alias = "metrics")]
#[doc(alias = "health")]
#[doc(alias = "statistics")]
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// True if decisions can be made now. On a cluster, every slot needs an owner that answers.
    pub is_available: bool,
    /// A one-line description: the server in use, or the fault and its remedy.
    pub what: String,
    /// Requests that the server answered.
    pub answered: u64,
    /// Denials from the cache, without a request.
    pub cached: u64,
    /// Requests without a reply before the deadline. The server may have executed them.
    pub timed_out: u64,
    /// Requests whose connection was lost before the reply. The server may have executed them.
    pub lost: u64,
    /// Requests that the server rejected with an error. A script that was unknown to the server is not counted: it is
    /// sent again as text.
    pub rejected: u64,
    /// Requests that were not sent, because there was no connection.
    pub unreachable: u64,
    /// Requests that were not sent, because too many were in flight. See
    /// [`Options::max_in_flight`](crate::Options::max_in_flight).
    pub overloaded: u64,
    /// Replies that could not be parsed.
    pub unreadable: u64,
    /// Requests that are in flight now.
    pub in_flight: u64,
    /// Connection attempts.
    pub connects: u64,
    /// Scripts that were sent as text, because the server was not known to have them.
    pub scripts_sent: u64,
    /// Requests that were redirected to another node.
    pub redirected: u64,
    /// Takes that were given back, because another limit of the same request denied.
    pub given_back: u64,
    /// Permits of abandoned requests that are being released.
    pub returning: u64,
    /// Permits of abandoned requests that were not released, because too many releases were pending. They expire with
    /// their leases.
    pub not_returned: u64,
}

impl Status {
    /// Reads the counters. A store that was not used yet is unavailable, because nothing is known about its server.
    pub(crate) fn of(inner: &Inner) -> Status {
        let running = inner.started();
        let health = running.map(|running| running.exchange.topology.health());
        let counts = &inner.counts;
        Status {
            is_available: health.as_ref().is_some_and(|health| health.is_up),
            what: health.map_or_else(|| "no request was made yet".to_owned(), |health| health.what),
            answered: counts.answered.get(),
            cached: counts.cached.get(),
            timed_out: counts.timed_out.get(),
            lost: counts.lost.get(),
            rejected: counts.rejected.get(),
            unreachable: counts.unreachable.get(),
            overloaded: counts.overloaded.get(),
            unreadable: counts.unreadable.get(),
            in_flight: running.map_or(0, |running| running.exchange.in_flight() as u64),
            connects: counts.connects.get(),
            scripts_sent: counts.scripts_sent.get(),
            redirected: counts.redirected.get(),
            given_back: counts.given_back.get(),
            returning: inner.returns.len() as u64,
            not_returned: counts.not_returned.get(),
        }
    }
}
