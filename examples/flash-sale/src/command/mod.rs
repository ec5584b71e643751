//! The program: what may be written after its name.

mod audit;
mod rush;
mod serve;
mod values;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The database of `serve` and `audit`, unless another is named.
const USUAL_DATABASE: &str = "sqlite:flash-sale.db";

/// What went wrong, in words for whoever sits at the terminal.
type Failed = Box<dyn Error + Send + Sync>;

/// A small shop that never oversells, and what a limiter in front of it is worth.
///
/// Without arguments it opens a shop at 127.0.0.1:8080, on SQLite in ./flash-sale.db.
#[derive(Debug, Parser)]
#[command(name = "flash-sale", version)]
struct Program {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::ServeArguments>),
    Rush(Box<harness::sale::rush::Arguments>),
    Audit(audit::AuditArguments),
}

/// Does what the arguments say; 0 if it is well, 1 if something is wrong with the books, 2 if it could not be done.
pub fn main() -> ExitCode {
    let command = Program::parse().command;
    let command = command.or_else(|| Program::parse_from(["flash-sale", "serve"]).command);
    let Some(command) = command else { return ExitCode::from(2) };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let done = runtime.block_on(async {
        match command {
            Command::Serve(arguments) => serve::run(*arguments).await,
            Command::Rush(arguments) => rush::run(*arguments).await,
            Command::Audit(arguments) => audit::run(arguments).await,
        }
    });
    // Whatever still waits for somebody is not waited for.
    runtime.shutdown_background();
    done.unwrap_or_else(|error| failed(&*error))
}

fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("flash-sale: {error}");
    ExitCode::from(2)
}
