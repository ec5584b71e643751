//! How a store is doing.

use crate::store::Inner;

/// Whether the server answers, and what was counted since the store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Whether decisions can be had now.
    pub is_available: bool,
    /// The same in a line: who answers, or why nobody does and what would do.
    pub what: String,
    /// Questions that the server answered.
    pub answered: u64,
    /// Refusals that needed no question.
    pub cached: u64,
    /// Questions without an answer in time.
    pub timed_out: u64,
    /// Questions whose connection was lost before the answer.
    pub lost: u64,
    /// Questions that the server refused.
    pub refused: u64,
    /// Questions that were not asked, because nobody was there to answer.
    pub unreachable: u64,
    /// Questions that were not asked, because too many were under way.
    pub overloaded: u64,
    /// Answers that made no sense.
    pub unreadable: u64,
    /// Questions that are under way now.
    pub in_flight: u64,
    /// How often somebody tried to connect.
    pub connects: u64,
    /// How often a script was sent as text, because the server was not known to have it.
    pub scripts_sent: u64,
    /// How often a question was sent on to another node.
    pub redirected: u64,
    /// Takes that were given back, because others of the same request were refused.
    pub given_back: u64,
    /// Places of requests that are gone that are on their way back.
    pub returning: u64,
    /// Places of requests that are gone that were not given back, because too many were on their way: they come back with
    /// their leases.
    pub not_returned: u64,
}

impl Status {
    pub(crate) fn of(inner: &Inner) -> Status {
        let running = inner.started();
        let health = running.map(|running| running.exchange.topology.health());
        let counts = &inner.counts;
        Status {
            is_available: health.as_ref().is_some_and(|health| health.is_up),
            what: health.map_or_else(|| "nobody has asked yet".to_owned(), |health| health.what),
            answered: counts.answered.get(),
            cached: counts.cached.get(),
            timed_out: counts.timed_out.get(),
            lost: counts.lost.get(),
            refused: counts.refused.get(),
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
