//! The service behind the layer.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use tower_service::Service;

use super::future::ResponseFuture;
use super::noted::Noted;
use super::paused::Step;
use super::settings::{Settings, Way};
use crate::body::Answered;
use crate::head::Head;

/// A service whose requests pass as a limit allows; made by [`RateLimit`](super::RateLimit).
#[derive(Clone, Debug)]
pub struct RateLimited<S> {
    inner: S,
    settings: Arc<Settings>,
}

impl<S> RateLimited<S> {
    pub(super) fn new(inner: S, settings: Arc<Settings>) -> RateLimited<S> {
        RateLimited { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for RateLimited<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
{
    type Response = Response<Answered<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B>;

    #[inline]
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<S, B> {
        match Beginning::of(&self.settings, Head::of(&request)) {
            Beginning::Pass(noted) => {
                let noted = noted.served();
                ResponseFuture::running(self.inner.call(request), noted)
            }
            Beginning::Refuse(response) => {
                // What was reserved for this request is of use to others.
                self.inner = self.inner.clone();
                ResponseFuture::refused(response)
            }
            Beginning::Pause(step) => {
                // Who waits holds no readiness: that which was reserved for this request is dropped.
                let inner = self.inner.clone();
                self.inner = inner.clone();
                ResponseFuture::paused(step, request, (inner, Arc::clone(&self.settings)))
            }
        }
    }
}

/// What becomes of a request.
pub(super) enum Beginning {
    /// The service is asked, and this is done with its response.
    Pass(Noted),
    /// This is the answer.
    Refuse(Response<Bytes>),
    /// Something has to be waited for.
    Pause(Box<Step>),
}

impl Beginning {
    pub(super) fn pause(step: Step) -> Beginning {
        Beginning::Pause(Box::new(step))
    }

    #[inline]
    fn of(settings: &Arc<Settings>, head: Head<'_>) -> Beginning {
        let units = settings.units(head);
        if units == 0 {
            return Beginning::Pass(Noted::Nothing);
        }
        match &settings.way {
            Way::Fixed(fixed) => fixed.begin(settings, head, units),
            Way::Each(each) => each.begin(settings, head, units),
            Way::Rules(rules) => rules.begin(settings, head, units),
        }
    }
}
