//! The error of a call that was not sent.

use std::any::Any;
use std::error::Error;
use std::fmt;

type BoxError = Box<dyn Error + Send + Sync>;

/// The source of every error that means that a call was not sent, such as `Throttled` of `tidegate::outbound`.
///
/// Such an error is no outcome of the service: adaptive limits and circuit breakers ignore it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSent;

impl NotSent {
    /// Returns true if this is among the sources of an error of a service, however layers have boxed it.
    ///
    /// Errors of tower's layers are boxed, often several times, so all sources are visited.
    pub(super) fn is_cause_of<E: 'static>(error: &E) -> bool {
        let error: &dyn Any = error;
        let boxed = error.downcast_ref::<BoxError>().map(|boxed| &**boxed as &(dyn Error + 'static));
        let own = error.downcast_ref::<NotSent>().map(|own| own as &(dyn Error + 'static));
        std::iter::successors(boxed.or(own), |error| (*error).source()).any(|error| error.is::<NotSent>())
    }
}

impl fmt::Display for NotSent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the call was not sent")
    }
}

impl Error for NotSent {}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of another layer.
    #[derive(Debug)]
    struct Wrapped(BoxError);

    impl fmt::Display for Wrapped {
        fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            self.0.fmt(out)
        }
    }

    impl Error for Wrapped {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&*self.0)
        }
    }

    #[test]
    fn it_is_found_in_the_boxes_of_other_layers() {
        let boxed: BoxError = NotSent.into();
        let wrapped: BoxError = Wrapped(Wrapped(NotSent.into()).into()).into();
        let is_cause =
            [NotSent::is_cause_of(&NotSent), NotSent::is_cause_of(&boxed), NotSent::is_cause_of(&wrapped)];
        assert_eq!(is_cause, [true; 3]);
        assert!(!NotSent::is_cause_of(&BoxError::from("another")) && !NotSent::is_cause_of(&()));
    }
}
