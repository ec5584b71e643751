//! Many subjects: one hot key, a thousand, a million.

use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;

use governor::RateLimiter;
use harness::load::shuffled;
use throttlecrab::{AdaptiveStore, PeriodicStore, Store};
use tidegate::{Limiter, Map};

use super::table;
use crate::promise::{Crab, Promise};
use crate::rounds::Candidate;

/// More at once than all rounds ask for, and never clear between two visits of a few keys.
pub(super) const FEW_KEYS: &str = "1000/1s burst 1000000000";
/// The same where a million others come in between.
pub(super) const MANY_KEYS: &str = "1/600s burst 1000";

const MILLION: u32 = 1_000_000;
/// How many visits a round has if threads have to be started for it.
const VISITS_TOGETHER: usize = 50_000;
const NOT_MEASURED: &str = "making the keys; subjects that come and go (each is remembered before the first \
     round and stays live).\n  throttlecrab is behind a std Mutex, as its documentation says, and its tables \
     are made for the keys";

/// Prints a table for each number of keys and threads.
pub(super) fn compare() {
    one_thread("one hot key", FEW_KEYS, &Visits::to_one(20_000));
    one_thread("1,000 keys at random", FEW_KEYS, &Visits::at_random(1000, 20_000));
    one_thread("1,000,000 keys in random order", MANY_KEYS, &Visits::to_each(MILLION, 20_000));
    two_threads("one hot key", &Visits::to_one(VISITS_TOGETHER));
    two_threads("1,000 keys at random", &Visits::at_random(1000, VISITS_TOGETHER));
}

/// A limiter with room for a million keys and more.
pub(super) fn limiter(promise: Promise) -> Limiter {
    Limiter::on(&roomy(Map::new()), "", promise.limit())
}

/// A new map like this one for a million keys, whatever they take.
pub(super) fn roomy(map: Map) -> Map {
    map.max_keys(1 << 20).max_bytes(1 << 30)
}

fn one_thread(title: &str, promise: &str, visits: &Visits) {
    let promise = Promise::read(promise);
    let ours = limiter(promise);
    let dash_map = RateLimiter::dashmap(promise.quota());
    let hash_map = RateLimiter::hashmap(promise.quota());
    let adaptive = promise.throttlecrab(AdaptiveStore::with_capacity(visits.keys.len()));
    let periodic = promise.throttlecrab(PeriodicStore::with_capacity(visits.keys.len()));
    let (adaptive, periodic) = (Mutex::new(adaptive), Mutex::new(periodic));
    table(
        &format!("{title}, {promise}, 1 thread"),
        NOT_MEASURED,
        &mut [
            visiting("tidegate Limiter on Map", visits, |key| ours.admit(key).is_allowed()),
            visiting("governor keyed, dashmap (its default)", visits, |key| dash_map.check_key(key).is_ok()),
            visiting("governor keyed, hashmap", visits, |key| hash_map.check_key(key).is_ok()),
            visiting("throttlecrab adaptive, Mutex", visits, |key| locked(&adaptive, key)),
            visiting("throttlecrab periodic, Mutex", visits, |key| locked(&periodic, key)),
        ],
    );
}

fn two_threads(title: &str, visits: &Visits) {
    let promise = Promise::read(FEW_KEYS);
    let ours = limiter(promise);
    let dash_map = RateLimiter::dashmap(promise.quota());
    let hash_map = RateLimiter::hashmap(promise.quota());
    table(
        &format!("{title}, {promise}, 2 threads: wall time divided by the decisions of both"),
        "as above, and throttlecrab. Starting the threads of a round is measured,\n  some 100 \u{b5}s, and so is their waiting for a processor on a busy machine",
        &mut [
            together("tidegate Limiter on Map", visits, |key| ours.admit(key).is_allowed()),
            together("governor keyed, dashmap (its default)", visits, |key| dash_map.check_key(key).is_ok()),
            together("governor keyed, hashmap", visits, |key| hash_map.check_key(key).is_ok()),
        ],
    );
}

fn locked<S: Store>(crab: &Mutex<Crab<S>>, key: &str) -> bool {
    crab.lock().unwrap_or_else(PoisonError::into_inner).is_allowed(key)
}

/// One decision per visit; every key has been visited before.
fn visiting<'a>(
    name: &'static str,
    visits: &'a Visits,
    mut decide: impl FnMut(&String) -> bool + 'a,
) -> Candidate<'a> {
    for key in &visits.keys {
        decide(key);
    }
    let mut rounds = visits.rounds();
    let run = move || rounds.next().map_or(0, |round| round.count(&mut decide));
    Candidate { name, operations: visits.per_round as u64, run: Box::new(run) }
}

/// One decision per visit, each of two threads for its half of them.
fn together<'a>(
    name: &'static str,
    visits: &'a Visits,
    decide: impl Fn(&String) -> bool + Sync + 'a,
) -> Candidate<'a> {
    let mut rounds = visits.rounds();
    let run = move || {
        let (halves, decide, ready) = (rounds.next().map(Round::halves), &decide, &Barrier::new(2));
        thread::scope(|scope| {
            let start = |half: Round<'a>| {
                scope.spawn(move || {
                    ready.wait();
                    half.count(decide)
                })
            };
            let threads: Vec<_> = halves.into_iter().flatten().map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        })
    };
    Candidate { name, operations: visits.per_round as u64, run: Box::new(run) }
}

/// Names of users, and who comes when.
struct Visits {
    keys: Vec<String>,
    /// How many visits a round has.
    per_round: usize,
    /// Indexes of keys, in the order of visits.
    order: Vec<u32>,
}

impl Visits {
    /// One key over and over.
    fn to_one(per_round: usize) -> Visits {
        Visits { keys: users(1), per_round, order: vec![0; per_round] }
    }

    /// Each visit is to a key at random.
    fn at_random(keys: u32, per_round: usize) -> Visits {
        let mut random = fastrand::Rng::with_seed(1);
        let order = (0..10 * per_round).map(|_| random.u32(..keys)).collect();
        Visits { keys: users(keys), per_round, order }
    }

    /// Each key once, shuffled.
    fn to_each(keys: u32, per_round: usize) -> Visits {
        Visits { keys: users(keys), per_round, order: shuffled(keys) }
    }

    /// The visits of each round; after the last, they start again.
    fn rounds(&self) -> impl Iterator<Item = Round<'_>> {
        self.order.chunks_exact(self.per_round).cycle().map(|order| Round { keys: &self.keys, order })
    }
}

/// Visits in a row.
#[derive(Clone, Copy)]
struct Round<'a> {
    keys: &'a [String],
    order: &'a [u32],
}

impl<'a> Round<'a> {
    /// The first half and the second.
    fn halves(self) -> [Round<'a>; 2] {
        let (first, second) = self.order.split_at(self.order.len() / 2);
        [first, second].map(|order| Round { order, ..self })
    }

    /// How many visits pass.
    fn count(self, mut decide: impl FnMut(&String) -> bool) -> u64 {
        self.order.iter().map(|index| u64::from(decide(&self.keys[*index as usize]))).sum()
    }
}

/// So many keys that are as long as each other.
pub(super) fn users(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("user:{number:06}")).collect()
}
