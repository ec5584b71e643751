//! Every check of the repository, the cheap ones first; stops at the first that fails and changes no file of it.

use std::process::Command;

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::run::{Step, steps, succeed, succeed_quietly};
use crate::tidy;
use crate::workspace::{cargo, files, has_cargo_tool, root, target_folder};
use crate::{clients, models, packages};

const STEPS: [Step; 12] = [
    Step { name: "fmt", work: format },
    Step { name: "tidy", work: tidy::check },
    Step { name: "clippy", work: clippy },
    Step { name: "clients", work: clients::prepare },
    Step { name: "tests", work: tests },
    Step { name: "doctests", work: doctests },
    Step { name: "models", work: || models::models(&[]) },
    Step { name: "examples", work: examples },
    Step { name: "miri", work: || models::miri(&[]) },
    Step { name: "docs", work: docs },
    Step { name: "packages", work: packages::packages },
    Step { name: "deny", work: deny },
];

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("test", arguments)?;
    steps(&STEPS)
}

fn format() -> Result<(), Failure> {
    succeed(&mut cargo(&["fmt", "--all", "--check"])?)
}

fn clippy() -> Result<(), Failure> {
    succeed(&mut cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--",
        "-D",
        "warnings",
    ])?)
}

fn tests() -> Result<(), Failure> {
    if has_cargo_tool("nextest")? {
        return succeed(&mut cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--all-features",
            "--locked",
            "--no-fail-fast",
        ])?);
    }
    println!("nextest: not installed, skipped; using cargo test");
    succeed(&mut cargo(&["test", "--workspace", "--all-features", "--locked", "--lib", "--bins", "--tests"])?)
}

fn doctests() -> Result<(), Failure> {
    succeed(&mut cargo(&["test", "--workspace", "--all-features", "--locked", "--doc"])?)
}

fn examples() -> Result<(), Failure> {
    // All at once, on every core and with the dependencies that the tests have; then each is only run.
    succeed(&mut cargo(&["build", "--workspace", "--all-features", "--locked", "--examples"])?)?;
    let built = target_folder()?.join("debug/examples");
    for name in files()?.iter().filter_map(|path| example(path)) {
        println!("example {name}");
        succeed_quietly(Command::new(built.join(name)).current_dir(root()))?;
    }
    Ok(())
}

/// The name of the example that a path of the form `crates/*/examples/*.rs` holds.
fn example(path: &str) -> Option<&str> {
    let (folder, file) = path.split_once("/examples/")?;
    let name = file.strip_suffix(".rs")?;
    let package = folder.strip_prefix("crates/")?;
    (!package.contains('/') && !name.contains('/')).then_some(name)
}

fn docs() -> Result<(), Failure> {
    succeed(
        cargo(&["doc", "--workspace", "--all-features", "--no-deps", "--locked"])?
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Checks licences, bans and sources of all dependencies, where cargo-deny is installed.
fn deny() -> Result<(), Failure> {
    if !has_cargo_tool("deny")? {
        println!("cargo-deny: not installed, skipped");
        return Ok(());
    }
    succeed(&mut cargo(&["deny", "--locked", "check", "licenses", "bans", "sources"])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_the_direct_files_of_a_crate_s_examples_folder() {
        assert_eq!(example("crates/tidegate-core/examples/first.rs"), Some("first"));

        assert_eq!(example("crates/tidegate-core/examples/first/part.rs"), None);
        assert_eq!(example("crates/tidegate-core/examples/data.csv"), None);
        assert_eq!(example("examples/flash-sale/src/main.rs"), None);
        assert_eq!(example("crates/tidegate-core/src/examples.rs"), None);
    }
}
