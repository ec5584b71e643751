//! Places in flight of which a client has not heard.
//!
//! Unless they are told, they are given back: whoever hangs up before does not know their permits, and would hold them
//! until their leases are over.

use std::fmt;
use std::sync::Arc;

use crate::engine::Engine;
use crate::permit::Permits;

/// Places that were taken for replies which are not written yet.
#[derive(Default)]
pub(super) struct Untold(Vec<(Permits, Arc<Engine>)>);

impl Untold {
    /// A reply tells of these places, if there are any.
    #[inline]
    pub(super) fn note(&mut self, permits: Option<Permits>, engine: &Arc<Engine>) {
        if let Some(permits) = permits {
            self.0.push((permits, Arc::clone(engine)));
        }
    }

    /// All of them are told together with those of other replies.
    pub(super) fn append(&mut self, mut other: Untold) {
        self.0.append(&mut other.0);
    }

    /// All replies are written.
    #[inline]
    pub(super) fn told(&mut self) {
        self.0.clear();
    }
}

impl Drop for Untold {
    fn drop(&mut self) {
        self.0.iter().for_each(|(permits, engine)| permits.release_later(engine));
    }
}

impl fmt::Debug for Untold {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Untold").field(&self.0.len()).finish()
    }
}
