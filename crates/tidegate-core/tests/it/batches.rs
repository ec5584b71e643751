//! Tests of batches: asks that are decided in one call get the decisions of single asks at one instant.

use std::sync::Arc;
use std::time::Duration;

use conformance::arm::{Arm, OnAdHoc, OnLimiter, Pure};
use conformance::batch::{Compared, is_a_sequence};
use conformance::clock::TickingClock;
use conformance::keeper::{Crowd, twin_zones};
use conformance::promise::{KINDS, Promise};
use conformance::random::Random;
use tidegate::{
    Ask, Clock, Decision, DynamicAsk, DynamicLimiter, HOUR, Key, Limit, Limiter, MILLISECOND, Map,
    MemoryStore, PreparedLimit, Subject, Ticks, Timestamp, Zone, Zones, admit_all,
};

/// The steps of the clock between two readings: none, a millisecond, and the pause of a sleeping thread.
const STEPS: [Duration; 3] = [Duration::ZERO, MILLISECOND, Duration::from_millis(60)];

fn clock(step: Duration) -> Arc<TickingClock> {
    let clock = Arc::new(TickingClock::new());
    clock.set(Timestamp::after_epoch(HOUR));
    clock.tick(Ticks::saturating_from(step).max(conformance::ticks(1)));
    clock
}

fn stores(clock: &Arc<TickingClock>) -> [MemoryStore; 2] {
    [
        MemoryStore::from(&Zone::with_clock(1 << 16, clock.clone())),
        MemoryStore::from(&Map::with_clock(clock.clone())),
    ]
}

fn verdicts(decisions: impl IntoIterator<Item = Decision>) -> Vec<(bool, u64)> {
    decisions.into_iter().map(|decision| (decision.is_allowed(), decision.remaining())).collect()
}

/// Returns `burst` allowed decisions, and two denials.
fn whole_burst(burst: u64) -> Vec<(bool, u64)> {
    (0..burst).rev().map(|left| (true, left)).chain([(false, 0); 2]).collect()
}

#[test]
fn a_new_key_in_a_batch_has_its_whole_burst() {
    for (step, burst) in STEPS.iter().flat_map(|step| [1, 2, 5, 16, 40].map(|burst| (*step, burst))) {
        for text in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
            let limit: Limit = format!("{burst}/d {text}").parse().expect("a limit");
            let asks = || std::iter::repeat_n("ana", burst as usize + 2);
            for memory in stores(&clock(step)) {
                let limiter = Limiter::on(&memory, "", limit);
                let each = verdicts(limiter.admit_each(asks()));
                assert_eq!(each, whole_burst(burst), "{limit} in steps of {step:?} on {memory:?}");
            }
            for memory in stores(&clock(step)) {
                let (adhoc, mut each) = (DynamicLimiter::on(&memory, ""), Vec::new());
                let limit = adhoc.prepare(limit);
                let asks = asks().map(|key| DynamicAsk::new(key, &limit, Ask::ONE));
                adhoc.admit_each(asks, |decision| each.push(decision));
                assert_eq!(
                    verdicts(each),
                    whole_burst(burst),
                    "{limit:?} in steps of {step:?} on {memory:?}"
                );
            }
        }
    }
}

#[test]
fn all_or_none_asks_have_the_whole_burst_of_a_new_key() {
    for (step, burst) in STEPS.iter().flat_map(|step| [1, 2, 5, 16].map(|burst| (*step, burst))) {
        for memory in stores(&clock(step)) {
            let limiter = Limiter::on(&memory, "", Limit::token_bucket(burst, 24 * HOUR));
            let all = |key: &str, count| admit_all((0..count).map(|_| limiter.ask(key))).is_allowed();
            assert!(!all("ana", burst + 1) && all("ana", burst) && !all("ana", 1), "{burst} on {memory:?}");
        }
    }
}

