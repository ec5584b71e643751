//! The server `tidegate` in a process of its own, and any other that says on its first line where it listens.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::process::Process;

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(60);

/// What becomes of the text that a server writes on its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Complaints {
    /// It is read and dropped, so that the server never waits for a reader.
    Read,
    /// It is a pipe without a reader.
    Unread,
}

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// Its process.
    pub process: Process,
    /// Its first line.
    ready: String,
}

impl Server {
    /// Starts one by a command such as `tidegate serve … --json`, and waits for its first line.
    pub fn start(command: &mut Command, complaints: Complaints) -> Result<Server, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(command)?;
        let (output, errors) = (process.output(), process.complaints());
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let (mut reader, mut line) = (BufReader::new(output), String::new());
            let read = reader.read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
            let _ = io::copy(&mut reader, &mut io::sink());
        });
        let line =
            receiver.recv_timeout(START_WITHIN).map_err(|_| format!("nothing said in {START_WITHIN:?}"));
        let ready =
            line.and_then(|line| line.map_err(|error| error.to_string())).unwrap_or_else(|problem| problem);
        if ready.contains("\"ready\"") || ready.trim().parse::<SocketAddr>().is_ok() {
            if complaints == Complaints::Read {
                thread::spawn(move || errors.map(|mut errors| io::copy(&mut errors, &mut io::sink())));
            }
            return Ok(Server { process, ready });
        }
        process.kill().map_err(|error| error.to_string())?;
        let mut said = Vec::new();
        // What came until then is as good.
        let _ = errors.map(|mut errors| errors.read_to_end(&mut said));
        Err(format!("not ready: {ready}{}", String::from_utf8_lossy(&said)))
    }

    /// Returns the address of a front; of a server that says one address only, this one.
    pub fn address(&self, front: &str) -> Result<SocketAddr, String> {
        address_of(front, &self.ready).ok_or_else(|| format!("no {front} in {}", self.ready))
    }
}

/// The address of a front in a line like `{"event":"ready","resp":"127.0.0.1:6380"}`, or in one that is an address.
fn address_of(front: &str, line: &str) -> Option<SocketAddr> {
    let Some((_, after)) = line.split_once(&format!("\"{front}\"")) else { return line.trim().parse().ok() };
    after.trim_start_matches([':', ' ']).strip_prefix('"')?.split('"').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_first_line() {
        let line = r#"{"event":"ready","resp":"127.0.0.1:6380","http": "[::1]:5","grpc":null}"#;
        assert_eq!(address_of("resp", line), "127.0.0.1:6380".parse().ok());
        assert_eq!(address_of("http", line), "[::1]:5".parse().ok());
        assert_eq!((address_of("grpc", line), address_of("proxy", line)), (None, None));
        assert_eq!(address_of("http", "127.0.0.1:80\n"), "127.0.0.1:80".parse().ok());
        assert_eq!(address_of("resp", "error: the port is taken"), None);
    }

    #[test]
    fn a_server_that_does_not_start_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no; echo the port is taken >&2"]);
        let problem = Server::start(&mut command, Complaints::Read).unwrap_err();
        assert_eq!(problem, "not ready: no\nthe port is taken\n");
    }
}
