//! The rate limit layer.

mod abandoned;
mod answers;
mod by_rules;
mod fields;
mod over_grpc;
mod over_http;
mod per_request;
mod readiness;
mod refunds;
mod remote_store;
mod repeated;
mod same_key;
mod settings;
mod settling;
mod waiting;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use axum::Router;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tidegate_tower::{Answered, RateLimit, RateLimitLayer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tower::Service;
use tower_layer::Layer as _;

/// A server on a port of its own, which stops when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves a router with the peer address of each connection.
    pub(crate) async fn start(router: Router) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Server { address, task }
    }

    pub(crate) async fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Client { sender }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One connection.
pub(crate) struct Client {
    sender: http1::SendRequest<Empty<Bytes>>,
}

impl Client {
    /// Sends a request, and returns the response with its whole body.
    pub(crate) async fn send(&mut self, request: Request<Empty<Bytes>>) -> Response<Bytes> {
        self.sender.ready().await.unwrap();
        let (head, body) = self.sender.send_request(request).await.unwrap().into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    }

    pub(crate) async fn get(&mut self, path: &str) -> Response<Bytes> {
        self.send(request(path)).await
    }
}

pub(crate) fn request(path: &str) -> Request<Empty<Bytes>> {
    Request::builder().uri(path).header("host", "example.com").body(Empty::new()).unwrap()
}

/// Returns the value of a header field as text.
pub(crate) fn field<'r, B>(response: &'r Response<B>, name: &str) -> Option<&'r str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}

/// A service in this process that replies at once and counts its calls.
#[derive(Clone, Default)]
pub(crate) struct Counting(Arc<AtomicUsize>);

impl Counting {
    pub(crate) fn behind(&self, layer: &RateLimitLayer) -> RateLimit<Counting> {
        layer.layer(self.clone())
    }

    pub(crate) fn asked(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl<B> Service<Request<B>> for Counting {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Replies with the path as the body and `x-status` as the status.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.0.fetch_add(1, Ordering::SeqCst);
        let status = request.headers().get("x-status").map_or("200", |status| status.to_str().unwrap());
        let body = Full::from(request.uri().path().to_owned());
        std::future::ready(Ok(Response::builder().status(status).body(body).unwrap()))
    }
}

/// A response of a layer, with its whole body.
pub(crate) type Got = Response<Bytes>;

/// Returns the response, which is there at once.
pub(crate) fn now<S, R, B>(service: &mut S, request: Request<B>) -> Got
where
    S: Service<Request<B>, Response = Response<Answered<R>>, Error = Infallible>,
    R: http_body::Body<Data = Bytes, Error = Infallible> + Unpin,
{
    let response = at_once(service.call(request)).expect("no request waits here").unwrap();
    whole(response)
}

/// Returns a response with its whole body, which is there.
pub(crate) fn whole<R>(response: Response<Answered<R>>) -> Got
where
    R: http_body::Body<Data = Bytes, Error = Infallible> + Unpin,
{
    let (head, body) = response.into_parts();
    let body = at_once(pin!(body).collect()).expect("the body is there").unwrap();
    Response::from_parts(head, body.to_bytes())
}

/// Returns the output of a future that is polled once.
pub(crate) fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Returns a request of a user, by name.
pub(crate) fn of(user: &str) -> Request<()> {
    Request::builder().uri("/x").header("x-user", user).body(()).unwrap()
}

/// Futures that are polled when they are woken, in the order of their wakes.
pub(crate) struct Task<F> {
    futures: Vec<Option<Pin<Box<F>>>>,
    woken: Arc<Mutex<Vec<usize>>>,
}

impl<F: Future> Task<F> {
    pub(crate) fn new(futures: impl IntoIterator<Item = F>) -> Task<F> {
        let futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
        let woken = Arc::new(Mutex::new((0..futures.len()).collect()));
        Task { futures, woken }
    }

    /// Polls woken futures until none is woken; returns the outputs, each with its number.
    pub(crate) fn run(&mut self) -> Vec<(usize, F::Output)> {
        let mut over = Vec::new();
        loop {
            let woken = std::mem::take(&mut *self.woken.lock().unwrap());
            if woken.is_empty() {
                return over;
            }
            for number in woken {
                let waker = Waker::from(Arc::new(Woken { number, woken: Arc::clone(&self.woken) }));
                let Some(future) = &mut self.futures[number] else { continue };
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    self.futures[number] = None;
                    over.push((number, output));
                }
            }
        }
    }

    /// Drops one of them; returns true if it was still there.
    pub(crate) fn forget(&mut self, number: usize) -> bool {
        self.futures[number].take().is_some()
    }
}

struct Woken {
    number: usize,
    woken: Arc<Mutex<Vec<usize>>>,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.woken.lock().unwrap().push(self.number);
    }
}
