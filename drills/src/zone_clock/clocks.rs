//! A clock that every thread reads differently.

use std::cell::Cell;
use std::sync::Arc;

use tidegate::{Clock, ManualClock, Ticks, Timestamp};

thread_local! {
    static AHEAD: Cell<Ticks> = const { Cell::new(Ticks::ZERO) };
}

/// Says by how much this thread reads too late a time from now on.
pub(super) fn read_ahead(by: Ticks) {
    AHEAD.set(by);
}

/// A clock set by hand, as this thread reads it.
#[derive(Debug)]
pub(super) struct Disagreeing(pub(super) Arc<ManualClock>);

impl Clock for Disagreeing {
    fn now(&self) -> Timestamp {
        self.0.now().saturating_add(AHEAD.get())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tidegate::SECOND;

    use super::*;

    #[test]
    fn each_thread_reads_its_own_time() {
        let clock = Disagreeing(Arc::new(ManualClock::new()));
        clock.0.advance(SECOND);
        read_ahead(Ticks::saturating_from(SECOND));
        assert_eq!(clock.now(), Timestamp::after_epoch(2 * SECOND));
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(clock.now(), Timestamp::after_epoch(SECOND)));
        });
    }
}
