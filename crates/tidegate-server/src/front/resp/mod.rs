//! The RESP front: the Redis protocol in versions 2 and 3, so that any Redis client gets decisions.
//!
//! ```text
//!   bytes --parse--> words --command, ask, throttle--> the engine --fields, reply--> bytes
//! ```

mod about;
mod admit;
mod ask;
mod catalogue;
mod command;
mod connection;
mod fields;
#[cfg(fuzzing)]
pub(crate) mod fuzz;
mod greet;
mod parse;
mod pending;
mod reply;
mod session;
mod several;
mod stretch;
mod takes;
mod throttle;
mod transaction;
mod unsent;

use std::sync::Arc;

use tokio::net::TcpStream;

use crate::worker::WorkerContext;
use connection::{Connection, ConnectionEnd};

/// The reply to a client above the connection limit.
pub(super) const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

/// Serves one connection until the client or the server ends it.
pub(super) async fn serve(stream: TcpStream, worker: Arc<WorkerContext>) {
    worker.meter().resp_connections.add(1);
    let end = Connection::new(stream, &worker).await;
    if end == ConnectionEnd::CutOff {
        worker.meter().cut_off.add(1);
    }
    worker.meter().closed.add(1);
}
