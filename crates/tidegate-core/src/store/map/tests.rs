//! Tests of the internals of a map: its tables, its bounds, and the entries that it drops.

use std::hash::Hasher;

use super::shard::{Newcomer, Now, StateRef};
use super::*;
use crate::time::{OUT_OF_ORDER, Timestamp};
use crate::{
    Adjusted, Adjustment, Ask, Cost, Decision, Key, Limit, ManualClock, PermitId, PreparedLimit, SECOND,
    State, Subject,
};

const ONE: Limit = Limit::per_second(1);

fn map() -> (Map, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    (Map::with_clock(clock.clone()), clock)
}

fn take(map: &Map, key: impl IntoKeyText, limit: &Limit) -> Decision {
    map.take(Subject::new("n", &key.key(), limit), Ask::ONE).0
}

/// A conversion of numbers and texts into keys.
trait IntoKeyText {
    fn key(self) -> Key;
}

impl IntoKeyText for &str {
    fn key(self) -> Key {
        Key::new(self)
    }
}

impl IntoKeyText for usize {
    fn key(self) -> Key {
        Key::new(self)
    }
}

fn many() -> usize {
    if cfg!(miri) { 120 } else { 20_000 }
}

#[test]
fn a_reset_reports_a_live_state_only() {
    let ((map, clock), key) = (map(), Key::new("ana"));
    let reset = || map.reset(Subject::new("n", &key, &ONE)).unwrap();
    assert!(!reset(), "never seen");
    assert!(take(&map, "ana", &ONE).is_allowed() && reset() && !reset());

    assert!(take(&map, "ana", &ONE).is_allowed());
    clock.advance(SECOND);
    assert!(!reset(), "its debt is repaid, whether or not the map has dropped it");
}

#[test]
fn the_last_key_is_stored_and_one_more_is_denied_with_the_reason() {
    let (map, clock) = map();
    let map = map.max_keys(10);
    for key in 0..10 {
        assert!(take(&map, key, &ONE).is_allowed());
    }
    let refused = take(&map, 10, &ONE);
    assert!(!refused.is_allowed() && refused.is_store_full());
    assert_eq!(refused.retry_after(), Some(SECOND));
    assert_eq!(map.keys(), 10);
    assert!(!take(&map, 3, &ONE).is_store_full(), "those who are in are judged by their limit");
    assert_eq!(map.peek(Subject::new("n", &Key::new(10_u8), &ONE), Ask::ONE).remaining(), 1);

    clock.advance(2 * SECOND);
    let passed = (10..30).filter(|key| take(&map, *key, &ONE).is_allowed()).count();
    assert!(passed >= 5, "{passed} newcomers found the room of those who are clear");
    assert!(map.keys() <= 10);
}

#[test]
fn a_map_never_holds_more_bytes_than_it_may() {
    for most in [0, 1000, 20_000, 300_000].into_iter().take(if cfg!(miri) { 3 } else { 4 }) {
        let (map, _) = map();
        let map = map.max_bytes(most);
        let (mut refused, mut peak) = (0, 0);
        for key in 0..many() {
            refused += usize::from(take(&map, key, &ONE).is_store_full());
            peak = peak.max(map.bytes());
        }
        assert!(peak <= most, "{peak} of {most} bytes");
        assert!(refused > 0 && refused + map.keys() == many(), "{refused} refused, {} kept", map.keys());
        assert!(most < 10_000 || peak > most / 4, "{peak} of {most} bytes");
    }
}

#[test]
fn a_state_that_would_outgrow_the_map_is_refused_too() {
    let (map, clock) = map();
    let most = if cfg!(miri) { 4_000 } else { 16_000 };
    let map = map.max_bytes(most);
    let log = Limit::sliding_log(100_000, SECOND);
    let mut passed = 0;
    let refused = loop {
        clock.advance(std::time::Duration::from_nanos(1));
        let decision = take(&map, "ana", &log);
        if !decision.is_allowed() {
            break decision;
        }
        passed += 1;
    };
    assert!(refused.is_store_full());
    assert!(passed > most / 200, "{passed}");
    assert!(map.bytes() <= most);
    let permits = Limit::concurrency(100, SECOND);
    let held = (0..100).take_while(|_| take(&map, "bob", &permits).is_allowed()).count();
    assert!((1..100).contains(&held), "{held}");
    assert!(map.bytes() <= most, "{}", map.bytes());
    assert!(map.reset(Subject::new("n", &Key::new("ana"), &log)).is_ok());
    assert!(take(&map, "bob", &permits).is_allowed());
}

