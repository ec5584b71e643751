//! A line every few seconds for the person who waits.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::report::thousands;
use crate::stopwatch::Stopwatch;

const EVERY: Duration = Duration::from_secs(3);

/// How far a part of a drill has come; any of its threads may say so.
#[derive(Debug)]
pub(crate) struct Progress {
    name: String,
    total: u64,
    watch: Stopwatch,
    /// When the next line is due, in milliseconds.
    next: AtomicU64,
}

impl Progress {
    /// Begins something of so many steps.
    pub(crate) fn new(name: impl Into<String>, total: u64) -> Progress {
        let next = AtomicU64::new(EVERY.as_millis() as u64);
        Progress { name: name.into(), total, watch: Stopwatch::start(), next }
    }

    /// Whether a line is due; only one of those who ask at once is told so.
    pub(crate) fn is_due(&self) -> bool {
        let now = self.watch.elapsed().as_millis() as u64;
        let next = self.next.load(Ordering::Relaxed);
        let later = now + EVERY.as_millis() as u64;
        now >= next && self.next.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Says how far it has come, whether due or not.
    pub(crate) fn say(&self, done: u64, detail: impl Display) {
        eprintln!("{}", self.line(done, detail, self.watch.elapsed()));
    }

    /// Says how far it has come, if a line is due.
    pub(crate) fn at(&self, done: u64, detail: impl Display) {
        if self.is_due() {
            self.say(done, detail);
        }
    }

    fn line(&self, done: u64, detail: impl Display, elapsed: Duration) -> String {
        let percent = done * 100 / self.total.max(1);
        let (done, total) = (thousands(done), thousands(self.total));
        format!("{}: {done} of {total} ({percent} %) after {} s {detail}", self.name, elapsed.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_of_what() {
        let line = Progress::new("flood", 4000).line(1000, "live 16/16", Duration::from_millis(3200));
        assert_eq!(line, "flood: 1,000 of 4,000 (25 %) after 3 s live 16/16");
    }

    #[test]
    fn no_line_is_due_at_once() {
        assert!(!Progress::new("flood", 10).is_due());
    }
}
