//! Instructions of one decision, which are the same on a busy machine: those that valgrind sees in [`counted`].
//! What comes before it is left out: a clock that is calibrated takes as many as there is time for.

use std::hint::black_box;
use std::process::ExitCode;

use governor::RateLimiter;

use super::sides::{DENIED, EMPTY, FEW_KEYS, GOVERNOR, Keys, MANY_KEYS, Side, ZONE, first, zone_for};
use crate::callgrind::mean;
use crate::promise::Promise;

const DECISIONS: u32 = 100_000;
const MILLION: u32 = 1_000_000;
const COUNTED: &str = "*zone::instructions::counted*";
const CANDIDATES: [(&str, &str); 7] = [
    ("zone-hot-allowed", "tidegate Zone, one hot key, allowed"),
    ("zone-hot-denied", "tidegate Zone, one hot key, denied"),
    ("zone-two-hot-allowed", "tidegate Zone, two hot keys in turn"),
    ("governor-hot-allowed", "governor dashmap, one hot key, allowed"),
    ("governor-hot-denied", "governor dashmap, one hot key, denied"),
    ("zone-million", "tidegate Zone, 1,000,000 keys, uniform"),
    ("keys-million", "(no decision: keys only, uniform)"),
];

/// Prints what valgrind counts for all candidates.
pub(super) fn compare() -> ExitCode {
    println!("instructions of one decision, by callgrind, mean of {DECISIONS}");
    println!("not counted: what an instruction waits for. The loop and the writing of a key are included");
    for (name, title) in CANDIDATES {
        eprintln!("zone: instructions of {name}");
        match mean(COUNTED, &["zone", "decide", name, &DECISIONS.to_string()], DECISIONS.into()) {
            Ok(Some(counted)) => println!("{title:<42} {counted:>9.1}"),
            Ok(None) => return ExitCode::SUCCESS,
            Err(problem) => {
                println!("{title:<42} {problem}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Takes so many decisions of the candidate with this name.
pub(super) fn decide(name: &str, decisions: &str) -> ExitCode {
    let Ok(decisions) = decisions.parse() else {
        eprintln!("{decisions} is not a number of decisions");
        return ExitCode::from(2);
    };
    let keys = &black_box(first(2));
    let Some((side, count)) = side(name, keys) else {
        eprintln!("unknown candidate {name}");
        return ExitCode::from(2);
    };
    let mut random = fastrand::Rng::with_seed(1);
    let visits: Vec<_> = match count {
        MILLION => (0..decisions).map(|_| random.u32(..count)).collect(),
        _ => (0..decisions).map(|visit| visit % count).collect(),
    };
    let allowed = counted(&side.meet(count), &visits);
    println!("{name}: {allowed} of {decisions} allowed");
    ExitCode::SUCCESS
}

/// What valgrind counts. It has to come back here to be seen leaving.
#[inline(never)]
fn counted(side: &Side<'_>, visits: &[u32]) -> u64 {
    black_box(side.decide(visits))
}

/// The candidate, and how many keys it meets.
fn side<'a>(name: &str, keys: &'a [String]) -> Option<(Side<'a>, u32)> {
    let ready = Keys::Ready(keys);
    Some(match name {
        "zone-hot-allowed" => (zone(1, FEW_KEYS, ready), 1),
        "zone-hot-denied" => (zone(1, DENIED, ready), 1),
        "zone-two-hot-allowed" => (zone(2, FEW_KEYS, ready), 2),
        "governor-hot-allowed" => (governor(FEW_KEYS, ready), 1),
        "governor-hot-denied" => (governor(DENIED, ready), 1),
        "zone-million" => (zone(MILLION, MANY_KEYS, Keys::Written), MILLION),
        "keys-million" => (Side::new(EMPTY, Keys::Written, |key| !black_box(key).is_empty()), MILLION),
        _ => return None,
    })
}

fn zone<'a>(count: u32, promise: &str, keys: Keys<'a>) -> Side<'a> {
    let zone = zone_for(count, Promise::read(promise));
    Side::new(ZONE, keys, move |key| zone.admit(key).is_allowed())
}

fn governor<'a>(promise: &str, keys: Keys<'a>) -> Side<'a> {
    let governor = RateLimiter::dashmap(Promise::read(promise).quota());
    Side::new(GOVERNOR, keys, move |key| governor.check_key(key).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_can_be_asked() {
        for (name, _) in CANDIDATES.into_iter().filter(|(name, _)| !name.ends_with("million")) {
            assert_eq!(decide(name, "10"), ExitCode::SUCCESS, "{name}");
        }
    }
}
