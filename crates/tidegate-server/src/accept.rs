//! The accept loop of a front.
//!
//! No error ends the loop. An error that concerns a single connection is ignored. An error that would recur at once,
//! such as no free file descriptors, is followed by a pause with exponential backoff.
//!
//! Each front has one loop, which runs on the first worker. A connection is handed to the worker with the fewest
//! connections, and stays there until it ends. Above `max_connections` a client gets a reply and is closed at once:
//! a backlog without replies would look like a network fault.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use crate::engine::Engine;
use crate::front::{Front, Scope};
use crate::worker::WorkerHandle;

/// The pause after the first error in a row; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause. A descriptor that becomes free is used after at most this time.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The maximum number of connections above `max_connections`. Each may send one health check, so that a process
/// supervisor does not take a busy server for a dead one.
const MAX_HEALTH_CONNECTIONS: usize = 16;

/// Accepts connections until the future is dropped. Assigns each to the worker with the fewest connections.
///
/// Reports the first error of a row of failures on standard error, and none of the others: a server without free
/// descriptors fails several times a second. A successful accept ends the row.
pub(crate) async fn run(
    front: Front,
    listener: TcpListener,
    workers: Vec<WorkerHandle>,
    engine: Arc<Engine>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                pause = FIRST_PAUSE;
                admit(front, stream, &workers, &engine);
            }
            Err(error) if concerns_one_connection(&error) => {}
            Err(error) => {
                if pause == FIRST_PAUSE {
                    // Unlike a print macro, this does not panic if stderr is closed. A panic would end the loop.
                    let report = format!("cannot accept on the {front} port, will go on trying: {error}");
                    let _ = writeln!(io::stderr(), "tidegate: {report}");
                }
                sleep(pause).await;
                pause = (2 * pause).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Assigns a new connection to a worker, or rejects it if the server is at its connection limit.
///
/// A rejected connection counts as cut off. The counts of other workers are read without a lock: a connection that
/// ends meanwhile may still be counted, so clients are rejected for a moment longer.
fn admit(front: Front, stream: TcpStream, workers: &[WorkerHandle], engine: &Engine) {
    // The connection works without this option.
    let _ = stream.set_nodelay(true);
    let Ok(mut stream) = stream.into_std() else { return };
    let connections = |scope| workers.iter().map(|worker| worker.connections(scope)).sum::<usize>();
    let has_room = connections(Scope::All) < engine.settings().bounds.max_connections;
    let is_checked = || front.answers_health_checks() && connections(Scope::Health) < MAX_HEALTH_CONNECTIONS;
    match workers.iter().min_by_key(|worker| worker.connections(Scope::All)) {
        Some(worker) if has_room => worker.serve(front, stream, Scope::All),
        Some(worker) if is_checked() => worker.serve(front, stream, Scope::Health),
        _ => {
            engine.meters().of(0).cut_off.add(1);
            // The reply fits in the send buffer of a new connection, so it is written whole or the connection is
            // broken.
            let _ = stream.write(front.too_many());
        }
    }
}

/// Returns true if the error concerns one connection only, so that the next can be accepted at once.
///
/// These are errors of the peer or of its network, as listed in `accept(2)`, and `EPERM` of a firewall rule.
/// Missing resources (`EMFILE`, `ENFILE`, `ENOBUFS`, `ENOMEM`) are not among them.
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::CONNABORTED
                | Errno::CONNRESET
                | Errno::INTR
                | Errno::PROTO
                | Errno::NETDOWN
                | Errno::NETUNREACH
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::PERM
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_would_come_again_is_waited_out() {
        let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!(concerns_one_connection(&error(Errno::CONNABORTED)));
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(!concerns_one_connection(&error(errno)), "{errno}");
        }
    }
}
