//! A process with all that it starts, gone with its value and also when this process is killed.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testbed::{now, pause};

/// How long a process may take to say that it is ready.
const READY: Duration = Duration::from_secs(60);

/// A shell leads the group and reads: when its input ends, so does the group.
const SCRIPT: &str = r#""$@" </dev/null & cat >/dev/null; kill -s KILL -- "-$$""#;

/// A group of processes, and the file that they write to.
pub(super) struct Family {
    shell: Child,
    log: PathBuf,
}

impl Family {
    /// Starts a program with everything that it writes in a file.
    pub(super) fn start(program: &str, arguments: &[String], log: PathBuf) -> Family {
        let file = File::create(&log).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh", program]).args(arguments).process_group(0);
        shell.stdin(Stdio::piped()).stdout(file.try_clone().unwrap()).stderr(file);
        Family { shell: shell.spawn().unwrap(), log }
    }

    /// Waits until it has written this, and gives what follows up to the next space.
    pub(super) fn word_after(&self, words: &str) -> String {
        let started = now();
        loop {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let after = text.split_once(words).and_then(|(_, rest)| rest.split_once(char::is_whitespace));
            if let Some((word, _)) = after {
                return word.to_owned();
            }
            assert!(
                started.elapsed() < READY,
                "{words:?} was to be written within {READY:?}, and was not: {text}"
            );
            pause(Duration::from_millis(20));
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}
