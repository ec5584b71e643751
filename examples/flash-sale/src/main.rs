//! `flash-sale`: the shop, the load generator, and the audit of the books.

use std::process::ExitCode;

fn main() -> ExitCode {
    flash_sale::command::main()
}
