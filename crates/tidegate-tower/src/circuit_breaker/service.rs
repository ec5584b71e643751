//! The service of the layer, and the future of its responses.
//!
//! A call is in one of two states. Denied: the response is there and the service was not called. Calling: the service
//! runs, and the permit of the breaker reports the outcome when the head of the response is there.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tidegate_core::BreakerPermit;
use tower_service::Service;

use super::CircuitBreakerSettings;
use crate::body::{Answered, denial};
use crate::concurrency_limit::{Ongoing, deny_by, judge};
use crate::event::{DecisionEvent, DecisionResult};
use crate::head::{Head, ResponseHead};

/// A service behind a circuit breaker; made by [`CircuitBreakerLayer`](super::CircuitBreakerLayer).
///
/// Clones share the breaker. It has to be `Clone`, because a denied call drops the readiness that was reserved for it.
#[derive(Clone)]
pub struct CircuitBreakerService<S> {
    inner: S,
    settings: Arc<CircuitBreakerSettings>,
}

impl<S> CircuitBreakerService<S> {
    pub(super) fn new(inner: S, settings: Arc<CircuitBreakerSettings>) -> CircuitBreakerService<S> {
        CircuitBreakerService { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for CircuitBreakerService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: 'static,
{
    type Response = Response<Answered<R>>;
    type Error = S::Error;
    type Future = CircuitBreakerFuture<S::Future>;

    /// Is ready when the inner service is, also while the breaker is open: the denial itself needs no readiness.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// Asks the breaker, and calls the service if it admits the call. A panic of the service counts as a failure.
    fn call(&mut self, request: Request<B>) -> CircuitBreakerFuture<S::Future> {
        let stage = match self.settings.guard.admit() {
            Ok(passage) => {
                let head = Head::of(&request);
                self.settings.hook.report(|| DecisionEvent::allowed(head, DecisionResult::Allowed));
                let mut passage = Ongoing::new(passage, self.settings.overloaded_after);
                let future = passage.work(|| self.inner.call(request));
                CircuitBreakerStage::Calling {
                    future,
                    passage: Some(passage),
                    settings: Arc::clone(&self.settings),
                }
            }
            Err(refusal) => {
                let CircuitBreakerSettings { otherwise, hook, .. } = &*self.settings;
                let response = deny_by(otherwise.as_deref(), hook, Head::of(&request), refusal);
                // The readiness that was reserved for this call is released for other calls.
                self.inner = self.inner.clone();
                CircuitBreakerStage::Denied { response: Some(response) }
            }
        };
        CircuitBreakerFuture { stage }
    }
}

pin_project! {
    /// A call, from the decision of the circuit breaker to the head of its response. Dropped earlier, it reports no
    /// outcome.
    pub struct CircuitBreakerFuture<F> {
        #[pin]
        stage: CircuitBreakerStage<F>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum CircuitBreakerStage<F> {
        /// The breaker denied the call. `None` once the response was returned.
        Denied { response: Option<Response<Bytes>> },
        /// The service runs. The permit is `None` once the outcome was reported.
        Calling { #[pin] future: F, passage: Option<Ongoing<BreakerPermit>>, settings: Arc<CircuitBreakerSettings> },
    }
}

impl<F, R, E> Future for CircuitBreakerFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    E: 'static,
{
    type Output = Result<Response<Answered<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().stage.project() {
            StageProjection::Denied { response } => {
                let response = response.take().expect("polled again after it was over");
                Poll::Ready(Ok(denial(response)))
            }
            StageProjection::Calling { future, passage, settings } => {
                let (response, passage) = ready!(Ongoing::poll(passage, future, context))?;
                passage.done(judge(settings.outcome.as_deref(), ResponseHead::of(&response)));
                Poll::Ready(Ok(response.map(Answered::theirs)))
            }
        }
    }
}

impl<S> fmt::Debug for CircuitBreakerService<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CircuitBreakerService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for CircuitBreakerFuture<F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            CircuitBreakerStage::Denied { .. } => "denied",
            CircuitBreakerStage::Calling { .. } => "calling",
        };
        out.debug_struct("CircuitBreakerFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
