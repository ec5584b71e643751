//! An HTTP server whose every answer is a piece of work, behind the layer that is judged.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tidegate::ConcurrencyLimiter;
use tidegate_tower::ConcurrencyLimitLayer;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tower_layer::Layer;
use tower_service::Service;

use super::pool::Desk;

/// Answers `/MICROSECONDS` after so much work, or 504 at the deadline; the work is done nevertheless.
#[derive(Clone)]
struct Worker {
    desk: Desk,
    deadline: Duration,
}

impl Service<Request<Incoming>> for Worker {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let length = request.uri().path().trim_start_matches('/').parse().unwrap_or(0);
        let done = self.desk.hand_in(Duration::from_micros(length));
        let deadline = self.deadline;
        Box::pin(async move {
            let is_done = matches!(timeout(deadline, done).await, Ok(Ok(())));
            let status = if is_done { StatusCode::OK } else { StatusCode::GATEWAY_TIMEOUT };
            let mut response = Response::new(Empty::new());
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

/// A server that ends with this.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(
        places: ConcurrencyLimiter,
        desk: Desk,
        deadline: Duration,
    ) -> io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let service = ConcurrencyLimitLayer::new(places).layer(Worker { desk, deadline });
        let accepting = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let service = TowerToHyperService::new(service.clone());
                let serving = http1::Builder::new().serve_connection(TokioIo::new(connection), service);
                // A client that goes away ends its connection; the counts are the client's.
                tokio::spawn(async move { serving.await.unwrap_or_default() });
            }
        });
        Ok(Server { address, accepting })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
