//! Tests that a state belongs to one limit: several limits on one key, each as if it were alone.

use conformance::keeper::Sheltering;
use conformance::law::{Asked, never_interfere};
use conformance::promise::KINDS;
use conformance::random::Random;
use std::sync::Arc;

use tidegate::{
    Algorithm, Ask, Cost, DynamicLimiter, HOUR, Key, Limit, ManualClock, Map, MemoryStore, PreparedLimit,
    SECOND, Zone,
};

fn hold<S: Sheltering>(histories: u64) {
    let seed = Random::seed_from_environment();
    for kind in KINDS {
        let mut all = Asked::default();
        for history in 0..histories {
            let history_seed = Random::new(seed.wrapping_add(history)).number();
            match never_interfere::<S>(kind, history_seed, 60) {
                Ok(Asked { asks, denials }) => {
                    all = Asked { asks: all.asks + asks, denials: all.denials + denials };
                }
                Err(broken) => panic!("{kind} ({}), history {history} of seed {seed}: {broken}", S::NAME),
            }
        }
        let Asked { asks, denials } = all;
        println!(
            "several limits {kind} ({}): {histories} histories, {asks} asks, {denials} denied (seed {seed})",
            S::NAME
        );
        assert!(denials > asks / 20 && denials < asks, "{all:?}");
    }
}

#[test]
fn several_limits_on_one_key_never_interfere_in_a_map() {
    hold::<Map>(crate::traces(200));
}

#[test]
fn several_limits_on_one_key_never_interfere_in_a_zone() {
    hold::<Zone>(crate::traces(200));
}

/// Regression test: asks under a small limit erased the debt under a large one, so 60 of 60 passed under five an
/// hour.
#[test]
fn alternating_asks_under_two_limits_admit_what_each_allows() {
    let stores = || [MemoryStore::from(&Zone::new(1 << 16)), MemoryStore::from(&Map::new())];
    // A calendar has no period as short as a microsecond.
    for algorithm in Algorithm::ALL.into_iter().filter(|algorithm| *algorithm != Algorithm::Calendar) {
        let text = |rate: &str| format!("{rate} {}", algorithm.name());
        let large: Limit = match algorithm {
            Algorithm::LeakyBucket => "5/h queue 4 delay-after all leaky-bucket".parse(),
            _ => text("5/h").parse(),
        }
        .unwrap();
        let small: Limit = text("1/1us").parse().unwrap();
        for memory in stores() {
            let adhoc = DynamicLimiter::on(&memory, "");
            let (large, small) = (adhoc.prepare(large), adhoc.prepare(small));
            let passed = (0..60).filter(|_| {
                let _ = adhoc.admit("k", &small, Ask::ONE);
                adhoc.admit("k", &large, Ask::ONE).is_allowed()
            });
            let most = if algorithm == Algorithm::Pacer { 2 } else { 5 };
            assert!(passed.count() <= most, "{algorithm} on {memory:?}");
        }
    }
}

/// Regression test: one denied ask with a lease of a millisecond ended the leases of all others.
#[test]
fn an_ask_with_a_short_lease_ends_no_other_lease() {
    for memory in [MemoryStore::from(&Zone::new(1 << 16)), MemoryStore::from(&Map::new())] {
        let adhoc = DynamicLimiter::on(&memory, "");
        let long = adhoc.prepare(Limit::concurrency(2, 60 * SECOND));
        let short = adhoc.prepare(Limit::concurrency(2, SECOND / 1000));
        let permits = [0, 1].map(|_| adhoc.admit("k", &long, Ask::ONE).permit().expect("two may enter"));
        let _ = (adhoc.admit("k", &short, Ask::ONE), adhoc.admit("k", &short, Ask::ONE));
        std::hint::black_box(adhoc.admit("k", &short, Ask::ONE));
        assert!(!adhoc.admit("k", &long, Ask::ONE).is_allowed());
        assert!(permits.iter().all(|permit| adhoc.renew("k", &long, *permit)));
    }
}

/// Regression test: a release names a rule, and a client may name any. The named limit came into force, and the
/// counts of the rule were lost.
#[test]
fn a_release_puts_nothing_in_force() {
    let (zone, ana) = (Zone::new(1 << 16), Key::new("ana"));
    let quota = |text: &str| PreparedLimit::of_rule("quota", text.parse().expect(text));
    assert!(zone.take(quota("5/h").subject(&ana), Ask::new(Cost::of(5))).0.is_allowed());
    let other = PreparedLimit::of_rule("other", Limit::concurrency(1, SECOND));
    let permit = zone.take(other.subject(&ana), Ask::ONE).0.permit().expect("the first enters");
    let forged = PreparedLimit::permits_of("quota", Limit::concurrency(2, 60 * SECOND));
    assert!(!zone.release(forged.subject(&ana), permit));
    assert_eq!(zone.peek(quota("10/h").subject(&ana), Ask::ONE).remaining(), 5);
    assert!(
        zone.release(PreparedLimit::permits_of("other", Limit::concurrency(9, HOUR)).subject(&ana), permit)
    );
}

/// A batch is decided as of an instant before its first use of a limit; that limit is in force as of that instant.
#[test]
fn a_limit_that_a_batch_uses_first_is_in_force_as_of_its_instant() {
    let clock = Arc::new(ManualClock::new());
    clock.advance(HOUR);
    let (zone, ana) = (Zone::with_clock(1 << 16, clock.clone()), Key::new("ana"));
    let quota = |text: &str| PreparedLimit::of_rule("quota", text.parse().expect(text));
    assert!(zone.take(quota("5/h").subject(&ana), Ask::new(Cost::of(3))).0.is_allowed());
    let (new, at) = (quota("6/h"), zone.now());
    clock.advance(SECOND / 1000);
    let three = Ask::new(Cost::of(3));
    assert!(zone.take_all_as_of(at, &[(new.subject(&ana), three)]).is_allowed());
}
