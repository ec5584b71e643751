//! The metrics page in the text format of Prometheus, version 0.0.4.
//!
//! Names are part of the interface and listed in `docs/http.md`. Counters of threads are summed when the page is
//! read, so they cost nothing between two reads. Labels have bounded sets of values: rule, zone, verdict, front and
//! kind, never a key.
//!
//! A counter ends with `_total`, a size with `_bytes`, a time with `_seconds`; everything else is a gauge without a
//! unit. Each family has a help line of one sentence.

mod page;
mod rules;
mod store;
mod zones;

use hyper::StatusCode;

use self::page::MetricsPage;
use super::reply::{self, Reply};
use crate::engine::Engine;
use crate::meter::{Count, Meter};

/// Returns the page as a reply.
pub(super) fn page(engine: &Engine) -> Reply {
    Reply::new(StatusCode::OK, reply::METRICS, text(engine))
}

/// Returns the text of the page. Families are in a fixed order.
fn text(engine: &Engine) -> String {
    let mut page = MetricsPage::default();
    about_the_process(&mut page, engine);
    about_the_fronts(&mut page, engine);
    rules::put(&mut page, engine);
    store::put(&mut page, engine);
    zones::put(&mut page, engine);
    page.0
}

/// Writes version and uptime.
fn about_the_process(page: &mut MetricsPage, engine: &Engine) {
    page.family("tidegate_build_info", "Version of the server.");
    page.labelled("tidegate_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.number("tidegate_uptime_seconds", "Time since the start of the server.", engine.uptime().as_secs());
}

/// Writes decisions, requests and connections.
fn about_the_fronts(page: &mut MetricsPage, engine: &Engine) {
    let sum = |which: fn(&Meter) -> &Count| engine.meters().sum(which);
    let name = "tidegate_decisions_total";
    page.family(name, "Decisions about limits that came with the request, by verdict.");
    page.labelled(name, &[("verdict", "allowed")], sum(|meter| &meter.allowed));
    page.labelled(name, &[("verdict", "denied")], sum(|meter| &meter.denied));
    page.labelled(name, &[("verdict", "impossible")], sum(|meter| &meter.impossible));
    page.labelled(name, &[("verdict", "store_full")], sum(|meter| &meter.store_full));

    let name = "tidegate_requests_total";
    page.family(name, "Requests by front.");
    page.labelled(name, &[("front", "resp")], sum(|meter| &meter.resp_commands));
    page.labelled(name, &[("front", "http")], sum(|meter| &meter.http_requests));
    let wrong = "Requests with an error of the caller.";
    page.number("tidegate_bad_requests_total", wrong, sum(|meter| &meter.bad_requests));

    let (resp, http) = (sum(|meter| &meter.resp_connections), sum(|meter| &meter.http_connections));
    let name = "tidegate_accepted_connections_total";
    page.family(name, "Accepted connections by front.");
    page.labelled(name, &[("front", "resp")], resp);
    page.labelled(name, &[("front", "http")], http);
    // The counters of several threads are not read at one instant: a close may be counted before its open.
    let open = resp.wrapping_add(http).saturating_sub(sum(|meter| &meter.closed));
    page.number("tidegate_open_connections", "Open connections.", open);
    let name = "tidegate_unfinished_bytes";
    let help = "Bytes of unfinished requests, of connections that hold more than 16 KiB.";
    page.number(name, help, engine.unfinished().held() as u64);
    let cut = "Connections that the server closed: for invalid input, a timeout, or the connection limit.";
    page.number("tidegate_cut_connections_total", cut, sum(|meter| &meter.cut_off));
}
