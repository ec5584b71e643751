//! The layer for clients: real clients of real servers that limit and count arrivals.

mod dialects;
mod grpc;
mod holding;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, UNIX_EPOCH};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tidegate::{Clock as _, Decision, DirectLimiter, Limit, ManualClock, Timestamp};
use tidegate_outbound::{BoxError, OutboundLimit, OutboundLimitLayer, Throttled};
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::server::Server;

type Inner = Client<HttpConnector, Empty<Bytes>>;

/// A client with the layer around it, and the clock of both sides.
struct Caller {
    client: OutboundLimit<Inner>,
    layer: OutboundLimitLayer,
    clock: Arc<ManualClock>,
    server: Server,
    counts: Arc<Counts>,
}

/// The counts of a server.
#[derive(Default)]
struct Counts {
    arrived: AtomicUsize,
    refused: AtomicUsize,
    order: Mutex<Vec<String>>,
}

impl Counts {
    fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    fn refused(&self) -> usize {
        self.refused.load(Ordering::SeqCst)
    }
}

/// A function that writes the header fields of a response.
type Tell = fn(&mut HeaderMap, &Decision, Timestamp);

impl Caller {
    /// Returns a client of a server with one limit for all calls, which reports the remaining quota by `tell`.
    async fn new(layer: OutboundLimitLayer, limit: Limit, tell: Tell) -> Caller {
        let (clock, counts) = (Arc::new(ManualClock::new()), Arc::new(Counts::default()));
        let single = DirectLimiter::with_clock(limit, clock.clone());
        let state = (Arc::clone(&counts), Arc::clone(&clock));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let response = answer(&request, &single, &state, tell);
            async move { response }
        });
        let server = Server::start(router).await;
        let layer = layer.with_clock(clock.clone());
        let client = layer.layer(Client::builder(TokioExecutor::new()).build_http());
        Caller { client, layer, clock, server, counts }
    }

    fn request(&self, path: &str) -> Request<Empty<Bytes>> {
        Request::get(format!("http://{}{path}", self.server.address)).body(Empty::new()).unwrap()
    }

    /// Returns a call to this path, to be awaited.
    fn call(&self, path: &str) -> impl Future<Output = Result<Response<Incoming>, BoxError>> + Send + use<> {
        let (mut client, request) = (self.client.clone(), self.request(path));
        async move { client.ready().await?.call(request).await }
    }

    async fn status(&self) -> u16 {
        self.call("/").await.unwrap().status().as_u16()
    }

    /// Returns true if a call would be held back now.
    fn is_held(&self) -> bool {
        let mut call = pin!(self.call("/"));
        match call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.layer.waiting() > 0,
            Poll::Ready(Err(error)) => error.is::<Throttled>(),
            Poll::Ready(Ok(_)) => false,
        }
    }
}

fn answer(
    request: &Request<Body>,
    single: &DirectLimiter,
    (counts, clock): &(Arc<Counts>, Arc<ManualClock>),
    tell: Tell,
) -> Response<Body> {
    counts.arrived.fetch_add(1, Ordering::SeqCst);
    counts.order.lock().unwrap().push(request.uri().path().to_owned());
    let decision = single.admit();
    let mut response = Response::new(Body::empty());
    if !decision.is_allowed() {
        counts.refused.fetch_add(1, Ordering::SeqCst);
        *response.status_mut() = http::StatusCode::TOO_MANY_REQUESTS;
    }
    // The server's own time, which is not that of this machine.
    response.headers_mut().insert("date", text(&date(clock.now(), 0)));
    tell(response.headers_mut(), &decision, clock.now());
    response
}

/// Returns the Unix time of the server, so many seconds after this time of its clock.
fn moment(now: Timestamp, seconds: u64) -> u64 {
    1_900_000_000 + now.since(Timestamp::EPOCH).to_duration().as_secs() + seconds
}

fn date(now: Timestamp, seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(moment(now, seconds)))
}

/// Returns whole seconds until the limit is full, or until a denied call would pass.
fn seconds(decision: &Decision) -> u64 {
    let wait = decision.retry_after().unwrap_or_else(|| decision.reset_after());
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn text(value: &str) -> http::HeaderValue {
    value.parse().unwrap()
}
