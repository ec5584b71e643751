//! The concurrency limit layer, around a real server.

mod bodies;
mod over_http;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::limit::{Server, request};

/// Work that lasts until the test ends it, a piece at a time, and the paths of its requests.
#[derive(Clone, Default)]
struct Work {
    shared: Arc<WorkShared>,
}

#[derive(Default)]
struct WorkShared {
    came: Mutex<Vec<String>>,
    busy: AtomicUsize,
    most_busy: AtomicUsize,
    allowed: Mutex<usize>,
    wakers: Mutex<Vec<Waker>>,
}

impl Work {
    /// Allows so many more pieces of work to end.
    fn finish(&self, pieces: usize) {
        *self.shared.allowed.lock().unwrap() += pieces;
        for waker in std::mem::take(&mut *self.shared.wakers.lock().unwrap()) {
            waker.wake();
        }
    }

    fn came(&self) -> Vec<String> {
        self.shared.came.lock().unwrap().clone()
    }

    fn most_busy(&self) -> usize {
        self.shared.most_busy.load(Ordering::SeqCst)
    }

    /// Works until it is allowed to end.
    async fn work(self, request: Request<Body>) -> Response<Body> {
        self.shared.came.lock().unwrap().push(request.uri().path().to_owned());
        let busy = self.shared.busy.fetch_add(1, Ordering::SeqCst) + 1;
        self.shared.most_busy.fetch_max(busy, Ordering::SeqCst);
        std::future::poll_fn(|context| {
            // The waker is stored under the same lock, before a piece can be allowed.
            let mut allowed = self.shared.allowed.lock().unwrap();
            if *allowed > 0 {
                *allowed -= 1;
                return Poll::Ready(());
            }
            self.shared.wakers.lock().unwrap().push(context.waker().clone());
            Poll::Pending
        })
        .await;
        self.shared.busy.fetch_sub(1, Ordering::SeqCst);
        Response::new(Body::from("done"))
    }

    fn router(&self) -> Router {
        let work = self.clone();
        Router::new().route("/{*rest}", get(move |request: Request<Body>| work.clone().work(request)))
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// One connection, which returns responses before their bodies.
struct Stream {
    sender: http1::SendRequest<Empty<Bytes>>,
}

impl Stream {
    async fn to(address: SocketAddr) -> Stream {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Stream { sender }
    }

    async fn get(&mut self, path: &str) -> Response<Incoming> {
        self.sender.ready().await.unwrap();
        self.sender.send_request(request(path)).await.unwrap()
    }
}

/// Sends one request on a connection of its own; returns its status.
fn send(server: &Server, path: &str) -> JoinHandle<u16> {
    let (address, path) = (server.address, path.to_owned());
    tokio::spawn(async move { Stream::to(address).await.get(&path).await.status().as_u16() })
}
