//! Runs the server until a signal stops it.
//!
//! SIGINT and SIGTERM stop the server, and a second one ends the process at once. SIGHUP reloads the rules. A
//! service manager is notified of each state.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::notify;
use crate::Server;
use crate::command::output::say;

/// The signals that a server handles.
pub(super) struct Signals {
    /// SIGINT and SIGTERM.
    stop: Stop,
    /// SIGHUP.
    hang_up: Signal,
}

/// The signals that stop a server.
struct Stop {
    /// SIGINT, as Ctrl-C sends it.
    interrupt: Signal,
    /// SIGTERM, as service managers send it.
    terminate: Signal,
}

impl Signals {
    /// Installs the handlers. From now on the signals do not end the process.
    pub(super) fn new() -> io::Result<Signals> {
        let stop =
            Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? };
        Ok(Signals { stop, hang_up: signal(SignalKind::hangup())? })
    }

    /// Waits for `time`. Returns true at once if a stop signal arrives.
    pub(super) async fn stops_within(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = self.stop.received() => true,
            () = sleep(time) => false,
        }
    }

    /// Serves until the first stop signal, then shuts the server down. A second stop signal ends the shutdown at once.
    pub(super) async fn stop(mut self, server: Server) -> ExitCode {
        self.serve(&server).await;
        say("stopping: what has begun is finished first; a second signal ends at once");
        notify::say("STOPPING=1");
        tokio::select! {
            _ = spawn_blocking(move || server.stop()) => {
                say("stopped");
                ExitCode::SUCCESS
            }
            () = self.stop.received() => {
                say("ended at once");
                ExitCode::FAILURE
            }
        }
    }

    /// Reloads the rules on every SIGHUP until a stop signal arrives. A SIGHUP during a reload causes one more reload
    /// afterwards, because the file may have changed meanwhile.
    async fn serve(&mut self, server: &Server) {
        loop {
            tokio::select! {
                () = self.stop.received() => return,
                _ = self.hang_up.recv() => {}
            }
            notify::say(&notify::reloading());
            tokio::select! {
                // The thread that reads the file is not joined.
                () = self.stop.received() => return,
                read = server.reload() => {
                    if read.is_none() {
                        say("rules: cannot be read again, as there is no thread for it; try again");
                    }
                }
            }
            notify::say("READY=1");
        }
    }
}

impl Stop {
    /// Resolves when one of the signals arrives.
    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
