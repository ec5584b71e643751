//! The binary `tidegate`.

use std::process::ExitCode;

/// It gives memory back to the system after a crowd of connections has left.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegate_server::command::run()
}
