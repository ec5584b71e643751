//! A map that grows to a million keys, and what is left of it when all have expired.
//!
//! The time that decides is set by hand; each call is timed by a stopwatch. All is done five times, and the
//! smallest of the worst calls counts.
//!
//! A process of its own does it. The allocator of glibc keeps what is freed at the end of its heap until that is twice the
//! largest block that the process has ever freed, and hands it back in one call. After the tables of peers that are 64 MiB
//! and 5 ms, which say nothing about the map.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Limiter, ManualClock, Map};

use super::keyed::{MANY_KEYS, roomy, users};
use crate::phase::{Phase, REPEATS, print_phases};
use crate::promise::Promise;
use harness::in_own_process;

const KEYS: u32 = 1_000_000;
const OTHER_KEYS: u32 = 100;
const TAKES_AFTER: usize = 300_000;
/// Longer than any key of one take is remembered.
const UNTIL_ALL_EXPIRE: Duration = Duration::from_secs(3600);

/// How steady it was.
pub(super) struct Steadiness {
    pub(super) smallest_worst_call: Duration,
    pub(super) share_of_bytes_after: f64,
}

/// Lets a process of its own do it and prints what happened.
pub(super) fn measure() -> Result<Steadiness, String> {
    let report = in_own_process(&["core", "steady"])?;
    let (table, numbers) = report.rsplit_once('\n').unwrap_or(("", &report));
    println!("{table}\n");
    let read = |(worst, share): (&str, &str)| {
        let smallest_worst_call = Duration::from_nanos(worst.parse().ok()?);
        Some(Steadiness { smallest_worst_call, share_of_bytes_after: share.parse().ok()? })
    };
    numbers.split_once(' ').and_then(read).ok_or_else(|| format!("two numbers are expected, not {numbers:?}"))
}

/// Does it, prints what happened, and in the last line the worst call in nanoseconds and the share of bytes that is left.
pub(super) fn run() -> ExitCode {
    let Steadiness { smallest_worst_call, share_of_bytes_after } = live();
    println!("{} {share_of_bytes_after}", smallest_worst_call.as_nanos());
    ExitCode::SUCCESS
}

fn live() -> Steadiness {
    let keys = users(KEYS);
    let others: Vec<_> = (0..OTHER_KEYS).map(|number| format!("other:{number:05}")).collect();
    let lives: Vec<_> = (0..REPEATS).map(|_| Life::live(&keys, &others)).collect();
    let peak = lives.iter().map(|life| life.peak).max().unwrap_or_default();
    println!("a map grows to {KEYS} keys; all expire; {TAKES_AFTER} takes on {OTHER_KEYS} others follow");
    println!(
        "not measured: real clocks, contention, memory that others freed before. \
         a preempted thread counts as a slow call: {REPEATS} times"
    );
    let grown = &lives[0].grown;
    println!("at its peak: {peak:>25} bytes");
    println!("grown: {:>8} keys, {:>12} bytes, {} a key", grown.keys, grown.bytes, grown.bytes / grown.keys);
    let after = lives.iter().map(|life| life.after).max_by_key(|after| after.bytes).unwrap_or_default();
    let share = after.bytes as f64 / peak as f64;
    println!("after: {:>8} keys, {:>12} bytes, {:.2}% of the peak", after.keys, after.bytes, share * 100.0);
    print_phases(&[
        ("while it grows", lives.iter().map(|life| life.growing).collect()),
        ("while it forgets", lives.iter().map(|life| life.forgetting).collect()),
    ]);
    let worst = lives.iter().map(|life| life.growing.worst.max(life.forgetting.worst));
    Steadiness { smallest_worst_call: worst.min().unwrap_or_default(), share_of_bytes_after: share }
}

/// From the first key to the last expiry.
struct Life {
    /// The most bytes at any time.
    peak: usize,
    grown: Size,
    after: Size,
    growing: Phase,
    forgetting: Phase,
}

impl Life {
    fn live(keys: &[String], others: &[String]) -> Life {
        let clock = Arc::new(ManualClock::new());
        let map = roomy(Map::with_clock(clock.clone()));
        let limiter = Limiter::on(&map, "", Promise::read(MANY_KEYS).limit());
        let mut peak = 0;
        let growing = Phase::of(keys.iter(), |key| {
            assert!(limiter.admit(key).is_allowed(), "{key} is new");
            peak = peak.max(map.bytes());
        });
        let grown = Size::of(&map);
        clock.advance(UNTIL_ALL_EXPIRE);
        let forgetting = Phase::of(others.iter().cycle().take(TAKES_AFTER), |key| {
            let _ = limiter.admit(key);
            peak = peak.max(map.bytes());
        });
        Life { peak, grown, after: Size::of(&map), growing, forgetting }
    }
}

/// What a map holds.
#[derive(Clone, Copy, Default)]
struct Size {
    keys: usize,
    bytes: usize,
}

impl Size {
    fn of(map: &Map) -> Size {
        Size { keys: map.keys(), bytes: map.bytes() }
    }
}
