//! Permits of replies that are not written yet.
//!
//! If the connection ends before the reply is written, its permits are released. The client does not have their text,
//! and they would stay in flight until their leases expire.
//!
//! "Written" means that the socket has accepted all bytes of the replies so far. The client may still not have read
//! them; then it can come back with the permit, or the lease expires.

use std::fmt;
use std::sync::Arc;

use crate::engine::Engine;
use crate::permit::Permits;

/// The permits of replies that are not written yet. Dropping releases them.
#[derive(Default)]
pub(super) struct UnsentPermits(Vec<(Permits, Arc<Engine>)>);

impl UnsentPermits {
    /// Adds the permits of a reply, if there are any.
    ///
    /// The engine is kept with them, since a drop has no other access to it.
    #[inline]
    pub(super) fn note(&mut self, permits: Option<Permits>, engine: &Arc<Engine>) {
        if let Some(permits) = permits {
            self.0.push((permits, Arc::clone(engine)));
        }
    }

    /// Adds the permits of other replies.
    pub(super) fn append(&mut self, mut other: UnsentPermits) {
        self.0.append(&mut other.0);
    }

    /// Forgets all permits, since their replies are written.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.0.clear();
    }
}

impl Drop for UnsentPermits {
    fn drop(&mut self) {
        self.0.iter().for_each(|(permits, engine)| permits.release_later(engine));
    }
}

impl fmt::Debug for UnsentPermits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("UnsentPermits").field(&self.0.len()).finish()
    }
}
