//! JSON over HTTP/1.1.
//!
//! `wire` is the socket of a connection. hyper parses requests and writes responses. `service` finds the route, `verbs`
//! asks the store, `admit` asks the rules, and `reply` is the response. `watch` enforces the timeouts of a connection.
//! `link` is the state that they share.
//!
//! ```text
//!   TcpStream --PrereadBytes--> Wire --> hyper --> service --> route --> verbs, admit, rules, overrides
//!                                 ^                   |
//!                                 '------ Reply <-----'          Watch: one timer for the connection
//! ```
//!
//! Every request is answered with JSON, errors as problems of RFC 9457. An unauthenticated client is read by
//! `PrereadBytes` first, so that it cannot make hyper allocate buffers.
//!
//! ```text
//! POST   /v1/take         takes under a limit that comes with the request
//! POST   /throttle        takes from a token bucket, as throttlecrab does
//! POST   /v1/peek         decides like a take, and spends nothing
//! POST   /v1/adjust       charges or refunds units afterwards
//! POST   /v1/reset        removes the state of a key
//! POST   /v1/release      releases a permit            POST /v1/renew  renews its lease
//! POST   /v1/admit        decides by the rules         POST /v1/admit/batch  many requests at once
//! POST   /v1/explain      explains a decision of the rules
//! GET    /v1/top          the keys with the most denials    GET /v1/bans  the banned keys
//! GET    /v1/rules        the rules with their counts  PUT replaces them
//! GET    /v1/overrides    the overrides                PUT and DELETE change one
//! GET    /livez /readyz   health checks, without a token
//! GET    /metrics         for Prometheus
//! GET    /openapi.json    the description of this interface
//! ```

mod admit;
mod auth;
mod bans;
mod batch;
mod body;
mod end;
mod fields;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod host;
mod json;
mod limits;
mod link;
mod metrics;
mod operator;
mod overrides;
mod preread;
mod problem;
mod put_rules;
mod ready;
mod reply;
mod request;
mod route;
mod rule_key;
mod rules;
mod service;
mod throttle;
mod top;
mod verbs;
mod watch;
mod wire;

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{HttpService, service_fn};
use tokio::net::TcpStream;
use tokio::time::timeout;

use self::end::HttpEnd;
use self::link::{Link, Stage};
use self::preread::PrereadBytes;
use self::watch::Watch;
use self::wire::Wire;
use crate::front::Scope;
use crate::worker::WorkerContext;

/// The response to a client above the connection limit.
pub(super) const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/problem+json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 145\r\n\r\n\
    {\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\
    \"detail\":\"there are too many connections; close some, or try again in a second\"}";
/// The `detail` of the same response.
const TOO_MANY_DETAIL: &str = "there are too many connections; close some, or try again in a second";

/// The longest head of a request, in bytes: the request line and all header fields.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// The maximum number of bytes of a body that hyper buffers.
const MAX_BUFFERED_BYTES: usize = 32 << 10;

/// Serves one connection until it ends.
///
/// A connection for health checks has a timeout as a whole, since it is above the connection limit.
pub(super) async fn serve(stream: TcpStream, worker: Arc<WorkerContext>, scope: Scope) {
    worker.meter().http_connections.add(1);
    let link = Arc::new(Link::new(worker, scope).of_client(stream.peer_addr().ok()));
    match scope {
        Scope::All => serve_requests(stream, &link).await,
        Scope::Health => {
            let longest = link.worker.engine.settings().bounds.health;
            if timeout(longest, serve_requests(stream, &link)).await.is_err() {
                link.worker.meter().cut_off.add(1);
            }
        }
    }
    link.worker.meter().closed.add(1);
}

/// Reads the first bytes of a client that has to authenticate, and hands the connection to hyper.
async fn serve_requests(mut stream: TcpStream, link: &Arc<Link>) {
    let opening = match link.is_unauthenticated() {
        true => PrereadBytes::read(&mut stream, link).await,
        false => Ok(PrereadBytes::default()),
    };
    match opening {
        Ok(opening) => serve_by_hyper(Wire::new(stream, opening, link.clone()), link).await,
        Err(how) => how.close(stream, BytesMut::new(), link).await,
    }
}

/// Serves all requests of the connection, and closes it.
async fn serve_by_hyper(wire: Wire, link: &Arc<Link>) {
    let asked = |request: Request<Incoming>| {
        link.enter(Stage::Body);
        let link = link.clone();
        async move {
            let response = service::answer(request, &link).await;
            link.enter(Stage::Answer);
            Ok::<_, Infallible>(response)
        }
    };
    let mut connection = http1::Builder::new()
        // hyper's timeout would also run while the connection is idle; `Watch` has a timeout for each stage.
        .header_read_timeout(None)
        // A client may close its sending side and still read the responses.
        .half_close(true)
        .max_header_size(MAX_HEAD_BYTES)
        .max_buf_size(MAX_BUFFERED_BYTES)
        // Delaying the flush would let the responses of a pipeline grow without a bound.
        .pipeline_flush(false)
        .serve_connection(wire, service_fn(asked));
    let how = run(&mut connection, link).await;
    let parts = connection.into_parts();
    how.close(parts.io.into_stream(), parts.read_buf.into(), link).await;
}

/// Serves a connection until it ends or a timeout expires. When the server stops, requests that have begun are
/// finished.
///
/// A request of which only a part of the head has arrived counts as begun.
async fn run<S>(connection: &mut http1::Connection<Wire, S>, link: &Link) -> HttpEnd
where
    S: HttpService<Incoming, ResBody = reply::Body, Error = Infallible>,
    http1::Connection<Wire, S>: Future<Output = hyper::Result<()>> + Unpin,
{
    let mut stopped = pin!(link.worker.stopped());
    let (mut is_asked, mut is_draining) = (false, false);
    let mut watch = Watch::new(link);
    poll_fn(|cx: &mut Context<'_>| {
        if !is_asked {
            // One poll is enough to register the waker; the engine reports whether the server stops.
            is_asked = true;
            let _ = stopped.as_mut().poll(cx);
        }
        // The connection waits for a head that has begun to arrive; its response closes the connection.
        if !is_draining && link.worker.engine.is_stopping() && link.stage() != Stage::Head {
            is_draining = true;
            Pin::new(&mut *connection).graceful_shutdown();
        }
        loop {
            if let Poll::Ready(served) = Pin::new(&mut *connection).poll(cx) {
                return Poll::Ready(HttpEnd::from(served));
            }
            match watch.poll(link, cx) {
                Poll::Pending => return Poll::Pending,
                // The service sees that the body is late, and responds.
                Poll::Ready(Stage::Body) if link.be_late() => {}
                Poll::Ready(stage) => return Poll::Ready(HttpEnd::TooSlow(stage)),
            }
        }
    })
    .await
}
