//! Checks that this machine has the memory that settings ask for.
//!
//! The check reads `MemTotal` and not the free memory: caches make the free memory meaningless. Containers with a
//! smaller cgroup limit are not detected.

use std::fs;

use tidegate_support::Bytes;

use crate::settings::Settings;

/// Rejects a store and zones that exceed the physical memory. Otherwise the OOM killer would end the process later.
/// Zones in files need not be resident as a whole, so they do not count.
///
/// Returns the error text with a remedy. Where the physical memory is not known, every size is accepted.
pub(crate) fn suffices_for(settings: &Settings) -> Result<(), String> {
    let (store, zones) = in_memory(settings);
    match all() {
        Some(all) if store.saturating_add(zones) > all => Err(too_much(store, zones, all)),
        _ => Ok(()),
    }
}

/// Returns the bytes of the store and of the named zones that are not in files.
fn in_memory(settings: &Settings) -> (usize, usize) {
    if settings.store.file.is_some() {
        return (0, 0);
    }
    let zones = settings.policy.zones().iter().fold(0, |sum: usize, zone| sum.saturating_add(zone.bytes));
    (settings.store.size, zones)
}

/// Returns the error text. It names the sizes that are too large, and the setting to change.
fn too_much(store: usize, zones: usize, all: usize) -> String {
    let mebibytes = Bytes(all >> 20 << 20);
    let (wanted, remedy) = match (Bytes(store), Bytes(zones)) {
        (store, Bytes(0)) => (format!("a store of {store}"), "choose a smaller --store-size"),
        (Bytes(0), zones) => (format!("zones of {zones}"), "write smaller sizes of zones"),
        (store, zones) => (
            format!("a store of {store} and zones of {zones}"),
            "choose smaller sizes of the store and its zones",
        ),
    };
    format!("{wanted}: this machine has {mebibytes} of memory; {remedy}")
}

/// Returns the bytes of physical memory, if `/proc/meminfo` reports them.
fn all() -> Option<usize> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use tidegate_rules::Policy;

    use super::*;

    #[test]
    fn zones_in_files_need_not_be_in_memory_as_a_whole() {
        let policy = Policy::from_toml("[zone.a]\nsize = '1MiB'\n[zone.b]\nsize = '2MiB'\n").unwrap();
        let mut settings = Settings { policy, ..Settings::default() };
        assert_eq!(in_memory(&settings), (64 << 20, 3 << 20));
        settings.store.file = Some("zone.tg".into());
        assert_eq!(in_memory(&settings), (0, 0));
    }

    #[test]
    fn the_error_names_the_size_that_is_too_large() {
        for (store, zones, said) in [
            (2 << 30, 0, "a store of 2 GiB: this machine has 1 GiB of memory; choose a smaller --store-size"),
            (0, 2 << 30, "zones of 2 GiB: this machine has 1 GiB of memory; write smaller sizes of zones"),
            (
                1 << 30,
                2 << 30,
                "a store of 1 GiB and zones of 2 GiB: this machine has 1 GiB of memory; \
                 choose smaller sizes of the store and its zones",
            ),
        ] {
            assert_eq!(too_much(store, zones, (1 << 30) + 5), said);
        }
    }
}
