//! The service of the layer, and the future of its responses.
//!
//! ```text
//!   identifying -> waiting -> readying -> calling -> response
//!       `------------`----------`-> failed (Throttled)
//! ```
//!
//! A call with a known key that nothing holds back skips the first three stages. A waiting call
//! holds no readiness of the inner service, which may be a connection that others could use meanwhile.

use std::fmt;
use std::ops::ControlFlow::{self, Break, Continue};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use tidegate_core::wait_queue::Waiter;
use tidegate_tower::concurrency_limit::is_own_denial;
use tidegate_tower::key::{Identified, Identify, KeyOutcome, LaterParts, Parts};
use tidegate_tower::{Head, ResponseHead};

use crate::departure::{Departure, Shared};
use crate::origins::{self, Origins};
use crate::throttled::{Reason, Throttled};

/// An error of any type, as layers of tower pass them on.
///
/// The error of the inner service, or a [`Throttled`].
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A service whose calls are paced and obey the limits that servers report; made by
/// [`OutboundLimitLayer`](super::OutboundLimitLayer).
///
/// Clones share the queue and the state of all servers. The inner service has to be `Clone`, because a waiting call
/// continues with a clone of it.
#[derive(Clone)]
pub struct OutboundLimit<S> {
    inner: S,
    by: Arc<dyn Identify>,
    shared: Arc<Shared>,
}

impl<S> OutboundLimit<S> {
    pub(super) fn new(inner: S, by: Arc<dyn Identify>, shared: Arc<Shared>) -> OutboundLimit<S> {
        OutboundLimit { inner, by, shared }
    }
}

impl<S, B, R> Service<Request<B>> for OutboundLimit<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
{
    type Response = Response<R>;
    type Error = BoxError;
    type Future = OutboundLimitFuture<S, B>;

    /// Is ready when the inner service is. A call that has to wait does so after it was made.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    /// Sends the call, queues it, or fails it at once. Calls to one server leave in the order of these calls.
    fn call(&mut self, request: Request<B>) -> OutboundLimitFuture<S, B> {
        let came = match self.by.identify(Head::of(&request)) {
            Identified::Now(parts) => come(&self.shared, &parts),
            Identified::Later(parts) => {
                let shared = Arc::clone(&self.shared);
                return OutboundLimitFuture {
                    stage: Stage::Identifying { parts, shared, pending: self.put_off(request) },
                };
            }
        };
        let left = match came {
            Break(Ok(departure)) => departure.map(Departure::leave).transpose(),
            Continue(waiting) => Err(waiting),
            Break(Err(held)) => {
                // The readiness that was reserved for this call is released for other calls.
                self.inner = self.inner.clone();
                return OutboundLimitFuture { stage: Stage::Failed { held: Some(held) } };
            }
        };
        let stage = match left {
            Ok(departure) => Stage::Calling { future: self.inner.call(request), departure },
            Err(waiting) => Stage::Waiting { waiting, pending: self.put_off(request) },
        };
        OutboundLimitFuture { stage }
    }
}

impl<S: Clone> OutboundLimit<S> {
    /// Returns the parts of a call that waits. It holds no readiness of the inner service: the one reserved for it is
    /// dropped.
    fn put_off<B>(&mut self, request: Request<B>) -> Option<(S, Request<B>)> {
        let fresh = self.inner.clone();
        self.inner = fresh.clone();
        Some((fresh, request))
    }
}

/// Adds a call: it leaves at once (`None` if it is not limited), fails, or waits.
fn come(
    shared: &Arc<Shared>,
    parts: &Parts<'_>,
) -> ControlFlow<Result<Option<Departure>, Throttled>, Waiter<Origins>> {
    match parts.course() {
        KeyOutcome::Skip => return Break(Ok(None)),
        KeyOutcome::Refuse(_) => return Break(Err(Throttled::new(Reason::NoKey, None))),
        KeyOutcome::Count => {}
    }
    let joined = shared.queue.join(shared, |state, turn| origins::enter(state, turn, &parts.key()));
    joined.map_break(|left| left.map(|exit| Some(Departure::new(shared, exit))))
}

pin_project! {
    /// A call, from its decision to the head of its response.
    ///
    /// Dropping it before the call was sent takes the call back: it spends neither the pace nor a quota.
    pub struct OutboundLimitFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        stage: Stage<S, B>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, B>
    where
        S: Service<Request<B>>,
    {
        /// The key is awaited.
        Identifying {
            #[pin]
            parts: LaterParts,
            shared: Arc<Shared>,
            pending: Option<(S, Request<B>)>,
        },
        /// The call is in the queue of its server.
        Waiting {
            waiting: Waiter<Origins>,
            pending: Option<(S, Request<B>)>,
        },
        /// The call may leave as soon as the inner service is ready.
        Readying {
            departure: Option<Departure>,
            pending: Option<(S, Request<B>)>,
        },
        /// The call was sent. Its response updates the state of the server.
        Calling {
            #[pin]
            future: S::Future,
            departure: Option<Departure>,
        },
        /// The call is not sent. `None` once the error was returned.
        Failed { held: Option<Throttled> },
    }
}

impl<S, B, R> Future for OutboundLimitFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: Into<BoxError>,
{
    type Output = Result<Response<R>, BoxError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut stage = self.project().stage;
        loop {
            let next = match stage.as_mut().project() {
                StageProjection::Identifying { parts, shared, pending } => {
                    let parts = ready!(parts.poll(context));
                    let pending = pending.take();
                    match come(shared, &parts) {
                        Continue(waiting) => Stage::Waiting { waiting, pending },
                        Break(Ok(departure)) => Stage::Readying { departure, pending },
                        Break(Err(held)) => Stage::Failed { held: Some(held) },
                    }
                }
                StageProjection::Waiting { waiting, pending } => {
                    // The queue reads the clock here, so that it can measure a later step back.
                    let shared = waiting.owner();
                    shared.queue.with(shared, |_, _| ());
                    match ready!(waiting.poll(context.waker())) {
                        Ok(exit) => Stage::Readying {
                            departure: Some(Departure::new(waiting.owner(), exit)),
                            pending: pending.take(),
                        },
                        Err(held) => Stage::Failed { held: Some(held) },
                    }
                }
                StageProjection::Readying { departure, pending } => {
                    let (service, _) = pending.as_mut().expect("it is called once");
                    ready!(service.poll_ready(context)).map_err(Into::into)?;
                    let (mut service, request) = pending.take().expect("it was there just now");
                    match departure.take().map(Departure::leave).transpose() {
                        Ok(departure) => Stage::Calling { future: service.call(request), departure },
                        // While the service became ready, the server asked for a hold. A waiter holds no ready service.
                        Err(waiting) => Stage::Waiting { waiting, pending: Some((service.clone(), request)) },
                    }
                }
                StageProjection::Calling { future, departure } => {
                    let answer = ready!(future.poll(context));
                    if let (Some(departure), Ok(response)) = (departure.take(), &answer) {
                        let head = ResponseHead::of(response);
                        // A denial by a layer in between is not from the server.
                        if !is_own_denial(head) {
                            departure.answered(head);
                        }
                    }
                    return Poll::Ready(answer.map_err(Into::into));
                }
                StageProjection::Failed { held } => {
                    let held = held.take().expect("a call is awaited once");
                    return Poll::Ready(Err(held.into()));
                }
            };
            stage.set(next);
        }
    }
}

impl<S> fmt::Debug for OutboundLimit<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("OutboundLimit").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for OutboundLimitFuture<S, B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OutboundLimitFuture")
    }
}
