//! `flash-sale audit`: are the books right?

use std::process::ExitCode;

use clap::Args;

use super::{Failed, USUAL_DATABASE};
use crate::database::{Database, Dialect};

/// Looks for everything that may never be: pieces sold twice, orders without a sale, payments without an order.
///
/// Prints one line of JSON for each finding. Ends with 0 if there is none, with 1 if there is one.
#[derive(Args, Debug)]
pub(super) struct AuditArguments {
    /// Where the shop keeps its books: sqlite:FILE, postgres://… or mysql://…
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL", default_value = USUAL_DATABASE)]
    database: String,
}

pub(super) async fn run(arguments: AuditArguments) -> Result<ExitCode, Failed> {
    let database = Database::open(&existing(arguments.database), 1).await?;
    let findings = database.audit().await?;
    database.close().await;
    for finding in &findings {
        println!("{}", serde_json::to_string(finding)?);
    }
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A file that is not there is a mistake, and no shop whose books are right.
fn existing(url: String) -> String {
    if Dialect::of(&url) != Some(Dialect::Sqlite) || url.contains("mode=") {
        return url;
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}mode=rw")
}
