//! A shop on a listener, until it is told to end.

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

/// How long requests may take to finish when the shop ends.
const LAST_ROUND: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is over; requests that are under way finish first, within half a minute.
///
/// A connection is closed when the head of its next request is not there within the header timeout of the settings,
/// whether it is unfinished or was never begun. A request that is waiting for its answer has no such limit.
pub async fn serve(
    mut listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let _tasks = Tasks::start(&app);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.header_timeout);
    let router = router(app);
    let connections = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            // Its errors, such as too many open files, are waited out there.
            accepted = Listener::accept(&mut listener) => accepted,
        };
        let connection = http.serve_connection(io_of(stream), service_fn(answering(router.clone(), peer)));
        let connection = connections.watch(connection);
        // A connection that breaks concerns its client only.
        tokio::spawn(async move { _ = connection.await });
    }
    // From now on new connections are refused, not left waiting.
    drop(listener);
    let _ = timeout(LAST_ROUND, connections.shutdown()).await;
    Ok(())
}

fn io_of(stream: TcpStream) -> TokioIo<TcpStream> {
    // Answers are small, and nobody should wait for a second one to fill a packet.
    let _ = stream.set_nodelay(true);
    TokioIo::new(stream)
}

/// Answers requests of this peer, which limits look at.
fn answering(
    router: Router,
    peer: SocketAddr,
) -> impl Fn(Request<Incoming>) -> <Router as Service<Request<Incoming>>>::Future {
    move |mut request| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    }
}
