//! Names for the memory of a server: what was written under a name is there as long as the name is the same.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;

/// One connection to one server, and how often all data was flushed meanwhile. While it is the same, so is what the
/// server remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seat {
    /// The number of the connection, which no other connection of this process has.
    pub(super) connection: u64,
    pub(super) flushes: u64,
}

/// An answer, and the memory that it came from.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) value: Value,
    /// As of when the question was sent: a flush that came before the answer makes it another one.
    pub(crate) seat: Seat,
}

/// A number for a connection. There is no connection with the number zero.
pub(super) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
impl Seat {
    /// The memory of a connection that there is not.
    pub(crate) fn for_tests(connection: u64, flushes: u64) -> Seat {
        Seat { connection, flushes }
    }
}
