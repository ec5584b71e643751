//! `tidegate top`: the heaviest keys of a running server, once or live.
//!
//! On a terminal the list is refreshed until the command is interrupted. Anywhere else, and with `--once` or `--json`,
//! it is printed once.

use std::io::{IsTerminal as _, stdout};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tidegate_support::positive;

use super::failure::Failure;
use super::output::{print, print_line};
use super::server::{CalledServer, ServerRequest};
use super::table::Table;

/// The long help text.
const ABOUT: &str = "\
Show the heaviest keys of a running server

Lists the keys with the most denials, or with the most requests, in the last one to two minutes: keys of rules, and of limits that \
came with requests, which have no rule. The counts are estimates, and can be too high by the number in the last column. On a terminal \
the list is refreshed until it is interrupted.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate top
  tidegate top --rule login --by asked
  tidegate top --once -n 50
  tidegate top --json | jq -r '.keys[0].key[0]'";

/// Moves to the upper left corner, and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Show the heaviest keys of a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Top {
    /// Rule to list keys of [default: all rules, and limits that came with requests]
    #[arg(long)]
    rule: Option<String>,
    /// Number to sort by
    #[arg(long, value_name = "NUMBER", default_value = "denied")]
    by: SortBy,
    /// Number of keys, up to 100
    #[arg(short, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=100))]
    n: u64,
    /// Time between two refreshes
    #[arg(long, value_name = "TIME", default_value = "2s")]
    every: String,
    /// Print the list once
    #[arg(long)]
    once: bool,
    /// Print the list once as JSON, like `GET /v1/top`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: CalledServer,
}

/// The number that the list is sorted by.
#[derive(Clone, Copy, ValueEnum)]
enum SortBy {
    /// Denials
    Denied,
    /// Requests
    Asked,
}

impl Top {
    /// Runs the command. Live it ends with an error, or when it is interrupted.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let every = positive(&self.every)
            .map_err(|what| Failure::misused(format!("--every {:?}: {what}", self.every)))?;
        let path = self.path();
        if self.once || self.json || !stdout().is_terminal() {
            let reply = self.server.call(ServerRequest::get(&path))?;
            print_line(if self.json { reply.text } else { shown(&reply.json) });
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            let reply = self.server.call(ServerRequest::get(&path))?;
            print(format!("{CLEAR}{}\n", shown(&reply.json)).as_bytes());
            pause(every);
        }
    }

    /// Returns the path with its query.
    fn path(&self) -> String {
        let by = match self.by {
            SortBy::Denied => "denied",
            SortBy::Asked => "asked",
        };
        let rule = self.rule.as_deref().map_or(String::new(), |rule| format!("&rule={}", encoded(rule)));
        format!("/v1/top?n={}&by={by}{rule}", self.n)
    }
}

/// Returns text in the form of a query: other bytes than letters and digits are encoded.
fn encoded(text: &str) -> String {
    let each = text.bytes().map(|byte| match byte {
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02x}"),
    });
    each.collect()
}

#[expect(clippy::disallowed_methods, reason = "a person watches the list")]
fn pause(every: Duration) {
    std::thread::sleep(every);
}

/// Returns the list as a table.
fn shown(reply: &Value) -> String {
    let keys = reply["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() {
        return "no requests in the last minute".to_owned();
    }
    let mut table = Table::new(["RULE", "KEY", "ASKED", "DENIED", "ERROR"]);
    for key in keys {
        let parts = key["key"].as_array().map_or(&[][..], Vec::as_slice).iter();
        let parts: Vec<_> = parts.filter_map(Value::as_str).collect();
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        table.row([
            dash(key["rule"].as_str().unwrap_or_default()),
            dash(&parts.join(" ")),
            key["asked"].to_string(),
            key["denied"].to_string(),
            key["error"].to_string(),
        ]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_a_line_and_one_without_a_rule_or_parts_has_a_dash() {
        let reply = json!({"keys": [
            {"rule": "login", "key": ["ana", "192.0.2.7"], "asked": 12, "denied": 9, "error": 0},
            {"rule": null, "key": ["user123"], "asked": 3, "denied": 1, "error": 1},
            {"rule": "site", "key": [], "asked": 1, "denied": 1, "error": 0},
        ]});
        assert_eq!(
            shown(&reply),
            "RULE   KEY            ASKED  DENIED  ERROR\n\
             login  ana 192.0.2.7  12     9       0\n\
             -      user123        3      1       1\n\
             site   -              1      1       0"
        );
        assert_eq!(shown(&json!({"keys": []})), "no requests in the last minute");
    }

    #[test]
    fn a_rule_is_encoded() {
        assert_eq!(encoded("a/b:c_d.9"), "a%2fb%3ac%5fd%2e9");
    }
}
