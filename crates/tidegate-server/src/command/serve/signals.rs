//! Serves until a signal says otherwise.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;

use super::notify;
use crate::Server;
use crate::command::output::say;

/// The signals that a server listens to.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// From now on they end nothing by themselves.
    pub(super) fn new() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the first signal to stop, and stops the server; a second one leaves it where it is.
    pub(super) async fn stop(mut self, server: Server) -> ExitCode {
        self.told_to_stop().await;
        say("stopping: what has begun is finished first; a second signal ends at once");
        notify::say("STOPPING=1");
        tokio::select! {
            _ = spawn_blocking(move || server.stop()) => {
                say("stopped");
                ExitCode::SUCCESS
            }
            () = self.told_to_stop() => {
                say("ended at once");
                ExitCode::FAILURE
            }
        }
    }

    async fn told_to_stop(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hang_up.recv() => say("settings are read at the start only; restart the server to change them"),
            }
        }
    }
}
