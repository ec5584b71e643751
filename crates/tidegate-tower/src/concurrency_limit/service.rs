//! The service of the layer, and the future of its responses.
//!
//! ```text
//!   admitted -> calling -> response
//!   queued -> waiting -> readying -> calling -> response
//!   denied -> response
//! ```
//!
//! A waiting call gives its readiness back. Readiness of a service may be a connection or a slot of a buffer, and
//! waiters would otherwise hold all of them while other calls could use them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tidegate_core::{AcquireConcurrencyPermit, ConcurrencyPermit};
use tower_service::Service;

use super::body::PermitBody;
use super::{ConcurrencyLimitSettings, Ongoing};
use crate::body::{Answered, denial};
use crate::event::DecisionResult;
use crate::head::Head;

/// A service with a limited number of calls in flight; made by [`ConcurrencyLimitLayer`](super::ConcurrencyLimitLayer).
///
/// Clones share the permits. The inner service has to be `Clone`: a call that waits or is denied gives its readiness
/// back.
#[derive(Clone)]
pub struct ConcurrencyLimit<S> {
    inner: S,
    settings: Arc<ConcurrencyLimitSettings>,
}

impl<S> ConcurrencyLimit<S> {
    pub(super) fn new(inner: S, settings: Arc<ConcurrencyLimitSettings>) -> ConcurrencyLimit<S> {
        ConcurrencyLimit { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for ConcurrencyLimit<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: 'static,
    R: Body,
{
    type Response = Response<Answered<PermitBody<R>>>;
    type Error = S::Error;
    type Future = ConcurrencyLimitFuture<S, B>;

    /// Is ready when the inner service is, also when all permits are in use: the decision is made at the call.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// Takes a permit and calls the service. Without a free permit the call joins the queue, if it may wait, or is
    /// denied.
    fn call(&mut self, request: Request<B>) -> ConcurrencyLimitFuture<S, B> {
        let head = Head::of(&request);
        let class = self.settings.class(head);
        let stage = match self.settings.places.admit(class) {
            Ok(place) => {
                self.settings.report(head, DecisionResult::Allowed);
                let mut place = self.settings.begin(place);
                let future = place.work(|| self.inner.call(request));
                ConcurrencyLimitStage::Calling { future, place: Some(place) }
            }
            Err(refusal) => match self.settings.max_wait(head) {
                Some(longest) => {
                    let acquire = self.settings.places.acquire(class).max_wait(longest);
                    // A waiter holds no readiness: the one that was reserved for this call is dropped.
                    let inner = self.inner.clone();
                    self.inner = inner.clone();
                    ConcurrencyLimitStage::Waiting { acquire, pending: Some((inner, request)) }
                }
                None => {
                    let response = self.settings.refuse(head, refusal);
                    // The readiness that was reserved for this call is released for other calls.
                    self.inner = self.inner.clone();
                    ConcurrencyLimitStage::Denied { response: Some(response) }
                }
            },
        };
        ConcurrencyLimitFuture { stage, settings: Arc::clone(&self.settings) }
    }
}

pin_project! {
    /// A call, from its request for a permit to the head of its response. Dropping it releases the permit.
    pub struct ConcurrencyLimitFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        stage: ConcurrencyLimitStage<S, B>,
        settings: Arc<ConcurrencyLimitSettings>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum ConcurrencyLimitStage<S, B>
    where
        S: Service<Request<B>>,
    {
        /// The call was denied. `None` once the response was returned.
        Denied { response: Option<Response<Bytes>> },
        /// The call is queued, with a clone of the service that is not ready.
        Waiting { acquire: AcquireConcurrencyPermit, pending: Option<(S, Request<B>)> },
        /// The call has a permit, and waits until the service is ready.
        Readying { place: Option<Ongoing<ConcurrencyPermit>>, pending: Option<(S, Request<B>)> },
        /// The service runs. The permit is `None` once it was released.
        Calling { #[pin] future: S::Future, place: Option<Ongoing<ConcurrencyPermit>> },
    }
}

impl<S, B, R> Future for ConcurrencyLimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: 'static,
    R: Body,
{
    type Output = Result<Response<Answered<PermitBody<R>>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut stage = this.stage;
        loop {
            let next = match stage.as_mut().project() {
                StageProjection::Denied { response } => {
                    let response = response.take().expect("polled again after it was over");
                    return Poll::Ready(Ok(denial(response)));
                }
                StageProjection::Waiting { acquire, pending } => {
                    match ready!(Pin::new(acquire).poll(context)) {
                        Ok(place) => {
                            let (_, request) = pending.as_ref().expect("it waits once");
                            this.settings.report(Head::of(request), DecisionResult::Waited);
                            let place = Some(this.settings.begin(place));
                            ConcurrencyLimitStage::Readying { place, pending: pending.take() }
                        }
                        Err(refusal) => {
                            let (_, request) = pending.take().expect("it waits once");
                            let response = this.settings.refuse(Head::of(&request), refusal);
                            ConcurrencyLimitStage::Denied { response: Some(response) }
                        }
                    }
                }
                StageProjection::Readying { place, pending } => {
                    let (service, _) = pending.as_mut().expect("it is called once");
                    if let Err(error) = ready!(service.poll_ready(context)) {
                        place.take().into_iter().for_each(|place| place.failed(&error));
                        return Poll::Ready(Err(error));
                    }
                    let (mut service, request) = pending.take().expect("it was there just now");
                    let mut place = place.take().expect("it is called once");
                    let future = place.work(|| service.call(request));
                    ConcurrencyLimitStage::Calling { future, place: Some(place) }
                }
                StageProjection::Calling { future, place } => {
                    let (response, place) = ready!(Ongoing::poll(place, future, context))?;
                    return Poll::Ready(Ok(this.settings.conclude(response, place)));
                }
            };
            stage.set(next);
        }
    }
}

impl<S> fmt::Debug for ConcurrencyLimit<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ConcurrencyLimit").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for ConcurrencyLimitFuture<S, B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            ConcurrencyLimitStage::Denied { .. } => "denied",
            ConcurrencyLimitStage::Waiting { .. } => "waiting",
            ConcurrencyLimitStage::Readying { .. } => "becoming ready",
            ConcurrencyLimitStage::Calling { .. } => "calling",
        };
        out.debug_struct("ConcurrencyLimitFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
