//! The response of a request, from the layer's decision to the service's answer.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;

use super::noted::Noted;
use super::paused::{Ended, Paused, Step};
use super::rules::Settling;
use super::settings::Settings;
use crate::body::{Answered, refusal};

pin_project! {
    /// The response of a [`RateLimited`](super::RateLimited) service.
    ///
    /// Dropped while it waits, it gives its place back.
    pub struct ResponseFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S::Future, S, B, S::Response>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, S, B, R> {
        /// The service answers.
        Running { #[pin] future: F, noted: Noted },
        /// The service has answered, and something has to be sent before its answer goes on.
        Settling { settling: Settling, over: Option<Box<(R, Noted)>> },
        /// The service is not asked.
        Refused { response: Option<Response<Bytes>> },
        /// The service is not asked yet.
        Paused { paused: Option<Box<Paused<S, B>>> },
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    #[inline]
    pub(super) fn running(future: S::Future, noted: Noted) -> Self {
        ResponseFuture { state: State::Running { future, noted } }
    }

    pub(super) fn refused(response: Response<Bytes>) -> Self {
        ResponseFuture { state: State::Refused { response: Some(response) } }
    }

    pub(super) fn paused(
        step: Box<Step>,
        request: Request<B>,
        (service, settings): (S, Arc<Settings>),
    ) -> Self {
        let paused = Some(Box::new(Paused { step: *step, request, service, settings }));
        ResponseFuture { state: State::Paused { paused } }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<Answered<R>>, S::Error>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let next = match self.as_mut().project().state.project() {
                StateProjection::Running { future, noted } => {
                    let response = ready!(future.poll(context))?;
                    let mut noted = std::mem::replace(noted, Noted::Nothing);
                    match noted.settle(&response) {
                        None => return Poll::Ready(Ok(noted.conclude(response))),
                        Some(settling) => {
                            State::Settling { settling, over: Some(Box::new((response, noted))) }
                        }
                    }
                }
                StateProjection::Settling { settling, over } => {
                    ready!(Pin::new(settling).poll(context));
                    let (response, noted) = *over.take().expect("polled again after it was over");
                    return Poll::Ready(Ok(noted.conclude(response)));
                }
                StateProjection::Refused { response } => {
                    let response = response.take().expect("polled again after it was over");
                    return Poll::Ready(Ok(refusal(response)));
                }
                StateProjection::Paused { paused } => {
                    let waiting = paused.as_mut().expect("polled again after it was over");
                    let ended = ready!(waiting.poll(context));
                    let over = paused.take().expect("it was there just now");
                    match ended {
                        Ended::Ready(noted) => over.run(noted),
                        Ended::Refused(response) => return Poll::Ready(Ok(refusal(response))),
                        Ended::Failed(error) => return Poll::Ready(Err(error)),
                    }
                }
            };
            self.as_mut().project().state.set(next);
        }
    }
}

impl<S, B> Paused<S, B>
where
    S: Service<Request<B>>,
{
    /// Asks the service, which is ready.
    fn run(mut self, noted: Noted) -> State<S::Future, S, B, S::Response> {
        let noted = noted.served();
        State::Running { future: self.service.call(self.request), noted }
    }
}

impl<S, B> fmt::Debug for ResponseFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Running { .. } => "running",
            State::Settling { .. } => "settling",
            State::Refused { .. } => "refused",
            State::Paused { .. } => "paused",
        };
        out.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
