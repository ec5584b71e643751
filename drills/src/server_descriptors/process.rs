//! The server as a process of its own, with few descriptors.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::Duration;
use std::{env, io};

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
    child: Child,
    pub(super) resp: SocketAddr,
    pub(super) http: SocketAddr,
}

impl Server {
    /// Starts one on free ports, which may have so many descriptors.
    pub(super) fn start(descriptors: u64, complaints: Complaints) -> Result<Server, String> {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={descriptors}")).arg(program()?);
        command.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("prlimit, of util-linux: {error}"))?;
        let output = child.stdout.take().ok_or("its output is no pipe")?;
        let errors = child.stderr.take().ok_or("its errors are no pipe")?;
        let mut first = String::new();
        BufReader::new(output).read_line(&mut first).map_err(|error| error.to_string())?;
        let address = |front| address_of(front, &first).ok_or_else(|| format!("not ready: {first}"));
        let (resp, http) = match (address("resp"), address("http")) {
            (Ok(resp), Ok(http)) => (resp, http),
            (Err(problem), _) | (_, Err(problem)) => return Err(format!("{problem}{}", rest_of(errors))),
        };
        match complaints {
            Complaints::Read => drop(thread::spawn(move || rest_of(errors))),
            Complaints::Unread => drop(errors),
        }
        Ok(Server { child, resp, http })
    }

    pub(super) fn id(&self) -> String {
        format!("process {}", self.child.id())
    }

    pub(super) fn is_running(&mut self) -> Result<bool, String> {
        self.child.try_wait().map(|ended| ended.is_none()).map_err(|error| error.to_string())
    }

    /// How many descriptors it has open.
    pub(super) fn descriptors(&self) -> Result<usize, String> {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(&folder).map(Iterator::count).map_err(|error| format!("{folder}: {error}"))
    }

    /// The processor time that it has taken so far.
    pub(super) fn processor_time(&self) -> Result<Duration, String> {
        let file = format!("/proc/{}/stat", self.child.id());
        let text = fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
        ticks_in(&text).map(|ticks| TICK * ticks).ok_or_else(|| format!("{file} is not understood: {text}"))
    }

    /// Ends it, and waits until it is gone.
    pub(super) fn stop(mut self) -> Result<(), String> {
        self.end().map_err(|error| error.to_string())
    }

    fn end(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// The server's program, which is built beside this one.
fn program() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let program = this.with_file_name("tidegate");
    if program.is_file() {
        return Ok(program);
    }
    let remedy = "cargo build --release -p tidegate-server";
    Err(format!("{} is missing; {remedy}", program.display()))
}

/// The address of a front in the line that a server prints when it is ready.
fn address_of(front: &str, line: &str) -> Option<SocketAddr> {
    let (_, behind) = line.split_once(&format!("\"{front}\":\""))?;
    behind.split('"').next()?.parse().ok()
}

/// What a process still writes.
fn rest_of(mut errors: ChildStderr) -> String {
    let mut text = Vec::new();
    // Whatever came until then is as good.
    let _ = errors.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
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
    fn addresses_are_found_in_the_line() {
        let line = r#"{"event":"ready","resp":"127.0.0.1:1234","http":"[::1]:5"}"#;
        assert_eq!(address_of("resp", line), "127.0.0.1:1234".parse().ok());
        assert_eq!(address_of("http", line), "[::1]:5".parse().ok());
        assert_eq!(address_of("grpc", line), None);
        assert_eq!(address_of("resp", ""), None);
    }

    #[test]
    fn processor_time_is_found_whatever_the_name() {
        let stat = "17 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0";
        assert_eq!(ticks_in(stat), Some(300));
        assert_eq!(ticks_in("17 (a) S 1"), None);
    }
}
