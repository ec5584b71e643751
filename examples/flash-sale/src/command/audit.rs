//! `flash-sale audit`: checks the books of all sales.

use std::process::ExitCode;

use clap::Args;

use super::{Failed, USUAL_DATABASE};
use crate::database::{Database, Dialect};

/// Checks the invariants of the books: no piece sold twice, no order without a sale, no payment without an order.
///
/// Prints one line of JSON for each finding. Exits with 0 if there is none, with 1 if there is one.
#[derive(Args, Debug)]
pub(super) struct AuditArguments {
    /// The database of the shop: sqlite:FILE, postgres://… or mysql://…
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

/// Returns a URL that fails if the file is missing, because a missing file is a mistake, not a shop with correct books.
fn existing(url: String) -> String {
    if Dialect::of(&url) != Some(Dialect::Sqlite) || url.contains("mode=") {
        return url;
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}mode=rw")
}
