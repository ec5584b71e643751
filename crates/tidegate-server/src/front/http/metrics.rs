//! What was counted, as Prometheus reads it (text format 0.0.4).

mod page;
mod rules;
mod store;

use hyper::StatusCode;
use tidegate::{Zone, ZoneCounts};

use self::page::{Kind, Page};
use super::reply::{self, Reply};
use crate::engine::Engine;
use crate::meter::{Count, Meter};

pub(super) fn page(engine: &Engine) -> Reply {
    Reply::new(StatusCode::OK, reply::Kind::Metrics, text(engine))
}

fn text(engine: &Engine) -> String {
    let mut page = Page::default();
    about_the_process(&mut page, engine);
    about_the_fronts(&mut page, engine);
    rules::put(&mut page, engine);
    store::put(&mut page, engine);
    about_the_zones(&mut page, engine);
    page.into_text()
}

fn about_the_process(page: &mut Page, engine: &Engine) {
    page.family("tidegate_build_info", Kind::Gauge, "Which version this is.");
    page.labelled("tidegate_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.gauge("tidegate_uptime_seconds", "How long the server has been running.", engine.uptime().as_secs());
}

fn about_the_fronts(page: &mut Page, engine: &Engine) {
    let sum = |which: fn(&Meter) -> &Count| engine.meters.sum(which);
    let name = "tidegate_decisions_total";
    page.family(name, Kind::Counter, "Decisions about asks that came with their limit, by verdict.");
    page.labelled(name, &[("verdict", "allowed")], sum(|meter| &meter.allowed));
    page.labelled(name, &[("verdict", "denied")], sum(|meter| &meter.denied));
    page.labelled(name, &[("verdict", "impossible")], sum(|meter| &meter.impossible));
    page.labelled(name, &[("verdict", "store_full")], sum(|meter| &meter.store_full));

    let name = "tidegate_requests_total";
    page.family(name, Kind::Counter, "Requests, whatever they asked for.");
    page.labelled(name, &[("front", "resp")], sum(|meter| &meter.resp_commands));
    page.labelled(name, &[("front", "http")], sum(|meter| &meter.http_requests));
    let wrong = "Requests that were answered by what is wrong with them.";
    page.counter("tidegate_bad_requests_total", wrong, sum(|meter| &meter.bad_requests));

    let (resp, http) = (sum(|meter| &meter.resp_connections), sum(|meter| &meter.http_connections));
    let name = "tidegate_accepted_connections_total";
    page.family(name, Kind::Counter, "Connections that were accepted.");
    page.labelled(name, &[("front", "resp")], resp);
    page.labelled(name, &[("front", "http")], http);
    // Threads count while this adds up: one may have closed what another had not yet seen opened.
    let open = resp.wrapping_add(http).saturating_sub(sum(|meter| &meter.closed));
    page.gauge("tidegate_open_connections", "Connections that are open.", open);
    let name = "tidegate_unfinished_bytes";
    let help = "Bytes of unfinished requests, of connections that hold more than 16 KiB.";
    page.gauge(name, help, engine.unfinished.held() as u64);
    let cut =
        "Connections that were cut off: for what they sent, for being slow, or because there were too many.";
    page.counter("tidegate_cut_connections_total", cut, sum(|meter| &meter.cut_off));
}

/// The zone of the store has no label, those that rules name have theirs.
fn about_the_zones(page: &mut Page, engine: &Engine) {
    let named = engine.rules.gate.zones();
    let all: Vec<_> = [("", &engine.zone)]
        .into_iter()
        .chain(named.iter().map(|(name, zone)| (&**name, zone)))
        .map(|(name, zone)| (name, zone, zone.counts()))
        .collect();
    for family in ZONE_FAMILIES {
        page.family(family.name, family.kind, family.help);
        for (name, zone, counts) in &all {
            let label = [("zone", *name)];
            let labels = if name.is_empty() { &[][..] } else { &label[..] };
            page.labelled(family.name, labels, (family.number)(zone, counts));
        }
    }
}

/// What is told about every zone.
struct ZoneFamily {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    number: fn(&Zone, &ZoneCounts) -> u64,
}

const ZONE_FAMILIES: [ZoneFamily; 9] = [
    ZoneFamily {
        name: "tidegate_zone_bytes",
        kind: Kind::Gauge,
        help: "The size of the zone.",
        number: |zone, _| zone.bytes() as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_cells",
        kind: Kind::Gauge,
        help: "Cells of the zone, one for each key that owes something.",
        number: |_, counts| counts.cells as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_live_cells",
        kind: Kind::Gauge,
        help: "Cells that are in use, estimated from a sample.",
        number: |_, counts| counts.live as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_shared_cells",
        kind: Kind::Gauge,
        help: "Cells that several keys share, estimated from a sample.",
        number: |_, counts| counts.shared as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_inserts_total",
        kind: Kind::Counter,
        help: "Keys that got a cell.",
        number: |_, counts| counts.inserts,
    },
    ZoneFamily {
        name: "tidegate_zone_conversions_total",
        kind: Kind::Counter,
        help: "Cells that became shared because there was none free.",
        number: |_, counts| counts.conversions,
    },
    ZoneFamily {
        name: "tidegate_zone_shared_decisions_total",
        kind: Kind::Counter,
        help: "Decisions about keys without a cell of their own, which may have been refused early.",
        number: |_, counts| counts.shared_decisions,
    },
    ZoneFamily {
        name: "tidegate_zone_forgotten_total",
        kind: Kind::Counter,
        help: "Keys that were forgotten because their rule says so.",
        number: |_, counts| counts.forgotten,
    },
    ZoneFamily {
        name: "tidegate_zone_retries_total",
        kind: Kind::Counter,
        help: "Exchanges that another thread was faster with.",
        number: |_, counts| counts.retries,
    },
];
