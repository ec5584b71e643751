//! A shop on a listener, until it is told to end.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::app::App;
use super::router;
use super::tasks::Tasks;

/// How long requests may take to finish when the shop ends.
const LAST_ROUND: Duration = Duration::from_secs(30);

/// Serves until `shutdown` is over; requests that are under way finish first, within half a minute.
pub async fn serve(
    listener: TcpListener,
    app: App,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let _tasks = Tasks::start(&app);
    // Answers are small, and nobody should wait for a second one to fill a packet.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let (tell, told) = oneshot::channel();
    let ending = async move {
        shutdown.await;
        let _ = tell.send(());
    };
    let service = router(app).into_make_service_with_connect_info::<SocketAddr>();
    let server = axum::serve(listener, service).with_graceful_shutdown(ending);
    let too_long = async {
        match told.await {
            Ok(()) => sleep(LAST_ROUND).await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        served = server.into_future() => served,
        () = too_long => Ok(()),
    }
}
