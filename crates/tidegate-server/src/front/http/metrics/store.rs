//! What was counted about a store elsewhere; nothing where states are in memory.

use tidegate_redis::Status;

use super::page::{Kind, Page};
use crate::elsewhere::REDIS;
use crate::engine::Engine;
use crate::meter::{Count, Meter};

pub(super) fn put(page: &mut Page, engine: &Engine) {
    let Some(elsewhere) = &engine.elsewhere else { return };
    let status = elsewhere.store.status();
    let available = "1 while the store answers, 0 while requests are decided without it.";
    page.gauge("tidegate_store_available", available, status.is_available.into());
    put_decisions(page, engine);
    let name = "tidegate_store_errors_total";
    page.family(name, Kind::Counter, "Questions to the store without an answer, by what went wrong.");
    for (kind, number) in errors(&status) {
        page.labelled(name, &[("kind", kind)], number);
    }
    page.gauge("tidegate_store_in_flight", "Questions to the store that are under way.", status.in_flight);
    let connects = "How often somebody tried to connect to the store.";
    page.counter("tidegate_store_connects_total", connects, status.connects);
    let cached = "Refusals that were still known here, so that the store was not asked.";
    page.counter("tidegate_store_cached_refusals_total", cached, status.cached);
}

fn errors(status: &Status) -> [(&'static str, u64); 6] {
    [
        ("timeout", status.timed_out),
        ("lost", status.lost),
        ("refused", status.refused),
        ("unreachable", status.unreachable),
        ("overloaded", status.overloaded),
        ("unreadable", status.unreadable),
    ]
}

/// Who decided: about asks that came with their limit, and about requests that rules were asked about.
fn put_decisions(page: &mut Page, engine: &Engine) {
    let sum = |which: fn(&Meter) -> &Count| engine.meters.sum(which);
    let without = engine.rules.gate.store_failures().decided;
    let name = "tidegate_store_decisions_total";
    let help = "Decisions by who made them: the store, or this server by its share, always yes, always no.";
    page.family(name, Kind::Counter, help);
    for (by, number) in [
        (REDIS, sum(|meter| &meter.decided_elsewhere) + engine.rules.by_store()),
        ("local", sum(|meter| &meter.decided_local) + without.local_allowed + without.local_denied),
        ("open", sum(|meter| &meter.decided_open) + without.open),
        ("closed", sum(|meter| &meter.decided_closed) + without.closed),
    ] {
        page.labelled(name, &[("decided_by", by)], number);
    }
}
