//! A clock that can be set to fail at setting alarms.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use tidegate::{Clock, ManualClock, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct Failing {
    pub(crate) clock: ManualClock,
    pub(crate) fails: AtomicBool,
}

impl Clock for Failing {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn wake_at(&self, at: Timestamp, waker: Waker) -> io::Result<bool> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.clock.wake_at(at, waker)
    }
}
