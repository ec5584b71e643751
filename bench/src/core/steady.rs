//! A map that grows to a million keys, and what is left of it when all have expired.
//!
//! The time that decides is set by hand; each call is timed by a stopwatch. A thread that loses its processor
//! looks like a slow call, so all is done five times, and the smallest of the worst calls counts. Beside it is
//! the worst call less the time for which, as the kernel says, the thread waited for a processor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate::{Limiter, ManualClock, Map};

use super::keyed::{MANY_KEYS, roomy};
use super::keys::users;
use super::promise::Promise;
use crate::rounds::{median, waited_to_run};

const KEYS: u32 = 1_000_000;
const OTHER_KEYS: u32 = 100;
const TAKES_AFTER: usize = 300_000;
const REPEATS: usize = 5;
/// Calls that take longer are looked into.
const SLOW: Duration = Duration::from_micros(20);
/// Longer than any key of one take is remembered.
const UNTIL_ALL_EXPIRE: Duration = Duration::from_secs(3600);

/// How steady it was.
pub(super) struct Steadiness {
    pub(super) smallest_worst_call: Duration,
    pub(super) share_of_bytes_after: f64,
}

/// Does it and prints what happened.
pub(super) fn run() -> Steadiness {
    let keys = users(KEYS);
    let others: Vec<_> = (0..OTHER_KEYS).map(|number| format!("other:{number:05}")).collect();
    let lives: Vec<_> = (0..REPEATS).map(|_| Life::live(&keys, &others)).collect();
    let peak = lives.iter().map(|life| life.peak).max().unwrap_or_default();
    println!("a map grows to {KEYS} keys; all expire; {TAKES_AFTER} takes on {OTHER_KEYS} others follow");
    println!(
        "not measured: real clocks, contention. a preempted thread counts as a slow call: {REPEATS} times"
    );
    let grown = &lives[0].grown;
    println!("at its peak: {peak:>25} bytes");
    println!("grown: {:>8} keys, {:>12} bytes, {} a key", grown.keys, grown.bytes, grown.bytes / grown.keys);
    let after = lives.iter().map(|life| life.after).max_by_key(|after| after.bytes).unwrap_or_default();
    let share = after.bytes as f64 / peak as f64;
    println!("after: {:>8} keys, {:>12} bytes, {:.2}% of the peak", after.keys, after.bytes, share * 100.0);
    println!("{:<20} {:^23} {:^23} {:>9}", "", "worst call, \u{b5}s", "less waiting to run", "mean call");
    println!("{:<20} {:>11} {:>11} {:>11} {:>11}", "", "least of 5", "median", "least of 5", "median");
    print_worst("while it grows", KEYS as usize, lives.iter().map(|life| life.growing));
    print_worst("while it forgets", TAKES_AFTER, lives.iter().map(|life| life.forgetting));
    println!();
    let worst = lives.iter().map(|life| life.growing.worst.max(life.forgetting.worst));
    Steadiness { smallest_worst_call: worst.min().unwrap_or_default(), share_of_bytes_after: share }
}

fn print_worst(name: &str, calls: usize, phases: impl Iterator<Item = Phase>) {
    let phases: Vec<_> = phases.collect();
    let microseconds =
        |of: fn(&Phase) -> Duration| phases.iter().map(move |phase| of(phase).as_secs_f64() * 1e6);
    let least = |of| microseconds(of).fold(f64::INFINITY, f64::min);
    let middle = |of| median(microseconds(of).collect());
    let mean = middle(|phase| phase.total) / calls as f64;
    println!(
        "{name:<20} {:>11.1} {:>11.1} {:>11.1} {:>11.1} {mean:>9.3}",
        least(|phase| phase.worst),
        middle(|phase| phase.worst),
        least(|phase| phase.worst_running),
        middle(|phase| phase.worst_running),
    );
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

/// The calls of one phase.
#[derive(Clone, Copy, Default)]
struct Phase {
    worst: Duration,
    worst_running: Duration,
    total: Duration,
}

impl Phase {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
    fn of<'a>(keys: impl Iterator<Item = &'a String>, mut call: impl FnMut(&String)) -> Phase {
        let mut phase = Phase::default();
        let mut waited = waited_to_run();
        let mut before = Instant::now();
        for key in keys {
            call(key);
            let mut after = Instant::now();
            let took = after - before;
            phase.total += took;
            phase.worst = phase.worst.max(took);
            if took > SLOW {
                let waited_before = std::mem::replace(&mut waited, waited_to_run());
                let running = took.saturating_sub(waited.saturating_sub(waited_before));
                phase.worst_running = phase.worst_running.max(running);
                after = Instant::now();
            }
            before = after;
        }
        phase
    }
}
