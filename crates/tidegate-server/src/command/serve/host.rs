//! Resource limits of the process.
//!
//! Each connection needs a descriptor. Many systems allow 1024 by default, and far more on request.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command::output::say;

/// The number of open files besides connections: listeners, the store and the runtimes.
const OTHER_FILES: u64 = 256;

/// Raises the limit of open files to one per connection. Prints a warning if the system does not allow that many.
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
