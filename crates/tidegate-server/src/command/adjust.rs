//! `tidegate adjust`: charges a key under a rule of a running server, or gives units back.
//!
//! Each direction has a flag of its own, so that a sign cannot be mistaken. The command sends one `POST /v1/adjust`.

use std::fmt;
use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::failure::Failure;
use super::output::print_line;
use super::server::{CalledServer, ChangeAuthor, KeyOfRule, Method, ServerRequest};

/// The long help text.
const ABOUT: &str = "\
Charge a key under a rule of a running server, or give units back

Units are those of a request, which the cost of the rule multiplies. At most what the key owes is given back, and `tidegate reset` \
gives back all of it. The server needs a token for it, which is read from TIDEGATE_TOKEN, or from the file of --token-file. Exits \
with 0, also if only a part took effect, with 1 if the server denies it or does not reply, with 2 if the call is invalid.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate adjust login user=ana --give-back 2
  tidegate adjust api ip=192.0.2.7 --charge 50 --by ana";

/// Charge a key under a rule of a running server, or give units back
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Adjust {
    #[command(flatten)]
    key: KeyOfRule,
    #[command(flatten)]
    amount: AdjustAmount,
    #[command(flatten)]
    author: ChangeAuthor,
    #[command(flatten)]
    server: CalledServer,
    /// Print the reply as JSON, like `POST /v1/adjust`
    #[arg(long)]
    json: bool,
}

/// The number of units, by its direction.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct AdjustAmount {
    /// Units to give back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    give_back: Option<i64>,
    /// Units to charge
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    charge: Option<i64>,
}

impl Adjust {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let mut body = self.key.body()?;
        let amount = self.amount.charge.or(self.amount.give_back.map(|units| -units)).unwrap_or_default();
        body.insert("amount".to_owned(), amount.into());
        let (body, by) = (Value::Object(body), self.author.name()?);
        let request = ServerRequest::with(Method::Post, "/v1/adjust", &body);
        let reply = self.server.call(ServerRequest { by: by.as_deref(), ..request })?;
        if self.json {
            print_line(&reply.text);
        } else {
            print_line(AdjustOutcome { reply: &reply.json, is_charge: amount > 0 });
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The outcome of an adjustment as the HTTP interface sends it.
struct AdjustOutcome<'a> {
    reply: &'a Value,
    is_charge: bool,
}

impl fmt::Display for AdjustOutcome<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match (self.reply["adjusted"].as_str(), self.is_charge) {
            (Some("whole"), true) => "charged",
            (Some("whole"), false) => "given back",
            (Some("needs-permit"), _) => {
                return out.write_str("nothing changed: under a concurrency limit, release the permit");
            }
            (_, true) => "charged in part: the debt of the key is at its maximum",
            (_, false) => "given back in part: the key owed less",
        })?;
        match (self.reply["remaining"].as_u64(), self.reply["limit"].as_u64()) {
            (Some(left), Some(limit)) => write!(out, "; {left} of {limit} left"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn people_read_the_outcome_and_the_remaining_quota() {
        for (word, is_charge, expected) in [
            ("whole", true, "charged; 1 of 3 left"),
            ("whole", false, "given back; 1 of 3 left"),
            ("capped", true, "charged in part: the debt of the key is at its maximum; 1 of 3 left"),
            ("capped", false, "given back in part: the key owed less; 1 of 3 left"),
            ("needs-permit", false, "nothing changed: under a concurrency limit, release the permit"),
        ] {
            let reply = json!({"adjusted": word, "limit": 3, "remaining": 1});
            assert_eq!(AdjustOutcome { reply: &reply, is_charge }.to_string(), expected);
        }
        let reply = json!({"adjusted": "whole", "limit": null, "remaining": null});
        assert_eq!(AdjustOutcome { reply: &reply, is_charge: true }.to_string(), "charged");
    }
}
