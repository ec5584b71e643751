//! Every check of the repository, the cheap ones first; stops at the first that fails and changes no file of it.

use std::fs;
use std::process::Command;

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::run::{Step, steps, succeed, succeed_quietly};
use crate::tidy;
use crate::workspace::{cargo, files, has_cargo_tool, root, target_folder};
use crate::{clients, models};

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
    Step { name: "packages", work: packages },
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
    succeed(&mut cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])?)
}

fn tests() -> Result<(), Failure> {
    if has_cargo_tool("nextest")? {
        return succeed(&mut cargo(&["nextest", "run", "--workspace", "--locked", "--no-fail-fast"])?);
    }
    println!("nextest: not installed, skipped; using cargo test");
    succeed(&mut cargo(&["test", "--workspace", "--locked", "--lib", "--bins", "--tests"])?)
}

fn doctests() -> Result<(), Failure> {
    succeed(&mut cargo(&["test", "--workspace", "--locked", "--doc"])?)
}

fn examples() -> Result<(), Failure> {
    // All at once, on every core and with the dependencies that the tests have; then each is only run.
    succeed(&mut cargo(&["build", "--locked", "--examples", "--workspace"])?)?;
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
    succeed(cargo(&["doc", "--workspace", "--no-deps", "--locked"])?.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Packages every published crate and compiles it from its package, as a registry would.
fn packages() -> Result<(), Failure> {
    let mut command = cargo(&["package", "--workspace", "--locked", "--allow-dirty"])?;
    for manifest in files()?.iter().filter(|path| path.ends_with("/Cargo.toml")) {
        let place = root().join(manifest);
        let text = fs::read_to_string(&place).map_err(Failure::at(&place))?;
        if let Some(name) = unpublished(&text) {
            command.args(["--exclude", name]);
        }
    }
    succeed(&mut command)
}

/// Checks licences, bans and sources of all dependencies, where cargo-deny is installed.
fn deny() -> Result<(), Failure> {
    if !has_cargo_tool("deny")? {
        println!("cargo-deny: not installed, skipped");
        return Ok(());
    }
    succeed(&mut cargo(&["deny", "--locked", "check", "licenses", "bans", "sources"])?)
}

/// Returns the name of a package of the workspace that is not published.
fn unpublished(manifest: &str) -> Option<&str> {
    let is_published = !manifest.lines().any(|line| line == "publish = false");
    let is_member = !manifest.lines().any(|line| line == "[workspace]");
    let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    name.filter(|_| is_member && !is_published)
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

    #[test]
    fn packages_leave_out_what_is_not_published() {
        assert_eq!(unpublished("[package]\nname = \"bench\"\npublish = false\n"), Some("bench"));
        assert_eq!(unpublished("[package]\nname = \"tidegate\"\n"), None);
        let apart = "[package]\nname = \"tidegate-fuzz\"\npublish = false\n[workspace]\n";
        assert_eq!(unpublished(apart), None, "it is no member of the workspace");
    }
}
