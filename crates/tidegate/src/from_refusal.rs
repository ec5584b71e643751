//! A refusal as what a function returns.

use crate::refusal::Refusal;

/// What a refusal can become when a function that is held to a limit has to return something.
///
/// Every `Result` whose error is made of a [`Refusal`] is such a value; other types say here what they become.
///
/// ```
/// use tidegate::{FromRefusal, Refusal};
///
/// enum Answer {
///     Page(String),
///     TooMany,
/// }
///
/// impl FromRefusal for Answer {
///     fn from_refusal(_: Refusal) -> Answer {
///         Answer::TooMany
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a refusal cannot become `{Self}`, which this function returns",
    label = "nothing says what to return when the limit refuses",
    note = "return a `Result<_, E>` where `E` is `tidegate::Refusal` or has `From<tidegate::Refusal>`",
    note = "or say what to return instead: `otherwise = |refusal| …`, or `otherwise = some_function`"
)]
pub trait FromRefusal {
    /// What is returned in place of what was refused.
    fn from_refusal(refusal: Refusal) -> Self;
}

impl<T, E: From<Refusal>> FromRefusal for Result<T, E> {
    fn from_refusal(refusal: Refusal) -> Result<T, E> {
        Err(E::from(refusal))
    }
}
