//! Parts that are found by looking into a request's head.

use std::fmt;

use http::header::HeaderName;
use tidegate_rules::plain_host;

use super::named::{Named, What};
use super::part::Part;
use super::{Extract, Extracted};
use crate::head::Head;

/// Everybody together: one subject.
pub fn everyone() -> Everyone {
    Everyone
}

/// Everybody together; made by [`everyone`].
#[derive(Clone, Copy, Debug)]
pub struct Everyone;

impl Extract for Everyone {
    #[inline]
    fn extract<'r>(&self, _: Head<'r>) -> Extracted<'r> {
        "".into()
    }

    fn is_same_for_all(&self) -> bool {
        true
    }
}

/// The value of a header field. Requests with several lines of it that differ are counted together, see
/// [`Named::on_repeated`].
///
/// Whoever calls can write anything there. Take it for what a layer outside of this one has checked, or where one
/// who invents a new name each time is held back by another limit as well.
///
/// # Panics
/// If the name is none that a header field can have.
pub fn header(name: impl TryInto<HeaderName, Error: fmt::Debug>) -> Named {
    Named::new(What::Header(name.try_into().expect("a name that a header field can have")))
}

/// The value of a cookie, without the quotes around it. Requests with several cookies of this name that differ are counted
/// together, see [`Named::on_repeated`].
pub fn cookie(name: &str) -> Named {
    Named::new(What::Cookie(name.into()))
}

/// The value of a part of the query, decoded as forms are written. Requests with several parts of this name that differ are
/// counted together, see [`Named::on_repeated`].
///
/// ```
/// use tidegate_tower::{OnRepeated, key};
///
/// // The application reads the last one, and nobody sends two of them for a good reason.
/// let by_account = key::query("account").on_repeated(OnRepeated::Deny);
/// # let _ = by_account;
/// ```
pub fn query(name: &str) -> Named {
    Named::new(What::Query(name.into()))
}

/// The path as it was written, without the query.
pub fn path() -> Found<fn(Head<'_>) -> Part<'_>> {
    Found(|head| head.path().into())
}

/// The host that is asked, in small letters, without a port and without the dot at its end.
pub fn host() -> Found<fn(Head<'_>) -> Part<'_>> {
    Found(|head| head.host().map(plain_host).into())
}

/// Something of what a layer outside of this one has left in the request's extensions.
///
/// ```
/// use tidegate_tower::key;
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// let by_user = key::extension(|user: &User| user.id);
/// # let _ = by_user;
/// ```
pub fn extension<T, P, F>(find: F) -> impl Extract
where
    T: Clone + Send + Sync + 'static,
    P: Into<Part<'static>>,
    F: Fn(&T) -> P + Send + Sync + 'static,
{
    from(move |head| head.extension().map(|found| -> Part<'static> { find(found).into() }).into())
}

/// Whatever a function finds.
///
/// ```
/// use tidegate_tower::key;
///
/// let by_query = key::from(|head| head.uri().query().into());
/// # let _ = by_query;
/// ```
pub fn from<F>(find: F) -> Found<F>
where
    F: for<'r> Fn(Head<'r>) -> Part<'r> + Send + Sync + 'static,
{
    Found(find)
}

/// Whatever a function finds; made by [`from`].
pub struct Found<F>(F);

impl<F> Extract for Found<F>
where
    F: for<'r> Fn(Head<'r>) -> Part<'r> + Send + Sync + 'static,
{
    #[inline]
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        Extracted::Now((self.0)(head))
    }
}

/// Whatever a function finds that has to ask elsewhere: a session, a token's owner.
///
/// ```
/// use tidegate_tower::key;
///
/// async fn owner_of(token: Vec<u8>) -> Option<String> {
///     # let _ = token;
///     Some(String::from("ana"))
/// }
///
/// let by_owner = key::later(|head| {
///     let token = head.header("authorization").map(|token| token.as_bytes().to_vec());
///     async move { owner_of(token?).await }
/// });
/// # let _ = by_owner;
/// ```
pub fn later<P, U, F>(find: F) -> Later<F>
where
    P: Into<Part<'static>>,
    U: Future<Output = P> + Send + 'static,
    F: Fn(Head<'_>) -> U + Send + Sync + 'static,
{
    Later(find)
}

/// Whatever a function finds elsewhere; made by [`later`].
pub struct Later<F>(F);

impl<P, U, F> Extract for Later<F>
where
    P: Into<Part<'static>>,
    U: Future<Output = P> + Send + 'static,
    F: Fn(Head<'_>) -> U + Send + Sync + 'static,
{
    fn extract<'r>(&self, head: Head<'r>) -> Extracted<'r> {
        let found = (self.0)(head);
        Extracted::Later(Box::pin(async move { found.await.into() }))
    }
}

impl<F> fmt::Debug for Found<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Found")
    }
}

impl<F> fmt::Debug for Later<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Later")
    }
}
