//! One decision on one word of state, exchanged atomically, beside governor's direct limiter.
//!
//! Both read a clock that is one atomic word: a load to read it, an addition to move it. Not measured: real clocks,
//! keys, contention.

use std::hint::black_box;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use tidegate::algorithm::{Decide, TokenBucket};
use tidegate::{Ask, Clock, Limit, State, Timestamp};

use harness::Goal;

use crate::rounds::{Candidate, ROUNDS, measure};

const OPERATIONS: u64 = 2_000_000;
/// The clock moves on by this much every so many decisions.
const STEP: Duration = Duration::from_micros(10);
/// [`STEP`] in ticks of 1/16 ns.
const STEP_TICKS: u64 = 160_000;

/// A clock like governor's `FakeRelativeClock`: our `ManualClock` also wakes waiters when it is moved.
#[derive(Debug, Default)]
struct WordClock(AtomicU64);

impl Clock for WordClock {
    // governor's clock is compiled in another crate and is called, too.
    #[inline(never)]
    fn now(&self) -> Timestamp {
        Timestamp::from_ticks(self.0.load(Ordering::Acquire))
    }
}

/// A word that is swapped until no other thread came in between.
struct Word<C> {
    limit: TokenBucket,
    clock: C,
    clear_at: AtomicU64,
}

impl<C: Clock> Word<C> {
    fn take(&self) -> bool {
        let now = self.clock.now();
        let mut seen = self.clear_at.load(Ordering::Acquire);
        loop {
            let mut state = Timestamp::from_ticks(seen);
            let decision = self.limit.decide(&mut state, now, Ask::ONE);
            if state.ticks() == seen {
                return decision.is_allowed();
            }
            match self.clear_at.compare_exchange_weak(
                seen,
                state.ticks(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return decision.is_allowed(),
                Err(other) => seen = other,
            }
        }
    }
}

/// Runs the bench.
pub(crate) fn run() -> ExitCode {
    println!("one decision, ns (median of {ROUNDS} interleaved rounds of {OPERATIONS})\n");
    println!("{:<12} {:>10} {:>10} {:>8}", "mostly", "tidegate", "governor", "ratio");
    let allowed = compare("allowed", 1_000_000, 1_000_000);
    let denied = compare("denied", 10, 10);
    println!();
    each_algorithm();
    let goals = [
        Goal::at_most("decide/allowed", allowed, 1.2, 1.0),
        Goal::at_most("decide/denied", denied, 1.2, 1.0),
    ];
    ExitCode::from(u8::from(!Goal::print_all(&goals)))
}

/// The ratio of our time to governor's under a rate and burst.
fn compare(name: &str, per_second: u32, burst: u32) -> f64 {
    let limit = Limit::per_second(per_second.into()).burst(burst.into());
    let Ok(limit) = TokenBucket::try_from(limit) else { unreachable!("per_second makes token buckets") };
    let ours = Word { limit, clock: WordClock::default(), clear_at: AtomicU64::new(0) };
    let count = |number: u32| NonZeroU32::new(number).expect("the numbers above are not zero");
    let clock = FakeRelativeClock::default();
    let quota = Quota::per_second(count(per_second)).allow_burst(count(burst));
    let theirs = RateLimiter::direct_with_clock(quota, clock.clone());
    let times = measure(&mut [
        Candidate {
            name: "tidegate",
            operations: OPERATIONS,
            run: Box::new(|| {
                let mut passed = 0;
                for operation in 0..OPERATIONS {
                    if operation % 16 == 0 {
                        ours.clock.0.fetch_add(STEP_TICKS, Ordering::AcqRel);
                    }
                    passed += u64::from(black_box(&ours).take());
                }
                passed
            }),
        },
        Candidate {
            name: "governor",
            operations: OPERATIONS,
            run: Box::new(|| {
                let mut passed = 0;
                for operation in 0..OPERATIONS {
                    if operation % 16 == 0 {
                        clock.advance(STEP);
                    }
                    passed += u64::from(black_box(&theirs).check().is_ok());
                }
                passed
            }),
        },
    ]);
    let ratio = times[0] / times[1];
    println!("{name:<12} {:>10.1} {:>10.1} {ratio:>8.2}", times[0], times[1]);
    ratio
}

/// What each algorithm costs through `Limit` and `State`, without a peer.
fn each_algorithm() {
    let texts = [
        "1000/s burst 1000",
        "1000/s queue 100 leaky-bucket",
        "1000/s fixed-window",
        "1000/s sliding-log",
        "1000/s sliding-window",
        "1000/s mode estimate sliding-window",
        "1000/s pacer",
        "1000/s warm-up 4s pacer",
        "8/s concurrency",
    ];
    let limits: Vec<Limit> = texts.iter().map(|text| text.parse().expect("a limit")).collect();
    let mut candidates: Vec<_> = limits
        .iter()
        .zip(texts)
        .map(|(limit, name)| {
            let (mut state, mut now) = (State::default(), 0_u64);
            let run = move || {
                let mut passed = 0;
                for _ in 0..OPERATIONS / 10 {
                    now += 8_000_000;
                    let decision = limit.decide(black_box(&mut state), Timestamp::from_ticks(now), Ask::ONE);
                    passed += u64::from(decision.is_allowed());
                }
                passed
            };
            Candidate { name, operations: OPERATIONS / 10, run: Box::new(run) }
        })
        .collect();
    let times = measure(&mut candidates);
    println!("{:<40} {:>8}", "through Limit and State, half denied", "ns");
    for (candidate, time) in candidates.iter().zip(times) {
        println!("{:<40} {time:>8.1}", candidate.name);
    }
    println!();
}
