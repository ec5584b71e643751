//! The time that a thread or a process has spent on a processor, which a busy machine does not stretch.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// For how long this thread has been running so far.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("nobody has run for less than nothing")
}

/// For how long the threads of another process have been running so far.
///
/// It is the sum of `utime` and `stime`, but in nanoseconds, where `stat` has hundredths of a second.
pub(crate) fn cpu_time_of(process: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let files = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("schedstat")));
    // A thread may end while it is looked at.
    let nanoseconds = files.flatten().filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Some(Duration::from_nanos(nanoseconds.sum()))
}

/// For how long the threads of this process with this name have been running so far.
pub(crate) fn cpu_time_of_threads(name: &str) -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let named = threads.filter(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    let texts = named.flat_map(|thread| fs::read_to_string(thread.path().join("schedstat")));
    let nanoseconds = texts.filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    Duration::from_nanos(nanoseconds.sum())
}
