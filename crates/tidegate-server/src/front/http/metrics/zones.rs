//! The metrics of each zone.
//!
//! The share of live cells tells when a zone becomes too small. Above that, keys share cells and can be denied
//! early, which `tidegate_zone_shared_decisions_total` counts.

use tidegate::{StateCounts, Zone, ZoneCounts};

use super::page::MetricsPage;
use crate::engine::Engine;

/// Writes the metrics of all zones. The zone of the store has no label; zones that rules name have their name as label.
pub(super) fn put(page: &mut MetricsPage, engine: &Engine) {
    let named = engine.gate().zones();
    let all: Vec<_> = [("", engine.zone())]
        .into_iter()
        .chain(named.iter().map(|(name, zone)| (&**name, zone)))
        .map(|(name, zone)| (name, ZoneNumbers { zone, counts: zone.counts(), states: zone.state_counts() }))
        .collect();
    for family in ZONE_FAMILIES {
        page.family(family.name, family.help);
        for (name, numbers) in &all {
            let label = [("zone", *name)];
            let labels = if name.is_empty() { &[][..] } else { &label[..] };
            page.labelled(family.name, labels, (family.number)(numbers));
        }
    }
}

/// The numbers of one zone.
struct ZoneNumbers<'a> {
    /// The zone.
    zone: &'a Zone,
    /// Its cells, partly estimated from a sample.
    counts: ZoneCounts,
    /// Its states of more than one word.
    states: StateCounts,
}

/// A metric of every zone.
struct ZoneFamily {
    /// The name of the family.
    name: &'static str,
    /// The help line, which ends with a full stop.
    help: &'static str,
    /// Returns the value for one zone.
    number: fn(&ZoneNumbers<'_>) -> u64,
}

/// Creates a family.
const fn family(name: &'static str, help: &'static str, number: fn(&ZoneNumbers<'_>) -> u64) -> ZoneFamily {
    ZoneFamily { name, help, number }
}

/// All families, in the order of the page.
const ZONE_FAMILIES: [ZoneFamily; 13] = [
    family("tidegate_zone_bytes", "The size of the zone.", |of| of.zone.bytes() as u64),
    family("tidegate_zone_cells", "Cells of the zone; a key in use takes one.", |of| of.counts.cells as u64),
    family("tidegate_zone_live_cells", "Cells that are in use, estimated from a sample.", |of| {
        of.counts.live as u64
    }),
    family("tidegate_zone_shared_cells", "Cells that several keys share, estimated from a sample.", |of| {
        of.counts.shared as u64
    }),
    family("tidegate_zone_inserts_total", "Keys that were inserted.", |of| of.counts.inserts),
    family("tidegate_zone_conversions_total", "Cells that became shared because no cell was free.", |of| {
        of.counts.conversions
    }),
    family(
        "tidegate_zone_shared_decisions_total",
        "Decisions about keys in shared cells, which may be denied early.",
        |of| of.counts.shared_decisions,
    ),
    family(
        "tidegate_zone_forgotten_total",
        "Keys that were evicted because their rule has when_full = forget.",
        |of| of.counts.forgotten,
    ),
    family("tidegate_zone_retries_total", "Compare-and-swap retries after a concurrent update.", |of| {
        of.counts.retries
    }),
    family(
        "tidegate_zone_states",
        "States of more than one word: logs, sliding windows, pacers, permits, large fixed windows.",
        |of| of.states.keys as u64,
    ),
    family("tidegate_zone_states_memory_bytes", "Memory of states of more than one word.", |of| {
        of.states.memory_bytes as u64
    }),
    family(
        "tidegate_zone_states_file_bytes",
        "The size of the state file; 0 if the zone is in memory.",
        |of| of.states.file_bytes as u64,
    ),
    family(
        "tidegate_zone_states_file_used_bytes",
        "Bytes of the state file that are in use; 0 if the zone is in memory.",
        |of| of.states.file_used_bytes as u64,
    ),
];
