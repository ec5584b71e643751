//! The fronts: the protocols that the server accepts. A front translates requests and replies, and decides nothing.
//!
//! Every front keeps the same bounds: a connection has a timeout in every state, and the bytes of unfinished
//! requests are limited. A client that violates the protocol is cut off after one error reply.

pub(crate) mod http;
pub(crate) mod resp;

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::worker::WorkerContext;

/// A protocol of the server.
#[doc(alias = "protocol")]
#[doc(alias = "RESP")]
#[doc(alias = "HTTP")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// RESP, the protocol of Redis.
    Resp,
    /// JSON over HTTP.
    Http,
}

impl Front {
    /// Serves one connection until it ends. The future runs on the worker that accepted the connection.
    pub(crate) async fn serve(self, stream: TcpStream, worker: Arc<WorkerContext>, scope: Scope) {
        match self {
            Front::Resp => resp::serve(stream, worker).await,
            // Its future is much larger; boxed, it does not enlarge that of the other front.
            Front::Http => Box::pin(http::serve(stream, worker, scope)).await,
        }
    }

    /// Returns true if the front answers health checks.
    pub(crate) fn answers_health_checks(self) -> bool {
        self == Front::Http
    }

    /// Returns the reply to a client above the connection limit.
    ///
    /// It is written once, without waiting for the client.
    pub(crate) fn too_many(self) -> &'static [u8] {
        match self {
            Front::Resp => resp::TOO_MANY,
            Front::Http => http::TOO_MANY,
        }
    }
}

/// The requests that a connection may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Any request.
    All,
    /// One health check: the connection is above the connection limit.
    Health,
}

impl fmt::Display for Front {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Front::Resp => "resp",
            Front::Http => "http",
        })
    }
}
