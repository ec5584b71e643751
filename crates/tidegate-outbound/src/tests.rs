//! The layer over a service of the tests, with a manual clock.

mod any;
mod many;
mod opening;
mod readiness;
mod spans;
mod waiting;

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use tidegate_core::ManualClock;
use tower_layer::Layer as _;
use tower_service::Service;

use super::*;

/// A server under the control of a test: it records arrivals, and replies on command.
#[derive(Clone, Debug, Default)]
struct Server {
    arrived: Arc<Mutex<Vec<u32>>>,
    answers: Arc<Mutex<BTreeMap<u32, Response<()>>>>,
}

impl Server {
    /// Returns the numbers of the calls that have arrived since the last call of this method.
    fn arrived(&self) -> Vec<u32> {
        std::mem::take(&mut *self.arrived.lock().unwrap())
    }

    fn answer(&self, number: u32, status: u16, fields: &[(&str, &str)]) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        self.answers.lock().unwrap().insert(number, response.body(()).unwrap());
    }
}

impl Service<Request<u32>> for Server {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<u32>) -> Answering {
        self.arrived.lock().unwrap().push(*request.body());
        Answering { number: *request.body(), server: self.clone() }
    }
}

struct Answering {
    number: u32,
    server: Server,
}

impl Future for Answering {
    type Output = Result<Response<()>, BoxError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.server.answers.lock().unwrap().remove(&self.number) {
            Some(response) => Poll::Ready(Ok(response)),
            None => Poll::Pending,
        }
    }
}

/// A client, its clock and the server that it calls.
struct Bench {
    clock: Arc<ManualClock>,
    server: Server,
    layer: OutboundLimitLayer,
    client: OutboundLimit<Server>,
    sent: u32,
}

type Call = Pin<Box<OutboundLimitFuture<Server, u32>>>;

impl Bench {
    fn new(layer: OutboundLimitLayer) -> Bench {
        let clock = Arc::new(ManualClock::new());
        let server = Server::default();
        let layer = layer.with_clock(clock.clone());
        let client = layer.layer(server.clone());
        Bench { clock, server, layer, client, sent: 0 }
    }

    /// Returns the next call, by number, to a host.
    fn call_to(&mut self, host: &str) -> Call {
        let request = Request::get(format!("http://{host}/")).body(self.sent).unwrap();
        self.sent += 1;
        Box::pin(self.client.call(request))
    }

    fn call(&mut self) -> Call {
        self.call_to("example.com")
    }

    /// Makes a call that gets its response at once.
    fn call_answered(&mut self, status: u16, fields: &[(&str, &str)]) {
        self.server.answer(self.sent, status, fields);
        let mut call = self.call();
        assert_eq!(answer(&mut call).status(), status);
        self.server.arrived();
    }

    /// Polls calls, and returns the numbers of those that have arrived.
    fn arrived(&self, calls: &mut [Call]) -> Vec<u32> {
        for call in calls {
            let _ = poll(call);
        }
        self.server.arrived()
    }
}

fn poll(call: &mut Call) -> Poll<Result<Response<()>, BoxError>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

fn answer(call: &mut Call) -> Response<()> {
    let Poll::Ready(Ok(response)) = poll(call) else { panic!("not answered") };
    response
}

fn held(call: &mut Call) -> Throttled {
    let Poll::Ready(Err(error)) = poll(call) else { panic!("not held back") };
    *error.downcast_ref().expect("an error of ours")
}
