//! The oracle, law and hammer tests for as long as one likes: the same tests as always, with more random traces.

use std::process::Command;

use crate::failure::Failure;
use crate::run::{describe, succeed};
use crate::workspace::cargo;

#[derive(Debug, PartialEq)]
struct Options {
    traces: u64,
    seed: Option<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let mut command = command(&parse(arguments)?)?;
    println!("{}", describe(&command));
    succeed(&mut command)
}

fn command(options: &Options) -> Result<Command, Failure> {
    let mut command = cargo(&["test", "--release", "-p", "tidegate-core", "--test", "it"])?;
    command.args(["--", "oracle", "laws", "hammer", "--nocapture", "--test-threads", "2"]);
    command.env("TIDEGATE_TRACES", options.traces.to_string());
    if let Some(seed) = &options.seed {
        command.env("TIDEGATE_SEED", seed);
    }
    Ok(command)
}

fn parse(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options { traces: 1_000_000, seed: None };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (name, attached) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        if !matches!(name, "--traces" | "--seed") {
            return Err(Failure::usage(format!(
                "unknown option \"{argument}\"; write --traces N or --seed S"
            )));
        }
        let value = attached.or_else(|| rest.next().cloned());
        let value = value.ok_or_else(|| Failure::usage(format!("{name} needs a value")))?;
        match name {
            "--traces" => options.traces = whole_number(&value)?,
            _ => options.seed = Some(value),
        }
    }
    Ok(options)
}

fn whole_number(text: &str) -> Result<u64, Failure> {
    let digits = text.replace('_', "");
    digits.parse().map_err(|_| Failure::usage(format!("--traces \"{text}\" is not a whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<Options, Failure> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_million_traces_and_no_seed_unless_told() {
        assert_eq!(parse_words("").unwrap(), Options { traces: 1_000_000, seed: None });
    }

    #[test]
    fn oracles_laws_and_hammers_run_with_the_options() {
        let described = describe(&command(&parse_words("--traces 5 --seed 7").unwrap()).unwrap());

        let program = "cargo test --release -p tidegate-core --test it";
        let filters = "-- oracle laws hammer --nocapture --test-threads 2";
        assert_eq!(described, format!("TIDEGATE_SEED=7 TIDEGATE_TRACES=5 {program} {filters}"));
    }

    #[test]
    fn options_may_be_attached_or_apart() {
        let expected = Options { traces: 5_000, seed: Some("7".to_owned()) };
        assert_eq!(parse_words("--traces 5_000 --seed=7").unwrap(), expected);
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["--traces", "--traces many", "--trace 5", "5"] {
            assert_eq!(parse_words(line).unwrap_err().code(), 2, "{line}");
        }
    }
}
