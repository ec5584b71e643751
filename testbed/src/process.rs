//! A server's process: it is told by signals, and is gone with its value.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::guard;

/// A process that is killed and waited for when it is dropped.
#[derive(Debug)]
pub(crate) struct Process(Child);

impl Process {
    /// Starts it with everything that it writes in a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log);
        let file = file.unwrap_or_else(|error| panic!("log {}: {error}", log.display()));
        let copy = file.try_clone().unwrap_or_else(|error| panic!("log {}: {error}", log.display()));
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        let child = command.spawn();
        let child = child.unwrap_or_else(|error| panic!("{:?}: {error}", command.get_program()));
        guard::started(child.id());
        Process(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap_or_else(|error| panic!("process {}: {error}", self.0.id()))
    }

    /// Sends a signal; one that has ended hears nothing.
    pub(crate) fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let sent = kill_process(Pid::from_child(&self.0), signal);
            sent.unwrap_or_else(|error| panic!("process {}: {signal:?}: {error}", self.0.id()));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        guard::ended(self.0.id());
    }
}
