//! The processes that a process has started, as `/proc` shows them.
//!
//! They may be in groups of their own, as those of PostgreSQL are, so that no signal reaches all at once.

use std::fs;
use std::time::Duration;

use harness::{Signal, send, until};

/// How long a process may take to heed a signal that it cannot refuse.
const HEED: Duration = Duration::from_secs(30);

/// A process that its parent has to wait for.
#[derive(Debug)]
pub(crate) struct Member {
    pid: u32,
    /// Tells it from a later one of the same number.
    started: u64,
}

impl Member {
    /// Sends a signal; one that has ended hears nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.is_there() {
            // It may end between the look and the signal.
            let _ = send(self.pid, signal);
        }
    }

    /// Waits until it has ended; its parent may not have been notified yet.
    pub(crate) fn wait(&self) {
        until(&format!("the end of process {}", self.pid), HEED, || (!self.is_there()).then_some(()));
    }

    fn is_there(&self) -> bool {
        look(self.pid).is_some_and(|seen| seen.started == self.started && !seen.has_ended())
    }
}

/// Those whom this one has started and who are there; all of them, if it is stopped.
pub(crate) fn children(parent: u32) -> Vec<Member> {
    let entries = fs::read_dir("/proc").unwrap_or_else(|error| panic!("/proc: {error}"));
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let member = |pid| {
        let seen = look(pid)?;
        (seen.parent == parent && !seen.has_ended()).then_some(Member { pid, started: seen.started })
    };
    pids.filter_map(member).collect()
}

/// Waits until a process that got SIGSTOP does nothing any more.
pub(crate) fn wait_until_stopped(pid: u32) {
    until(&format!("process {pid} to stop"), HEED, || {
        look(pid).is_none_or(|seen| seen.state == 'T' || seen.has_ended()).then_some(())
    });
}

/// What `/proc` says of one process.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    state: char,
    parent: u32,
    started: u64,
}

impl Seen {
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn look(pid: u32) -> Option<Seen> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse(stat: &str) -> Option<Seen> {
    // The name comes first, in brackets, and may have brackets and spaces itself.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    let parent = words.next()?.parse().ok()?;
    let started = words.nth(17)?.parse().ok()?;
    Some(Seen { state, parent, started })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_with_brackets_does_not_confuse() {
        let stat = "7 (a) S 1 (b) T 5 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 10\n";
        assert_eq!(parse(stat), Some(Seen { state: 'T', parent: 5, started: 4242 }));
    }

    #[test]
    fn a_child_is_seen_until_it_has_ended() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let ours = |pid| children(std::process::id()).into_iter().find(|member| member.pid == pid);
        let member = ours(child.id()).unwrap();
        member.signal(Signal::STOP);
        wait_until_stopped(child.id());
        assert!(member.is_there());
        member.signal(Signal::KILL);
        member.wait();
        assert!(ours(child.id()).is_none());
        child.wait().unwrap();
        assert!(!send(child.id(), Signal::CONT));
    }
}
