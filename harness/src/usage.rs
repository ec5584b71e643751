//! What processes and threads take, as the system reports it: processor time, memory, open files.
//!
//! CPU time is not stretched by a busy machine.

use std::fs;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Returns the time that this thread has run so far.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("no thread has run for less than nothing")
}

/// Returns the time that the threads of another process have run so far: `utime` and `stime`, but in nanoseconds.
pub fn cpu_time_of(process: u32) -> Option<Duration> {
    ran(&process.to_string(), |_| true)
}

/// Returns the time that the threads of this process with this name have run so far.
pub fn cpu_time_of_threads(name: &str) -> Duration {
    ran("self", |comm| comm.trim_end() == name).unwrap_or_default()
}

fn ran(process: &str, is_meant: impl Fn(&str) -> bool) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanoseconds = threads.flatten().filter_map(|thread| {
        // A thread may end while it is looked at.
        let read = |name| fs::read_to_string(thread.path().join(name)).ok();
        is_meant(&read("comm")?).then_some(())?;
        read("schedstat")?.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(Duration::from_nanos(nanoseconds.sum()))
}

/// Returns the resident bytes of this process.
pub fn resident() -> Result<u64, String> {
    status("self", "VmRSS:")
}

/// Returns the resident bytes of another process.
pub fn resident_of(process: u32) -> Result<u64, String> {
    status(&process.to_string(), "VmRSS:")
}

/// Returns the most bytes that were ever resident of this process.
pub fn most_resident() -> Result<u64, String> {
    status("self", "VmHWM:")
}

fn status(process: &str, name: &str) -> Result<u64, String> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).map_err(|error| error.to_string())?;
    field(&status, name).ok_or_else(|| format!("/proc/{process}/status has no {name}"))
}

fn field(status: &str, name: &str) -> Option<u64> {
    let kibibytes: u64 =
        status.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns bytes in mebibytes, to read.
pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Lets this process have as many open files as it may: a connection is one. Returns how many these are.
pub fn raise_open_files() -> Result<u64, String> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)
        .map_err(|error| format!("the number of open files is not raised: {error}"))?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resident_part_is_read_from_its_line() {
        let text = "Name:\tdrills\nVmHWM:\t  9999 kB\nVmRSS:\t  2048 kB\n";
        assert_eq!((field(text, "VmRSS:"), field("Name:\tdrills\n", "VmRSS:")), (Some(2 << 20), None));
        assert_eq!(mebibytes(3 << 19), "1.5 MiB");
        assert!(most_resident().unwrap() >= resident().unwrap() / 2);
    }

    #[test]
    fn this_process_has_run() {
        assert!(cpu_time_of(std::process::id()).is_some());
        assert_eq!(cpu_time_of_threads("no such thread"), Duration::ZERO);
    }
}
