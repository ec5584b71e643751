//! Feeds bytes that nobody thought of to what reads bytes: the targets in `fuzz/`, with cargo-fuzz.
//!
//! The fuzzer needs nightly and a compiler for C++, which nobody needs for anything else here. What it has found
//! to be interesting stays in the target folder, so that the next run begins with it, and with what is in
//! `fuzz/seeds`; what made a target fail is in `fuzz/artifacts`, and cargo-fuzz says how to run it again.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::failure::Failure;
use crate::run::{describe, succeed};
use crate::workspace::{has_cargo_tool, has_nightly_tool, nightly_cargo, root, target_folder};

/// What is fuzzed, one after the other.
const TARGETS: [Target; 7] = [
    Target { name: "zone_header", words: None },
    Target { name: "state_file", words: None },
    Target { name: "resp_parse", words: Some("resp.txt") },
    Target { name: "resp_session", words: Some("resp.txt") },
    Target { name: "resp_split", words: Some("resp.txt") },
    Target { name: "http_body", words: Some("http.txt") },
    Target { name: "policy", words: Some("policy.txt") },
];

/// Something that reads bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    name: &'static str,
    /// The file in `fuzz/dictionaries` with what its inputs are made of.
    words: Option<&'static str>,
}

/// For how long, each.
const SECONDS: u64 = 60;

/// The longest input: some more than the page that a zone's header has.
const MAX_BYTES: &str = "-max_len=5000";

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let (targets, seconds) = parse(arguments)?;
    require_tools(has_cargo_tool("fuzz")?, || has_nightly_tool("fuzz"))?;
    let folder = target_folder()?.join("fuzz");
    for target in targets {
        let corpus = folder.join("corpus").join(target.name);
        fs::create_dir_all(&corpus).map_err(Failure::at(&corpus))?;
        let mut command = command(target, seconds, &folder)?;
        println!("{}", describe(&command));
        succeed(&mut command)?;
    }
    Ok(())
}

/// `[TARGET] [SECONDS]`: which targets, and for how long each.
fn parse(arguments: &[String]) -> Result<(Vec<Target>, u64), Failure> {
    let (named, rest) = match arguments.split_first() {
        Some((name, rest)) if !name.starts_with(|first: char| first.is_ascii_digit()) => (Some(name), rest),
        _ => (None, arguments),
    };
    let targets: Vec<_> =
        TARGETS.into_iter().filter(|target| named.is_none_or(|name| target.name == name)).collect();
    if let (true, Some(name)) = (targets.is_empty(), named) {
        let known = TARGETS.map(|target| target.name).join(", ");
        return Err(Failure::usage(format!(
            "\"{name}\" is neither a target nor a number of seconds; targets are {known}"
        )));
    }
    match rest {
        [] => Ok((targets, SECONDS)),
        [seconds] => match seconds.parse() {
            Ok(seconds @ 1..) => Ok((targets, seconds)),
            _ => Err(Failure::usage(format!("\"{seconds}\" is not a number of seconds; write `fuzz 60`"))),
        },
        [_, second, ..] => Err(Failure::usage(format!(
            "`fuzz` takes a target and a number of seconds, but also got \"{second}\""
        ))),
    }
}

fn require_tools(has_fuzz: bool, has_nightly: impl Fn() -> Result<bool, Failure>) -> Result<(), Failure> {
    if !has_fuzz {
        return Err(Failure::new("cargo-fuzz is not installed; `cargo install --locked cargo-fuzz`"));
    }
    if !has_nightly()? {
        let remedy = "`rustup toolchain install nightly --profile minimal`";
        return Err(Failure::new(format!("nightly is not installed, which cargo-fuzz needs; {remedy}")));
    }
    Ok(())
}

fn command(target: Target, seconds: u64, folder: &Path) -> Result<Command, Failure> {
    let mut command = nightly_cargo(&["fuzz", "run", target.name])?;
    command.arg(folder.join("corpus").join(target.name));
    let seeds = Path::new("fuzz/seeds").join(target.name);
    command.args(root().join(&seeds).is_dir().then_some(seeds)).args(["--", MAX_BYTES]);
    command.args(target.words.map(|words| format!("-dict=fuzz/dictionaries/{words}")));
    command.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    command.env("CARGO_TARGET_DIR", folder);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(line: &str) -> Result<(Vec<&'static str>, u64), Failure> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|(targets, seconds)| (targets.iter().map(|target| target.name).collect(), seconds))
    }

    #[test]
    fn all_for_a_minute_unless_told() {
        let all = TARGETS.map(|target| target.name).to_vec();
        assert_eq!(parse_words("").unwrap(), (all.clone(), 60));
        assert_eq!(parse_words("5").unwrap(), (all, 5));
        assert_eq!(parse_words("resp_split").unwrap(), (vec!["resp_split"], 60));
        assert_eq!(parse_words("resp_split 600").unwrap(), (vec!["resp_split"], 600));
    }

    #[test]
    fn what_is_neither_a_target_nor_a_number_of_seconds_is_a_usage_error() {
        for line in [
            "0",
            "-1",
            "1.5",
            "long",
            "5 6",
            "resp",
            "resp_split 0",
            "resp_split x",
            "resp_split 5 6",
            "5 resp_split",
        ] {
            assert_eq!(parse_words(line).unwrap_err().code(), 2, "{line}");
        }
    }

    #[test]
    fn what_is_missing_is_named_with_its_remedy() {
        let words = |has_fuzz, has_nightly| {
            require_tools(has_fuzz, || Ok(has_nightly)).map_err(|failure| failure.to_string())
        };
        assert_eq!(words(true, true), Ok(()));
        assert!(words(false, true).unwrap_err().contains("cargo install --locked cargo-fuzz"));
        assert!(words(true, false).unwrap_err().contains("rustup toolchain install nightly"));
    }

    #[test]
    fn targets_run_for_the_time_and_keep_what_they_found_out_of_the_checkout() {
        let described = |target| describe(&command(target, 5, Path::new("/folder")).unwrap());

        let run = "cargo +nightly fuzz run zone_header /folder/corpus/zone_header";
        let rest = "-max_total_time=5 -print_final_stats=1";
        assert_eq!(described(TARGETS[0]), format!("{run} -- -max_len=5000 {rest}"));
        let run = "cargo +nightly fuzz run resp_parse /folder/corpus/resp_parse";
        let words = "-dict=fuzz/dictionaries/resp.txt";
        assert_eq!(described(TARGETS[2]), format!("{run} -- -max_len=5000 {words} {rest}"));
        let run = "cargo +nightly fuzz run policy /folder/corpus/policy fuzz/seeds/policy";
        let words = "-dict=fuzz/dictionaries/policy.txt";
        assert_eq!(described(TARGETS[6]), format!("{run} -- -max_len=5000 {words} {rest}"));
    }

    #[test]
    fn every_target_has_its_files() {
        let root = root();
        for Target { name, words } in TARGETS {
            let words = words.map(|words| root.join("fuzz/dictionaries").join(words));
            for path in words.into_iter().chain([root.join(format!("fuzz/fuzz_targets/{name}.rs"))]) {
                assert!(path.is_file(), "{}", path.display());
            }
        }
    }
}
