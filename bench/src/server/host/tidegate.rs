//! Our own server, which says where it listens.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use super::{Process, START_WITHIN, Server};

/// Starts this build of it with one thread and this configuration.
pub(crate) fn start_with(program: &Path, config: &str) -> Result<Server, String> {
    start(program, Some(config))
}

/// Starts it with its default zone, one thread and these rules; its messages are part of the error if it does not start.
pub(super) fn start(program: &Path, rules: Option<&str>) -> Result<Server, String> {
    let mut command = Command::new(program);
    command.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--threads", "1", "--json"]);
    let folder = program.parent().unwrap_or(Path::new("."));
    // A configuration in the current folder is not to be read.
    command.current_dir(folder);
    if let Some(rules) = rules {
        let file = folder.join("bench-rules.toml");
        fs::write(&file, rules).map_err(|error| format!("{}: {error}", file.display()))?;
        command.arg("--config").arg(file);
    }
    let mut process = Process::start(command.stderr(Stdio::piped()), Stdio::piped())?;
    let output = process.0.stdout.take().expect("the output is a pipe that is taken once");
    let mut talk = process.0.stderr.take().expect("the talk is a pipe that is taken once");
    // Both pipes are read for as long as the server runs, so that it never waits for a reader.
    let talk = thread::spawn(move || {
        let mut text = String::new();
        let _ = talk.read_to_string(&mut text);
        text
    });
    let fronts = first_line(output).and_then(|line| {
        let at = |front| address(&line, front).ok_or_else(|| format!("no address of {front} in {line:?}"));
        Ok((at("resp")?, at("http")?))
    });
    match fronts {
        Ok((resp, http)) => process.served(resp, Some(http)),
        Err(problem) => {
            drop(process);
            Err(format!("tidegate does not start: {problem}; {}", talk.join().unwrap_or_default().trim_end()))
        }
    }
}

/// The first line; all others are read and forgotten.
pub(super) fn first_line(output: ChildStdout) -> Result<String, String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut reader, mut line) = (BufReader::new(output), String::new());
        let read = reader.read_line(&mut line);
        let _ = sender.send(read.map(|_| line));
        let _ = io::copy(&mut reader, &mut io::sink());
    });
    let line =
        receiver.recv_timeout(START_WITHIN).map_err(|_| format!("nothing said in {START_WITHIN:?}"))?;
    line.map_err(|error| error.to_string())
}

/// The address of a front in a line like `{"event":"ready","resp":"127.0.0.1:6380"}`.
fn address(line: &str, front: &str) -> Option<SocketAddr> {
    let (_, after) = line.split_once(&format!("\"{front}\""))?;
    after.trim_start_matches([':', ' ']).strip_prefix('"')?.split('"').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_the_first_line() {
        let line = r#"{"event":"ready","resp":"127.0.0.1:6380","http": "127.0.0.1:8080","grpc":null}"#;
        assert_eq!(address(line, "resp"), "127.0.0.1:6380".parse().ok());
        assert_eq!(address(line, "http"), "127.0.0.1:8080".parse().ok());
        assert_eq!(address(line, "grpc"), None);
        assert_eq!(address("error: the port is taken", "resp"), None);
    }
}
