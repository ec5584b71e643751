//! The binary `tidegate`.

use std::process::ExitCode;

/// An allocator that returns memory to the operating system after many connections have closed.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    tidegate_server::command::run()
}
