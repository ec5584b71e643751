//! A limit on the bytes of unfinished requests of all connections together.
//!
//! The first bytes of a connection are not counted. They are few, and `max_connections` bounds them. A connection whose
//! requests fit in them never touches the shared counter.
//!
//! Without such a limit, many clients that each send most of a large request and then pause could exhaust the
//! memory. The client that exceeds the limit is cut off, not the one that has waited longest: no client can
//! displace another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that a connection may hold without being counted.
pub(crate) const UNCOUNTED_BYTES: usize = 16 << 10;

/// The bytes of unfinished requests of all connections.
#[derive(Debug)]
pub(crate) struct Unfinished {
    /// The sum of all shares.
    held: AtomicUsize,
    /// The common limit, in bytes.
    at_most: usize,
}

impl Unfinished {
    /// Creates an account without shares.
    pub(crate) fn new(at_most: usize) -> Arc<Unfinished> {
        Arc::new(Unfinished { held: AtomicUsize::new(0), at_most })
    }

    /// Returns the bytes that are counted now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Returns the share of a connection that holds nothing yet.
    pub(crate) fn share(self: &Arc<Unfinished>) -> Share {
        Share { of: self.clone(), counted: 0 }
    }
}

/// The bytes that one connection holds. Dropping it returns them.
///
/// A connection updates its share after each read, and when a request is complete.
#[derive(Debug)]
pub(crate) struct Share {
    /// The account that the bytes are counted in.
    of: Arc<Unfinished>,
    /// The bytes of this share that are counted; 0 up to [`UNCOUNTED_BYTES`].
    counted: usize,
}

/// The error of a connection that would exceed the common limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMuch {
    /// The common limit, in bytes.
    pub(crate) at_most: usize,
}

impl Share {
    /// Sets the number of bytes that the connection holds. On error, the previous number stays counted.
    ///
    /// The usual call compares two numbers. Only connections with long requests change the shared counter.
    #[inline]
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), TooMuch> {
        let wanted = if bytes <= UNCOUNTED_BYTES { 0 } else { bytes };
        if wanted == self.counted { Ok(()) } else { self.count(wanted) }
    }

    /// Changes the number of counted bytes. It never exceeds the common limit, not even for a moment.
    #[cold]
    fn count(&mut self, wanted: usize) -> Result<(), TooMuch> {
        let Unfinished { held, at_most } = &*self.of;
        match wanted.checked_sub(self.counted) {
            Some(more) => {
                let grown = |held: usize| held.checked_add(more).filter(|held| held <= at_most);
                held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
                    .map_err(|_| TooMuch { at_most: *at_most })?;
            }
            None => {
                held.fetch_sub(self.counted - wanted, Ordering::Relaxed);
            }
        }
        self.counted = wanted;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.counted > 0 {
            self.of.held.fetch_sub(self.counted, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MOST: usize = 100_000;

    #[test]
    fn all_together_hold_as_much_as_they_may_and_not_a_byte_more() {
        let all = Unfinished::new(AT_MOST);
        let (mut first, mut second) = (all.share(), all.share());
        assert_eq!((first.hold(60_000), second.hold(40_000)), (Ok(()), Ok(())));
        assert_eq!(all.held(), AT_MOST);
        assert_eq!(second.hold(40_001), Err(TooMuch { at_most: AT_MOST }));
        assert_eq!(second.hold(usize::MAX), Err(TooMuch { at_most: AT_MOST }));
        assert_eq!((all.held(), first.hold(59_999), second.hold(40_001)), (AT_MOST, Ok(()), Ok(())));
    }

    #[test]
    fn the_first_bytes_of_a_connection_are_not_counted() {
        let all = Unfinished::new(UNCOUNTED_BYTES);
        let (mut first, mut second) = (all.share(), all.share());
        assert_eq!((first.hold(UNCOUNTED_BYTES), second.hold(UNCOUNTED_BYTES)), (Ok(()), Ok(())));
        assert_eq!(all.held(), 0);
        assert_eq!(first.hold(UNCOUNTED_BYTES + 1), Err(TooMuch { at_most: UNCOUNTED_BYTES }));
    }

    #[test]
    fn what_is_not_held_any_more_is_given_back() {
        let all = Unfinished::new(AT_MOST);
        let mut first = all.share();
        for (bytes, counted) in [(50_000, 50_000), (90_000, 90_000), (20_000, 20_000), (16_384, 0), (0, 0)] {
            assert_eq!((first.hold(bytes), all.held()), (Ok(()), counted));
        }
        first.hold(AT_MOST).unwrap();
        drop(first);
        assert_eq!(all.held(), 0);
    }
}
