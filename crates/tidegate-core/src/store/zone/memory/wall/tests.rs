use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::folder::Folder;
use super::super::header::{Geometry, HEADER_BYTES};
use super::super::open::open;
use super::super::record::PLACES;
use super::*;
use crate::store::limit_table::LimitTable;
use crate::time::{HOUR, MINUTE, SECOND, Ticks};

const SMALL: Geometry = Geometry { bucket_cells: 8, buckets: 2 };
const HERE: Option<BootId> = Some([1; 16]);
const OTHER_BOOT: Option<BootId> = Some([2; 16]);
const IN_1995: Duration = Duration::from_secs(788_918_400);
const IN_2024: Duration = Duration::from_secs(1_704_067_200);

/// Clocks that a test sets.
#[derive(Clone, Debug)]
struct SetClocks(Arc<Mutex<(Duration, Duration)>>);

impl SetClocks {
    fn set(&self, since_boot: Duration, wall: Duration) {
        *self.0.lock().unwrap() = (since_boot, wall);
    }
}

impl Clocks for SetClocks {
    fn read(&self, boot: Option<BootId>) -> Reading {
        let (since_boot, wall) = *self.0.lock().unwrap();
        Reading { boot, since_boot: Ticks::saturating_from(since_boot), wall }
    }
}

/// A zone that was created in 1995, when the machine had run for an hour, and that one process has open.
struct InUse {
    folder: Folder,
    clocks: SetClocks,
    watch: WallWatch,
}

impl InUse {
    fn new() -> InUse {
        let folder = Folder::new();
        let clocks = SetClocks(Arc::new(Mutex::new((HOUR, IN_1995))));
        let watch = opened(&folder.path("zone.tg"), &clocks);
        InUse { folder, clocks, watch }
    }

    fn path(&self) -> PathBuf {
        self.folder.path("zone.tg")
    }

    /// Reads the time of the zone, which leaves a mark.
    fn look(&self) {
        self.watch.reached(Timestamp::EPOCH);
    }

    fn record(&self) -> ClockRecord {
        record(&self.path())
    }
}

fn opened(path: &Path, clocks: &SetClocks) -> WallWatch {
    let file = open(path, SMALL, None, &|| clocks.read(HERE)).unwrap();
    WallWatch::new(Arc::new(file), Box::new(clocks.clone()))
}

fn record(path: &Path) -> ClockRecord {
    let page: [u8; HEADER_BYTES] = fs::read(path).unwrap()[..HEADER_BYTES].try_into().unwrap();
    ClockRecord::in_force(&page).unwrap().0
}

fn zone_after_reboot(path: &Path, wall: Duration) -> u64 {
    let since_boot = Ticks::saturating_from(MINUTE);
    open(path, SMALL, None, &|| Reading { boot: OTHER_BOOT, since_boot, wall }).unwrap();
    record(path).zone
}

fn ticks(duration: Duration) -> u64 {
    Ticks::saturating_from(duration).get()
}

/// A board without a battery for its clock once removed the debt of every key at each reboot.
#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_reboot_is_bridged_from_what_the_wall_clock_shows_after_it_was_set() {
    let zone = InUse::new();
    zone.clocks.set(HOUR + MINUTE, IN_2024);
    zone.look();
    // The process is killed: nothing else is written.
    let path = zone.path();
    assert_eq!(zone_after_reboot(&path, IN_2024 + 10 * SECOND), ticks(SECOND + MINUTE + 10 * SECOND));
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn the_record_is_written_once_for_each_setting_and_the_time_of_the_zone_stays() {
    let zone = InUse::new();
    let (made, before) = (zone.record(), fs::read(zone.path()).unwrap());
    for passed in [Duration::ZERO, SECOND, HOUR] {
        zone.clocks.set(HOUR + passed, IN_1995 + passed + SECOND / 2);
        zone.look();
    }
    assert_eq!(fs::read(zone.path()).unwrap(), before, "a wall clock that drifts was not set");

    let (mut since_boot, mut sequence) = (2 * HOUR, made.sequence);
    for wall in [IN_2024, IN_2024 + HOUR, IN_1995] {
        since_boot += MINUTE;
        sequence += 1;
        for passed in [Duration::ZERO, SECOND] {
            zone.clocks.set(since_boot + passed, wall + passed);
            zone.look();
            let record = zone.record();
            assert_eq!((record.sequence, record.offset, record.boot), (sequence, made.offset, HERE));
            assert_eq!(record.zone, ticks(since_boot).wrapping_add(made.offset));
            assert_eq!(Duration::from_nanos(record.wall), wall);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn the_wall_clock_is_looked_at_when_the_zone_is_closed() {
    let InUse { folder, clocks, watch } = InUse::new();
    clocks.set(HOUR + MINUTE, IN_2024);
    drop(watch);
    assert_eq!(Duration::from_nanos(record(&folder.path("zone.tg")).wall), IN_2024);
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_file_that_is_locked_is_not_waited_for_and_written_with_the_next_look() {
    let zone = InUse::new();
    let other = opened(&zone.path(), &zone.clocks);
    zone.clocks.set(HOUR + MINUTE, IN_2024);
    for holder in [&other, &zone.watch] {
        assert!(holder.file.try_lock());
        zone.look();
        assert_eq!(zone.record().sequence, 1);
        assert!(!zone.watch.file.try_lock(), "a look does not unlock what another thread has locked");
        holder.file.unlock();
    }
    zone.look();
    assert_eq!(zone.record().sequence, 2);
    assert!(zone.watch.file.try_lock(), "it is unlocked");
    zone.watch.file.unlock();
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn of_two_processes_the_first_writes_the_record_and_the_second_reads_it() {
    let zone = InUse::new();
    let other = opened(&zone.path(), &zone.clocks);
    zone.clocks.set(HOUR + MINUTE, IN_2024);
    zone.look();
    let written = fs::read(zone.path()).unwrap();
    for _ in 0..2 {
        other.look();
        assert_eq!(*other.known.lock().unwrap(), zone.record());
    }
    assert_eq!(fs::read(zone.path()).unwrap(), written);
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_record_that_is_torn_leaves_the_one_before_in_force() {
    let zone = InUse::new();
    let made = zone.record();
    zone.clocks.set(HOUR + MINUTE, IN_2024);
    zone.look();
    let mut bytes = fs::read(zone.path()).unwrap();
    bytes[PLACES[1] + 20] ^= 1;
    fs::write(zone.path(), bytes).unwrap();
    assert_eq!(zone.record(), made);
}

/// A table of limits that did not get the lock once released it nevertheless.
#[test]
fn a_table_of_limits_leaves_the_lock_to_its_holder() {
    let zone = InUse::new();
    let table = LimitTable::in_file(&zone.watch.file);
    assert!(zone.watch.file.try_lock());
    assert!(table.listed("rule", Timestamp::EPOCH).is_err(), "a reset does not know all limits");
    assert!(!zone.watch.file.try_lock(), "the lock was released by the table");
}
