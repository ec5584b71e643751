//! This program once more, as a process that does a part of a drill.

use std::process::{Child, ChildStdout, Command, Stdio};
use std::{env, io};

/// A process that is killed and waited for when it is dropped.
#[derive(Debug)]
pub(crate) struct Part(Child);

impl Part {
    /// Starts a part whose output is read through a pipe.
    pub(crate) fn start(name: &str, arguments: &[String]) -> Result<Part, String> {
        let mut command = command(name, arguments)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().map(Part).map_err(|error| format!("{name}: {error}"))
    }

    /// What it writes; to be taken once.
    pub(crate) fn output(&mut self) -> ChildStdout {
        self.0.stdout.take().expect("the output is a pipe that is taken once")
    }

    /// Ends it at once, as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(|_| ())
    }

    /// Waits until it ends by itself, well.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let status = self.0.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("a part of the drill ended with {status}")) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command that runs a part.
pub(crate) fn command(name: &str, arguments: &[String]) -> Result<Command, String> {
    let program = env::current_exe().map_err(|error| format!("this program is not to be found: {error}"))?;
    let mut command = Command::new(program);
    command.arg(name).args(arguments);
    Ok(command)
}

/// The argument at this place, read as a number.
pub(crate) fn number<T: std::str::FromStr>(arguments: &[String], place: usize) -> Result<T, String> {
    let argument = arguments.get(place).and_then(|argument| argument.parse().ok());
    argument.ok_or_else(|| format!("argument {place} is to be a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_or_missed() {
        let arguments = ["zone.tg".to_owned(), "17".to_owned()];
        assert_eq!(number(&arguments, 1), Ok(17_u64));
        assert!(number::<u64>(&arguments, 0).is_err() && number::<u64>(&arguments, 2).is_err());
    }
}
