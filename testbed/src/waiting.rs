//! Waiting for other processes, in real time. Nothing that is judged is decided by this.

use std::thread;
use std::time::{Duration, Instant};

/// Between two looks.
const NAP: Duration = Duration::from_millis(10);

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

/// An instant of the machine's monotonic clock.
#[expect(clippy::disallowed_methods, reason = "other processes live in real time")]
pub fn now() -> Instant {
    Instant::now()
}

/// Gives the processor away for a while.
#[expect(clippy::disallowed_methods, reason = "other processes need real time")]
pub fn pause(duration: Duration) {
    thread::sleep(duration);
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
}
