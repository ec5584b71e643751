//! The key of a request, combined from the parts that extractors find.
//!
//! Most extractors know their part at once; a lookup of a session does not. If one part has to be awaited, all of them
//! become futures that are polled together. Only then is anything of the request copied.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::part::Part;
use super::parts::Parts;
use super::{Extract, Extracted, LaterPart};
use crate::head::Head;

/// Determines the key of a request: an extractor, or a tuple of up to six.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whom a request is counted for",
    note = "take one of `key::peer()`, `key::header(name)`, `key::from(|head| …)`, or a tuple of up to six"
)]
/// It is implemented for every [`Extract`] and for tuples of them; a type of your own implements [`Extract`].
///
/// ```
/// use tidegate::Limit;
/// use tidegate::tower::{RateLimitLayer, key};
///
/// // Each user may call each path ten times a second.
/// let layer = RateLimitLayer::new(Limit::per_second(10), (key::header("x-user"), key::path()));
/// # let _ = layer;
/// ```
#[doc(alias = "key extractor")]
#[doc(alias = "KeyExtractor")]
pub trait Identify: Send + Sync + 'static {
    /// Returns all parts of the key, or a future of them.
    fn identify<'r>(&self, head: Head<'r>) -> Identified<'r>;

    /// Returns true if all requests have the same key.
    #[doc(hidden)]
    fn is_same_for_all(&self) -> bool {
        false
    }
}

/// All parts of a key, or a future of them.
#[derive(Debug)]
pub enum Identified<'r> {
    /// They are known.
    Now(Parts<'r>),
    /// Some have to be awaited.
    Later(LaterParts),
}

impl<E: Extract> Identify for E {
    #[inline]
    fn identify<'r>(&self, head: Head<'r>) -> Identified<'r> {
        match self.extract(head) {
            Extracted::Now(part) => Identified::Now(Parts::one(part)),
            later => Identified::Later(LaterParts(LaterEach::of([later]))),
        }
    }

    fn is_same_for_all(&self) -> bool {
        Extract::is_same_for_all(self)
    }
}

macro_rules! identify_by_tuples {
    ($(($($part:ident)+))+) => {$(
        impl<$($part: Extract),+> Identify for ($($part,)+) {
            #[expect(non_snake_case, reason = "the type parameters name the parts")]
            fn identify<'r>(&self, head: Head<'r>) -> Identified<'r> {
                let ($($part,)+) = self;
                together([$($part.extract(head)),+])
            }
        }
    )+};
}

identify_by_tuples! { (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) }

/// Returns the parts if all are known, else a future of all of them.
fn together<'r, const N: usize>(each: [Extracted<'r>; N]) -> Identified<'r> {
    if each.iter().any(|one| matches!(one, Extracted::Later(_))) {
        return Identified::Later(LaterParts(LaterEach::of(each)));
    }
    Identified::Now(Parts::several(each.into_iter().map(Extracted::known)))
}

/// A future of the parts of a key.
///
/// Its output does not borrow from the request. It panics if it is polled again after it was ready.
pub struct LaterParts(LaterEach);

impl Future for LaterParts {
    type Output = Parts<'static>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Parts<'static>> {
        Pin::new(&mut self.0).poll(context).map(Parts::several)
    }
}

impl fmt::Debug for LaterParts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("LaterParts").field("parts", &self.0.0.len()).finish_non_exhaustive()
    }
}

/// A future of the parts that several extractors find.
pub(crate) struct LaterEach(Vec<Waited>);

/// A part that is awaited, or known already.
enum Waited {
    For(LaterPart),
    Known(Part<'static>),
}

impl LaterEach {
    /// Copies the parts that are known, because the request is not available later.
    pub(crate) fn of<'r>(each: impl IntoIterator<Item = Extracted<'r>>) -> LaterEach {
        let each = each.into_iter().map(|one| match one {
            Extracted::Now(part) => Waited::Known(part.into_owned()),
            Extracted::Later(part) => Waited::For(part),
        });
        LaterEach(each.collect())
    }
}

impl Future for LaterEach {
    type Output = Vec<Part<'static>>;

    /// Polls all pending parts, so that lookups run at the same time.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Vec<Part<'static>>> {
        // Without its parts the request would be counted under a key without a name.
        assert!(!self.0.is_empty(), "polled again after it was over");
        let mut is_known = true;
        for one in &mut self.0 {
            if let Waited::For(part) = one {
                match part.as_mut().poll(context) {
                    Poll::Ready(part) => *one = Waited::Known(part),
                    Poll::Pending => is_known = false,
                }
            }
        }
        if !is_known {
            return Poll::Pending;
        }
        let known = std::mem::take(&mut self.0).into_iter().map(|one| match one {
            Waited::Known(part) => part,
            Waited::For(_) => unreachable!("a part that is waited for is pending, which was seen above"),
        });
        Poll::Ready(known.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn later() -> LaterEach {
        LaterEach::of([Extracted::Later(Box::pin(std::future::ready(Part::from("ana"))))])
    }

    #[test]
    #[should_panic(expected = "polled again after it was over")]
    fn parts_are_handed_out_once() {
        let (mut parts, mut context) = (later(), Context::from_waker(Waker::noop()));
        let first = Pin::new(&mut parts).poll(&mut context);
        assert_eq!(first, Poll::Ready(vec![Part::from("ana")]));
        let _ = Pin::new(&mut parts).poll(&mut context);
    }

    #[test]
    #[should_panic(expected = "parts that come later are waited for")]
    fn a_part_that_comes_later_is_never_taken_for_a_missing_one() {
        let _ = Extracted::Later(Box::pin(std::future::ready(Part::Missing))).known();
    }
}
