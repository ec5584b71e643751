//! The server with few descriptors.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use crate::server;

/// The kernel counts processor time in hundredths of a second.
const TICK: Duration = Duration::from_millis(10);

/// Whether anybody reads what the server writes on its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Complaints {
    Read,
    Unread,
}

impl fmt::Display for Complaints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Complaints::Read => "read",
            Complaints::Unread => "read by nobody",
        })
    }
}

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    process: server::Server,
    pub(super) resp: SocketAddr,
    pub(super) http: SocketAddr,
}

impl Server {
    /// Starts one on free ports, which may have so many descriptors.
    pub(super) fn start(descriptors: u64, complaints: Complaints) -> Result<Server, String> {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={descriptors}")).arg(server::program()?);
        command.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"]);
        let mut process = server::Server::start(&mut command)?;
        match complaints {
            Complaints::Read => process.read_complaints(),
            Complaints::Unread => process.ignore_complaints(),
        }
        let (resp, http) = (process.address("resp")?, process.address("http")?);
        Ok(Server { process, resp, http })
    }

    pub(super) fn id(&self) -> String {
        format!("process {}", self.process.id())
    }

    pub(super) fn is_running(&mut self) -> Result<bool, String> {
        self.process.is_running()
    }

    /// How many descriptors it has open.
    pub(super) fn descriptors(&self) -> Result<usize, String> {
        let folder = format!("/proc/{}/fd", self.process.id());
        fs::read_dir(&folder).map(Iterator::count).map_err(|error| format!("{folder}: {error}"))
    }

    /// The processor time that it has taken so far.
    pub(super) fn processor_time(&self) -> Result<Duration, String> {
        let file = format!("/proc/{}/stat", self.process.id());
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        ticks_in(&text).map(|ticks| TICK * ticks).ok_or_else(|| format!("{file} is not understood: {text}"))
    }

    /// Ends it, and waits until it is gone.
    pub(super) fn stop(self) -> Result<(), String> {
        self.process.stop()
    }
}

/// Time of its own and that of the kernel for it, behind a name that may hold anything.
fn ticks_in(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u32>().ok()? + fields.next()?.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_whatever_the_name() {
        let stat = "17 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(ticks_in(stat), Some(300));
        assert_eq!(ticks_in("17 (a) S 1"), None);
    }
}