#[test]
fn a_refused_newcomer_is_not_remembered() {
    let (map, _) = map();
    let key = Key::new("ana");
    let subject = Subject::new("n", &key, &ONE);
    assert!(!map.take(subject, Ask::new(Cost::of(2))).0.is_allowed());
    let _ = map.peek(subject, Ask::ONE);
    assert!(!map.release(subject, PermitId::LAST));
    assert_eq!(map.adjust(subject, Adjustment::Refund(Cost::ONE)), Adjusted::Capped);
    assert_eq!(map.keys(), 0);
    assert_eq!(map.state(subject), State::default());
}

#[test]
fn after_all_have_expired_a_few_takes_bring_the_memory_back() {
    let (map, clock) = map();
    for key in 0..many() {
        assert!(take(&map, key, &ONE).is_allowed());
    }
    assert_eq!(map.keys(), many());
    let peak = map.bytes();
    clock.advance(2 * SECOND);
    let others = ["a", "b", "c", "d"];
    for round in 0..many() / 2 {
        let _ = take(&map, others[round % others.len()], &ONE);
    }
    // Miri is too slow for so many takes.
    assert!(cfg!(miri) || map.keys() <= others.len() + many() / 50, "{} keys", map.keys());
    assert!(cfg!(miri) || map.bytes() * 20 < peak, "{} of {peak} bytes", map.bytes());
}

#[test]
fn what_is_not_clear_outlives_every_sweep() {
    let (map, clock) = map();
    let slow = Limit::per_hour(1);
    for key in 0..100 {
        assert!(take(&map, key, &slow).is_allowed());
    }
    for round in 0..20 {
        for key in 0..many() / 10 {
            let _ = take(&map, 1000 + round * many() + key, &ONE);
        }
        clock.advance(SECOND);
    }
    for key in 0..100 {
        assert!(!take(&map, key, &slow).is_allowed(), "{key} was forgotten");
    }
}

#[test]
fn each_namespace_and_algorithm_has_its_own_state_and_reset_drops_all_of_a_subject() {
    let (map, _) = map();
    let limits = ["1/s", "1/s leaky-bucket", "1/s fixed-window", "1/s sliding-log", "1/s sliding-window"];
    let limits = limits.map(|text| text.parse::<Limit>().unwrap());
    let key = Key::new("ana");
    for namespace in ["a", "b"] {
        for limit in &limits {
            let subject = Subject::new(namespace, &key, limit);
            assert!(map.take(subject, Ask::ONE).0.is_allowed());
            assert!(!map.take(subject, Ask::ONE).0.is_allowed());
        }
    }
    assert_eq!(map.keys(), 10);
    assert!(map.reset(Subject::new("a", &key, &ONE)).is_ok_and(|was_known| was_known));
    assert_eq!(map.keys(), 5);
    let again = |namespace| map.take(Subject::new(namespace, &key, &ONE), Ask::ONE).0.is_allowed();
    assert!(again("a") && !again("b"));
}

#[test]
fn a_rule_with_a_longer_period_finds_what_the_shorter_one_counts_until_that_is_clear() {
    for texts in [["2/s sliding-log", "2/m sliding-log"], ["2/s sliding-window", "2/m sliding-window"]] {
        let [short, long] = texts.map(|text| PreparedLimit::of_rule("n", text.parse().unwrap()));
        let (map, clock) = map();
        let key = Key::new("ana");
        let both = Ask::new(Cost::of(2));
        assert!(map.take(short.subject(&key), both).0.is_allowed());
        let others = |map: &Map| {
            for key in 0..many() {
                let _ = take(map, key, &ONE);
            }
        };
        others(&map);
        let denied = map.take(long.subject(&key), Ask::ONE).0;
        assert!(!denied.is_allowed(), "{long:?}");
        clock.advance(denied.retry_after().unwrap());
        others(&map);
        assert!(map.take(long.subject(&key), Ask::ONE).0.is_allowed(), "{long:?}");
        clock.advance(2 * crate::HOUR);
        others(&map);
        let is_forgotten = map.state(long.subject(&key)) == State::default();
        assert!(cfg!(miri) || is_forgotten, "in the end it is forgotten under {long:?}");
    }
}

#[test]
fn a_pacers_debt_is_remembered_until_its_savings_are_full() {
    let limit: Limit = "1/s pacer burst 50s".parse().unwrap();
    let (map, clock) = map();
    clock.advance(1000 * SECOND);
    let key = Key::new("ana");
    let ana = Subject::new("n", &key, &limit);
    assert!(map.take(ana, Ask::new(Cost::of(150))).0.is_allowed());
    clock.advance(110 * SECOND);
    for key in 0..many() {
        let _ = take(&map, key, &ONE);
    }
    assert_eq!(map.peek(ana, Ask::ONE).remaining(), 10, "it has saved for ten seconds");
}

