//! Processes that are gone with their values, and with this process, however that ends.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::{env, io};

use rustix::process::{Pid, Signal, kill_process};

use crate::guard;

/// A process that is killed and waited for when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it. Its input is empty unless the command says otherwise.
    pub fn start(command: &mut Command) -> Result<Process, String> {
        let child =
            command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        guard::started(child.id());
        Ok(Process(child))
    }

    /// Starts it with everything that it writes in a file.
    ///
    /// # Panics
    /// If it does not start.
    pub fn with_log(command: &mut Command, log: &Path) -> Process {
        let file = File::options().create(true).append(true).open(log);
        let file = file.unwrap_or_else(|error| panic!("log {}: {error}", log.display()));
        let copy = file.try_clone().unwrap_or_else(|error| panic!("log {}: {error}", log.display()));
        command.stdin(Stdio::null()).stdout(file).stderr(copy);
        Process::start(command).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts this program once more, with these arguments and its output in a pipe.
    pub fn part(arguments: &[&str]) -> Result<Process, String> {
        Process::start(once_more()?.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()))
    }

    /// Returns its number.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Takes what it writes, which has to be a pipe that was not taken before.
    pub fn output(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("the output is a pipe that is taken once")
    }

    /// Takes what it complains about, if that is a pipe.
    pub fn complaints(&mut self) -> Option<ChildStderr> {
        self.0.stderr.take()
    }

    /// Returns how it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.0.try_wait().unwrap_or_else(|error| panic!("process {}: {error}", self.0.id()))
    }

    /// Sends a signal; one that has ended hears nothing.
    pub fn signal(&mut self, signal: Signal) {
        if self.ended().is_none() {
            let sent = kill_process(Pid::from_child(&self.0), signal);
            sent.unwrap_or_else(|error| panic!("process {}: {signal:?}: {error}", self.0.id()));
        }
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    pub fn kill(&mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }

    /// Waits until it ends by itself, with success.
    pub fn finish(mut self) -> Result<(), String> {
        let status = self.0.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("a part of this program ended with {status}")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.kill();
        guard::ended(self.0.id());
    }
}

/// Sends a signal to a process that may be another's child. Returns whether it was there.
pub fn send(pid: u32, signal: Signal) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Returns the command that runs this program once more.
pub fn once_more() -> Result<Command, String> {
    let this = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    Ok(Command::new(this))
}

/// Returns what this program prints when it is given these arguments, or what it complains about.
pub fn in_own_process(arguments: &[&str]) -> Result<String, String> {
    let output = once_more()?.args(arguments).output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

/// Returns a program that is built beside this one, from this package.
pub fn beside(name: &str, package: &str) -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let program = this.with_file_name(name);
    let missing = || format!("{} is missing; cargo build --release -p {package}", program.display());
    program.is_file().then(|| program.clone()).ok_or_else(missing)
}

/// Returns a program in one of the folders of `PATH`.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_the_shell_finds_it() {
        assert!(in_path("sh").is_some_and(|program| program.is_absolute()));
        assert_eq!(in_path("no-such-program"), None);
        assert!(beside("no-such-program", "shop").unwrap_err().ends_with("cargo build --release -p shop"));
    }

    #[test]
    fn a_process_ends_with_its_value_or_by_itself() {
        let process = Process::start(Command::new("sleep").arg("600")).unwrap();
        let place = PathBuf::from(format!("/proc/{}", process.pid()));
        assert!(place.exists());
        drop(process);
        assert!(!place.exists());
        assert_eq!(Process::start(&mut Command::new("true")).unwrap().finish(), Ok(()));
        assert!(Process::start(&mut Command::new("false")).unwrap().finish().is_err());
        assert!(Process::start(&mut Command::new("no-such-program")).is_err());
    }
}
