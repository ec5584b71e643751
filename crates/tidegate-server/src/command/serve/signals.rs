//! Serves until a signal says otherwise.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::notify;
use crate::Server;
use crate::command::output::say;

/// The signals that a server listens to.
pub(super) struct Signals {
    stop: Stop,
    hang_up: Signal,
}

/// Those that stop it.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// From now on they end nothing by themselves.
    pub(super) fn new() -> io::Result<Signals> {
        let stop =
            Stop { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? };
        Ok(Signals { stop, hang_up: signal(SignalKind::hangup())? })
    }

    /// Waits for so long. Returns true, and at once, if a signal to stop comes.
    pub(super) async fn stops_within(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = self.stop.told() => true,
            () = sleep(time) => false,
        }
    }

    /// Waits for the first signal to stop, and stops the server; a second one leaves it where it is.
    pub(super) async fn stop(mut self, server: Server) -> ExitCode {
        self.serve(&server).await;
        say("stopping: what has begun is finished first; a second signal ends at once");
        notify::say("STOPPING=1");
        tokio::select! {
            _ = spawn_blocking(move || server.stop()) => {
                say("stopped");
                ExitCode::SUCCESS
            }
            () = self.stop.told() => {
                say("ended at once");
                ExitCode::FAILURE
            }
        }
    }

    /// Reads the rules again whenever somebody hangs up, until told to stop. Whoever hangs up while they are being
    /// read has them read once more after that: they may have changed meanwhile.
    async fn serve(&mut self, server: &Server) {
        loop {
            tokio::select! {
                () = self.stop.told() => return,
                _ = self.hang_up.recv() => {}
            }
            notify::say(&notify::reloading());
            tokio::select! {
                // The thread that reads is left where it is.
                () = self.stop.told() => return,
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
    async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
