//! The worst single call while newcomers come and others expire.
//!
//! Every other decision is about a newcomer, and the one after it about one of those who came last. A newcomer is
//! so visited once more on average, and owes for as long as it takes until twice as many have come as are visited.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{ManualClock, Zone};

use super::sides::{BYTES_PER_KEY, Key, on};
use crate::phase::{Phase, REPEATS, print_phases};
use crate::promise::Promise;
use harness::Goal;

const DECISIONS: u32 = 20_000_000;
/// How many of those who came last are visited.
const VISITED: u32 = 500_000;
const LIVE: u32 = 2 * VISITED;
const PROMISE: &str = "1/600s burst 1000";
const LIFE: Duration = Duration::from_secs(600);
/// So many take about as long as a decision here.
const HASHES: usize = 12;

/// Prints the worst calls, beside those of a loop that touches nothing.
pub(super) fn run() -> Vec<Goal> {
    println!("worst of {DECISIONS} calls, half of them about newcomers, {LIVE} live keys, {REPEATS} times");
    println!("not measured: real clocks, contention. a preempted thread counts as a slow call");
    let idle: Vec<_> = (0..REPEATS).map(|_| only_hashing()).collect();
    let deciding: Vec<_> = (0..REPEATS).map(|_| of_zone()).collect();
    let of = |lives: &[Life], phase: fn(&Life) -> Phase| lives.iter().map(phase).collect::<Vec<_>>();
    print_phases(&[
        ("(only hashing)", of(&idle, |life| life.steady)),
        ("zone fills", of(&deciding, |life| life.filling)),
        ("keys come and go", of(&deciding, |life| life.steady)),
    ]);
    println!();
    Vec::new()
}

/// What the machine does to a loop that takes as long and touches nothing.
fn only_hashing() -> Life {
    let hasher = RandomState::new();
    Life::live(|key| (0..HASHES).for_each(|_| _ = black_box(hasher.hash_one(black_box(key)))), || {})
}

fn of_zone() -> Life {
    let clock = Arc::new(ManualClock::new());
    let zone = Zone::with_clock(LIVE as usize * BYTES_PER_KEY, clock.clone());
    let limiter = on(&zone, Promise::read(PROMISE));
    let life = Life::live(|key| _ = limiter.admit(key), || clock.advance(LIFE / VISITED));
    let counts = zone.counts();
    println!(
        "{} of {} cells in use; {} newcomers found a cell, {} decisions were shared",
        counts.live, counts.cells, counts.inserts, counts.shared_decisions
    );
    life
}

/// All decisions about one zone.
struct Life {
    /// Until as many have come as will be live at a time: memory is used for the first time.
    filling: Phase,
    steady: Phase,
}

impl Life {
    fn live(mut decide: impl FnMut(&String), mut wait: impl FnMut()) -> Life {
        let (mut random, mut key) = (fastrand::Rng::with_seed(1), Key::new());
        let mut call = |decision: u32| {
            let newcomer = decision / 2;
            if decision.is_multiple_of(2) {
                wait();
                decide(key.write(newcomer));
            } else {
                decide(key.write(newcomer - random.u32(..VISITED.min(newcomer + 1))));
            }
        };
        let filling = Phase::of(0..2 * LIVE, &mut call);
        Life { filling, steady: Phase::of(2 * LIVE..DECISIONS, &mut call) }
    }
}
