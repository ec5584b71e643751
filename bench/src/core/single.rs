//! One subject: no keys, but for throttlecrab, which has nothing else.

use std::hint::black_box;

use governor::{DefaultDirectRateLimiter, RateLimiter};
use throttlecrab::AdaptiveStore;
use tidegate::{Adjusted, DirectLimiter, Limiter, Map, admit_all, ask};

use super::keyed::FEW_KEYS;
use super::table;
use crate::promise::Promise;
use crate::rounds::Candidate;

/// More at once than all rounds ask for.
pub(super) const ALLOWED: &str = "1000000/1s burst 1000000000";
/// Far less than is asked for.
pub(super) const DENIED: &str = "10/1s burst 10";

pub(super) const OPERATIONS: u64 = 50_000;

/// Our time divided by that of governor's direct limiter.
pub(super) fn compare(title: &str, promise: &str) -> f64 {
    let promise = Promise::read(promise);
    let key = black_box(String::from("user:000000"));
    let single = DirectLimiter::new(promise.limit());
    let governor = RateLimiter::direct(promise.quota());
    let ratelimit = promise.ratelimit();
    let leaky_bucket = promise.leaky_bucket();
    let mut throttlecrab = promise.throttlecrab(AdaptiveStore::new());
    let times = table(
        &format!("{title}, {promise}, 1 thread"),
        "contention; reading more of an answer than whether it is allowed. throttlecrab is not shared \
         (it would need a lock);\n  leaky-bucket reads its clock only when it has run out of tokens",
        &mut [
            ours(&single),
            direct(&governor),
            Candidate::repeated("ratelimit", OPERATIONS, || black_box(&ratelimit).try_wait().is_ok()),
            Candidate::repeated("leaky-bucket", OPERATIONS, || black_box(&leaky_bucket).try_acquire(1)),
            Candidate::repeated("throttlecrab adaptive", OPERATIONS, || {
                black_box(&mut throttlecrab).is_allowed(&key)
            }),
        ],
    );
    times[0] / times[1]
}

/// Decisions of ours. Instructions are counted in the same loop that is timed: another one may be compiled otherwise.
pub(super) fn ours(single: &DirectLimiter) -> Candidate<'_> {
    Candidate::repeated("tidegate Single", OPERATIONS, move || black_box(single).admit().is_allowed())
}

/// Decisions of governor's direct limiter.
pub(super) fn direct(governor: &DefaultDirectRateLimiter) -> Candidate<'_> {
    Candidate::repeated("governor direct", OPERATIONS, move || black_box(governor).check().is_ok())
}

const CALLS: u64 = 20_000;
/// More than all rounds give back.
const OWED: u64 = 100_000_000;

/// What else a limiter can be asked, on one hot key: prints a table of calls, `admit` first.
pub(super) fn calls() {
    let promise = Promise::read(FEW_KEYS);
    let key = &black_box(String::from("user:000000"));
    let map = Map::new();
    let users = &Limiter::on(&map, "user", promise.limit());
    let routes = &Limiter::on(&map, "route", promise.limit());
    let owing = &Limiter::on(&map, "owing", promise.limit());
    assert!(owing.admit(ask(key).cost(OWED)).is_allowed());
    table(
        &format!("calls of a Limiter on Map, one hot key, {promise}, 1 thread"),
        "waiting; a refund that admits a waiter",
        &mut [
            Candidate::repeated("admit", CALLS, || users.admit(key).is_allowed()),
            Candidate::repeated("peek", CALLS, || users.peek(key).is_allowed()),
            Candidate::repeated("refund", CALLS, || matches!(owing.refund(key), Adjusted::Whole)),
            Candidate::repeated("acquire().blocking(), passes at once", CALLS, || {
                users.acquire(key).blocking().is_ok()
            }),
            Candidate::repeated("admit_all over two limits of one map", CALLS, || {
                admit_all([users.ask(key), routes.ask("login")]).is_allowed()
            }),
        ],
    );
}
