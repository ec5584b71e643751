//! A copy of the repository in which faults may be planted, with a target folder of its own.
//!
//! The copy outlives the command: only files that differ are written again, so that a fault rebuilds the library and what
//! depends on it, but no other crate. Test programs run as direct children, so that one that does not end can be ended.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::fault::Test;
use crate::failure::Failure;
use crate::models::passed;
use crate::run::{not_started, output};
use crate::workspace::{cargo, files, root, target_folder, walk};

/// Longer than any honest test takes, even on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The folder with the copy, held by this process alone.
#[derive(Debug)]
pub(super) struct Scratch {
    tree: PathBuf,
    target: PathBuf,
    _lock: File,
}

/// What came of building a test program.
#[derive(Debug)]
pub(super) enum Built {
    Program(PathBuf),
    Broken(String),
}

/// What came of running tests.
#[derive(Debug)]
pub(super) enum Ending {
    Green { tests: u64 },
    Red { output: String },
    Hung,
}

impl Scratch {
    /// Brings the copy up to date; fails if another process uses it.
    pub(super) fn open() -> Result<Self, Failure> {
        let base = target_folder()?.join("plant");
        let (tree, target) = (base.join("tree"), base.join("target"));
        fs::create_dir_all(&tree).map_err(Failure::at(&tree))?;
        let lock_path = base.join("lock");
        let lock = File::create(&lock_path).map_err(Failure::at(&lock_path))?;
        lock.try_lock().map_err(|_| Failure::new("another `cargo xtask plant` is running; wait for it"))?;
        let scratch = Self { tree, target, _lock: lock };
        scratch.refresh()?;
        Ok(scratch)
    }

    fn refresh(&self) -> Result<(), Failure> {
        let wanted: BTreeSet<String> = files()?.into_iter().collect();
        for path in walk(&self.tree)?.iter().filter(|path| !wanted.contains(*path)) {
            let stale = self.tree.join(path);
            fs::remove_file(&stale).map_err(Failure::at(&stale))?;
        }
        for path in &wanted {
            let source = root().join(path);
            let bytes = fs::read(&source).map_err(Failure::at(&source))?;
            self.write_bytes(path, &bytes)?;
        }
        Ok(())
    }

    pub(super) fn read(&self, path: &str) -> Result<String, Failure> {
        let place = self.tree.join(path);
        fs::read_to_string(&place).map_err(|error| Failure::new(format!("{path}: {error}")))
    }

    pub(super) fn write(&self, path: &str, text: &str) -> Result<(), Failure> {
        self.write_bytes(path, text.as_bytes())
    }

    /// Leaves a file that is already right untouched: its date tells cargo what to rebuild.
    fn write_bytes(&self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        let place = self.tree.join(path);
        if fs::read(&place).is_ok_and(|existing| existing == bytes) {
            return Ok(());
        }
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(Failure::at(folder))?;
        }
        fs::write(&place, bytes).map_err(Failure::at(&place))
    }

    /// Builds the test program that a test is in, as the copy now stands.
    pub(super) fn build(&self, test: &Test) -> Result<Built, Failure> {
        let mut command = cargo(&["test", "--no-run", "--locked", "-p", &test.package])?;
        command.args(test.target.arguments()).current_dir(&self.tree);
        command.env("CARGO_TARGET_DIR", &self.target).env("CARGO_TERM_COLOR", "never");
        let output = output(&mut command)?;
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Ok(Built::Broken(messages));
        }
        let program = executable(&messages);
        let program =
            program.ok_or_else(|| Failure::new(format!("cargo named no test program:\n{messages}")))?;
        Ok(Built::Program(self.tree.join(program)))
    }

    /// Runs the tests that match, as cargo would.
    pub(super) fn run(&self, program: &Path, test: &Test) -> Result<Ending, Failure> {
        let places = ["crates", "examples", ""].map(|folder| self.tree.join(folder).join(&test.package));
        let package = places.into_iter().find(|place| place.is_dir());
        let package = package.ok_or_else(|| Failure::new(format!("there is no crate {:?}", test.package)))?;
        let mut command = Command::new(program);
        command.arg(&test.filter).current_dir(&package);
        command.env("CARGO_MANIFEST_DIR", &package).env("TIDEGATE_TRACES", "2000");
        bounded(&mut command, TIMEOUT)
    }
}

/// The path in cargo's line `Executable tests/it/main.rs (PATH)`.
fn executable(messages: &str) -> Option<&str> {
    let line = messages.lines().find(|line| line.trim_start().starts_with("Executable "))?;
    line.rsplit_once(" (")?.1.strip_suffix(')')
}

/// Runs a test program to its end, or ends it when max wait runs out.
fn bounded(command: &mut Command, max_wait: Duration) -> Result<Ending, Failure> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| not_started(command, &error))?;
    let mut pipe = child.stdout.take().expect("standard output was asked for as a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read before an error is all that there is to show.
        let _ = pipe.read_to_end(&mut bytes);
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    let received = receiver.recv_timeout(max_wait);
    if received.is_err() {
        // It may have ended by itself just now, which is as good.
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| not_started(command, &error))?;
    Ok(match received {
        Err(_) => Ending::Hung,
        Ok(output) if status.success() => Ending::Green { tests: passed(&output) },
        Ok(output) => Ending::Red { output },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_is_read_from_cargo_s_messages() {
        let messages =
            "    Finished `test` profile in 1s\n  Executable unittests src/lib.rs (/t/deps/tidegate-1f)\n";
        assert_eq!(executable(messages), Some("/t/deps/tidegate-1f"));
        assert_eq!(executable("    Finished `test` profile in 1s\n"), None);
    }

    #[test]
    fn a_program_ends_green_or_red_or_is_ended() {
        let shell =
            |script: &str, max_wait| bounded(Command::new("sh").args(["-c", script]), max_wait).unwrap();
        let green = shell("echo 'test result: ok. 2 passed; 0 failed'", TIMEOUT);
        let red = shell("echo broken; exit 101", TIMEOUT);
        let hung = shell("exec sleep 1000", Duration::from_millis(10));

        assert!(matches!(green, Ending::Green { tests: 2 }), "{green:?}");
        assert!(matches!(&red, Ending::Red { output } if output == "broken\n"), "{red:?}");
        assert!(matches!(hung, Ending::Hung), "{hung:?}");
    }
}
