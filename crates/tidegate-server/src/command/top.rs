//! `tidegate top`: the heaviest keys of a running server and the banned ones, once or live.
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
use super::server::{CalledServer, ServerReply, ServerRequest};
use super::span::Span;
use super::table::Table;

/// The long help text.
const ABOUT: &str = "\
Show the heaviest keys of a running server

Lists the keys with the most denials, or with the most requests, in the last one to two minutes: keys of rules, and of limits that \
came with requests, which have no rule. The counts are estimates, and can be too high by the number in the last column. Keys that a \
penalty bans are listed below them, if there are any. On a terminal the list is refreshed until it is interrupted.";

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
    /// Print the list once as JSON, like `GET /v1/top` and `GET /v1/bans`
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
        if self.once || self.json || !stdout().is_terminal() {
            print_line(self.list()?);
            return Ok(ExitCode::SUCCESS);
        }
        loop {
            print(format!("{CLEAR}{}\n", self.list()?).as_bytes());
            pause(every);
        }
    }

    /// Returns the lists as text.
    fn list(&self) -> Result<String, Failure> {
        let (top, bans) = self.paths();
        let keys = self.server.call(ServerRequest::get(&top))?;
        // The keys are in the memory of the server. They are listed as well if Redis, which knows the bans, is down.
        let bans = self.server.call(ServerRequest::get(&bans));
        Ok(if self.json {
            joined(&keys.text, bans.ok().as_ref())
        } else {
            shown(&keys.json, self.by) + &banned(bans)
        })
    }

    /// Returns the paths of the heaviest keys and of the bans, each with its query.
    fn paths(&self) -> (String, String) {
        let by = match self.by {
            SortBy::Denied => "denied",
            SortBy::Asked => "asked",
        };
        let n = self.n;
        let rule = self.rule.as_deref().map_or(String::new(), |rule| format!("&rule={}", encoded(rule)));
        (format!("/v1/top?n={n}&by={by}{rule}"), format!("/v1/bans?n={n}{rule}"))
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

/// Returns one object with the members of both replies. `bans` is null if the server cannot list them.
fn joined(keys: &str, bans: Option<&ServerReply>) -> String {
    let bans = bans.and_then(|reply| reply.text.trim().strip_prefix('{')).unwrap_or("\"bans\":null}");
    format!("{},{bans}", keys.trim().strip_suffix('}').unwrap_or(keys))
}

/// Returns the bans as a table below that of the keys; empty if there are none.
fn banned(reply: Result<ServerReply, Failure>) -> String {
    match reply {
        Ok(reply) => bans_shown(&reply.json),
        Err(failure) => format!("\n\nno list of bans: {failure}"),
    }
}

/// Returns the bans of a reply.
fn bans_shown(reply: &Value) -> String {
    let bans = reply["bans"].as_array().map_or(&[][..], Vec::as_slice);
    if bans.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["RULE", "BANNED KEY", "ENDS IN"]);
    for ban in bans {
        let ends_in = Span(ban["ends_in_ms"].as_u64().unwrap_or_default()).to_string();
        table.row([dash(ban["rule"].as_str().unwrap_or_default()), parts(ban), ends_in]);
    }
    format!("\n\n{table}")
}

/// Returns the parts of a key as text.
fn parts(of: &Value) -> String {
    let parts = of["key"].as_array().map_or(&[][..], Vec::as_slice).iter();
    let parts: Vec<_> = parts.filter_map(Value::as_str).collect();
    dash(&parts.join(" "))
}

/// Returns the text, or a dash if it is empty.
fn dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// Returns the heaviest keys as a table.
fn shown(reply: &Value, by: SortBy) -> String {
    let keys = reply["keys"].as_array().map_or(&[][..], Vec::as_slice);
    if keys.is_empty() {
        return match by {
            SortBy::Denied => {
                "no denials in the last minute; --by asked lists the keys with the most requests"
            }
            SortBy::Asked => "no requests in the last minute",
        }
        .to_owned();
    }
    let mut table = Table::new(["RULE", "KEY", "ASKED", "DENIED", "ERROR"]);
    for key in keys {
        table.row([
            dash(key["rule"].as_str().unwrap_or_default()),
            parts(key),
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
            shown(&reply, SortBy::Denied),
            "RULE   KEY            ASKED  DENIED  ERROR\n\
             login  ana 192.0.2.7  12     9       0\n\
             -      user123        3      1       1\n\
             site   -              1      1       0"
        );
        let none = json!({"keys": []});
        assert_eq!(shown(&none, SortBy::Asked), "no requests in the last minute");
        assert!(shown(&none, SortBy::Denied).starts_with("no denials in the last minute; --by asked lists"));
    }

    #[test]
    fn bans_are_a_table_below_that_of_the_keys() {
        let reply = json!({"bans": [
            {"rule": "login", "key": ["ana", "192.0.2.7"], "ends_in_ms": 599_000},
            {"rule": "site", "key": [], "ends_in_ms": 1500},
        ]});
        assert_eq!(
            bans_shown(&reply),
            "\n\nRULE   BANNED KEY     ENDS IN\n\
             login  ana 192.0.2.7  9 min 59 s\n\
             site   -              1.5 s"
        );
        assert_eq!(bans_shown(&json!({"bans": []})), "");
        let failure = banned(Err(Failure::failed("it says no")));
        assert_eq!(failure, "\n\nno list of bans: it says no");
    }

    #[test]
    fn both_lists_are_one_object() {
        let text = "{\"bans\":[{\"rule\":\"a\"}]}".to_owned();
        let bans = ServerReply { json: serde_json::from_str(&text).unwrap(), text };
        let keys = "{\"keys\":[{\"rule\":\"b\"}]}";
        for (bans, expected) in [
            (Some(&bans), "{\"keys\":[{\"rule\":\"b\"}],\"bans\":[{\"rule\":\"a\"}]}"),
            (None, "{\"keys\":[{\"rule\":\"b\"}],\"bans\":null}"),
        ] {
            assert_eq!(joined(keys, bans), expected);
        }
    }

    #[test]
    fn a_rule_is_encoded() {
        assert_eq!(encoded("a/b:c_d.9"), "a%2fb%3ac%5fd%2e9");
    }
}
