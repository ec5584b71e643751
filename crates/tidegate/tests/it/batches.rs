//! A batch is a sequence: asks that are decided in one call get the answers of single asks at one instant.

use std::sync::Arc;
use std::time::Duration;

use conformance::clock::TickingClock;
use tidegate::{
    AdHoc, AdHocAsk, Ask, Clock, Decision, HOUR, Limit, Limiter, MILLISECOND, Map, Memory, Ticks, Timestamp,
    Zone, admit_all,
};

/// What the clock may advance by between two readings: a tick, a moment, and a thread that sleeps.
const STEPS: [Duration; 3] = [Duration::ZERO, MILLISECOND, Duration::from_millis(60)];

fn clock(step: Duration) -> Arc<TickingClock> {
    let clock = Arc::new(TickingClock::new());
    clock.set(Timestamp::after_epoch(HOUR));
    clock.tick(Ticks::saturating_from(step).max(Ticks::new(1)));
    clock
}

fn stores(clock: &Arc<TickingClock>) -> [Memory; 2] {
    [Memory::from(&Zone::with_clock(1 << 16, clock.clone())), Memory::from(&Map::with_clock(clock.clone()))]
}

fn verdicts(decisions: impl IntoIterator<Item = Decision>) -> Vec<(bool, u64)> {
    decisions.into_iter().map(|decision| (decision.is_allowed(), decision.remaining())).collect()
}

/// So many that pass, and two that do not.
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
                let (adhoc, mut each) = (AdHoc::on(&memory, ""), Vec::new());
                let asks = asks().map(|key| AdHocAsk { key, limit: &limit, ask: Ask::ONE });
                adhoc.take_each(asks, |decision| each.push(decision));
                assert_eq!(verdicts(each), whole_burst(burst), "{limit} in steps of {step:?} on {memory:?}");
            }
        }
    }
}

#[test]
fn asks_that_stand_or_fall_together_have_the_whole_burst_of_a_new_key() {
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
    let limits = limits.map(|text| text.parse::<Limit>().expect("a limit"));
    let keys = ["ana", "bob", "ana", "eve", "bob", "ana", "ana", "joe", "joe", "eve", "ana", "bob"];
    let asks = || keys.iter().flat_map(|key| limits.iter().map(move |limit| (*key, limit)));
    let at = |ms: u32| Timestamp::after_epoch(HOUR + ms * MILLISECOND);
    let still = clock(Duration::ZERO);
    still.tick(Ticks::ZERO);
    let going = clock(Duration::from_micros(100));
    for (memory, twin) in stores(&going).into_iter().zip(stores(&still)) {
        let (batched, single) = (AdHoc::on(&memory, ""), AdHoc::on(&twin, ""));
        for ms in [0, 100, 333, 334, 1000, 3000] {
            going.set(at(ms));
            still.set(at(ms));
            let expected: Vec<_> = asks().map(|(key, limit)| single.take(key, limit, Ask::ONE)).collect();
            let mut got = Vec::new();
            let asked = asks().map(|(key, limit)| AdHocAsk { key, limit, ask: Ask::ONE });
            batched.take_each(asked, |decision| got.push(decision));
            assert_eq!(got.len(), expected.len());
            for ((got, expected), (key, limit)) in got.iter().zip(&expected).zip(asks()) {
                assert_eq!(got, expected, "{key} under {limit} at {ms} ms on {memory:?}");
            }
        }
    }
}

#[test]
fn a_map_forgets_nothing_that_counts_at_the_instant_of_a_batch() {
    let (start, clock) = (Timestamp::after_epoch(HOUR), clock(Duration::ZERO));
    let (brief, quick) = ("1/1ms".parse().expect("a limit"), "1/1us".parse().expect("a limit"));
    for text in ["1/s sliding-log", "1/s pacer burst 0s", "1/s fixed-window align first-hit"] {
        let limit: Limit = text.parse().expect("a limit");
        let adhoc = AdHoc::on(&Map::with_clock(clock.clone()), "");
        clock.tick(Ticks::ZERO);
        clock.set(start);
        assert!(adhoc.take("ana", &limit, Ask::ONE).is_allowed(), "{text}");
        // The batch begins while she counts and ends when she does not; strangers have the map swept meanwhile.
        clock.set(start.saturating_add(Ticks::saturating_from(990 * MILLISECOND)));
        clock.tick(Ticks::saturating_from(Duration::from_micros(15)));
        let strangers: Vec<_> = (0..2000).map(|name| format!("stranger {name}")).collect();
        let ask = |key, limit| AdHocAsk { key, limit, ask: Ask::ONE };
        let strangers = strangers.iter().map(|name| ask(name.as_str(), &quick));
        let asks = strangers.chain([ask("ana", &limit), ask("bob", &brief), ask("bob", &brief)]);
        let mut got = Vec::new();
        adhoc.take_each(asks, |decision| got.push(decision));
        assert!(clock.now() > start.saturating_add(Ticks::saturating_from(1005 * MILLISECOND)), "{text}");
        assert_eq!(got[2000].retry_after(), Some(10 * MILLISECOND), "{text}");
        assert_eq!((got[2001].is_allowed(), got[2002].is_allowed()), (true, false), "after {text}");
    }
}
