//! Stops a server without its noticing.

use std::fs;
use std::time::Duration;

use testbed::{Redis, until};

/// How long the system may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Stops it, and waits until the system says that it is: a signal needs a moment, in which it may still answer.
pub(crate) fn stop(redis: &Redis) -> Result<(), String> {
    let process = redis.pid().ok_or_else(|| format!("{} is not running", redis.address()))?;
    redis.stop();
    until("a process that is stopped", PATIENCE, || {
        is_stopped(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?).then_some(())
    });
    Ok(())
}

/// Whether a process is stopped, by its state behind a name that may hold anything.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, fields)| fields.trim_start().starts_with('T'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_found_whatever_the_name() {
        assert!(is_stopped("17 (a) S) T 1 2"));
        assert!(!is_stopped("17 (T) S 1 2") && !is_stopped(""));
    }
}
