//! The metrics of a remote store; none if the state is in memory.
//!
//! An alert needs two of them: `tidegate_store_available` while the store is down, and
//! `tidegate_store_errors_total` for one that is slow or overloaded.

use tidegate::{DecidedBy, DecisionMeter};

use super::page::MetricsPage;
use crate::engine::Engine;

/// Writes the metrics of the remote store.
pub(super) fn put(page: &mut MetricsPage, engine: &Engine) {
    let Some((redis, meter)) = engine.redis().zip(engine.store_meter()) else { return };
    let status = redis.status();
    let available = "1 while the store replies, 0 while requests are decided without it.";
    page.number("tidegate_store_available", available, status.is_available.into());
    put_decisions(page, &meter.decided);
    let name = "tidegate_store_errors_total";
    page.family(name, "Failed store requests, by kind of error.");
    for (kind, number) in [
        ("timeout", status.timed_out),
        ("lost", status.lost),
        ("rejected", status.rejected),
        ("unreachable", status.unreachable),
        ("overloaded", status.overloaded),
        ("unreadable", status.unreadable),
    ] {
        page.labelled(name, &[("kind", kind)], number);
    }
    page.number("tidegate_store_in_flight", "Store requests in flight.", status.in_flight);
    let connects = "Connection attempts to the store.";
    page.number("tidegate_store_connects_total", connects, status.connects);
    let cached = "Denials from the denial cache, without a store request.";
    page.number("tidegate_store_cached_denials_total", cached, status.cached);
}

/// Writes the decisions by decider, for limits that came with the request and for rules together.
fn put_decisions(page: &mut MetricsPage, decided: &DecisionMeter) {
    let without = decided.without_store();
    let name = "tidegate_store_decisions_total";
    let help = "Decisions by source: the store, or the fallback (local share, fail-open, fail-closed).";
    page.family(name, help);
    for (by, number) in [
        (DecidedBy::Remote, decided.remote()),
        (DecidedBy::Local, without.local_allowed + without.local_denied),
        (DecidedBy::Open, without.open + without.open_denied),
        (DecidedBy::Closed, without.closed),
    ] {
        page.labelled(name, &[("decided_by", by.as_str())], number);
    }
}
