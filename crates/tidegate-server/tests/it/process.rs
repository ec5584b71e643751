//! A process that does not outlive its test, and is not waited for in vain.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that is told lines and tells lines.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    out: Receiver<String>,
    err: Receiver<String>,
}

/// What a process left behind.
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

    /// Runs it to its end with this to read.
    pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ended {
        let mut process = Process::start(command);
        process.tell(input);
        process.end()
    }

    pub(crate) fn tell(&mut self, bytes: &[u8]) {
        let told = self.input.as_mut().map(|input| input.write_all(bytes).and_then(|()| input.flush()));
        if !matches!(told, Some(Ok(()))) {
            panic!("it does not listen: {:?}", self.rest());
        }
    }

    /// The next line that it says.
    pub(crate) fn line(&mut self) -> String {
        match self.out.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(_) => panic!("it says nothing more: {:?}", self.rest()),
        }
    }

    /// So many lines that it says.
    pub(crate) fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.line()).collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is running");
    }

    /// Waits until it says a line that begins so.
    pub(crate) fn says(&self, start: &str) -> String {
        self.says_one_of(&[start])
    }

    /// Waits until it says a line that begins like one of these.
    pub(crate) fn says_one_of(&self, starts: &[&str]) -> String {
        loop {
            let line = self.err.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it never says {starts:?}"));
            if starts.iter().any(|start| line.starts_with(start)) {
                return line;
            }
        }
    }

    /// Says that nothing more will come, and waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.rest()
    }

    fn rest(&mut self) -> Ended {
        self.input = None;
        let (out, err) = (all(&self.out), all(&self.err));
        // Whoever has closed its output has nothing more to do.
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

/// Lines as they come, from a thread of their own so that waiting for them has an end.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        // Whoever has enough of them has gone.
        BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
    });
    receiver
}

/// All lines that still come, to the last.
fn all(lines: &Receiver<String>) -> String {
    let mut text = String::new();
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => text += &(line + "\n"),
            Err(error) => {
                assert_eq!(error.to_string(), "channel is empty and sending half is closed", "after {text}");
                return text;
            }
        }
    }
}
