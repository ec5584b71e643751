//! Identities of a server's memory: data that was written under an identity exists as long as the identity is
//! unchanged.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;

/// One connection to one server, and the number of flushes of all data. While it is unchanged, the server keeps its
/// data. Anything derived from server data is valid for one identity only: cached denials, listed limits, and receipts
/// that can be refunded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryId {
    /// The number of the connection, unique in this process.
    pub(super) connection: u64,
    /// The number of flushes reported on any connection of the link.
    pub(super) flushes: u64,
}

/// A reply, and the memory that it came from.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The reply.
    pub(crate) value: Value,
    /// The identity at the time of sending. A flush before the reply changes the identity.
    pub(crate) seat: MemoryId,
}

/// Returns a unique number for a connection, never zero.
pub(super) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
impl MemoryId {
    /// Creates the identity of a fictitious connection.
    pub(crate) fn for_tests(connection: u64, flushes: u64) -> MemoryId {
        MemoryId { connection, flushes }
    }
}
