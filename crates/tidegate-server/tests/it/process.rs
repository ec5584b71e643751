//! A child process that is killed with its test. Every wait for it has a timeout.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Timeout of every wait.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A child process with line-based input and output.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    out: Receiver<String>,
    err: Receiver<String>,
}

/// The exit code and output of a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Process {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{}: {error}; `cargo xtask clients` installs it", command.get_program().display())
        });
        let input = child.stdin.take();
        let out = lines(child.stdout.take().expect("it is piped"));
        let err = lines(child.stderr.take().expect("it is piped"));
        Process { child, input, out, err }
    }

    /// Runs a process to its end with this input.
    pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ended {
        let mut process = Process::start(command);
        process.tell(input);
        process.end()
    }

    pub(crate) fn tell(&mut self, bytes: &[u8]) {
        let written = self.input.as_mut().map(|input| input.write_all(bytes).and_then(|()| input.flush()));
        if !matches!(written, Some(Ok(()))) {
            panic!("it does not listen: {:?}", self.rest());
        }
    }

    /// Returns the next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        match self.out.recv_timeout(TIMEOUT) {
            Ok(line) => line,
            Err(_) => panic!("it says nothing more: {:?}", self.rest()),
        }
    }

    /// Returns the next lines of standard output.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is running");
    }

    /// Waits for a line of standard error that starts with this text.
    pub(crate) fn says(&self, start: &str) -> String {
        self.says_one_of(&[start])
    }

    /// Waits for a line of standard error that starts with one of these texts.
    pub(crate) fn says_one_of(&self, starts: &[&str]) -> String {
        loop {
            let line = self.err.recv_timeout(TIMEOUT).unwrap_or_else(|_| panic!("it never says {starts:?}"));
            if starts.iter().any(|start| line.starts_with(start)) {
                return line;
            }
        }
    }

    /// Closes the input, and waits for the end of the process.
    pub(crate) fn end(mut self) -> Ended {
        self.rest()
    }

    fn rest(&mut self) -> Ended {
        self.input = None;
        let (out, err) = (all(&self.out), all(&self.err));
        // A process that has closed its output is about to exit.
        let code = self.child.wait().ok().and_then(|status| status.code());
        Ended { code, out, err }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads lines on a separate thread, so that the receiver can use a timeout.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // An error means that the receiver is gone.
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// Returns all remaining lines.
fn all(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(TIMEOUT) {
            Ok(line) => text += &(line + "\n"),
            Err(error) => {
                assert_eq!(error.to_string(), "channel is empty and sending half is closed", "after {text}");
                return text;
            }
        }
    }
}
