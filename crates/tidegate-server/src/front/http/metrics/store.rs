//! The metrics of a remote store; none if the state is in memory.

use tidegate::{DecidedBy, DecisionMeter};

use super::page::MetricsPage;
use crate::engine::Engine;

pub(super) fn put(page: &mut MetricsPage, engine: &Engine) {
    let Some((redis, meter)) = engine.redis().zip(engine.store_meter()) else { return };
    let status = redis.status();
    let available = "1 while the store answers, 0 while requests are decided without it.";
    page.number("tidegate_store_available", available, status.is_available.into());
    put_decisions(page, &meter.decided);
    let name = "tidegate_store_errors_total";
    page.family(name, "Questions to the store without an answer, by what went wrong.");
    for (kind, number) in [
        ("timeout", status.timed_out),
        ("lost", status.lost),
        ("refused", status.refused),
        ("unreachable", status.unreachable),
        ("overloaded", status.overloaded),
        ("unreadable", status.unreadable),
    ] {
        page.labelled(name, &[("kind", kind)], number);
    }
    page.number("tidegate_store_in_flight", "Questions to the store that are under way.", status.in_flight);
    let connects = "How often somebody tried to connect to the store.";
    page.number("tidegate_store_connects_total", connects, status.connects);
    let cached = "Refusals that were still known here, so that the store was not asked.";
    page.number("tidegate_store_cached_refusals_total", cached, status.cached);
}

/// Writes the decisions by decider, for limits that came with the request and for rules together.
fn put_decisions(page: &mut MetricsPage, decided: &DecisionMeter) {
    let without = decided.without_store();
    let name = "tidegate_store_decisions_total";
    let help = "Decisions by who made them: the store, or this server by its share, always yes, always no.";
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
