//! The RESP front: the Redis protocol in versions 2 and 3, so that any Redis client gets decisions.
//!
//! ```text
//!   bytes --parse--> words --command, ask, throttle--> the engine --fields, reply--> bytes
//! ```
//!
//! `parse` splits bytes into words, `command` finds the command, and `session` executes it. `takes` batches takes,
//! `pending` keeps the order of replies from a remote store, and `stretch` splits long requests. `connection` does
//! the I/O of one client.
//!
//! ```text
//! CL.THROTTLE key max_burst count period [quantity]        a token bucket, as in redis-cell
//! TG.TAKE     key LIMIT text [COST n] [MAXWAIT ms]         any algorithm
//! TG.PEEK     key LIMIT text [COST n] [MAXWAIT ms]         the same without spending
//! TG.TAKEALL  n key LIMIT text [COST c] ...                several limits, all or none
//! TG.ADJUST   key LIMIT text n                             charges or refunds afterwards
//! TG.ADMIT    [ALL] [COST n] [MAXWAIT ms] attribute value ...    by the rules
//! TG.RELEASE  permit        TG.RENEW permit                permits of a concurrency limit
//! TG.RESET    key [LIMIT text]        DEL key ...          removes state
//! TG.PEEK, TG.ADJUST, TG.RESET  RULE name attribute value  one key of a rule
//! TG.TOP      TG.BANS      TG.OVERRIDES                    the heaviest keys, the bans and the overrides in force
//! ```
//!
//! The other commands are those that stock clients send: `AUTH`, `HELLO`, `PING`, `CLIENT`, `MULTI` and so on.

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
mod lists;
mod parse;
mod pending;
mod reply;
mod rule_key;
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
///
/// The meters count it as opened and closed, and as cut off if the server ended it.
pub(super) async fn serve(stream: TcpStream, worker: Arc<WorkerContext>) {
    worker.meter().resp_connections.add(1);
    let end = Connection::new(stream, &worker).await;
    if end == ConnectionEnd::CutOff {
        worker.meter().cut_off.add(1);
    }
    worker.meter().closed.add(1);
}