#[test]
fn a_take_is_given_back_once() {
    let (map, _) = map();
    let key = Key::new("ana");
    let subject = Subject::new("n", &key, &ONE);
    let (decision, receipt) = map.take(subject, Ask::ONE);
    assert!(decision.is_allowed());
    assert_eq!(map.give_back(subject, receipt.unwrap()), Adjusted::Whole);
    let (again, receipt) = map.take(subject, Ask::ONE);
    assert!(again.is_allowed());
    let (refused, none) = map.take(subject, Ask::ONE);
    assert!(!refused.is_allowed() && none.is_none());
    assert_eq!(map.give_back(subject, receipt.unwrap()), Adjusted::Whole);
    assert_eq!(map.peek(subject, Ask::ONE).remaining(), 1);
}

#[test]
fn places_in_flight_are_released_and_renewed_by_their_permit() {
    let (map, clock) = map();
    let limit = Limit::concurrency(1, SECOND);
    let key = Key::new("ana");
    let subject = Subject::new("n", &key, &limit);
    let permit = map.take(subject, Ask::ONE).0.permit().unwrap();
    clock.advance(SECOND / 2);
    assert!(map.renew(subject, permit));
    clock.advance(SECOND / 2);
    assert!(!map.take(subject, Ask::ONE).0.is_allowed(), "the renewed lease runs on");
    assert!(map.release(subject, permit) && !map.release(subject, permit));
    assert!(!map.renew(subject, permit));
    assert!(map.take(subject, Ask::ONE).0.is_allowed());
}

/// Permits were once numbered consecutively: the holder of one could compute its neighbour's, and release it.
#[test]
fn a_holder_cannot_count_on_to_the_permit_of_its_neighbour() {
    let limit = Limit::concurrency(5, SECOND);
    let key = Key::new("ana");
    let subject = Subject::new("n", &key, &limit);
    let taken_alone = |map: &Map| map.take(subject, Ask::ONE).0.permit().unwrap();
    let taken_together = |map: &Map| map.take_all(&[(subject, Ask::ONE)]).each()[0].permit().unwrap();
    let takes: [&dyn Fn(&Map) -> PermitId; 2] = [&taken_alone, &taken_together];
    for take in takes {
        let (map, _) = map();
        let mine = take(&map).number();
        let others: Vec<PermitId> = (1..5).map(|_| take(&map)).collect();
        for step in 1..100 {
            for guess in [mine.wrapping_add(step), mine.wrapping_sub(step)] {
                let guess = PermitId::from_number(guess).unwrap();
                assert!(!map.release(subject, guess) && !map.renew(subject, guess), "{mine:x} and {step}");
            }
        }
        assert!(!map.take(subject, Ask::ONE).0.is_allowed(), "all five places are still held");
        assert!(others.into_iter().all(|permit| map.release(subject, permit)));
    }
}

/// The same program, started twice, does not issue the same permits.
#[test]
fn two_maps_give_different_permits_at_one_instant() {
    let limit = Limit::concurrency(1, SECOND);
    let key = Key::new("ana");
    let permits =
        [map().0, map().0].map(|map| map.take(Subject::new("n", &key, &limit), Ask::ONE).0.permit());
    assert_ne!(permits[0], permits[1]);
}

#[test]
fn one_call_moves_a_few_hundred_entries_however_many_there_are() {
    let budget = Budget::new(usize::MAX, usize::MAX);
    let at = |time: u64| Now { time: Timestamp::from_ticks(time * OUT_OF_ORDER.get() / 5) };
    let mut shard = Shard::default();
    let (mut names, mut most) = (0_u64, 0);
    let mut insert = |shard: &mut Shard, now: u64| {
        names += 1;
        let hash = hash_of(names);
        assert!(
            shard
                .insert(
                    newcomer(hash, &names.to_le_bytes()),
                    State::default(),
                    Timestamp::EPOCH,
                    at(now),
                    &budget
                )
                .is_ok()
        );
    };
    // Filled and emptied repeatedly, so that tables are full of holes.
    for round in 0..if cfg!(miri) { 2 } else { 8 } {
        for _ in 0..many() / (round + 1) {
            insert(&mut shard, 0);
            most = most.max(shard.largest());
        }
        for _ in 0..many() / 64 {
            shard.tend(if round % 2 == 0 { 64 } else { 16 }, at(5), &budget);
            insert(&mut shard, 5);
        }
        assert_eq!(budget.bytes(), shard.bytes());
    }
    assert!(most <= 500, "{most} entries in one table");
    for _ in 0..2 * many() {
        shard.tend(64, at(9), &budget);
    }
    assert_eq!((budget.keys(), shard.len(), shard.tables()), (0, 0, 1));
    assert_eq!((budget.bytes(), shard.bytes()), (0, 0));
}