#[test]
fn a_batch_is_decided_at_its_first_reading_of_the_clock() {
    let limits =
        ["3/s burst 5", "2/s queue 4 leaky-bucket", "7/m fixed-window", "6/s sliding-log", "4/s pacer"];
    let limits = limits.map(|text| PreparedLimit::dynamic("", text.parse().expect("a limit")));
    let keys = ["ana", "bob", "ana", "eve", "bob", "ana", "ana", "joe", "joe", "eve", "ana", "bob"];
    let asks = || keys.iter().flat_map(|key| limits.iter().map(move |limit| (*key, limit)));
    let at = |ms: u32| Timestamp::after_epoch(HOUR + ms * MILLISECOND);
    let still = clock(Duration::ZERO);
    still.tick(Ticks::ZERO);
    let going = clock(Duration::from_micros(100));
    for (memory, twin) in stores(&going).into_iter().zip(stores(&still)) {
        let (batched, single) = (DynamicLimiter::on(&memory, ""), DynamicLimiter::on(&twin, ""));
        for ms in [0, 100, 333, 334, 1000, 3000] {
            going.set(at(ms));
            still.set(at(ms));
            let expected: Vec<_> = asks().map(|(key, limit)| single.admit(key, limit, Ask::ONE)).collect();
            let mut got = Vec::new();
            let asked = asks().map(|(key, limit)| DynamicAsk::new(key, limit, Ask::ONE));
            batched.admit_each(asked, |decision| got.push(decision));
            assert_eq!(got.len(), expected.len());
            for ((got, expected), (key, limit)) in got.iter().zip(&expected).zip(asks()) {
                assert_eq!(got, expected, "{key} under {limit:?} at {ms} ms on {memory:?}");
            }
        }
    }
}

#[test]
fn a_map_forgets_nothing_that_counts_at_the_instant_of_a_batch() {
    let (start, clock) = (Timestamp::after_epoch(HOUR), clock(Duration::ZERO));
    let prepared = |text: &str| PreparedLimit::dynamic("", text.parse().expect("a limit"));
    let (brief, quick) = (prepared("1/1ms"), prepared("1/1us"));
    for text in ["1/s sliding-log", "1/s pacer burst 0s", "1/s fixed-window align first-hit"] {
        let limit = prepared(text);
        let adhoc = DynamicLimiter::on(&Map::with_clock(clock.clone()), "");
        clock.tick(Ticks::ZERO);
        clock.set(start);
        assert!(adhoc.admit("ana", &limit, Ask::ONE).is_allowed(), "{text}");
        // The batch starts while her state counts and ends when it does not; other keys cause a sweep of the map
        // meanwhile.
        clock.set(start.saturating_add(Ticks::saturating_from(990 * MILLISECOND)));
        clock.tick(Ticks::saturating_from(Duration::from_micros(15)));
        let others: Vec<_> = (0..2000).map(|name| format!("other {name}")).collect();
        let ask = |key, limit| DynamicAsk::new(key, limit, Ask::ONE);
        let others = others.iter().map(|name| ask(name.as_str(), &quick));
        let asks = others.chain([ask("ana", &limit), ask("bob", &brief), ask("bob", &brief)]);
        let mut got = Vec::new();
        adhoc.admit_each(asks, |decision| got.push(decision));
        assert!(clock.now() > start.saturating_add(Ticks::saturating_from(1005 * MILLISECOND)), "{text}");
        assert_eq!(got[2000].retry_after(), Some(10 * MILLISECOND), "{text}");
        assert_eq!((got[2001].is_allowed(), got[2002].is_allowed()), (true, false), "after {text}");
    }
}

/// The steps of the clock at every reading while a batch is decided: none, a tick, 100 microseconds.
const TICKS: [Ticks; 3] = [Ticks::ZERO, conformance::ticks(1), conformance::ticks(1_600_000)];

/// The algorithms whose states are in the cells of a zone.
const IN_CELLS: [&str; 4] = ["token-bucket", "leaky-bucket", "fixed-window", "calendar"];

/// Compares batches on one arm with single takes on another, under limits of this kind and with each step of the
/// clock.
fn compare<B: Arm, S: Arm>(kind: &str, arms: impl Fn(Limit) -> (B, S)) -> Compared {
    let first = Random::seed_from_environment();
    let mut all = Compared::default();
    for (seed, tick) in (first..).take(crate::cases(1200) as usize / 100).zip(TICKS.into_iter().cycle()) {
        let promise = Promise::modest(kind, &mut Random::new(seed));
        let (mut batched, mut single) = arms(promise.limit());
        match is_a_sequence(&mut batched, &mut single, &promise, (seed, 60), tick) {
            Ok(compared) => all.add(compared),
            Err(what) => panic!("{kind}, TIDEGATE_SEED={seed}, {tick:?} at every reading: {what}"),
        }
    }
    all
}

