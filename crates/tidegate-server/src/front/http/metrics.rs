//! The metrics page in the text format of Prometheus, version 0.0.4.

mod page;
mod rules;
mod store;
mod zones;

use hyper::StatusCode;

use self::page::MetricsPage;
use super::reply::{self, Reply};
use crate::engine::Engine;
use crate::meter::{Count, Meter};

pub(super) fn page(engine: &Engine) -> Reply {
    Reply::new(StatusCode::OK, reply::METRICS, text(engine))
}

fn text(engine: &Engine) -> String {
    let mut page = MetricsPage::default();
    about_the_process(&mut page, engine);
    about_the_fronts(&mut page, engine);
    rules::put(&mut page, engine);
    store::put(&mut page, engine);
    zones::put(&mut page, engine);
    page.0
}

fn about_the_process(page: &mut MetricsPage, engine: &Engine) {
    page.family("tidegate_build_info", "Which version this is.");
    page.labelled("tidegate_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.number(
        "tidegate_uptime_seconds",
        "How long the server has been running.",
        engine.uptime().as_secs(),
    );
}

fn about_the_fronts(page: &mut MetricsPage, engine: &Engine) {
    let sum = |which: fn(&Meter) -> &Count| engine.meters().sum(which);
    let name = "tidegate_decisions_total";
    page.family(name, "Decisions about asks that came with their limit, by verdict.");
    page.labelled(name, &[("verdict", "allowed")], sum(|meter| &meter.allowed));
    page.labelled(name, &[("verdict", "denied")], sum(|meter| &meter.denied));
    page.labelled(name, &[("verdict", "impossible")], sum(|meter| &meter.impossible));
    page.labelled(name, &[("verdict", "store_full")], sum(|meter| &meter.store_full));

    let name = "tidegate_requests_total";
    page.family(name, "Requests, whatever they asked for.");
    page.labelled(name, &[("front", "resp")], sum(|meter| &meter.resp_commands));
    page.labelled(name, &[("front", "http")], sum(|meter| &meter.http_requests));
    let wrong = "Requests that were answered by what is wrong with them.";
    page.number("tidegate_bad_requests_total", wrong, sum(|meter| &meter.bad_requests));

    let (resp, http) = (sum(|meter| &meter.resp_connections), sum(|meter| &meter.http_connections));
    let name = "tidegate_accepted_connections_total";
    page.family(name, "Connections that were accepted.");
    page.labelled(name, &[("front", "resp")], resp);
    page.labelled(name, &[("front", "http")], http);
    // The counters of several threads are not read at one instant: a close may be counted before its open.
    let open = resp.wrapping_add(http).saturating_sub(sum(|meter| &meter.closed));
    page.number("tidegate_open_connections", "Connections that are open.", open);
    let name = "tidegate_unfinished_bytes";
    let help = "Bytes of unfinished requests, of connections that hold more than 16 KiB.";
    page.number(name, help, engine.unfinished().held() as u64);
    let cut =
        "Connections that were cut off: for what they sent, for being slow, or because there were too many.";
    page.number("tidegate_cut_connections_total", cut, sum(|meter| &meter.cut_off));
}
