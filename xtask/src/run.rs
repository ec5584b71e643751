//! Runs children and named steps, and says how long each took.

use std::env;
use std::io::{self, Read, Write};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// A named piece of work; the name is printed before it starts.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) work: fn() -> Result<(), Failure>,
}

/// Runs the steps in order until one fails, then prints a table of what ran.
pub(crate) fn steps(steps: &[Step]) -> Result<(), Failure> {
    let mut table = Vec::new();
    let mut outcome = Ok(());
    for step in steps {
        println!("==> {}", step.name);
        let (result, took) = timed(step.work);
        let word = if result.is_ok() { "ok" } else { "FAILED" };
        println!("<== {}: {word} after {:.1} s\n", step.name, took.as_secs_f64());
        table.push((step.name, took, word));
        if let Err(failure) = result {
            outcome = Err(failure.within(step.name));
            break;
        }
    }
    print!("{}", render(&table));
    outcome
}

fn render(table: &[(&str, Duration, &str)]) -> String {
    let mut text = format!("{:<10} {:>8}\n", "step", "seconds");
    for (name, took, word) in table {
        text.push_str(&format!("{name:<10} {:>8.1}  {word}\n", took.as_secs_f64()));
    }
    let total: Duration = table.iter().map(|(_, took, _)| *took).sum();
    text.push_str(&format!("{:<10} {:>8.1}\n", "total", total.as_secs_f64()));
    text
}

#[expect(
    clippy::disallowed_methods,
    reason = "a stopwatch for the person who waits; nothing is decided by it"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Runs a child with our own output; anything but exit code 0 is a failure.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    require_success(command, status)
}

/// Runs a child whose standard output goes to `shown` as it comes and is kept as well.
pub(crate) fn succeed_and_keep(command: &mut Command, shown: impl Write) -> Result<String, Failure> {
    command.stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| not_started(command, &error))?;
    let pipe = child.stdout.take().expect("standard output was asked for as a pipe");
    let kept = copy_and_keep(pipe, shown);
    let status = child.wait().map_err(|error| not_started(command, &error))?;
    require_success(command, status)?;
    let kept = kept.map_err(|error| Failure::new(format!("output of {}: {error}", describe(command))))?;
    Ok(String::from_utf8_lossy(&kept).into_owned())
}

/// Copies without waiting for whole lines: a question to the person who waits has no line break.
fn copy_and_keep(mut from: impl Read, mut to: impl Write) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let bytes = match from.read(&mut chunk) {
            Ok(0) => return Ok(kept),
            Ok(length) => &chunk[..length],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(bytes)?;
        to.flush()?;
        kept.extend_from_slice(bytes);
    }
}

/// Runs a child whose output is only of interest when it fails.
pub(crate) fn succeed_quietly(command: &mut Command) -> Result<(), Failure> {
    let output = output(command)?;
    if output.status.success() {
        return Ok(());
    }
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    require_success(command, output.status)
}

fn require_success(command: &Command, status: ExitStatus) -> Result<(), Failure> {
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("{} ended with {status}", describe(command))))
    }
}

/// Runs a child and keeps its output, whatever its exit code.
pub(crate) fn output(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| not_started(command, &error))
}

/// A failure for a child that could not be started at all.
pub(crate) fn not_started(command: &Command, error: &io::Error) -> Failure {
    Failure::new(format!("cannot start {}: {error}", describe(command)))
}

/// Sets a variable for a child unless the person who runs us has set it.
pub(crate) fn set_unless_set(command: &mut Command, name: &str, value: &str) {
    if env::var_os(name).is_none() {
        command.env(name, value);
    }
}

/// The command as one would type it; the target folder is left out because it changes no result.
pub(crate) fn describe(command: &Command) -> String {
    let mut words = Vec::new();
    for (name, value) in command.get_envs() {
        if let (Some(value), true) = (value, name != "CARGO_TARGET_DIR") {
            words.push(format!("{}={}", name.display(), quoted(&value.to_string_lossy())));
        }
    }
    let program = std::path::Path::new(command.get_program());
    words.push(program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned());
    words.extend(command.get_args().map(|argument| quoted(&argument.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_alphanumeric() || "-_=./:,+@%".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_described_command_can_be_typed() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["run", "--file", "src/**", "it's"]);
        command.env("TIDEGATE_TRACES", "300").env("CARGO_TARGET_DIR", "/cache").env_remove("HOME");

        assert_eq!(describe(&command), r"TIDEGATE_TRACES=300 cargo run --file 'src/**' 'it'\''s'");
    }

    #[test]
    fn a_variable_that_is_set_keeps_its_value() {
        let mut command = Command::new("cargo");

        set_unless_set(&mut command, "PATH", "nowhere");
        set_unless_set(&mut command, "TIDEGATE_NOBODY_SETS_THIS", "1");

        assert_eq!(describe(&command), "TIDEGATE_NOBODY_SETS_THIS=1 cargo");
    }

    #[test]
    fn output_that_is_kept_is_shown_as_well() {
        let mut shown = Vec::new();
        let kept = copy_and_keep(b"first\nsecond".as_slice(), &mut shown).unwrap();

        assert_eq!(kept, b"first\nsecond");
        assert_eq!(shown, kept);
    }

    #[test]
    fn a_child_that_fails_is_a_failure_even_if_its_output_is_kept() {
        let shell = |script: &str| succeed_and_keep(Command::new("sh").args(["-c", script]), io::sink());

        assert_eq!(shell("echo well").unwrap(), "well\n");
        assert!(shell("echo badly; exit 3").unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn steps_after_a_failed_one_do_not_run() {
        let failing = Step { name: "first", work: || Err(Failure::new("broken")) };
        let unreached = Step { name: "second", work: || unreachable!("the first step failed") };

        let failure = steps(&[failing, unreached]).unwrap_err();

        assert_eq!(failure.to_string(), "first: broken");
    }

    #[test]
    fn the_table_ends_with_the_sum() {
        let table =
            [("fmt", Duration::from_millis(1_500), "ok"), ("tidy", Duration::from_millis(700), "FAILED")];

        let text = render(&table);

        assert_eq!(text.lines().last(), Some("total           2.2"));
        assert!(text.contains("tidy            0.7  FAILED\n"), "{text}");
    }
}
