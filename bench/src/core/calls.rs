//! What else a limiter can be asked, on one hot key.

use std::hint::black_box;

use tidegate::{Adjusted, Limiter, Map, admit_all, ask};

use super::keyed::FEW_KEYS;
use super::table;
use crate::promise::Promise;
use crate::rounds::Candidate;

const OPERATIONS: u64 = 20_000;
/// More than all rounds give back.
const OWED: u64 = 100_000_000;

/// Prints a table of calls, `admit` first.
pub(super) fn compare() {
    let promise = Promise::read(FEW_KEYS);
    let key = &black_box(String::from("user:000000"));
    let map = Map::new();
    let users = &Limiter::on(&map, "user", promise.limit());
    let routes = &Limiter::on(&map, "route", promise.limit());
    let owing = &Limiter::on(&map, "owing", promise.limit());
    assert!(owing.admit(ask(key).cost(OWED)).is_allowed());
    table(
        &format!("calls of a Limiter on Map, one hot key, {promise}, 1 thread"),
        "waiting; a refund that lets somebody in",
        &mut [
            Candidate::repeated("admit", OPERATIONS, || users.admit(key).is_allowed()),
            Candidate::repeated("peek", OPERATIONS, || users.peek(key).is_allowed()),
            Candidate::repeated("refund", OPERATIONS, || matches!(owing.refund(key), Adjusted::Whole)),
            Candidate::repeated("acquire().blocking(), passes at once", OPERATIONS, || {
                users.acquire(key).blocking().is_ok()
            }),
            Candidate::repeated("admit_all over two limits of one map", OPERATIONS, || {
                admit_all([users.ask(key), routes.ask("login")]).is_allowed()
            }),
        ],
    );
}
