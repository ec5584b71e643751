//! A process that ends a server if this program cannot do it any more.
//!
//! It waits for the end of its input, which comes when this program ends in whatever way, and for no longer than a
//! server may run.

use std::io;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

/// The longest that a server may run.
const BOUND: Timespec = Timespec { tv_sec: 600, tv_nsec: 0 };

/// Watches a server for as long as it is not dropped, which it has to be before the server is.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    pub(super) fn watch(server: &Child) -> Result<Guard, String> {
        let bench = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(bench);
        command.args(["server", "guard", &server.id().to_string()]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        child.map(Guard).map_err(|error| format!("no guard for a server: {error}"))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the guard does.
pub(crate) fn run(server: &str) -> ExitCode {
    let Some(server) = server.parse().ok().and_then(Pid::from_raw) else {
        eprintln!("{server} is not the number of a process");
        return ExitCode::from(2);
    };
    let stdin = io::stdin();
    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&BOUND));
    match kill_process(server, Signal::KILL) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
