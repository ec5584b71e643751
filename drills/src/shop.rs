//! The shop of the examples as a program that is built with the drills, so that they never meet an older one.

use std::process::ExitCode;

fn main() -> ExitCode {
    ::flash_sale::command::main()
}
