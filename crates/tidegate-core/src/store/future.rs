//! A store's reply that is ready, or a future of it.
//!
//! Code that is written against [`Store`](super::Store) awaits every reply. With a store in memory that must cost
//! nothing, so the reply is stored in the future itself.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::StoreError;

/// A future of a store's reply. An in-memory store has decided, and spent, before it returns the future. Other stores
/// start when it is polled.
///
/// The reply of an in-memory store is ready at once, without an allocation; other stores box a future. It must not be
/// polled again after it was ready: that may panic.
///
/// ```
/// use tidegate::{StoreError, StoreFuture};
///
/// let known = StoreFuture::ready(7);
/// let asked = StoreFuture::later(async { Ok::<u64, StoreError>(35) });
/// # let sum = std::pin::pin!(async move { Ok::<u64, StoreError>(known.await? + asked.await?) });
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(matches!(sum.poll(&mut context), std::task::Poll::Ready(Ok(42))));
/// ```
#[doc(alias = "BoxFuture")]
#[doc(alias = "async")]
#[doc(alias = "Either")]
#[must_use = "what was decided is lost unless it is awaited"]
pub struct StoreFuture<'a, T>(Kind<'a, T>);

/// The reply, or the future of it. The reply is `None` once it was returned.
enum Kind<'a, T> {
    Ready(Option<Result<T, StoreError>>),
    Later(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<'a, T> StoreFuture<'a, T> {
    /// Creates a reply that is ready.
    pub const fn ready(value: T) -> StoreFuture<'a, T> {
        StoreFuture(Kind::Ready(Some(Ok(value))))
    }

    /// Creates an error that is ready.
    pub const fn failed(error: StoreError) -> StoreFuture<'a, T> {
        StoreFuture(Kind::Ready(Some(Err(error))))
    }

    /// Creates a reply from a future, which is boxed. The future does nothing before it is polled, so a reply that is
    /// dropped unpolled has not spent.
    pub fn later(future: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> StoreFuture<'a, T> {
        StoreFuture(Kind::Later(Box::pin(future)))
    }

    /// Returns true if the reply is there already, as that of an in-memory store. [`StoreFuture::now`] then returns it
    /// without a poll.
    pub const fn is_ready(&self) -> bool {
        matches!(self.0, Kind::Ready(_))
    }

    /// Returns the reply of a store that answers immediately, as in-memory stores do, without an executor.
    ///
    /// # Errors
    /// The error of the store, or a [`StoreError`] if the reply is not there after one poll. The request is then
    /// cancelled, but a remote store may have received it already.
    ///
    /// # Panics
    /// If the future was ready and polled before.
    #[inline]
    pub fn now(self) -> Result<T, StoreError> {
        match self.0 {
            Kind::Ready(value) => value.expect("an answer is awaited once"),
            Kind::Later(mut future) => match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(value) => value,
                Poll::Pending => Err(StoreError::unavailable("this store does not answer at once; await it")),
            },
        }
    }

    /// Maps the reply with `make`: at once if it is ready, else when it arrives.
    pub(crate) fn then<U>(
        self,
        make: impl FnOnce(Result<T, StoreError>) -> Result<U, StoreError> + Send + 'a,
    ) -> StoreFuture<'a, U>
    where
        T: Send + 'a,
    {
        match self.0 {
            Kind::Ready(Some(answer)) => StoreFuture(Kind::Ready(Some(make(answer)))),
            kind => StoreFuture::later(async move { make(StoreFuture(kind).await) }),
        }
    }
}

/// The value is never pinned: it is ready, or boxed.
impl<T> Unpin for StoreFuture<'_, T> {}

impl<T> Future for StoreFuture<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Kind::Ready(value) => match value.take() {
                Some(value) => Poll::Ready(value),
                None => panic!("an answer was awaited again after it had come"),
            },
            Kind::Later(future) => future.as_mut().poll(context),
        }
    }
}

impl<T> fmt::Debug for StoreFuture<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self.0 {
            Kind::Ready(_) => "Answer(ready)",
            Kind::Later(_) => "Answer(later)",
        })
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn now<T>(mut answer: StoreFuture<'_, T>) -> Poll<Result<T, StoreError>> {
        Pin::new(&mut answer).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn an_answer_is_there_or_comes_later() {
        assert!(matches!(now(StoreFuture::ready(7)), Poll::Ready(Ok(7))));
        assert!(matches!(now(StoreFuture::later(async { Ok(7) })), Poll::Ready(Ok(7))));
        assert!(now(StoreFuture::<u8>::later(std::future::pending())).is_pending());
        let next = |answer: Result<u8, StoreError>| answer.map(|seven| seven + 1);
        assert!(matches!(now(StoreFuture::ready(7).then(next)), Poll::Ready(Ok(8))));
        assert!(matches!(now(StoreFuture::later(async { Ok(7) }).then(next)), Poll::Ready(Ok(8))));
        assert_eq!(format!("{:?}", StoreFuture::ready(7).then(next)), "Answer(ready)");
        assert_eq!(format!("{:?}", StoreFuture::ready(7)), "Answer(ready)");
        assert_eq!(format!("{:?}", StoreFuture::<u8>::later(std::future::pending())), "Answer(later)");
    }
}
