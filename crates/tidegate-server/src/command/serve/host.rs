//! What the machine lets a process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command::output::say;

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
