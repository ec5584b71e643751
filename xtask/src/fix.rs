//! Repairs what a machine can repair: formatting first, then the fixes that clippy is sure of.

use crate::arguments::no_arguments;
use crate::failure::Failure;
use crate::run::succeed;
use crate::workspace::cargo;

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("fix", arguments)?;
    succeed(&mut cargo(&["fmt", "--all"])?)?;
    let clippy = ["clippy", "--fix", "--workspace", "--all-targets", "--allow-dirty", "--allow-staged"];
    succeed(&mut cargo(&clippy)?)
}
