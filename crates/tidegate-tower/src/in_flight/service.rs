//! The service of the layer, and the future of its responses.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tidegate::{AcquirePlace, Place};
use tower_service::Service;

use super::body::Kept;
use super::{Ongoing, Settings};
use crate::body::{Answered, refusal};
use crate::head::Head;

/// A service with a limited number of calls in flight; made by [`InFlight`](super::InFlight).
#[derive(Clone)]
pub struct InFlightService<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> InFlightService<S> {
    pub(super) fn new(inner: S, settings: Arc<Settings>) -> InFlightService<S> {
        InFlightService { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for InFlightService<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
    S::Error: 'static,
    R: Body,
{
    type Response = Response<Answered<Kept<R>>>;
    type Error = S::Error;
    type Future = InFlightFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> InFlightFuture<S, B> {
        let head = Head::of(&request);
        let class = self.settings.class(head);
        let stage = match self.settings.places.enter(class) {
            Ok(place) => {
                let mut place = self.settings.begin(place);
                let future = place.work(|| self.inner.call(request));
                Stage::Calling { future, place: Some(place) }
            }
            Err(refusal) => match self.settings.patience(head) {
                Some(longest) => {
                    let acquire = self.settings.places.acquire(class).within(longest);
                    // A waiter holds no readiness: the one that was reserved for this call is dropped.
                    let inner = self.inner.clone();
                    self.inner = inner.clone();
                    Stage::Waiting { acquire, pending: Some((inner, request)) }
                }
                None => {
                    let response = self.settings.refuse(head, refusal);
                    // The readiness that was reserved for this call is released for other calls.
                    self.inner = self.inner.clone();
                    Stage::Refused { response: Some(response) }
                }
            },
        };
        InFlightFuture { stage, settings: Arc::clone(&self.settings) }
    }
}

pin_project! {
    /// A call, from its request for a permit to the head of its response. Dropping it releases the permit.
    pub struct InFlightFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        stage: Stage<S, B>,
        settings: Arc<Settings>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, B>
    where
        S: Service<Request<B>>,
    {
        Refused { response: Option<Response<Bytes>> },
        Waiting { acquire: AcquirePlace, pending: Option<(S, Request<B>)> },
        /// The call has a permit, and waits until the service is ready.
        Readying { place: Option<Ongoing<Place>>, pending: Option<(S, Request<B>)> },
        Calling { #[pin] future: S::Future, place: Option<Ongoing<Place>> },
    }
}

impl<S, B, R> Future for InFlightFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: 'static,
    R: Body,
{
    type Output = Result<Response<Answered<Kept<R>>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut stage = this.stage;
        loop {
            let next = match stage.as_mut().project() {
                StageProjection::Refused { response } => {
                    let response = response.take().expect("polled again after it was over");
                    return Poll::Ready(Ok(refusal(response)));
                }
                StageProjection::Waiting { acquire, pending } => {
                    match ready!(Pin::new(acquire).poll(context)) {
                        Ok(place) => Stage::Readying {
                            place: Some(this.settings.begin(place)),
                            pending: pending.take(),
                        },
                        Err(refusal) => {
                            let (_, request) = pending.take().expect("it waits once");
                            let response = this.settings.refuse(Head::of(&request), refusal);
                            Stage::Refused { response: Some(response) }
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
                    Stage::Calling { future, place: Some(place) }
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

impl<S> fmt::Debug for InFlightService<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("InFlightService").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B> fmt::Debug for InFlightFuture<S, B> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match &self.stage {
            Stage::Refused { .. } => "refused",
            Stage::Waiting { .. } => "waiting",
            Stage::Readying { .. } => "becoming ready",
            Stage::Calling { .. } => "calling",
        };
        out.debug_struct("InFlightFuture").field("stage", &stage).finish_non_exhaustive()
    }
}
