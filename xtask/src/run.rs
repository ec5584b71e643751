//! Runs children and named steps, and says how long each took.

use std::process::{Command, Output};
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
    if status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("{} ended with {status}", describe(command))))
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
    Err(Failure::new(format!("{} ended with {}", describe(command), output.status)))
}

/// Runs a child and keeps its output, whatever its exit code.
pub(crate) fn output(command: &mut Command) -> Result<Output, Failure> {
    command.output().map_err(|error| not_started(command, &error))
}

/// A failure for a child that could not be started at all.
pub(crate) fn not_started(command: &Command, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot start {}: {error}", describe(command)))
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
