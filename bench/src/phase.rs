//! The worst of many calls.
//!
//! A thread that loses its processor looks like a slow call: all of it is measured several times. Beside
//! the worst call is the worst less the time for which, as the kernel says, the thread waited for a processor.

use std::time::Duration;

use harness::{median, now, waited_to_run};

/// How often all is done.
pub(crate) const REPEATS: usize = 5;
/// Calls that take longer are looked into.
const SLOW: Duration = Duration::from_micros(20);

/// Calls in a row.
#[derive(Clone, Copy, Default)]
pub(crate) struct Phase {
    calls: u64,
    pub(crate) worst: Duration,
    worst_running: Duration,
    total: Duration,
}

impl Phase {
    pub(crate) fn of<T>(items: impl Iterator<Item = T>, mut call: impl FnMut(T)) -> Phase {
        let mut phase = Phase::default();
        let mut waited = waited_to_run();
        let mut before = now();
        for item in items {
            call(item);
            let mut after = now();
            let took = after - before;
            phase.calls += 1;
            phase.total += took;
            phase.worst = phase.worst.max(took);
            if took > SLOW {
                let waited_before = std::mem::replace(&mut waited, waited_to_run());
                let running = took.saturating_sub(waited.saturating_sub(waited_before));
                phase.worst_running = phase.worst_running.max(running);
                after = now();
            }
            before = after;
        }
        phase
    }
}

/// Prints a line per name, for all the times that it was done.
pub(crate) fn print_phases(named: &[(&str, Vec<Phase>)]) {
    println!("{:<20} {:^23} {:^23} {:>9}", "", "worst call, \u{b5}s", "less waiting to run", "mean call");
    println!("{:<20} {:>11} {:>11} {:>11} {:>11}", "", "least of 5", "median", "least of 5", "median");
    for (name, phases) in named {
        let microseconds =
            |of: fn(&Phase) -> Duration| phases.iter().map(move |phase| of(phase).as_secs_f64() * 1e6);
        let least = |of| microseconds(of).fold(f64::INFINITY, f64::min);
        let middle = |of| median(microseconds(of));
        let calls = phases.first().map_or(1, |phase| phase.calls);
        println!(
            "{name:<20} {:>11.1} {:>11.1} {:>11.1} {:>11.1} {:>9.3}",
            least(|phase| phase.worst),
            middle(|phase| phase.worst),
            least(|phase| phase.worst_running),
            middle(|phase| phase.worst_running),
            middle(|phase| phase.total) / calls as f64,
        );
    }
}
