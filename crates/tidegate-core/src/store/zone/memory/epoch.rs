//! The time of a zone when it is opened, which is never earlier than before.
//!
//! While the machine runs, its boot-time clock is the clock of all processes that have the zone open. The record holds
//! the offset of the zone's time from it. After a restart only the wall clock shows how much time has passed, and it
//! may have been set. Whatever it shows, the zone continues from the latest recorded time, and advances by ten years at
//! most.

use std::time::Duration;

use super::record::ClockRecord;
use crate::time::boot::{BootId, boot_id, since_boot, since_epoch, wall};
use crate::time::{BEGINNING, OUT_OF_ORDER, Ticks};

/// The most that the wall clock and the boot-time clock may drift apart before the wall clock counts as set.
const SET: Duration = Duration::from_secs(1);

/// A reading of the machine's clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// The boot of the machine, if it is known.
    pub(super) boot: Option<BootId>,
    pub(super) since_boot: Ticks,
    /// The wall clock, since 1970.
    pub(super) wall: Duration,
}

impl Reading {
    pub(super) fn now() -> Reading {
        Reading::since(boot_id())
    }

    /// Reads the clocks in a process that already has the boot id.
    pub(super) fn since(boot: Option<BootId>) -> Reading {
        Reading { boot, since_boot: Ticks::saturating_from(since_boot()), wall: wall() }
    }

    /// Returns a record with the zone's current time.
    fn record(&self, sequence: u64, zone: u64) -> ClockRecord {
        let offset = zone.wrapping_sub(self.since_boot.get());
        ClockRecord { sequence, boot: self.boot, offset, wall: self.wall_nanoseconds(), zone }
    }

