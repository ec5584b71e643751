//! Tests with more keys than cells: no key is admitted too much.

use conformance::random::Random;
use conformance::ticks;
use tidegate::{
    Adjustment, Ask, Cost, Decision, Key, Limit, State, Subject, Timestamp, WhenFull, Zone, time::Clock,
};

use super::{SMALLEST, zone};

/// A key under a limit, and an exact state of its admitted units.
struct Member {
    limit: Limit,
    key: Key,
    state: State,
}

/// A zone that is far too small, and an exact state per key.
struct Flooded {
    zone: Zone,
    clock: std::sync::Arc<tidegate::ManualClock>,
    members: Vec<Member>,
    random: Random,
}

impl Flooded {
    fn new(seed: u64, bytes: usize, members: u64) -> Flooded {
        let mut random = Random::new(seed);
        let (zone, clock) = zone(bytes);
        let texts = [
            "5/60s burst 5",
            "1/60s burst 1",
            "10/s burst 20",
            "1/h burst 1",
            "100/s burst 3",
            "10/s queue 5 leaky-bucket",
            "10/s queue 5 delay-after all leaky-bucket",
            "5/10s fixed-window",
            "3/m fixed-window",
        ];
        // Few limits in one zone, or many.
        let few = random.between(1, texts.len() as u64);
        let limits: Vec<Limit> =
            texts[..few as usize].iter().map(|text| text.parse().expect("a limit")).collect();
        let member =
            |key| Member { limit: random.pick(&limits), key: Key::new(key), state: State::default() };
        let members = (0..members).map(member).collect();
        Flooded { zone, clock, members, random }
    }

    /// Applies one operation; every admission of the zone must also be allowed by the exact state of the key.
    fn step(&mut self) {
        let Flooded { zone, clock, members, random } = self;
        let chosen = random.between(0, members.len() as u64 - 1) as usize;
        let Member { limit, key, state } = &mut members[chosen];
        let subject = Subject::new("flood", key, limit);
        let now = clock.now();
        match random.between(0, 99) {
            0..70 => {
                let max_wait = if random.percent(10) { random.sized(0, 1 << 40) } else { 0 };
                let ask = Ask::new(Cost::of(random.sized(1, 3))).max_wait_in_ticks(ticks(max_wait));
                let looked = zone.peek(subject, ask);
                let (decision, receipt) = zone.take(subject, ask);
                assert_eq!(looked.verdict(), decision.verdict(), "{subject:?} at {now:?}");
                if decision.is_allowed() {
                    let own = limit.decide(state, now, ask);
                    judge(decision, own, subject, now);
                    if random.percent(10) {
                        if let (Some(receipt), Some(own)) = (receipt, limit.receipt(state, now, ask, &own)) {
                            // A refund that the zone accepts is applied to the exact state; otherwise the units
                            // stay spent.
                            if zone.give_back(subject, receipt) == tidegate::Adjusted::Whole {
                                let _ = limit.give_back(state, now, own);
                            }
                        }
                    }
                }
            }
            70..78 => {
                let charge = Adjustment::Charge(Cost::of(random.sized(1, 5)));
                let _ = zone.adjust(subject, charge);
                let _ = limit.adjust(state, now, charge);
            }
            78..80 => zone_reset(zone, subject, state),
            80..82 => {
                let refund = Adjustment::Refund(Cost::of(random.sized(1, 5)));
                let _ = zone.adjust(subject, refund);
                let _ = limit.adjust(state, now, refund);
            }
            _ => clock.advance(ticks(random.sized(0, 1 << 36)).to_duration()),
        }
    }
}

/// Resets a key in the zone and its exact state. A key in a shared cell may have to keep sharing it; a key with its
/// own cell is full again.
fn zone_reset(zone: &Zone, subject: Subject<'_>, state: &mut State) {
    assert!(zone.reset(subject).is_ok());
    *state = State::default();
}

fn judge(decision: Decision, own: Decision, subject: Subject<'_>, now: Timestamp) {
    assert!(own.is_allowed(), "{subject:?} was admitted too much at {now:?}");
    assert!(decision.remaining() <= own.remaining(), "{subject:?} has too much remaining at {now:?}");
    assert!(decision.delay() >= own.delay(), "{subject:?} is let go too early at {now:?}");
}

#[test]
fn no_key_is_admitted_too_much_however_small_the_zone() {
    let seed = Random::seed_from_environment();
    let (mut shared, mut conversions) = (0, 0);
    let rounds = crate::traces(20_000) / 4;
    for round in 0..rounds {
        let size = [SMALLEST, SMALLEST, 1024, 4096][round as usize % 4];
        let mut flooded = Flooded::new(seed.wrapping_add(round), size, [20, 60, 300][round as usize % 3]);
        (0..1000).for_each(|_| flooded.step());
        let counts = flooded.zone.counts();
        shared += counts.shared_decisions;
        conversions += counts.conversions;
    }
    println!(
        "flood: {rounds} rounds of 1000 steps, {shared} decisions from {conversions} shared cells (seed {seed})"
    );
    assert!(shared > rounds * 50, "only {shared} decisions were shared");
}

#[test]
fn a_zone_survives_a_clock_that_is_set_back_by_an_hour() {
    let (zone, clock) = zone(SMALLEST);
    let limiter = tidegate::Limiter::on(&zone, "", "10/s burst 20".parse().unwrap());
    assert!((0..200_u32).any(|key| (0..30).any(|_| !limiter.admit(key).is_allowed())));
    let everybody_asks = || (0..200_u32).filter(|key| limiter.admit(key).is_allowed()).count();
    assert!(everybody_asks() < 200);
    clock.step_back(tidegate::HOUR / 2);
    for _ in 0..20 {
        assert!(everybody_asks() < 200);
        clock.advance(tidegate::SECOND);
    }
    let passed = (200..208_u32).filter(|key| limiter.admit(key).is_allowed()).count();
    assert!(passed > 0, "newcomers are locked out for as long as the clock was set back");
}

#[test]
fn forgetting_is_counted_and_never_denies() {
    let (zone, _) = zone(SMALLEST);
    let limit: Limit = "1/h burst 1".parse().unwrap();
    for key in 0..1000_u32 {
        let key = Key::new(key);
        let subject = Subject::new("f", &key, &limit).when_full(WhenFull::Forget);
        assert!(zone.peek(subject, Ask::ONE).is_allowed());
        assert!(zone.take(subject, Ask::ONE).0.is_allowed());
    }
    assert!(zone.counts().forgotten >= 984);
}
