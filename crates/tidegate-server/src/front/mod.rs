//! Who asks, and in which language. A front translates, and nothing else.

pub(crate) mod http;
pub(crate) mod resp;

use std::fmt;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::worker::Post;

/// A language that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// That of Redis.
    Resp,
    /// JSON over HTTP.
    Http,
}

impl Front {
    pub(crate) async fn serve(self, stream: TcpStream, post: Arc<Post>, scope: Scope) {
        match self {
            Front::Resp => resp::serve(stream, post).await,
            // It is much larger, which those of the other front need not be.
            Front::Http => Box::pin(http::serve(stream, post, scope)).await,
        }
    }

    /// Whether it answers health checks.
    pub(crate) fn answers_health_checks(self) -> bool {
        self == Front::Http
    }

    /// What somebody is told for whom there is no connection left.
    pub(crate) fn too_many(self) -> &'static [u8] {
        match self {
            Front::Resp => resp::TOO_MANY,
            Front::Http => http::TOO_MANY,
        }
    }
}

/// The requests that a connection may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Any.
    All,
    /// One health check: the connection is above the bound of connections.
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
