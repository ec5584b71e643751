//! The handling of requests in which a part is missing.

use super::part::Part;
use super::{Extract, Extracted};
use crate::head::Head;

/// An extractor with a handling of requests in which the part is missing; made by [`Extract::or_skip`],
/// [`Extract::or_deny`] and [`Extract::or_share`].
#[derive(Clone, Debug)]
pub struct Otherwise<E> {
    pub(super) extract: E,
    /// The part of requests in which it is missing.
    pub(super) instead: Part<'static>,
}

impl<E: Extract> Extract for Otherwise<E> {
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        let instead = self.instead.clone();
        match self.extract.extract(head) {
            Extracted::Now(part) => Extracted::Now(part.or(instead)),
            Extracted::Later(part) => Extracted::Later(Box::pin(async move { part.await.or(instead) })),
        }
    }
}
