//! What happens to requests in which a part is missing.

use super::part::Part;
use super::{Extract, Extracted};
use crate::head::Head;

/// An extractor that says what happens when it finds nothing; made by [`Extract::or_skip`], [`Extract::or_refuse`] and
/// [`Extract::or_share`].
#[derive(Clone, Debug)]
pub struct Otherwise<E> {
    extract: E,
    missing: Missing,
}

/// What happens to a request in which a part is missing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Missing {
    Skip,
    Refuse,
    Share,
}

impl<E> Otherwise<E> {
    pub(super) fn new(extract: E, missing: Missing) -> Otherwise<E> {
        Otherwise { extract, missing }
    }
}

impl Missing {
    fn instead_of(self, part: Part<'_>) -> Part<'_> {
        match (part, self) {
            (Part::Missing | Part::NoPeer, Missing::Skip) => Part::Skip,
            (Part::Missing | Part::NoPeer, Missing::Refuse) => Part::Refuse,
            (Part::Missing | Part::NoPeer, Missing::Share) => Part::Missing,
            (part, _) => part,
        }
    }
}

impl<E: Extract> Extract for Otherwise<E> {
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        let missing = self.missing;
        match self.extract.extract(head) {
            Extracted::Now(part) => Extracted::Now(missing.instead_of(part)),
            Extracted::Later(part) => {
                Extracted::Later(Box::pin(async move { missing.instead_of(part.await) }))
            }
        }
    }
}
