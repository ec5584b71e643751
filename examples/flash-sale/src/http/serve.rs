//! A shop on a listener, until shutdown.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tower::Service;

use super::app::App;
use super::router;
use super::tasks::Tasks;

/// The shutdown timeout of requests in flight.
const LAST_ROUND: Duration = Duration::from_secs(30);

/// Serves until `shutdown` completes; then requests in flight may finish within 30 seconds.
///
/// A connection is closed if the head of its next request does not arrive within the header timeout of the settings.
/// This applies to an incomplete head and to one that has not begun. A request that waits for its reply has no such
/// timeout.
///
/// The result is always `Ok`.
pub async fn serve(
    mut listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let _tasks = Tasks::start(&app);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.settings.header_timeout);
    let router = router(app);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            // `accept` itself waits after errors such as too many open files.
            accepted = Listener::accept(&mut listener) => accepted,
        };
        let connection = http.serve_connection(io_of(stream), service_fn(answering(router.clone(), peer)));
        let connection = connections.watch(connection);
        // A broken connection affects its client only.
        tokio::spawn(async move { _ = connection.await });
    }
    // From now on the system rejects new connections, instead of leaving them in the backlog.
    drop(listener);
    let _ = timeout(LAST_ROUND, connections.shutdown()).await;
    Ok(())
}

fn io_of(stream: TcpStream) -> TokioIo<TcpStream> {
    // Replies are small, and must not wait for further data to fill a packet.
    let _ = stream.set_nodelay(true);
    TokioIo::new(stream)
}

/// Returns the service of this peer, whose address the limits read.
fn answering(
    router: Router,
    peer: SocketAddr,
) -> impl Fn(Request<Incoming>) -> <Router as Service<Request<Incoming>>>::Future {
    move |mut request| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    }
}
