//! `flash-sale`: the shop, the crowd, and the audit of the books.

use std::process::ExitCode;

fn main() -> ExitCode {
    flash_sale::command::main()
}
