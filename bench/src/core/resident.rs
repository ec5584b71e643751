//! What a million keys take from the system, each candidate in a process of its own.
//!
//! throttlecrab's adaptive store cannot be grown to that size: while its table is over three quarters full, it
//! looks at all of it at every call.

use std::process::ExitCode;

use governor::RateLimiter;
use throttlecrab::PeriodicStore;

use super::keyed::{MANY_KEYS, limiter, users};
use crate::promise::Promise;
use harness::{in_own_process, resident};

const KEYS: u32 = 1_000_000;
const CANDIDATES: [(&str, &str); 4] = [
    ("tidegate", "tidegate Limiter on Map"),
    ("governor-dashmap", "governor keyed, dashmap (its default)"),
    ("governor-hashmap", "governor keyed, hashmap"),
    ("throttlecrab", "throttlecrab periodic"),
];

/// Prints a table of all candidates.
pub(super) fn compare() {
    println!("resident memory per key at {KEYS} keys of 11 bytes, grown from empty, in a fresh process each");
    println!("not measured: what the keys take outside of the limiter; memory after keys have expired");
    println!("{:<40} {:>9}", "", "bytes");
    for (name, title) in CANDIDATES {
        match in_own_process(&["core", "resident", name]) {
            Ok(bytes) => println!("{title:<40} {bytes:>9}"),
            Err(problem) => println!("{title:<40} {problem}"),
        }
    }
    println!();
}

/// Prints the bytes per key of one candidate.
pub(super) fn run(name: &str) -> ExitCode {
    let (promise, keys) = (Promise::read(MANY_KEYS), users(KEYS));
    let per_key = match name {
        "tidegate" => {
            let limiter = limiter(promise);
            growth(&keys, |key| limiter.admit(key).is_allowed())
        }
        "governor-dashmap" => {
            let limiter = RateLimiter::dashmap(promise.quota());
            growth(&keys, |key| limiter.check_key(key).is_ok())
        }
        "governor-hashmap" => {
            let limiter = RateLimiter::hashmap(promise.quota());
            growth(&keys, |key| limiter.check_key(key).is_ok())
        }
        "throttlecrab" => {
            let mut limiter = promise.throttlecrab(PeriodicStore::new());
            growth(&keys, |key| limiter.is_allowed(key))
        }
        _ => {
            eprintln!("unknown candidate {name}");
            return ExitCode::from(2);
        }
    };
    match per_key {
        Ok(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

/// How much more is resident per key after a decision about each.
fn growth(keys: &[String], mut decide: impl FnMut(&String) -> bool) -> Result<u64, String> {
    let before = resident()?;
    let allowed = keys.iter().filter(|key| decide(key)).count();
    assert_eq!(allowed, keys.len(), "each key is new");
    Ok(resident()?.saturating_sub(before) / keys.len() as u64)
}