    fn wall_nanoseconds(&self) -> u64 {
        u64::try_from(self.wall.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Returns the first record of a new zone. Its time is the time since 2024 if the wall clock is plausible.
pub(super) fn begin(now: &Reading) -> ClockRecord {
    now.record(1, Ticks::saturating_from(since_epoch(now.wall).unwrap_or_default().max(BEGINNING)).get())
}

/// Returns the record with which the zone continues: the one in force, or a new one that is to be written.
pub(super) fn settle(record: &ClockRecord, latest: u64, now: &Reading) -> ClockRecord {
    let next = |zone: u64| now.record(record.sequence.wrapping_add(1), zone);
    let latest = if is_sane(latest, record) { latest } else { 0 };
    let Some(passed) = by_boot(record, now) else {
        return next(record.zone.saturating_add(by_wall(record, now).get()).max(latest));
    };
    let zone = record.zone.saturating_add(passed.get());
    if zone.saturating_add(OUT_OF_ORDER.get()) < latest {
        return next(latest);
    }
    if was_set(record, now, passed) { next(zone) } else { record.clone() }
}

/// Returns a record that ties a zone in use to a wall clock which was set since the record in force was written.
/// Returns `None` if it was not set. The time of the zone does not change, for all processes that use it.
pub(super) fn after_setting(record: &ClockRecord, now: &Reading) -> Option<ClockRecord> {
    let passed = since(record, now).filter(|passed| was_set(record, now, *passed))?;
    let zone = record.zone.saturating_add(passed.get());
    Some(ClockRecord { boot: record.boot, ..now.record(record.sequence.wrapping_add(1), zone) })
}

/// Returns true if a mark can be a time that was read under this record.
pub(super) fn is_sane(latest: u64, record: &ClockRecord) -> bool {
    latest <= record.zone.saturating_add(Ticks::TEN_YEARS.get())
}

/// Returns the time since the record was written, if the machine has run ever since.
fn by_boot(record: &ClockRecord, now: &Reading) -> Option<Ticks> {
    let is_same = record.boot.is_some() && record.boot == now.boot;
    is_same.then(|| since(record, now)).flatten()
}

/// Returns the time since the record was written under the same boot. Returns `None` if the boot-time clock went back.
fn since(record: &ClockRecord, now: &Reading) -> Option<Ticks> {
    let written = Ticks::new(record.zone.wrapping_sub(record.offset));
    let went_back = now.since_boot.saturating_add(OUT_OF_ORDER) < written;
    (!went_back).then(|| now.since_boot.saturating_sub(written))
}

/// Returns the time since the record was written by the wall clock, ten years at most.
fn by_wall(record: &ClockRecord, now: &Reading) -> Ticks {
    let passed = now.wall_nanoseconds().saturating_sub(record.wall);
    Ticks::saturating_from(Duration::from_nanos(passed)).min(Ticks::TEN_YEARS)
}

/// Returns true if the wall clock was set since the record was written. Then a restart must not be bridged from the
/// recorded wall clock.
fn was_set(record: &ClockRecord, now: &Reading, passed: Ticks) -> bool {
    let expected = Duration::from_nanos(record.wall).saturating_add(passed.to_duration());
    expected.abs_diff(now.wall) > SET
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{DAY, HOUR, MINUTE, SECOND};

    const HERE: Option<BootId> = Some([1; 16]);
    const OTHER_BOOT: Option<BootId> = Some([2; 16]);
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    const IN_2024: Duration = Duration::from_secs(1_704_067_200);

    fn ticks(duration: Duration) -> u64 {
        Ticks::saturating_from(duration).get()
    }

    fn reading(boot: Option<BootId>, since_boot: Duration, wall: Duration) -> Reading {
        Reading { boot, since_boot: Ticks::saturating_from(since_boot), wall }
    }

    /// Returns the record of a zone that was created when the machine had run for an hour.
    fn made() -> ClockRecord {
        begin(&reading(HERE, HOUR, IN_2024))
    }

    /// Returns the time of a zone by this record when the machine has run for `since_boot`.
    fn zone_at(record: &ClockRecord, since_boot: Duration) -> u64 {
        ticks(since_boot).wrapping_add(record.offset)
    }

    #[test]
    fn a_new_zone_shows_the_time_since_2024_if_the_wall_clock_is_believed() {
        for since in [SECOND, DAY, 25 * YEAR] {
            assert_eq!(begin(&reading(HERE, HOUR, IN_2024 + since)).zone, ticks(since));
        }
        for wall in [Duration::ZERO, IN_2024 - SECOND, IN_2024 + 27 * YEAR, Duration::MAX] {
            assert_eq!(begin(&reading(HERE, HOUR, wall)).zone, ticks(SECOND), "{wall:?}");
        }
    }

    #[test]
    fn a_new_zone_is_at_least_a_second_old_however_long_the_machine_has_run() {
        for since_boot in [Duration::ZERO, SECOND, HOUR, 30 * YEAR] {
            let record = begin(&reading(HERE, since_boot, IN_2024));
            assert_eq!(record.zone, ticks(SECOND));
            assert_eq!(zone_at(&record, since_boot), ticks(SECOND));
            assert_eq!(zone_at(&record, since_boot + MINUTE), ticks(SECOND + MINUTE));
            assert_eq!((record.sequence, record.boot), (1, HERE));
            assert_eq!(record.wall, 1_704_067_200_000_000_000);
        }
    }

    #[test]
    fn while_the_machine_runs_the_record_stays() {
        for passed in [Duration::ZERO, SECOND, DAY, YEAR] {
            let now = reading(HERE, HOUR + passed, IN_2024 + passed);
            for latest in [0, ticks(SECOND), ticks(SECOND + passed)] {
                assert_eq!(settle(&made(), latest, &now), made());
            }
        }
    }

    #[test]
    fn readings_that_are_out_of_order_are_no_step() {
        let now = reading(HERE, HOUR, IN_2024);
        let forgiven = ticks(SECOND) + OUT_OF_ORDER.get();
        assert_eq!(settle(&made(), forgiven, &now), made());
        assert_eq!(settle(&made(), forgiven + 1, &now).zone, forgiven + 1);
        let early = Reading { since_boot: Ticks::new(ticks(HOUR) - OUT_OF_ORDER.get()), ..now };
        assert_eq!(settle(&made(), 0, &early), made());
        let too_early = Reading { since_boot: Ticks::new(early.since_boot.get() - 1), ..now };
        assert_eq!(settle(&made(), 0, &too_early).sequence, 2);
    }

    #[test]
    fn a_restart_is_bridged_by_the_wall_clock() {
        for off in [SECOND, HOUR, YEAR, 9 * YEAR] {
            let now = reading(OTHER_BOOT, MINUTE, IN_2024 + off);
            let record = settle(&made(), ticks(SECOND), &now);
            assert_eq!(record.zone, ticks(SECOND + off));
            assert_eq!(zone_at(&record, MINUTE), record.zone);
            assert_eq!((record.sequence, record.boot), (2, OTHER_BOOT));
            assert_eq!(Duration::from_nanos(record.wall), IN_2024 + off);
            assert_eq!(settle(&record, record.zone, &now), record, "it is settled");
        }
    }

    #[test]
    fn more_than_ten_years_are_ten_years() {
        let now = reading(OTHER_BOOT, MINUTE, IN_2024 + 11 * YEAR);
        assert_eq!(settle(&made(), 0, &now).zone, ticks(SECOND + 10 * YEAR));
    }

    #[test]
    fn a_wall_clock_that_was_set_back_takes_no_time_away() {
        for wall in [Duration::ZERO, IN_2024 - DAY, IN_2024] {
            let now = reading(OTHER_BOOT, MINUTE, wall);
            assert_eq!(settle(&made(), 0, &now).zone, ticks(SECOND));
            assert_eq!(settle(&made(), ticks(DAY), &now).zone, ticks(DAY), "the mark is later");
        }
    }

    #[test]
    fn the_later_of_wall_clock_and_mark_counts() {
        let now = reading(OTHER_BOOT, MINUTE, IN_2024 + HOUR);
        assert_eq!(settle(&made(), ticks(SECOND + HOUR) - 1, &now).zone, ticks(SECOND + HOUR));
        assert_eq!(settle(&made(), ticks(SECOND + HOUR) + 1, &now).zone, ticks(SECOND + HOUR) + 1);
    }

    #[test]
    fn a_start_of_the_machine_without_a_name_is_always_another() {
        let unknown = ClockRecord { boot: None, ..made() };
        for (record, boot) in [(&unknown, None), (&unknown, HERE), (&made(), None)] {
            let now = reading(boot, HOUR + MINUTE, IN_2024 + MINUTE);
            let settled = settle(record, 0, &now);
            assert_eq!((settled.sequence, settled.boot), (2, boot));
            assert_eq!(settled.zone, ticks(SECOND + MINUTE));
        }
    }

    #[test]
    fn a_clock_of_the_machine_that_went_back_takes_no_time_away() {
        let latest = ticks(SECOND + DAY);
        let before_the_record = reading(HERE, MINUTE, IN_2024 + HOUR);
        assert_eq!(settle(&made(), 0, &before_the_record).zone, ticks(SECOND + HOUR));
        assert_eq!(settle(&made(), latest, &before_the_record).zone, latest);
        let before_the_mark = reading(HERE, 2 * HOUR, IN_2024 + HOUR);
        let record = settle(&made(), latest, &before_the_mark);
        assert_eq!((record.zone, record.sequence), (latest, 2));
        assert_eq!(zone_at(&record, 2 * HOUR + SECOND), latest + ticks(SECOND));
    }

    #[test]
    fn a_mark_far_ahead_is_nonsense() {
        let sane = made().zone + Ticks::TEN_YEARS.get();
        for (boot, since_boot) in [(HERE, HOUR + MINUTE), (OTHER_BOOT, SECOND)] {
            let now = reading(boot, since_boot, IN_2024 + MINUTE);
            assert_eq!(settle(&made(), sane, &now).zone, sane);
            for latest in [sane + 1, u64::MAX] {
                let record = settle(&made(), latest, &now);
                assert_eq!(zone_at(&record, since_boot), ticks(SECOND + MINUTE));
            }
        }
    }

    #[test]
    fn once_the_wall_clock_was_set_a_restart_is_bridged_from_what_it_shows_since() {
        for set_to in [IN_2024 - YEAR, IN_2024 + 5 * YEAR] {
            let now = reading(HERE, HOUR + MINUTE, set_to);
            let record = settle(&made(), 0, &now);
            assert_eq!((record.sequence, record.offset), (2, made().offset));
            let restarted = reading(OTHER_BOOT, SECOND, set_to + MINUTE);
            assert_eq!(settle(&record, 0, &restarted).zone, ticks(SECOND + 2 * MINUTE));
        }
        let drifted = reading(HERE, HOUR + MINUTE, IN_2024 + MINUTE + SECOND);
        assert_eq!(settle(&made(), 0, &drifted), made());
    }

    #[test]
    fn a_wall_clock_that_was_set_changes_the_record_of_a_zone_in_use_and_not_its_time() {
        for boot in [HERE, None] {
            let made = ClockRecord { boot, ..made() };
            for set_to in [IN_2024 - 30 * YEAR, IN_2024 + DAY] {
                let record = after_setting(&made, &reading(boot, HOUR + MINUTE, set_to)).expect("it was set");
                assert_eq!((record.sequence, record.offset, record.boot), (2, made.offset, boot));
                assert_eq!(record.zone, ticks(SECOND + MINUTE));
                assert_eq!(Duration::from_nanos(record.wall), set_to);
                let later = reading(boot, HOUR + DAY, set_to + DAY - MINUTE);
                assert_eq!(after_setting(&record, &later), None, "it was set once");
            }
            for drift in [Duration::ZERO, SECOND] {
                let now = reading(boot, HOUR + DAY, IN_2024 + DAY + drift);
                assert_eq!(after_setting(&made, &now), None);
            }
            assert_eq!(
                after_setting(&made, &reading(boot, MINUTE, IN_2024 + YEAR)),
                None,
                "no clock to go by"
            );
        }
    }

    #[test]
    fn whatever_the_clocks_show_the_zone_does_not_go_back() {
        let spans = [Duration::ZERO, SECOND, HOUR, YEAR, 11 * YEAR, 40 * YEAR, Duration::MAX];
        for boot in [None, HERE, OTHER_BOOT] {
            for since_boot in spans {
                for wall in spans {
                    for latest in spans.map(ticks) {
                        let now = reading(boot, since_boot, wall);
                        let record = settle(&made(), latest, &now);
                        let zone = zone_at(&record, since_boot);
                        let floor = if is_sane(latest, &made()) { latest } else { 0 }.max(made().zone);
                        assert!(zone.saturating_add(OUT_OF_ORDER.get()) >= floor, "{now:?} {latest}");
                        let again = settle(&record, latest, &now);
                        assert!(zone_at(&again, since_boot) >= zone, "{now:?} {latest}");
                    }
                }
            }
        }
    }
}
