//! Extractors that read a part of the key from the head of a request.

use std::fmt;

use http::header::HeaderName;
use tidegate_rules::plain_host;

use super::named::{Named, What};
use super::part::Part;
use super::{Extract, Extracted};
use crate::head::Head;

/// Returns an extractor of one key for all requests.
pub fn everyone() -> Everyone {
    Everyone
}

/// An extractor of one key for all requests; made by [`everyone`].
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

/// Returns an extractor of the value of a header field. Requests in which the field has several different values are
/// counted under one key; see [`Named::on_repeated`].
///
/// The caller can write any value into the field. Use it for values that an outer layer has checked, or together with
/// another limit: a caller that invents a new value for each request is not limited by this one.
///
/// # Panics
/// If the name is not a valid name of a header field.
pub fn header(name: impl TryInto<HeaderName, Error: fmt::Debug>) -> Named {
    Named::new(What::Header(name.try_into().expect("a name that a header field can have")))
}

/// Returns an extractor of the value of a cookie, without the quotes around it. Requests in which the cookie has
/// several different values are counted under one key; see [`Named::on_repeated`].
pub fn cookie(name: &str) -> Named {
    Named::new(What::Cookie(name.into()))
}

/// Returns an extractor of a query parameter, decoded as in forms. Requests in which the parameter has several
/// different values are counted under one key; see [`Named::on_repeated`].
///
/// ```
/// use tidegate::tower::{OnRepeated, key};
///
/// // The application reads the last one. Legitimate clients never send two of them.
/// let by_account = key::query("account").on_repeated(OnRepeated::Deny);
/// # let _ = by_account;
/// ```
pub fn query(name: &str) -> Named {
    Named::new(What::Query(name.into()))
}

/// Returns an extractor of the path as it was written, without the query.
pub fn path() -> Found<fn(Head<'_>) -> Part<'_>> {
    Found(|head| head.path().into())
}

/// Returns an extractor of the host, in lower case, without a port and without a trailing dot.
pub fn host() -> Found<fn(Head<'_>) -> Part<'_>> {
    Found(|head| head.host().map(plain_host).into())
}

/// Returns an extractor of a value that an outer layer has added to the request's extensions.
///
/// ```
/// use tidegate::tower::key;
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

/// Returns an extractor by a function.
///
/// ```
/// use tidegate::tower::key;
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

/// An extractor by a function; made by [`from`].
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

/// Returns an extractor by an asynchronous function, such as a lookup of a session or of a token's owner.
///
/// ```
/// use tidegate::tower::key;
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

/// An extractor by an asynchronous function; made by [`later`].
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
