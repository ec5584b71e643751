//! How long things take, and waiting for other processes, in real time. Nothing that is judged is decided by this.

use std::time::{Duration, Instant, SystemTime};
use std::{fs, thread};

/// Between two looks.
const NAP: Duration = Duration::from_millis(10);

/// A watch that measures from when it was started.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts it.
    pub fn start() -> Stopwatch {
        Stopwatch(now())
    }

    /// Returns the time since then.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Returns an instant of the machine's monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "a stopwatch decides nothing, and other processes live in real time"
)]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the time since 1970, by the clock that other processes of this machine read.
#[expect(
    clippy::disallowed_methods,
    reason = "where the windows of a Redis begin is judged by its own clock"
)]
pub fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Gives the processor away for a while.
#[expect(clippy::disallowed_methods, reason = "other processes need real time")]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
}

/// Looks until something is there, and panics with its name if it does not come within this time.
pub fn until<T>(what: &str, within: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let started = now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < within, "{what}: not within {within:?}");
        pause(NAP);
    }
}

/// Returns the time that this thread takes for something, without that for which it waits for a processor.
pub fn running(work: impl FnOnce()) -> Duration {
    let (waited, watch) = (waited_to_run(), Stopwatch::start());
    work();
    let took = watch.elapsed();
    took.saturating_sub(waited_to_run().saturating_sub(waited))
}

/// Returns the time that this thread has waited for a processor so far; none, if the kernel does not say.
pub fn waited_to_run() -> Duration {
    let status = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = status.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Returns the value in the middle; not a number if there is none.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the value below which this part of all is; zero if there is none.
pub fn quantile(mut values: Vec<Duration>, part: f64) -> Duration {
    values.sort_unstable();
    let place = (values.len() as f64 * part) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Returns a duration in milliseconds, to read.
pub fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_looked_for_until_it_is_there() {
        let mut looks = 0;
        let found = until("the third look", Duration::from_secs(60), || {
            looks += 1;
            (looks == 3).then_some("here")
        });
        assert_eq!((found, looks), ("here", 3));
    }

    #[test]
    #[should_panic(expected = "a miracle: not within 0ns")]
    fn what_does_not_come_is_named() {
        until("a miracle", Duration::ZERO, || None::<()>);
    }

    #[test]
    fn a_quantile_is_one_of_the_values_and_the_median_is_in_the_middle() {
        let values: Vec<_> = (1..=1000).rev().map(Duration::from_millis).collect();
        for (part, expected) in [(0.999, 1000), (0.5, 501), (1.0, 1000)] {
            assert_eq!(quantile(values.clone(), part), Duration::from_millis(expected));
        }
        assert_eq!(
            (quantile(Vec::new(), 0.5), milliseconds(Duration::from_micros(1500))),
            (Duration::ZERO, "1.50 ms".into())
        );
        assert!(median([3.0, 1.0, 2.0]) == 2.0 && median([]).is_nan());
    }

    #[test]
    fn running_does_the_work() {
        let mut done = false;
        let _ = running(|| done = true);
        assert!(done);
    }
}
