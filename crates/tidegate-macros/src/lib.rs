//! The attribute `#[rate_limit]`, which applies a limit of [Tidegate](tidegate_core) to a function.
//!
//! Programs reach it as `tidegate::rate_limit`, by the feature `macros` of the crate `tidegate`:
//!
//! ```toml
//! tidegate = { version = "0.1", features = ["macros"] }
//! ```
//!
//! ```
//! use tidegate::Denied;
//! use tidegate::rate_limit;
//!
//! #[rate_limit("2/h", key = user)]
//! fn reset_password(user: &str) -> Result<String, Denied> {
//!     Ok(format!("a letter to {user}"))
//! }
//!
//! assert!(reset_password("ana").is_ok());
//! assert!(reset_password("ana").is_ok());
//! let denied = reset_password("ana").unwrap_err();
//! println!("{denied}"); // denied, with the time until a retry can pass
//! assert!(reset_password("bob").is_ok()); // each key has its own share
//! ```
//!
//! The attribute applies to functions and methods, sync and async. Before the body runs, the limit decides; if it
//! denies the call, the body does not run. The generated code names `::tidegate`, so a program depends on that crate
//! under this name, and on no other crate of the library.
//!
//! # The limit
//!
//! | written as | means |
//! |---|---|
//! | `"10/s burst 20"` | the [text of a limit](tidegate_core::Limit#text-of-a-limit), checked at compile time |
//! | `limit = LOGIN` | a constant [`Limit`](tidegate_core::Limit); an invalid one does not compile |
//! | `limiter = LOGIN` | an existing limiter: a `static`, or `self.limiter` |
//!
//! With a text or a constant, the function has a limiter of its own, created at the first call. All instances of a
//! generic function share it, and so do all types that use a default method of a trait.
//!
//! With `limiter`, several functions can share one. With a key it is a [`Limiter`](tidegate_core::Limiter) or
//! [`Permits`](tidegate_core::Permits); without a key a [`DirectLimiter`](tidegate_core::DirectLimiter), a
//! [`Pacer`](tidegate_core::Pacer) or a [`Shaper`](tidegate_core::Shaper). It may be behind a `LazyLock`, an `Arc` or a
//! reference.
//!
//! ```
//! use std::sync::LazyLock;
//! use tidegate::{Limit, Limiter, Denied};
//! use tidegate::rate_limit;
//!
//! static MAIL: LazyLock<Limiter> = LazyLock::new(|| Limiter::new(Limit::per_day(3)));
//!
//! #[rate_limit(limiter = MAIL, key = to)]
//! fn send_welcome(to: &str) -> Result<(), Denied> {
//!     Ok(println!("welcome, {to}"))
//! }
//!
//! #[rate_limit(limiter = MAIL, key = to, cost = letters.len() as u64)]
//! fn send_all(to: &str, letters: &[String]) -> Result<(), Denied> {
//!     Ok(println!("{} letters for {to}", letters.len()))
//! }
//!
//! assert!(send_welcome("ana").is_ok());
//! assert!(send_all("ana", &["bill".into(), "reminder".into()]).is_ok());
//! assert!(send_welcome("ana").is_err());
//! ```
//!
//! ```compile_fail
//! # use tidegate::{Limit, Denied};
//! # use tidegate::rate_limit;
//! #[rate_limit(limit = Limit::per_second(0))] // admits nothing
//! fn report() -> Result<(), Denied> {
//!     Ok(())
//! }
//! ```
//!
//! A concurrency limit (`"8/30s concurrency"`) holds its permit until the function returns, or until its future is
//! dropped.
//!
//! # The other arguments
//!
//! | argument | means | without it |
//! |---|---|---|
//! | `key = user` | the key that is counted: one part, or a tuple of up to six | all calls share one state |
//! | `cost = items.len() as u64` | the cost of the call, a `u64`; a call of cost 0 is not limited: it runs, and spends nothing | 1 |
//! | `wait = "1s"` | the max wait in the queue | denied at once |
//! | `otherwise = …` | the return value of a denied call | the denial becomes an error |
//!
//! They are expressions over the arguments of the function, and `self`. A key is borrowed, so nothing is moved or
//! cloned. Parts of a key are text, bytes, numbers and addresses: see [`KeyPart`](tidegate_core::KeyPart).
//!
//! # Waiting
//!
//! A function with `wait` joins a FIFO queue, one for each key, and runs in its turn. An async function waits without
//! blocking, on any runtime; any other function blocks its thread. A call that would wait longer than its max wait is
//! denied at once. A future that is dropped leaves the queue and has spent nothing. Instead of a text, `wait` can be an
//! expression of type [`Duration`](std::time::Duration).
//!
//! ```
//! use tidegate::Denied;
//! use tidegate::rate_limit;
//!
//! #[rate_limit("100/s burst 1", wait = "5s")]
//! async fn call_partner(order: u32) -> Result<u32, Denied> {
//!     Ok(order)
//! }
//!
//! # smol::block_on(async {
//! for order in 0..5 {
//!     assert_eq!(call_partner(order).await, Ok(order)); // ten milliseconds apart
//! }
//! # });
//! ```
//!
//! An async function asks the limiter when it is first polled, not when it is called.
//!
//! # Denied calls
//!
//! Without `otherwise` the function returns a `Result` whose error implements `From` of
//! [`Denied`](tidegate_core::Denied): that error itself, a `Box<dyn Error>`, or an error of your own. For any other
//! return type, implement [`FromDenied`](tidegate_core::FromDenied).
//!
//! ```
//! use tidegate::Denied;
//! use tidegate::rate_limit;
//!
//! #[derive(Debug, PartialEq)]
//! enum LoginError {
//!     WrongPassword,
//!     TooManyAttempts { seconds: u64 },
//! }
//!
//! impl From<Denied> for LoginError {
//!     fn from(denied: Denied) -> LoginError {
//!         let seconds = denied.retry_after().map_or(u64::MAX, |wait| wait.as_secs() + 1);
//!         LoginError::TooManyAttempts { seconds }
//!     }
//! }
//!
//! #[rate_limit("5/m sliding-log", key = user)]
//! fn login(user: &str, password: &str) -> Result<(), LoginError> {
//!     if password == "open sesame" { Ok(()) } else { Err(LoginError::WrongPassword) }
//! }
//!
//! for _ in 0..5 {
//!     assert_eq!(login("ana", "1234"), Err(LoginError::WrongPassword));
//! }
//! assert!(matches!(login("ana", "open sesame"), Err(LoginError::TooManyAttempts { .. })));
//! ```
//!
//! On a handler of axum the error is `tidegate::tower::DeniedResponse`, with the feature `axum` of `tidegate`: a denied
//! request gets 429 with `Retry-After`. Without this feature the error is no response, and axum reports only that the
//! handler does not satisfy `Handler<_, _>`.
//!
//! `otherwise` is a function that is called with the same arguments instead; in an async function it is awaited.
//! Methods are written with their type: `otherwise = Self::cached`. Or it is a closure that receives the denial. Its
//! body is inlined into the function: it may use the arguments, `?` and, in an async function, `.await`. Its value is
//! returned.
//!
//! ```
//! use tidegate::rate_limit;
//!
//! #[rate_limit("1/h", key = city, otherwise = forecast_of_yesterday)]
//! fn forecast(city: &str) -> String {
//!     format!("{city}: sun")
//! }
//!
//! fn forecast_of_yesterday(city: &str) -> String {
//!     format!("{city}: rain, probably")
//! }
//!
//! #[rate_limit("1/h", otherwise = |denied| denied.retry_after().map_or(0, |wait| wait.as_secs()))]
//! fn seconds_to_wait() -> u64 {
//!     0
//! }
//!
//! assert_eq!(forecast("Oslo"), "Oslo: sun");
//! assert_eq!(forecast("Oslo"), "Oslo: rain, probably");
//! assert_eq!(seconds_to_wait(), 0);
//! assert!(seconds_to_wait() > 3_500);
//! ```
//!
//! # Unsupported functions
//!
//! The attribute cannot be used on a `const fn`, or on a function without a body. It cannot be used on a function that
//! returns a future without being `async` either, which is the form that `#[async_trait]` gives to methods. Two of
//! these attributes on one function are rejected, because one limit would be spent although the other denies. Use
//! [`admit_all`](tidegate_core::admit_all) instead, which takes both or neither. Other attributes of a function are
//! kept.

mod arguments;
mod expand;
mod function;

use proc_macro::TokenStream;

/// Applies a limit to a function: `#[rate_limit("10/s burst 20", key = user, wait = "1s", otherwise = fallback)]`.
///
/// The arguments are described on [the page of this crate](crate).
///
/// ```
/// use tidegate::Denied;
/// use tidegate::rate_limit;
///
/// struct Account {
///     id: u64,
/// }
///
/// impl Account {
///     #[rate_limit("3/d", key = self.id)]
///     fn export(&self) -> Result<String, Denied> {
///         Ok(format!("everything about {}", self.id))
///     }
/// }
///
/// let account = Account { id: 7 };
/// let exports = (0..5).filter(|_| account.export().is_ok());
/// assert_eq!(exports.count(), 3);
/// ```
#[doc(alias = "rate limiter")]
#[doc(alias = "throttle")]
#[doc(alias = "decorator")]
#[doc(alias = "client-side rate limiting")]
#[doc(alias = "semaphore")]
#[proc_macro_attribute]
pub fn rate_limit(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::expand(arguments.into(), item.into()).into()
}
