//! The program and its arguments.

mod serve;
pub(crate) mod values;

use std::env;
use std::error::Error;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use harness::Folder;
use harness::sale::rush;

use crate::database::{Database, in_mode};
use crate::strategy::Strategy;

/// An error of the program, as text for the terminal.
type Failed = Box<dyn Error + Send + Sync>;

/// The number of connections of `rush`, which makes few queries itself.
const CONNECTIONS: u32 = 2;

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
    /// Opens a shop with one sale, and prints the addresses of the buyers' and the shopkeeper's page.
    Serve(Box<serve::ServeArguments>),
    Rush(Box<rush::Arguments>),
    /// Checks the invariants of the books: no piece sold twice, no order without a sale, no payment without an order.
    ///
    /// Prints one line of JSON for each finding. Exits with 0 if there is none, with 1 if there is one.
    Audit(DatabaseArgument),
}

/// The database of a command.
#[derive(Args, Debug)]
struct DatabaseArgument {
    /// The database of the shop: sqlite:FILE, postgres://… or mysql://…
    #[arg(
        long,
        env = "DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        default_value = "sqlite:flash-sale.db"
    )]
    database: String,
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
            Command::Rush(arguments) => run_rush(*arguments).await,
            Command::Audit(books) => audit(&books).await,
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

async fn audit(books: &DatabaseArgument) -> Result<ExitCode, Failed> {
    // A missing file is a mistake, not a shop with correct books.
    let database = Database::open(&in_mode(&books.database, "rw"), 1).await?;
    let findings = database.audit().await?;
    database.close().await;
    for finding in &findings {
        println!("{}", serde_json::to_string(finding)?);
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a crowd of buyers once per strategy, with and without the limiter; the exit code reports whether every safe
/// strategy kept its books correct.
async fn run_rush(arguments: rush::Arguments) -> Result<ExitCode, Failed> {
    // It is removed afterwards.
    let folder = Folder::new("flash-sale-rush");
    let plan = arguments.plan(env::current_exe()?, &folder, &strategies(&arguments.strategy)?);
    let database = Database::open(&plan.database, CONNECTIONS).await?;
    let done = tokio::select! {
        done = arguments.run(&plan, &database) => done?,
        // Dropping the run stops the open shop, and the folder is removed.
        () = serve::shutdown_signal()? => {
            return Err("rush: it was ended before it was over; nothing was written".into());
        }
    };
    database.close().await;
    Ok(done)
}

/// Returns the strategies with these names.
fn strategies(names: &str) -> Result<Vec<&'static str>, String> {
    if names == "all" {
        return Ok(Strategy::ALL.map(Strategy::name).to_vec());
    }
    let mut strategies = Vec::new();
    for name in names.split(',') {
        let strategy: Strategy = name.trim().parse().map_err(|wrong| format!("{wrong}, or all"))?;
        if !strategies.contains(&strategy.name()) {
            strategies.push(strategy.name());
        }
    }
    Ok(strategies)
}
