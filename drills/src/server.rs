//! The server as a process of its own.

use std::env;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// What it said when it was ready.
    ready: String,
    errors: Option<ChildStderr>,
}

impl Server {
    /// Starts one by a command that ends in `serve … --json`, and waits until it is ready.
    pub(crate) fn start(command: &mut Command) -> Result<Server, String> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        let output = child.stdout.take().ok_or("its output is no pipe")?;
        let errors = child.stderr.take();
        let mut server = Server { child, ready: String::new(), errors };
        BufReader::new(output).read_line(&mut server.ready).map_err(|error| error.to_string())?;
        if server.ready.contains("\"ready\"") {
            return Ok(server);
        }
        server.end().map_err(|error| error.to_string())?;
        let errors = server.errors.take().map(rest_of).unwrap_or_default();
        Err(format!("not ready: {}{errors}", server.ready))
    }

    /// Where a front of it listens.
    pub(crate) fn address(&self, front: &str) -> Result<SocketAddr, String> {
        address_of(front, &self.ready).ok_or_else(|| format!("no {front} in {}", self.ready))
    }

    /// Reads what it complains about, so that it can go on.
    pub(crate) fn read_complaints(&mut self) {
        if let Some(errors) = self.errors.take() {
            thread::spawn(move || rest_of(errors));
        }
    }

    /// Leaves it alone with what it complains about: nobody will ever read it.
    pub(crate) fn ignore_complaints(&mut self) {
        self.errors = None;
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn is_running(&mut self) -> Result<bool, String> {
        self.child.try_wait().map(|ended| ended.is_none()).map_err(|error| error.to_string())
    }

    /// Ends it, and waits until it is gone.
    pub(crate) fn stop(mut self) -> Result<(), String> {
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
pub(crate) fn program() -> Result<PathBuf, String> {
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
}
