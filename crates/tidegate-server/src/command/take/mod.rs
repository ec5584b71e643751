//! `tidegate take`: takes from a limit on a running server.
//!
//! A shell script can use the exit code: `tidegate take backup --limit 1/h && ./backup.sh`. The command sends one
//! `TG.TAKE` over RESP.

mod client;
mod decision;
mod reply;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tidegate_rules::parse_limit;
use tidegate_support::{ceil_ms, duration};

use super::failure::Failure;
use super::output::print_line;
use super::ruled::DENIED;
use super::server::token;
use decision::DecisionReply;
use reply::RespReply;

/// The long help text.
const ABOUT: &str = "\
Take from a limit on a running server

Exits with 0 if the request is allowed, with 3 if it is denied, with 1 if no server replies, with 2 if the request is invalid. \
If the server requires a token, it is read from TIDEGATE_TOKEN, or from the file of --token-file.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate take user123 --limit \"30/60s burst 15\"
  tidegate take user123 --limit \"5/60s sliding-log\" --cost 2 --json
  tidegate take backup --limit 1/h && ./backup.sh";

/// Take from a limit on a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Take {
    /// Key to count by: any text
    key: OsString,
    /// Limit, as in "10/s burst 20" or "5/60s sliding-log"
    #[arg(long, value_name = "TEXT")]
    limit: String,
    /// Cost of the request
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,
    /// Longest acceptable delay, as in 500ms [default: none]
    #[arg(long, value_name = "TIME")]
    max_wait: Option<String>,
    /// RESP address of the server
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_RESP", hide_env_values = true, default_value = DEFAULT_SERVER)]
    server: String,
    /// File with the token of the server
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// Print the reply as JSON
    #[arg(long)]
    json: bool,
}

/// The address that `tidegate serve` listens on by default.
const DEFAULT_SERVER: &str = "127.0.0.1:6380";

impl Take {
    /// Runs the command. A denial is not an error: it has an exit code of its own.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let take = self.request()?;
        let token = token::read(self.token_file.clone())?;
        let server = if self.server.is_empty() { DEFAULT_SERVER } else { &self.server };
        let decision =
            DecisionReply::read(client::ask(server, token.as_ref().map(|token| &*token.secret), &take)?)?;
        if self.json {
            print_line(serde_json::to_string(&decision).expect("numbers and text are JSON"));
        } else {
            print_line(&decision);
        }
        Ok(if decision.allowed { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
    }

    /// Returns the words of `TG.TAKE`. An invalid limit is rejected here, before the server is called.
    fn request(&self) -> Result<Vec<Vec<u8>>, Failure> {
        parse_limit(&self.limit)?;
        let mut words = vec![b"TG.TAKE".to_vec(), self.key.as_bytes().to_vec()];
        let mut add = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        add("LIMIT", &self.limit);
        add("COST", &self.cost.to_string());
        if let Some(text) = &self.max_wait {
            let wrong = |what| Failure::misused(format!("--max-wait {text:?}: {what}"));
            add("MAXWAIT", &ceil_ms(duration(text).map_err(wrong)?).to_string());
        }
        Ok(words)
    }
}