fn is_a_mix(compared: &Compared) -> bool {
    let Compared { takes, new, repeated, denied } = *compared;
    new > takes / 10 && repeated > takes / 10 && denied > takes / 20 && denied < takes
}

#[test]
fn random_batches_are_answered_as_single_takes_by_every_store() {
    for kind in KINDS {
        let pure = |limit: Limit| {
            let mut pure = Pure::default();
            pure.begin(limit);
            pure
        };
        let in_zone = compare(kind, |limit| (OnAdHoc::<Zone>::on(Crowd::new(1), limit), pure(limit)));
        let in_map = compare(kind, |limit| (OnAdHoc::<Map>::on(Crowd::new(2), limit), pure(limit)));
        let by_zone = compare(kind, |limit| (OnLimiter::<Zone>::on(Crowd::new(3), limit), pure(limit)));
        let by_map = compare(kind, |limit| (OnLimiter::<Map>::on(Crowd::new(4), limit), pure(limit)));
        for compared in [in_zone, in_map, by_zone, by_map] {
            assert!(is_a_mix(&compared), "{kind}: {compared:?}");
        }
    }
}

#[test]
fn random_batches_of_keys_that_share_cells_are_answered_as_single_takes() {
    for kind in IN_CELLS {
        let mut shared = 0;
        for bytes in [256, 512, 1024] {
            let zones = std::cell::RefCell::new(Vec::new());
            let compared = compare(kind, |limit| {
                let [ticking, still] = [(); 2].map(|()| Arc::new(TickingClock::new()));
                let [batched, single] = twin_zones(bytes, [ticking.clone(), still.clone()]);
                zones.borrow_mut().push([batched.clone(), single.clone()]);
                let batched = OnAdHoc::on(Crowd::without_strangers(batched, ticking), limit);
                (batched, OnAdHoc::on(Crowd::without_strangers(single, still), limit))
            });
            assert!(is_a_mix(&compared), "{kind} in {bytes} bytes: {compared:?}");
            for zones in zones.into_inner() {
                let [batched, single] = zones.map(|zone| zone.counts().shared_decisions);
                assert_eq!(batched, single, "{kind} in {bytes} bytes");
                shared += batched;
            }
        }
        assert!(shared > 100, "{kind}: only {shared} takes shared a cell");
    }
}

#[test]
fn several_takes_as_of_one_reading_are_decided_at_that_instant() {
    let (quick, slow) = ("2/100us sliding-log".parse().expect("a limit"), Limit::per_second(10_000).burst(2));
    let (key, step) = (Key::new("ana"), Duration::from_micros(100));
    let clock = clock(step);
    for memory in stores(&clock) {
        let zones = Zones::new(&memory);
        let both = [(Subject::new("a", &key, &quick), Ask::ONE), (Subject::new("b", &key, &slow), Ask::ONE)];
        for asks in [&both[..1], &both[1..], &both] {
            let at = zones.now();
            let allowed: Vec<_> = (0..20).map(|_| zones.take_all_as_of(at, asks).is_allowed()).collect();
            assert_eq!(
                allowed,
                (0..20).map(|nth| nth < 2).collect::<Vec<_>>(),
                "{} on {memory:?}",
                asks.len()
            );
        }
    }
}

#[test]
fn a_clock_reading_that_is_too_old_is_read_again() {
    let (key, limit, step) = (Key::new("ana"), Limit::per_second(20), Duration::from_millis(60));
    let clock = clock(step);
    for memory in stores(&clock) {
        let zones = Zones::new(&memory);
        let asks = ["a", "b"].map(|name| (Subject::new(name, &key, &limit), Ask::ONE));
        let at = zones.now();
        clock.set(at);
        for asks in [&asks[..1], &asks] {
            assert!(
                (0..100).all(|_| zones.take_all_as_of(at, asks).is_allowed()),
                "one unit comes back in 50 ms"
            );
        }
    }
}
