//! A million decisions of one candidate, for a tool that counts what happens in [`counted`]:
//!
//! ```text
//! valgrind --tool=callgrind --toggle-collect='*counted*' bench core instructions tidegate-single
//! ```

use std::hint::black_box;
use std::process::ExitCode;

use governor::RateLimiter;
use tidegate::{Limiter, Map, Single};

use crate::promise::Promise;

const DECISIONS: u32 = 1_000_000;

/// Takes the decisions of the candidate with this name.
pub(super) fn run(name: &str, promise: &str) -> ExitCode {
    let promise = Promise::read(promise);
    let key = &black_box(String::from("user:000000"));
    let allowed = match name {
        "tidegate-single" => {
            let single = Single::new(promise.limit());
            counted(|| black_box(&single).admit().is_allowed())
        }
        "governor-direct" => {
            let direct = RateLimiter::direct(promise.quota());
            counted(|| black_box(&direct).check().is_ok())
        }
        "tidegate-map-hot" => {
            let limiter = Limiter::on(&Map::new(), "", promise.limit());
            counted(|| limiter.admit(key).is_allowed())
        }
        "governor-keyed-hot" => {
            let keyed = RateLimiter::keyed(promise.quota());
            counted(|| keyed.check_key(key).is_ok())
        }
        _ => {
            eprintln!(
                "unknown candidate {name}; there are: tidegate-single, governor-direct, tidegate-map-hot, \
                 governor-keyed-hot"
            );
            return ExitCode::from(2);
        }
    };
    println!("{name}: {allowed} of {DECISIONS} allowed");
    ExitCode::SUCCESS
}

#[inline(never)]
fn counted(mut decide: impl FnMut() -> bool) -> u32 {
    (0..DECISIONS).map(|_| u32::from(decide())).sum()
}
