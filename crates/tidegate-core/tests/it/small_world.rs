//! Tests of every schedule of six steps in a small model, against the oracle and the textbook models.

use conformance::calendar::{Calendar, Place};
use conformance::model;
use conformance::oracle::{self, Admitted, Oracle};
use conformance::promise::Promise;
use tidegate::{Ask, Cost, Limit, State, Timestamp};

/// The step of time, in ticks; periods are a few of these.
const UNIT: u64 = 16_000;

fn steps() -> u32 {
    if crate::is_quick() { 4 } else { 6 }
}

struct World {
    limit: Limit,
    oracle: Box<dyn Oracle>,
    lease: u64,
    admitted: Vec<Admitted>,
    visited: u64,
}

impl World {
    fn new(promise: &Promise) -> World {
        let lease = if let Promise::Concurrency { lease, .. } = promise { *lease } else { 0 };
        World { limit: promise.limit(), oracle: oracle::of(promise), lease, admitted: Vec::new(), visited: 0 }
    }

    /// Walks through every schedule of steps of this length that starts in this state.
    fn walk(&mut self, state: &State, now: u64, unit: u64, steps: u32) {
        if steps == 0 {
            return;
        }
        for passed in 0..4 {
            let now = now + passed * unit;
            for cost in 1..=3 {
                let mut state = state.clone();
                let ask = Ask::new(Cost::of(cost));
                let decision = self.limit.decide(&mut state, Timestamp::from_ticks(now), ask);
                let allowed = self.oracle.allows(&self.admitted, now.into(), cost.into(), 0);
                assert_eq!(
                    decision.is_allowed(),
                    allowed,
                    "{} at {now}t: cost {cost} after {:?}",
                    self.limit,
                    self.admitted
                );
                self.visited += 1;
                if allowed || self.oracle.counts_refusals() && cost <= decision.limit() {
                    let (asked, units) = (now.into(), cost.into());
                    self.admitted.push(Admitted { asked, departs: asked + i128::from(self.lease), units });
                    self.walk(&state, now, unit, steps - 1);
                    self.admitted.pop();
                } else {
                    self.walk(&state, now, unit, steps - 1);
                }
            }
        }
    }
}

fn explore(name: &str, promises: &[Promise]) {
    explore_from(name, promises, UNIT, UNIT);
}

/// Explores schedules from this instant on, in steps of this length.
fn explore_from(name: &str, promises: &[Promise], begin: u64, unit: u64) {
    let visited: u64 = promises
        .iter()
        .map(|promise| {
            let mut world = World::new(promise);
            world.walk(&State::default(), begin, unit, steps());
            world.visited
        })
        .sum();
    println!("small world, {name}: {} limits, {visited} decisions, 0 mismatches", promises.len());
}

fn each(make: impl Fn(u64, u64) -> Promise) -> Vec<Promise> {
    let sizes = 1..=3;
    sizes.flat_map(|size| [UNIT, 2 * UNIT, 3 * UNIT].map(|period| make(size, period))).collect()
}

#[test]
fn small_world_of_token_buckets() {
    explore(
        "token-bucket",
        &each(|burst, period| Promise::TokenBucket { amount: 2, period, burst, max_debt: burst }),
    );
}

#[test]
fn small_world_of_leaky_buckets() {
    explore(
        "leaky-bucket",
        &each(|places, period| Promise::LeakyBucket {
            amount: 2,
            period,
            queue: places - 1,
            delay_after: None,
            max_debt: 0,
        }),
    );
}

#[test]
fn small_world_of_fixed_windows() {
    explore(
        "fixed-window",
        &each(|amount, period| Promise::FixedWindow { amount, period, first_hit: amount == 2, max_debt: 0 }),
    );
}

#[test]
fn small_world_of_sliding_logs() {
    explore(
        "sliding-log",
        &each(|amount, period| Promise::SlidingLog { amount, period, count_denied: amount == 3 }),
    );
}

#[test]
fn small_world_of_sliding_windows() {
    explore(
        "sliding-window",
        &each(|amount, period| Promise::SlidingWindow { amount, period, slots: amount, max_debt: 0 }),
    );
}

#[test]
fn small_world_of_estimates() {
    explore(
        "sliding-window-estimate",
        &each(|amount, period| Promise::Estimate { amount, period, max_debt: 0 }),
    );
}

#[test]
fn small_world_of_pacers() {
    explore(
        "pacer",
        &each(|size, period| Promise::Steady { amount: 2, period, savings: size * UNIT, own: size == 2 }),
    );
}

#[test]
fn small_world_of_places_in_flight() {
    explore("concurrency", &each(|max, lease| Promise::Concurrency { max, lease }));
}

/// Steps of a quarter of an hour, around the hour that Berlin repeats and the half hour that Lord Howe does.
#[test]
fn small_world_of_calendars() {
    const QUARTER: u64 = 900 * 16_000_000_000;
    // 2024-10-27T00:00Z and 2024-04-06T14:00Z, in days and hours since 2024.
    for (place, begin) in [(Place::Berlin, 300 * 96), (Place::LordHowe, 96 * 96 + 14 * 4)] {
        let promises = [0, 1].map(|unit| {
            let calendar = Calendar { unit, first_day: 0, place };
            Promise::Calendar { amount: 2 + unit as u64 % 2, calendar, max_debt: 0 }
        });
        explore_from("calendar", &promises, begin * QUARTER, 2 * QUARTER);
    }
}

/// The bucket of tokens, the funnel and the one word (TAT), side by side.
#[derive(Clone)]
struct Three {
    word: State,
    tokens: model::TokenBucket,
    funnel: model::Funnel,
}

fn walk_three(limit: &Limit, three: &Three, now: u64, steps: u32) -> u64 {
    let mut visited = 0;
    for passed in 0..4 {
        let now = now + passed * UNIT;
        for cost in 1..=3 {
            let mut three = three.clone();
            let ask = Ask::new(Cost::of(cost));
            let word = limit.decide(&mut three.word, Timestamp::from_ticks(now), ask).is_allowed();
            let tokens = three.tokens.take(now.into(), cost.into());
            let funnel = three.funnel.take(now.into(), cost.into());
            assert!(
                word == tokens && word == funnel,
                "{limit} at {now}t, cost {cost}: {word} {tokens} {funnel}"
            );
            visited += 1;
            if steps > 1 {
                visited += walk_three(limit, &three, now, steps - 1);
            }
        }
    }
    visited
}

#[test]
fn small_world_in_which_token_bucket_funnel_and_one_word_decide_alike() {
    let promises = each(|burst, period| Promise::TokenBucket { amount: 2, period, burst, max_debt: burst });
    let visited: u64 = promises
        .iter()
        .map(|promise| {
            let three = Three {
                word: State::default(),
                tokens: model::TokenBucket::new(promise),
                funnel: model::Funnel::new(promise),
            };
            walk_three(&promise.limit(), &three, UNIT, steps())
        })
        .sum();
    println!("small world, three forms: {visited} decisions, 0 mismatches");
}
