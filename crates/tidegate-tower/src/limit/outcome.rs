//! The outcome of asking a decider about a request, and its waits.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;

use super::on_response::OnResponse;
use crate::head::Head;

/// The outcome of asking a decider about a request: at its call, or when a wait of it is over.
pub(super) enum CallOutcome {
    /// The service is called, and the value handles its response.
    Pass(Option<OnResponse>),
    /// The service is not called, and the value is the reply.
    Deny(Response<Bytes>),
    /// The request has to wait.
    Wait(Box<dyn Wait>),
}

/// A wait of one request. The decider that needs it makes it, with all the state to continue.
pub(super) trait Wait: Send {
    /// Polls the wait of the request with this head.
    fn poll(&mut self, head: Head<'_>, context: &mut Context<'_>) -> Poll<CallOutcome>;
}

impl CallOutcome {
    pub(super) fn wait(wait: impl Wait + 'static) -> CallOutcome {
        CallOutcome::Wait(Box::new(wait))
    }
}
