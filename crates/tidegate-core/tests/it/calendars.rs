//! Tests of calendar limits around the boundaries of their periods, and across restarts and steps of the clock.

use std::sync::Arc;

use conformance::keeper::{Crowd, Keeper, States};
use conformance::law::boundaries_are_exact;
use conformance::random::Random;
use tidegate::{
    Ask, CalendarPeriods, CalendarUnit, Cost, DAY, HOUR, Key, Limit, ManualClock, Map, PreparedLimit,
    Subject, TimeZone, Timestamp, Verdict, Zone,
};

/// 1,000 boundaries with 100 takes each, unless only a few are wanted.
fn boundaries_hold(mut keeper: impl Keeper) {
    let (seed, boundaries) = (Random::seed_from_environment(), if crate::is_quick() { 20 } else { 1_000 });
    let name = keeper.name();
    let passed = boundaries_are_exact(seed, boundaries, 100, 1, |now, limit, key, ask| {
        keeper.set_time(now);
        keeper.take(Subject::new("judged", key, limit), ask).0.is_allowed()
    });
    let passed = passed.unwrap_or_else(|broken| panic!("{name}: {broken}"));
    println!(
        "{boundaries} boundaries ({name}): {passed} of {} takes admitted (seed {seed})",
        boundaries * 100
    );
    assert!(passed > boundaries as u64);
}

#[test]
fn periods_are_cut_exactly_at_their_boundaries() {
    boundaries_hold(States::default());
}

#[test]
fn periods_are_cut_exactly_at_their_boundaries_on_a_map() {
    boundaries_hold(Crowd::<Map>::new(1));
}

#[test]
fn periods_are_cut_exactly_at_their_boundaries_on_a_zone() {
    boundaries_hold(Crowd::<Zone>::new(1));
}

fn days() -> CalendarPeriods {
    CalendarPeriods::new(CalendarUnit::Day)
}

/// Spends all of a limit for a key, half an hour after a midnight. Returns the time.
fn spend_all(zone: &Zone, clock: &ManualClock, limit: &PreparedLimit, key: &Key) -> Timestamp {
    let now = Timestamp::after_epoch(30 * DAY + HOUR / 2);
    clock.set(now);
    let all = Ask::new(Cost::of(limit.limit().burst_size().expect("an amount")));
    assert!(zone.take(limit.subject(key), all).0.is_allowed());
    now
}

#[test]
fn a_spent_key_stays_spent_across_clock_steps_of_an_hour() {
    let (clock, key) = (Arc::new(ManualClock::new()), Key::new("ana"));
    let zone = Zone::with_clock(1 << 20, clock.clone());
    let limit = PreparedLimit::of_rule("quota", Limit::calendar(3, days()));
    let now = spend_all(&zone, &clock, &limit, &key);
    // Across midnight and back: the day before is not opened again.
    for at in [now.ticks(), Timestamp::after_epoch(30 * DAY - HOUR / 2).ticks(), now.ticks()] {
        clock.set(Timestamp::from_ticks(at));
        let denied = zone.peek(limit.subject(&key), Ask::ONE);
        let until = Timestamp::after_epoch(31 * DAY).since(Timestamp::from_ticks(at));
        assert_eq!(denied.verdict_in_ticks(), Verdict::Denied { retry_after: until });
    }
    clock.set(Timestamp::after_epoch(30 * DAY + HOUR + HOUR / 2));
    assert!(!zone.peek(limit.subject(&key), Ask::ONE).is_allowed());
    clock.set(Timestamp::after_epoch(31 * DAY));
    assert_eq!(zone.peek(limit.subject(&key), Ask::ONE).remaining(), 3);
}

#[test]
fn a_spent_key_stays_spent_when_the_time_zone_of_its_rule_changes() {
    let (clock, key) = (Arc::new(ManualClock::new()), Key::new("ana"));
    for store in [Zone::with_clock(1 << 20, clock.clone()), Zone::with_clock(0, clock.clone())] {
        let limit = |name: &str, offset: i32| {
            let zone = TimeZone::new(name, offset * 3600, []).expect("an offset of hours");
            PreparedLimit::of_rule("quota", Limit::calendar(5, days().in_zone(zone)))
        };
        let [berlin, tokyo, lima] = [("Test/Berlin", 1), ("Test/Tokyo", 9), ("Test/Lima", -5)]
            .map(|(name, offset)| limit(name, offset));
        let now = spend_all(&store, &clock, &berlin, &key);
        // 00:30Z: the day of Berlin ends at 23:00Z, that of Tokyo at 15:00Z, that of Lima at 05:00Z.
        for (changed, hour) in [(&tokyo, 15), (&lima, 5), (&berlin, 23)] {
            let denied = store.peek(changed.subject(&key), Ask::ONE);
            assert_eq!(denied.remaining(), 0, "{changed:?}");
            let until = Timestamp::after_epoch(30 * DAY + hour * HOUR).since(now);
            assert_eq!(denied.verdict_in_ticks(), Verdict::Denied { retry_after: until }, "{changed:?}");
        }
        let raised = PreparedLimit::of_rule("quota", Limit::calendar(9, days()));
        assert_eq!(store.peek(raised.subject(&key), Ask::ONE).remaining(), 4);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_spent_key_stays_spent_across_a_restart_with_a_file() {
    let folder = std::env::temp_dir().join(format!("tidegate-calendar-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (path, key) = (folder.join("zone.tg"), Key::new("ana"));
    // A year, so that no midnight lies between the two readings; and one that does not fit a cell.
    for amount in [3, 1 << 40] {
        let limit = || {
            let years = CalendarPeriods::new(CalendarUnit::Year);
            PreparedLimit::of_rule(&format!("quota {amount}"), Limit::calendar(amount, years))
        };
        let file = || Zone::in_file(&path, 1 << 20).expect("a file");
        let (first, all) = (file(), Ask::new(Cost::of(amount)));
        assert!(first.take(limit().subject(&key), all).0.is_allowed());
        drop(first);
        assert_eq!(file().peek(limit().subject(&key), Ask::ONE).remaining(), 0, "{amount}");
    }
    std::fs::remove_dir_all(&folder).expect("it is there");
}
