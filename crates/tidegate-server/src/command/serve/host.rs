//! What the machine has and lets a process have.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command::failure::Failure;
use crate::command::output::say;
use crate::settings::Bytes;

/// Files that are open beside connections: ports, the store, what the runtimes need.
const OTHER_FILES: u64 = 256;

/// Lets this process open a file for each connection, and says so if the system does not allow that many.
pub(super) fn let_open(max_connections: usize) {
    let wanted = max_connections as u64 + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let allowed = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum: limit.maximum });
    let allowed = if raised.is_ok() { allowed } else { limit.current.unwrap_or(allowed) };
    if allowed < wanted {
        say(format_args!(
            "warning: the system lets this process open {allowed} files, too few for {max_connections} connections; \
             raise that with `ulimit -n {wanted}`, or choose fewer with --max-connections"
        ));
    }
}

/// Refuses a store that is larger than all memory, before the system ends the process for it.
pub(super) fn has_memory(size: usize) -> Result<(), Failure> {
    let Some(all) = all_memory() else { return Ok(()) };
    if size <= all {
        return Ok(());
    }
    let mebibytes = Bytes(all >> 20 << 20);
    let (size, remedy) = (Bytes(size), "choose a smaller --store-size");
    Err(Failure::misused(format!("a store of {size}: this machine has {mebibytes} of memory; {remedy}")))
}

/// The bytes of memory of this machine, if it tells.
fn all_memory() -> Option<usize> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}
