//! What a million keys take from the system, each candidate in a process of its own.
//!
//! throttlecrab's adaptive store cannot be grown to that size: while its table is over three quarters full, it
//! looks at all of it at every call.

use std::process::{Command, ExitCode};
use std::{env, fs};

use governor::RateLimiter;
use throttlecrab::PeriodicStore;

use super::keyed::{MANY_KEYS, limiter};
use super::keys::users;
use super::promise::Promise;

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
        match in_own_process(name) {
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
        Some(bytes) => {
            println!("{bytes}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("/proc/self/status does not say what is resident");
            ExitCode::FAILURE
        }
    }
}

fn in_own_process(name: &str) -> Result<String, String> {
    let bench = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(bench).args(["core", "resident", name]).output();
    let output = output.map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// How much more is resident per key after a decision about each.
fn growth(keys: &[String], mut decide: impl FnMut(&String) -> bool) -> Option<usize> {
    let before = resident()?;
    let allowed = keys.iter().filter(|key| decide(key)).count();
    assert_eq!(allowed, keys.len(), "each key is new");
    Some(resident()?.saturating_sub(before) / keys.len())
}

/// What is resident of this process, in bytes.
fn resident() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: usize = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}
