//! How long things take, and waiting. Nothing that is judged is decided by this.

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Measures from when it was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Stopwatch {
        Stopwatch(instant())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// An instant of this machine's clock, to wait for.
#[expect(clippy::disallowed_methods, reason = "a stopwatch decides nothing")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// Time since 1970, by the clock that a Redis on this machine reads.
#[expect(
    clippy::disallowed_methods,
    reason = "where the windows of a Redis begin is judged by its own clock"
)]
pub(crate) fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Gives the processor away for a while.
#[expect(clippy::disallowed_methods, reason = "a drill lets others work, in real time")]
pub(crate) fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// The time that this thread takes for something, without that for which it waits for a processor.
pub(crate) fn running(work: impl FnOnce()) -> Duration {
    let waited = waited_to_run();
    let watch = Stopwatch::start();
    work();
    let took = watch.elapsed();
    took.saturating_sub(waited_to_run().saturating_sub(waited))
}

/// For how long this thread has waited for a processor so far; nothing, if the kernel does not say.
fn waited_to_run() -> Duration {
    let status = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The one in the middle; nothing of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The value below which this part of all is; nothing of nothing.
pub(crate) fn quantile(mut values: Vec<Duration>, part: f64) -> Duration {
    values.sort_unstable();
    let place = (values.len() as f64 * part) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// A duration in milliseconds, to read.
pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let values: Vec<_> = (1..=1000).rev().map(Duration::from_millis).collect();
        assert_eq!(quantile(values.clone(), 0.999), Duration::from_millis(1000));
        assert_eq!(quantile(values.clone(), 0.5), Duration::from_millis(501));
        assert_eq!(quantile(values, 1.0), Duration::from_millis(1000));
        assert_eq!(quantile(Vec::new(), 0.5), Duration::ZERO);
        assert_eq!(milliseconds(Duration::from_micros(1500)), "1.50 ms");
    }

    #[test]
    fn the_median_is_the_one_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn running_does_the_work() {
        let mut done = false;
        let _ = running(|| done = true);
        assert!(done);
    }
}
