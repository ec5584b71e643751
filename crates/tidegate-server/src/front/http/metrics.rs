//! What was counted, as Prometheus reads it (text format 0.0.4).

use std::fmt::Write as _;

use hyper::StatusCode;

use super::reply::{self, Reply};
use crate::engine::Engine;
use crate::meter::{Count, Meter};

pub(super) fn page(engine: &Engine) -> Reply {
    Reply { status: StatusCode::OK, kind: reply::Kind::Metrics, body: text(engine).into() }
}

fn text(engine: &Engine) -> String {
    let mut page = Page::default();
    about_the_process(&mut page, engine);
    about_the_fronts(&mut page, engine);
    about_the_zone(&mut page, engine);
    page.0
}

fn about_the_process(page: &mut Page, engine: &Engine) {
    page.family("tidegate_build_info", Kind::Gauge, "Which version this is.");
    page.labelled("tidegate_build_info", ("version", env!("CARGO_PKG_VERSION")), 1);
    page.gauge("tidegate_uptime_seconds", "How long the server has been running.", engine.uptime().as_secs());
}

fn about_the_fronts(page: &mut Page, engine: &Engine) {
    let sum = |which: fn(&Meter) -> &Count| engine.meters.sum(which);
    let name = "tidegate_decisions_total";
    page.family(name, Kind::Counter, "Decisions about asks that came with their limit, by verdict.");
    page.labelled(name, ("verdict", "allowed"), sum(|meter| &meter.allowed));
    page.labelled(name, ("verdict", "denied"), sum(|meter| &meter.denied));
    page.labelled(name, ("verdict", "impossible"), sum(|meter| &meter.impossible));
    page.labelled(name, ("verdict", "store_full"), sum(|meter| &meter.store_full));

    let name = "tidegate_requests_total";
    page.family(name, Kind::Counter, "Requests, whatever they asked for.");
    page.labelled(name, ("front", "resp"), sum(|meter| &meter.resp_commands));
    page.labelled(name, ("front", "http"), sum(|meter| &meter.http_requests));
    let wrong = "Requests that were answered by what is wrong with them.";
    page.counter("tidegate_bad_requests_total", wrong, sum(|meter| &meter.bad_requests));

    let (resp, http) = (sum(|meter| &meter.resp_connections), sum(|meter| &meter.http_connections));
    let name = "tidegate_accepted_connections_total";
    page.family(name, Kind::Counter, "Connections that were accepted.");
    page.labelled(name, ("front", "resp"), resp);
    page.labelled(name, ("front", "http"), http);
    // Threads count while this adds up: one may have closed what another had not yet seen opened.
    let open = resp.wrapping_add(http).saturating_sub(sum(|meter| &meter.closed));
    page.gauge("tidegate_open_connections", "Connections that are open.", open);
    let cut =
        "Connections that were cut off: for what they sent, for being slow, or because there were too many.";
    page.counter("tidegate_cut_connections_total", cut, sum(|meter| &meter.cut_off));
}

fn about_the_zone(page: &mut Page, engine: &Engine) {
    let counts = engine.zone.counts();
    page.gauge("tidegate_zone_bytes", "The size of the zone.", engine.zone.bytes() as u64);
    page.gauge(
        "tidegate_zone_cells",
        "Cells of the zone, one for each key that owes something.",
        counts.cells as u64,
    );
    page.gauge(
        "tidegate_zone_live_cells",
        "Cells that are in use, estimated from a sample.",
        counts.live as u64,
    );
    page.gauge(
        "tidegate_zone_shared_cells",
        "Cells that several keys share, estimated from a sample.",
        counts.shared as u64,
    );
    page.counter("tidegate_zone_inserts_total", "Keys that got a cell.", counts.inserts);
    page.counter(
        "tidegate_zone_conversions_total",
        "Cells that became shared because there was none free.",
        counts.conversions,
    );
    let shared = "Decisions about keys without a cell of their own, which may have been refused early.";
    page.counter("tidegate_zone_shared_decisions_total", shared, counts.shared_decisions);
    page.counter(
        "tidegate_zone_forgotten_total",
        "Keys that were forgotten because their rule says so.",
        counts.forgotten,
    );
    page.counter(
        "tidegate_zone_retries_total",
        "Exchanges that another thread was faster with.",
        counts.retries,
    );
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Lines of the text format.
#[derive(Default)]
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // A string takes whatever is written.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn labelled(&mut self, name: &str, (label, of): (&str, &str), number: u64) {
        let _ = writeln!(self.0, "{name}{{{label}=\"{of}\"}} {number}");
    }

    fn counter(&mut self, name: &str, help: &str, number: u64) {
        self.family(name, Kind::Counter, help);
        let _ = writeln!(self.0, "{name} {number}");
    }

    fn gauge(&mut self, name: &str, help: &str, number: u64) {
        self.family(name, Kind::Gauge, help);
        let _ = writeln!(self.0, "{name} {number}");
    }
}