/// The table that is removed last must not be allocated after others: an allocator would keep all of them until then.
#[test]
fn the_first_table_has_its_size_before_the_others_come() {
    let (budget, now) = (Budget::new(usize::MAX, usize::MAX), Now { time: Timestamp::EPOCH });
    let mut shard = Shard::default();
    for name in 0..many() as u64 {
        assert!(
            shard
                .insert(
                    newcomer(hash_of(name), &name.to_le_bytes()),
                    State::default(),
                    Timestamp::LAST,
                    now,
                    &budget
                )
                .is_ok()
        );
        if shard.tables() > 2 {
            assert_eq!(shard.buckets_of_first(), Some(512), "with {} tables", shard.tables());
        }
    }
    assert!(shard.tables() > 16 || cfg!(miri));
}

fn newcomer(hash: u64, name: &[u8]) -> Newcomer<'_> {
    Newcomer { hash, named: named(name), terms: ONE.terms() }
}

fn named(name: &[u8]) -> StateRef<'_> {
    StateRef { limit: 7, name }
}

fn hash_of(name: u64) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write_u64(name);
    hasher.finish()
}

#[test]
fn every_entry_is_found_while_tables_move() {
    let budget = Budget::new(usize::MAX, usize::MAX);
    let now = Now { time: Timestamp::EPOCH };
    let mut shard = Shard::default();
    let hash = |name: usize| hash_of(name as u64);
    let most = many() / 10;
    for name in 0..most {
        assert!(
            shard
                .insert(
                    newcomer(hash(name), &name.to_le_bytes()),
                    State::default(),
                    Timestamp::LAST,
                    now,
                    &budget
                )
                .is_ok()
        );
        for seen in (0..=name).step_by(7) {
            assert!(shard.find(hash(seen), named(&seen.to_le_bytes())).is_some(), "{seen} of {name}");
            assert!(shard.find_mut(hash(seen), named(&seen.to_le_bytes())).is_some());
        }
    }
    assert_eq!(shard.len(), most);
    for name in 0..most {
        shard.remove(hash(name), named(&name.to_le_bytes()), &budget);
        shard.remove(hash(name), named(&name.to_le_bytes()), &budget);
        assert!(shard.find(hash(name), named(&name.to_le_bytes())).is_none());
        shard.tend(16, now, &budget);
        assert_eq!(shard.len(), most - name - 1);
    }
    assert_eq!(budget.keys(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "thousands of locks are made")]
fn shards_multiply_with_the_keys_that_may_come() {
    let shards = |keys| Map::new().max_keys(keys).inner.shards.len();
    assert_eq!([shards(0), shards(KEYS_PER_SHARD)], [FEWEST_SHARDS; 2]);
    assert_eq!(shards(2 * FEWEST_SHARDS * KEYS_PER_SHARD), 2 * FEWEST_SHARDS);
    assert_eq!([shards(MOST_SHARDS * KEYS_PER_SHARD), shards(usize::MAX)], [MOST_SHARDS; 2]);
}

/// Room for the second of two limits was once made by dropping the clear state of the first, whose take was then not
/// stored.
#[test]
fn a_take_of_several_in_a_full_map_is_remembered_or_denied() {
    let (one, two): (Limit, Limit) =
        ("1/h sliding-log".parse().unwrap(), "1/2h sliding-log".parse().unwrap());
    let long: Limit = "1/10h sliding-log".parse().unwrap();
    for round in 0..100_u64 {
        let (map, clock) = map();
        let map = map.max_keys(10);
        clock.advance(SECOND);
        let key = Key::new(round);
        let [first, second] = [&one, &two].map(|limit| Subject::new("n", &key, limit));
        assert!(map.take(first, Ask::ONE).0.is_allowed());
        assert_eq!((0..20).filter(|number: &usize| take(&map, number + 100, &long).is_allowed()).count(), 9);
        clock.advance(3 * 3600 * SECOND);
        let both = map.take_all(&[(first, Ask::ONE), (second, Ask::ONE)]);
        for limit in [first, second] {
            assert_eq!(map.peek(limit, Ask::ONE).is_allowed(), !both.is_allowed(), "round {round}");
        }
    }
}
