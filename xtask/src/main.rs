//! The repository's own commands, run as `cargo xtask COMMAND`.
//!
//! `test` only reads and `fix` only writes; everything that takes minutes is a command of its own.
//! There are two small dependencies, so the first run costs seconds.
//! Exit codes: 0 all is well, 1 something failed, 2 the command line was not understood.

mod arguments;
mod book;
mod clients;
mod failure;
mod fix;
mod fuzz;
mod models;
mod mutants;
mod packages;
mod plant;
mod programs;
mod run;
mod soak;
mod suggest;
mod test;
mod tidy;
mod workspace;

use std::env;
use std::process::ExitCode;

use failure::Failure;

/// One command: how it is called, what it is for, and what it does.
struct Task {
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const TASKS: [Task; 13] = [
    Task { name: "test", arguments: "", summary: "all checks and tests; only reads", run: test::run },
    Task {
        name: "fix",
        arguments: "",
        summary: "formats and applies clippy's fixes; only writes",
        run: fix::run,
    },
    Task {
        name: "tidy",
        arguments: "",
        summary: "the repository's own rules: marks, layers, dependencies, names, whitespace",
        run: tidy::run,
    },
    Task {
        name: "clients",
        arguments: "",
        summary: "gets the clients of others that the server is tested with; `test` does so, too",
        run: clients::run,
    },
    Task {
        name: "book",
        arguments: "",
        summary: "builds the documentation as a book, with mdbook, and checks all of its links",
        run: book::run,
    },
    Task {
        name: "soak",
        arguments: "[--traces N] [--seed S]",
        summary: "the oracle, law and hammer tests with N random traces each (default 1000000)",
        run: soak::run,
    },
    Task {
        name: "models",
        arguments: "[-- ARGS]",
        summary: "the loom models, every order in which threads can meet; ARGS go to the test program",
        run: models::models,
    },
    Task {
        name: "miri",
        arguments: "[-- ARGS]",
        summary: "the unit tests under miri, if nightly has it; ARGS go to the test program",
        run: models::miri,
    },
    Task {
        name: "fuzz",
        arguments: "[TARGET] [SECONDS]",
        summary: "feeds bytes that nobody thought of to what reads files and sockets (default 60), with cargo-fuzz",
        run: fuzz::run,
    },
    Task {
        name: "plant",
        arguments: "[WORD|NUMBER|N..M]...",
        summary: "plants each known fault (or those so named) in a copy; its tests must turn red",
        run: plant::run,
    },
    Task {
        name: "mutants",
        arguments: "[-- ARGS]",
        summary: "mutates what decides, keeps, waits and admits with cargo-mutants; ARGS go to it",
        run: mutants::run,
    },
    Task {
        name: "bench",
        arguments: "[NAME [ARGS]]",
        summary: "runs one benchmark in release mode; without NAME lists them",
        run: programs::bench,
    },
    Task {
        name: "drill",
        arguments: "[NAME [--scale F] [--seed S] [--rounds|--times|--seconds N] [--part NAME]]",
        summary: "runs one drill in release mode, all of it or a part (default 1.0); without NAME lists them",
        run: programs::drill,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(arguments: &[String]) -> Result<(), Failure> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", help());
        return Ok(());
    };
    if is_help(name) || name == "help" {
        print!("{}", help());
        return Ok(());
    }
    let task = TASKS.iter().find(|task| task.name == name).ok_or_else(|| unknown(name))?;
    if rest.iter().take_while(|argument| *argument != "--").any(|argument| is_help(argument)) {
        println!("{}\n\nusage: {}", task.summary, task.usage());
        return Ok(());
    }
    (task.run)(rest)
}

impl Task {
    fn usage(&self) -> String {
        format!("cargo xtask {} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "--help" | "-h")
}

fn help() -> String {
    let mut text = String::from("The repository's own commands.\n\nusage: cargo xtask COMMAND [ARGS]\n\n");
    for task in &TASKS {
        let call = format!("{} {}", task.name, task.arguments);
        text.push_str(&format!("  {call:<36} {}\n", task.summary));
    }
    text.push_str("\nBefore a commit: cargo xtask fix, then cargo xtask test.\n");
    text
}

fn unknown(name: &str) -> Failure {
    let closest = suggest::closest(name, TASKS.iter().map(|task| task.name)).unwrap_or("--help");
    Failure::usage(format!(
        "unknown command \"{name}\"; did you mean \"{closest}\"? `cargo xtask --help` lists them all"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_has_one_line_for_each_command() {
        let help = help();
        for task in &TASKS {
            let starts = |line: &&str| line.starts_with(&format!("  {} ", task.name));
            assert_eq!(help.lines().filter(starts).count(), 1, "{}", task.name);
        }
    }

    #[test]
    fn an_unknown_command_is_a_usage_error_that_names_the_closest() {
        let failure = dispatch(&["mutant".to_owned()]).unwrap_err();

        assert_eq!(failure.code(), 2);
        assert!(failure.to_string().contains("did you mean \"mutants\"?"), "{failure}");
    }
}
