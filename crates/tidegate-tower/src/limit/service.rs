//! The service behind the layer.
//!
//! The decision is made in `call`, not in `poll_ready`: only then is the request there. So the layer is ready when the
//! inner service is, and tower's load balancers and buffers work around it as usual.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::decider::Decider;
use super::future::ResponseFuture;
use super::outcome::{CallOutcome, Wait};
use crate::body::Answered;
use crate::head::Head;

/// A service whose requests are limited; made by [`RateLimit`](super::RateLimitLayer).
///
/// Clones share the counts. The inner service has to be `Clone`, because a request that waits or is denied gives the
/// readiness back that was reserved for it.
#[doc(alias = "rate limit middleware")]
#[derive(Clone, Debug)]
pub struct RateLimit<S> {
    inner: S,
    decider: Decider,
}

impl<S> RateLimit<S> {
    pub(super) fn new(inner: S, decider: Decider) -> RateLimit<S> {
        RateLimit { inner, decider }
    }
}

impl<S: Clone> RateLimit<S> {
    /// Replies to a denied request, and drops the readiness that was reserved for it, so that other requests can use
    /// it.
    #[inline(never)]
    fn deny<B>(&mut self, response: Response<Bytes>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        self.inner = self.inner.clone();
        ResponseFuture::denied(response)
    }

    /// Makes a request wait, and drops the readiness that was reserved for it.
    #[inline(never)]
    fn wait<B>(&mut self, wait: Box<dyn Wait>, request: Request<B>) -> ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        let inner = self.inner.clone();
        self.inner = inner.clone();
        ResponseFuture::waiting(wait, request, inner)
    }
}

impl<S, B, R> Service<Request<B>> for RateLimit<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
{
    type Response = Response<Answered<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    /// Is ready when the inner service is. A used-up limit does not make it pending: the denial is a response.
    #[inline]
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    // Inlined, it would build the future on its caller's stack first, and futures of services are large to move.
    /// Decides about the request, and calls the service, denies the request, or makes it wait.
    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        match self.decider.decide(Head::of(&request)) {
            CallOutcome::Pass(None) => ResponseFuture::running(self.inner.call(request), None),
            CallOutcome::Pass(Some(mut on_response)) => {
                on_response.set_served();
                ResponseFuture::running(self.inner.call(request), Some(on_response))
            }
            CallOutcome::Deny(response) => self.deny(response),
            CallOutcome::Wait(wait) => self.wait(wait, request),
        }
    }
}
