//! Ends the servers of a process that was killed before it could.
//!
//! One shell per process reads which servers and folders there are. When its input ends, it kills
//! the processes that are still alive, with their children.
//! It is in a group of its own, so that what kills all of ours does not kill it first.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

const SCRIPT: &str = r#"
there=' '
set --
# Those whom a process has started: the end of PostgreSQL is not that of its busy processes.
children() {
    for place in /proc/[0-9]*/stat; do
        read -r line <"$place" || continue
        rest=${line##*) ? }
        [ "${rest%% *}" = "$1" ] && echo "${line%% *}"
    done
}
while read -r what which; do
    case $what in
        started) there="$there$which " ;;
        ended) case $there in *" $which "*) there="${there%%" $which "*} ${there#*" $which "}" ;; esac ;;
        made) set -- "$@" "$which" ;;
    esac
done
for one in $there; do
    kill -STOP "$one"
    there="$there$(children "$one") "
done
[ "$there" = ' ' ] || kill -9 $there
for folder; do
    # What it says of the shared memory that PostgreSQL has left.
    number=$(sed -n '7s/.* //p' "$folder/data/postmaster.pid")
    [ -z "$number" ] || ipcrm -m "$number"
done
# A killed process may still have been about to make a file.
for try in 1 2 3 4 5; do
    rm -rf -- "$@" && break
    sleep 0.2
done
"#;

/// A folder was made that is to be gone in the end.
pub(crate) fn made(folder: &Path) {
    tell(&format!("made {}\n", folder.display()));
}

/// A server was started.
pub(crate) fn started(process: u32) {
    tell(&format!("started {process}\n"));
}

/// It was waited for: its number may soon be that of another process.
pub(crate) fn ended(process: u32) {
    tell(&format!("ended {process}\n"));
}

fn tell(line: &str) {
    static GUARD: OnceLock<Mutex<Option<(Child, ChildStdin)>>> = OnceLock::new();
    let guard = GUARD.get_or_init(|| Mutex::new(start()));
    if let Some((_, input)) = guard.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        // Without it everything works but the tidying after a `kill -9`.
        let _ = input.write_all(line.as_bytes());
    }
}

fn start() -> Option<(Child, ChildStdin)> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(SCRIPT).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = shell.spawn().ok()?;
    let input = child.stdin.take()?;
    Some((child, input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn what_is_left_when_the_input_ends_is_ended_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("tidegate guard {}", std::process::id()));
        std::fs::create_dir_all(folder.join("deep")).unwrap();
        let (mut kept, mut first, mut second) = (sleeper(), sleeper(), sleeper());
        let (mut shell, mut input) = start().unwrap();
        for child in [&first, &kept, &second] {
            writeln!(input, "started {}", child.id()).unwrap();
        }
        writeln!(input, "ended {}", kept.id()).unwrap();
        writeln!(input, "made {}", folder.display()).unwrap();
        drop(input);

        shell.wait().unwrap();
        assert!(!folder.exists());
        assert_eq!(first.wait().unwrap().signal(), Some(9));
        assert_eq!(second.wait().unwrap().signal(), Some(9));
        assert_eq!(kept.try_wait().unwrap(), None);
        kept.kill().unwrap();
        kept.wait().unwrap();
    }
}
