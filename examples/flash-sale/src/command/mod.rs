//! The program and its arguments.

mod audit;
mod rush;
mod serve;
mod values;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The default database of `serve` and `audit`.
const USUAL_DATABASE: &str = "sqlite:flash-sale.db";

/// An error of the program, as text for the terminal.
type Failed = Box<dyn Error + Send + Sync>;

/// A small shop that never oversells, with a rate limiter in front of it.
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

/// Runs the command of the arguments. Exits with 0 on success, with 1 if the books are wrong, with 2 if it failed.
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
    // Pending tasks are not awaited.
    runtime.shutdown_background();
    done.unwrap_or_else(|error| failed(&*error))
}

fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("flash-sale: {error}");
    ExitCode::from(2)
}
