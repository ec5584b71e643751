//! The time that a thread has spent on a processor, which a busy machine does not stretch.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// For how long this thread has been running so far.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("nobody has run for less than nothing")
}
