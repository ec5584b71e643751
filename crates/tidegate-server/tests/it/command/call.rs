//! Runs the binary.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Ended, Process};

/// The folder and environment of a command.
pub(crate) struct Call {
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Call {
    /// Creates a call from a new folder of this name, with an empty environment.
    pub(crate) fn from(name: &str) -> Call {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("command").join(name);
        // It does not exist on the first run.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder can be made");
        Call { folder, variables: Vec::new() }
    }

    /// Creates a call from the folder of another call, with an empty environment.
    pub(crate) fn beside(other: &Call) -> Call {
        Call { folder: other.folder.clone(), variables: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Call {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Call {
        self.variables.retain(|(set, _)| set != name);
        self
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.variables.iter().find(|(set, _)| set == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn file(self, name: &str, content: &str) -> Call {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
        fs::write(path, content).expect("a file can be written");
        self
    }

    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args(arguments).current_dir(&self.folder).env_clear();
        Process::start(command.envs(self.variables.iter().map(|(name, value)| (name, value))))
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.start(arguments).end()
    }

    /// Starts a server on free ports, and waits until it is ready.
    pub(crate) fn serve(&self, arguments: &[&str]) -> (Process, Value) {
        let free = ["serve", "--json", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        self.ready(&[&free, arguments].concat())
    }

    /// Starts a server with exactly these arguments, and waits until it is ready.
    pub(crate) fn ready(&self, arguments: &[&str]) -> (Process, Value) {
        let mut process = self.start(arguments);
        let line = process.line();
        (process, serde_json::from_str(&line).expect("it is JSON"))
    }
}

/// Returns the address of a front from the startup report.
pub(crate) fn address(ready: &Value, front: &str) -> SocketAddr {
    ready[front].as_str().and_then(|address| address.parse().ok()).expect("an address")
}
