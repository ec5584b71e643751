//! Tests of a zone's time across restarts, and between processes.

use std::env;

use super::*;
use crate::time::boot::wall_since_epoch;
use crate::time::{CounterClock, MINUTE, OUT_OF_ORDER, SECOND, Source, Timestamp};

const OTHER_BOOT: Option<BootId> = Some([2; 16]);

fn ticks(duration: Duration) -> u64 {
    Ticks::saturating_from(duration).get()
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn while_the_machine_runs_the_file_of_a_clock_stays_as_it_is() {
    let (_folder, path) = folder_with_zone();
    let before = fs::read(&path).unwrap();
    let later = || reading(HERE, HOUR + MINUTE, IN_2024 + MINUTE);
    let offset = open_small(&path).unwrap().shift();
    assert_eq!(open(&path, SMALL, None, &later).unwrap().shift(), offset);
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// Returns the time of a zone by its file when the machine has run for `since_boot`.
fn zone_time(path: &Path, since_boot: Duration) -> u64 {
    let page: [u8; HEADER_BYTES] = fs::read(path).unwrap()[..HEADER_BYTES].try_into().unwrap();
    let (record, _) = ClockRecord::in_force(&page).unwrap();
    ticks(since_boot).wrapping_add(record.offset)
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn restarts_are_bridged_one_after_the_other() {
    let (_folder, path) = folder_with_zone();
    let mut wall = IN_2024;
    for restart in 1..=5_u8 {
        wall += HOUR;
        let now = || reading(Some([restart + 1; 16]), MINUTE, wall);
        let zone = open(&path, SMALL, None, &now).unwrap();
        let expected = ticks(SECOND + u32::from(restart) * HOUR);
        assert_eq!(zone_time(&path, MINUTE), expected);
        let at_boot = expected.wrapping_sub(ticks(MINUTE));
        assert_eq!(zone.shift(), at_boot.wrapping_sub(CounterClock::at_boot()));
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_restart_with_the_wall_clock_set_back_goes_on_from_the_mark() {
    let (_folder, path) = folder_with_zone();
    let zone = open_small(&path).unwrap();
    zone.latest().store(ticks(5 * HOUR), Ordering::Relaxed);
    drop(zone);
    open(&path, SMALL, None, &|| reading(OTHER_BOOT, MINUTE, IN_2024 - HOUR)).unwrap();
    assert_eq!(zone_time(&path, MINUTE), ticks(5 * HOUR));
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_mark_that_is_nonsense_is_replaced() {
    for boot in [HERE, OTHER_BOOT] {
        let (_folder, path) = folder_with_zone();
        open_small(&path).unwrap().latest().store(u64::MAX, Ordering::Relaxed);
        let nine_years = Duration::from_secs(9 * 365 * 24 * 3600);
        let zone =
            open(&path, SMALL, None, &|| reading(boot, HOUR + nine_years, IN_2024 + nine_years)).unwrap();
        let latest = zone.latest().load(Ordering::Relaxed);
        assert!(latest <= zone_time(&path, HOUR + nine_years), "{latest}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn a_clock_record_that_was_half_written_leaves_the_other() {
    let (_folder, path) = folder_with_zone();
    let restarted = || reading(OTHER_BOOT, MINUTE, IN_2024 + HOUR);
    open(&path, SMALL, None, &restarted).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[PLACES[1] + 20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    open(&path, SMALL, None, &restarted).unwrap();
    assert_eq!(zone_time(&path, MINUTE), ticks(SECOND + HOUR));
}

#[test]
#[cfg_attr(miri, ignore = "it needs files")]
fn the_clock_of_a_zone_goes_on_and_leaves_its_mark() {
    let folder = Folder::new();
    let path = folder.path("zone.tg");
    let open = || Arc::new(ZoneFile::open(&path, 2, 128, None).unwrap());
    let mut last = Timestamp::EPOCH;
    for _ in 0..20 {
        let zone = open();
        let clock = zone.clock();
        assert!(matches!(clock, Source::Shifted(_)));
        let now = clock.now();
        assert!(now.saturating_add(OUT_OF_ORDER) >= last, "{now:?} after {last:?}");
        assert_eq!(zone.latest().load(Ordering::Relaxed), now.ticks().max(last.ticks()));
        last = last.max(now);
    }
    let wall = wall_since_epoch().expect("a clock that was set");
    let off = ticks(wall).abs_diff(last.ticks());
    assert!(off < ticks(MINUTE), "a new zone shows the time since 2024, and is {off} ticks off");
}

/// The environment variable by which the test detects that it is the second process.
const SECOND_PROCESS: &str = "TIDEGATE_TEST_ZONE";

#[test]
#[cfg_attr(miri, ignore = "it needs processes")]
fn two_processes_have_one_zone_and_one_time() {
    if let Some(path) = env::var_os(SECOND_PROCESS) {
        let zone = Arc::new(ZoneFile::open(Path::new(&path), 2, 128, None).unwrap());
        let cells = zone.cells::<AtomicU64>();
        cells[0].store(zone.seed()[0], Ordering::Relaxed);
        cells[1].store(zone.clock().now().ticks(), Ordering::Relaxed);
        return;
    }
    let folder = Folder::new();
    let path = folder.path("zone.tg");
    let zone = Arc::new(ZoneFile::open(&path, 2, 128, None).unwrap());
    let before = zone.clock().now();
    let (_, name) = module_path!().split_once("::").unwrap();
    let mut second = Command::new(env::current_exe().unwrap());
    second.args(["--exact", &format!("{name}::two_processes_have_one_zone_and_one_time")]);
    let output = second.env(SECOND_PROCESS, &path).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    let [seed, theirs] = [0, 1].map(|cell| zone.cells::<AtomicU64>()[cell].load(Ordering::Relaxed));
    assert_eq!(seed, zone.seed()[0]);
    let (theirs, after) = (Timestamp::from_ticks(theirs), zone.clock().now());
    assert!(theirs.saturating_add(OUT_OF_ORDER) >= before, "{theirs:?} after {before:?}");
    assert!(after.saturating_add(OUT_OF_ORDER) >= theirs, "{after:?} after {theirs:?}");
}
