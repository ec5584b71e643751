//! The response of a request, from the decision to the response of the service.
//!
//! ```text
//!   waiting -> ready -> running -> settling
//!      `-> denied
//! ```
//!
//! A request that is allowed at once starts in `running`, and one without any handling of its response is polled on a
//! path of its own. The service behind a wait is a clone that is polled for readiness only when the wait is over.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::on_response::{OnResponse, Settling};
use super::outcome::{CallOutcome, Wait};
use crate::body::{Answered, denial};
use crate::head::Head;

/// The panic message of a future that is polled after its end.
const OVER: &str = "polled again after it was over";

pin_project! {
    /// The response of a [`RateLimit`](super::RateLimit) service.
    ///
    /// Dropped while it waits, it leaves the queue.
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: CallState<S::Future, S, B, S::Response>,
    }
}

pin_project! {
    #[project = CallStateProjection]
    enum CallState<F, S, B, R> {
        /// The decider waits.
        Waiting { wait: Box<dyn Wait>, call: Option<Box<PendingCall<S, B>>> },
        /// The request was allowed, and the service is not ready yet.
        Ready { on_response: Option<OnResponse>, call: Option<Box<PendingCall<S, B>>> },
        /// The service runs; `on_response`, if any, handles its response.
        Running { #[pin] future: F, on_response: Option<OnResponse> },
        /// The service has responded, and the response waits for the reply of a remote store.
        Settling { settling: Settling, over: Option<Box<(R, OnResponse)>> },
        /// The service is not called.
        Denied { response: Option<Response<Bytes>> },
    }
}

/// A waiting request, with a clone of the service. The clone is not polled for readiness before the wait is over.
struct PendingCall<S, B> {
    request: Request<B>,
    service: S,
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    /// Returns the response of a request whose service was called.
    #[inline(always)]
    pub(super) fn running(future: S::Future, on_response: Option<OnResponse>) -> Self {
        ResponseFuture { state: CallState::Running { future, on_response } }
    }

    /// Returns the response of a denied request.
    pub(super) fn denied(response: Response<Bytes>) -> Self {
        ResponseFuture { state: CallState::Denied { response: Some(response) } }
    }

    /// Returns the response of a request that waits, with a service that is not ready.
    pub(super) fn waiting(wait: Box<dyn Wait>, request: Request<B>, service: S) -> Self {
        let call = Some(Box::new(PendingCall { request, service }));
        ResponseFuture { state: CallState::Waiting { wait, call } }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<Answered<R>>, S::Error>;

    /// Polls the service directly if nothing has to be done with its response, else the state machine.
    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.as_mut().project().state.project() {
            CallStateProjection::Running { future, on_response: None } => {
                future.poll(context).map_ok(|response| response.map(Answered::theirs))
            }
            _ => self.poll_state(context),
        }
    }
}

impl<S, B, R> ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    /// Polls in any state. It is not inlined, so that a response without further handling does not pay for it.
    #[inline(never)]
    fn poll_state(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Response<Answered<R>>, S::Error>> {
        loop {
            let next = match self.as_mut().project().state.project() {
                CallStateProjection::Running { future, on_response } => {
                    let response = ready!(future.poll(context))?;
                    let Some(mut on_response) = on_response.take() else {
                        return Poll::Ready(Ok(response.map(Answered::theirs)));
                    };
                    match on_response.settle(&response) {
                        None => return Poll::Ready(Ok(on_response.conclude(response))),
                        Some(settling) => {
                            CallState::Settling { settling, over: Some(Box::new((response, on_response))) }
                        }
                    }
                }
                CallStateProjection::Settling { settling, over } => {
                    ready!(Pin::new(settling).poll(context));
                    let (response, on_response) = *over.take().expect(OVER);
                    return Poll::Ready(Ok(on_response.conclude(response)));
                }
                CallStateProjection::Denied { response } => {
                    return Poll::Ready(Ok(denial(response.take().expect(OVER))));
                }
                CallStateProjection::Waiting { wait, call } => {
                    let head = Head::of(&call.as_ref().expect(OVER).request);
                    match ready!(wait.poll(head, context)) {
                        CallOutcome::Pass(on_response) => CallState::Ready { on_response, call: call.take() },
                        CallOutcome::Deny(response) => CallState::Denied { response: Some(response) },
                        CallOutcome::Wait(next) => CallState::Waiting { wait: next, call: call.take() },
                    }
                }
                CallStateProjection::Ready { on_response, call } => {
                    let readiness = ready!(call.as_mut().expect(OVER).service.poll_ready(context));
                    let (call, mut on_response) = (call.take().expect(OVER), on_response.take());
                    readiness?;
                    let PendingCall { request, mut service } = *call;
                    on_response.as_mut().map(OnResponse::set_served);
                    CallState::Running { future: service.call(request), on_response }
                }
            };
            self.as_mut().project().state.set(next);
        }
    }
}

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            CallState::Waiting { .. } => "waiting",
            CallState::Ready { .. } => "ready",
            CallState::Running { .. } => "running",
            CallState::Settling { .. } => "settling",
            CallState::Denied { .. } => "denied",
        };
        out.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
