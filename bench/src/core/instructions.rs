//! Instructions of one decision, which are the same on a busy machine: those that valgrind sees in [`counted`].
//! What comes before it is left out: a clock that is calibrated takes as many as there is time for.

use std::hint::black_box;
use std::process::ExitCode;

use governor::RateLimiter;
use tidegate::{DirectLimiter, Limiter, Map};

use super::single::{ALLOWED, DENIED, OPERATIONS, direct, ours};
use crate::callgrind;
use crate::promise::Promise;
use crate::rounds::Candidate;

const COUNTED: &str = "*core::instructions::counted*";
/// How often the operations of a candidate are counted, and before that run without being counted.
const RUNS: u64 = 4;
const SINGLE: &str = "tidegate-single";
const DIRECT: &str = "governor-direct";
const MAP: &str = "tidegate-map-hot";
const KEYED: &str = "governor-keyed-hot";
const PAIRS: [(&str, &str); 2] = [(SINGLE, DIRECT), (MAP, KEYED)];
const PROMISES: [(&str, &str); 2] = [("allowed", ALLOWED), ("denied", DENIED)];

/// Prints what valgrind counts for all candidates.
pub(super) fn compare() -> ExitCode {
    println!("instructions of one decision, by callgrind, mean of {}", RUNS * OPERATIONS);
    println!("not counted: what an instruction waits for, most of all the counter and the atomic exchange.");
    println!("The loop is included. Peers that are compiled into one unit with it may be inlined, or not\n");
    println!("{:<20} {:<20} {:<8} {:>9} {:>9} {:>6}", "first", "second", "", "first", "second", "ratio");
    for (first, second) in PAIRS {
        for (outcome, _) in PROMISES {
            let pair = || Ok((mean(first, outcome)?, mean(second, outcome)?));
            match pair() {
                Ok((Some(one), Some(other))) => println!(
                    "{first:<20} {second:<20} {outcome:<8} {one:>9.1} {other:>9.1} {:>6.2}",
                    one / other
                ),
                Ok(_) => return ExitCode::SUCCESS,
                Err::<_, String>(problem) => {
                    println!("{first} or {second}, {outcome}: {problem}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

fn mean(name: &str, outcome: &str) -> Result<Option<f64>, String> {
    eprintln!("core: instructions of {name}, {outcome}");
    callgrind::mean(COUNTED, &["core", "decide", name, outcome], RUNS * OPERATIONS)
}

/// Takes the decisions of the candidate with this name, for a process that counts instructions.
pub(super) fn decide(name: &str, outcome: &str) -> ExitCode {
    let Some((_, promise)) = PROMISES.into_iter().find(|(known, _)| *known == outcome) else {
        eprintln!("unknown outcome {outcome}; there are: allowed, denied");
        return ExitCode::from(2);
    };
    let promise = Promise::read(promise);
    let key = &black_box(String::from("user:000000"));
    let allowed = match name {
        SINGLE => run(&mut ours(&DirectLimiter::new(promise.limit()))),
        DIRECT => run(&mut direct(&RateLimiter::direct(promise.quota()))),
        MAP => {
            let limiter = Limiter::on(&Map::new(), "", promise.limit());
            run(&mut Candidate::repeated(MAP, OPERATIONS, || limiter.admit(key).is_allowed()))
        }
        KEYED => {
            let keyed = RateLimiter::keyed(promise.quota());
            run(&mut Candidate::repeated(KEYED, OPERATIONS, || keyed.check_key(key).is_ok()))
        }
        _ => {
            eprintln!("unknown candidate {name}; there are: {SINGLE}, {DIRECT}, {MAP}, {KEYED}");
            return ExitCode::from(2);
        }
    };
    println!("{name}: {allowed} of {} allowed", RUNS * OPERATIONS);
    ExitCode::SUCCESS
}

fn run(candidate: &mut Candidate<'_>) -> u64 {
    for _ in 0..RUNS {
        candidate.share_allowed();
    }
    (0..RUNS).map(|_| counted(candidate)).sum()
}

/// What valgrind counts. It has to come back here to be seen leaving.
#[inline(never)]
fn counted(candidate: &mut Candidate<'_>) -> u64 {
    black_box((candidate.run)())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_can_be_asked() {
        for name in PAIRS.into_iter().flat_map(|(first, second)| [first, second]) {
            for (outcome, _) in PROMISES {
                assert_eq!(decide(name, outcome), ExitCode::SUCCESS, "{name} {outcome}");
            }
        }
        assert_eq!(decide("tidegate-singel", "allowed"), ExitCode::from(2));
        assert_eq!(decide(SINGLE, "perhaps"), ExitCode::from(2));
    }
}
