//! What was counted about each zone, and how full it is.

use tidegate::{StateCounts, Zone, ZoneCounts};

use super::page::{Kind, Page};
use crate::engine::Engine;

/// The zone of the store has no label, those that rules name have theirs.
pub(super) fn put(page: &mut Page, engine: &Engine) {
    let named = engine.gate().zones();
    let all: Vec<_> = [("", engine.zone())]
        .into_iter()
        .chain(named.iter().map(|(name, zone)| (&**name, zone)))
        .map(|(name, zone)| (name, Numbers { zone, counts: zone.counts(), states: zone.state_counts() }))
        .collect();
    for family in ZONE_FAMILIES {
        page.family(family.name, family.kind, family.help);
        for (name, numbers) in &all {
            let label = [("zone", *name)];
            let labels = if name.is_empty() { &[][..] } else { &label[..] };
            page.labelled(family.name, labels, (family.number)(numbers));
        }
    }
}

/// The numbers of one zone.
struct Numbers<'a> {
    zone: &'a Zone,
    counts: ZoneCounts,
    states: StateCounts,
}

/// A metric of every zone.
struct ZoneFamily {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    number: fn(&Numbers<'_>) -> u64,
}

const ZONE_FAMILIES: [ZoneFamily; 13] = [
    ZoneFamily {
        name: "tidegate_zone_bytes",
        kind: Kind::Gauge,
        help: "The size of the zone.",
        number: |of| of.zone.bytes() as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_cells",
        kind: Kind::Gauge,
        help: "Cells of the zone, one for each key that owes something.",
        number: |of| of.counts.cells as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_live_cells",
        kind: Kind::Gauge,
        help: "Cells that are in use, estimated from a sample.",
        number: |of| of.counts.live as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_shared_cells",
        kind: Kind::Gauge,
        help: "Cells that several keys share, estimated from a sample.",
        number: |of| of.counts.shared as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_inserts_total",
        kind: Kind::Counter,
        help: "Keys that got a cell.",
        number: |of| of.counts.inserts,
    },
    ZoneFamily {
        name: "tidegate_zone_conversions_total",
        kind: Kind::Counter,
        help: "Cells that became shared because there was none free.",
        number: |of| of.counts.conversions,
    },
    ZoneFamily {
        name: "tidegate_zone_shared_decisions_total",
        kind: Kind::Counter,
        help: "Decisions about keys without a cell of their own, which may have been refused early.",
        number: |of| of.counts.shared_decisions,
    },
    ZoneFamily {
        name: "tidegate_zone_forgotten_total",
        kind: Kind::Counter,
        help: "Keys that were forgotten because their rule says so.",
        number: |of| of.counts.forgotten,
    },
    ZoneFamily {
        name: "tidegate_zone_retries_total",
        kind: Kind::Counter,
        help: "Exchanges that another thread was faster with.",
        number: |of| of.counts.retries,
    },
    ZoneFamily {
        name: "tidegate_zone_states",
        kind: Kind::Gauge,
        help: "States of more than one word: logs, sliding windows, pacers, permits, large fixed windows.",
        number: |of| of.states.keys as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_states_memory_bytes",
        kind: Kind::Gauge,
        help: "Memory that states of more than one word take.",
        number: |of| of.states.memory_bytes as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_states_file_bytes",
        kind: Kind::Gauge,
        help: "The size of the state file; 0 if the zone is in memory.",
        number: |of| of.states.file_bytes as u64,
    },
    ZoneFamily {
        name: "tidegate_zone_states_file_used_bytes",
        kind: Kind::Gauge,
        help: "Bytes of the state file that are in use; 0 if the zone is in memory.",
        number: |of| of.states.file_used_bytes as u64,
    },
];
