//! `flash-sale rush`: a crowd of buyers, once per strategy with and without the limiter.

use std::env;
use std::process::ExitCode;

use harness::Folder;
use harness::sale::rush::Arguments;

use super::Failed;
use super::serve::told_to_end;
use crate::database::Database;
use crate::strategy::Strategy;

/// The number of connections of the load generator, which makes few queries.
const CONNECTIONS: u32 = 2;

/// Runs the rush; the exit code reports whether every safe strategy kept its books correct.
pub(super) async fn run(arguments: Arguments) -> Result<ExitCode, Failed> {
    // It is removed afterwards.
    let folder = Folder::new("flash-sale-rush");
    let plan = arguments.plan(env::current_exe()?, &folder, &strategies(&arguments.strategy)?);
    let database = Database::open(&plan.database, CONNECTIONS).await?;
    let done = tokio::select! {
        done = arguments.run(&plan, &database) => done?,
        // Dropping the run stops the open shop, and the folder is removed.
        () = told_to_end()? => return Err("rush: it was ended before it was over; nothing was written".into()),
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
