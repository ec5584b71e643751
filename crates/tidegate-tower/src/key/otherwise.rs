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

#[derive(Clone, Copy, Debug)]
enum Missing {
    Skip,
    Refuse,
    Share,
}

impl<E> Otherwise<E> {
    pub(super) fn skip(extract: E) -> Otherwise<E> {
        Otherwise { extract, missing: Missing::Skip }
    }

    pub(super) fn refuse(extract: E) -> Otherwise<E> {
        Otherwise { extract, missing: Missing::Refuse }
    }

    pub(super) fn share(extract: E) -> Otherwise<E> {
        Otherwise { extract, missing: Missing::Share }
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
