//! `tidegate admit`: decides about a request by the rules of a running server, and spends.
//!
//! A shell script can use the exit code. The command sends one `POST /v1/admit`.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value};
use tidegate_support::{ceil_ms, duration};

use super::explain::object;
use super::failure::Failure;
use super::ruled::print_decision;
use super::server::{CalledServer, Method, ServerRequest};

/// The long help text.
const ABOUT: &str = "\
Decide about a request by the rules of a running server, and spend

Prints the verdict with the rule that decides, and the other limits that apply. Exits with 0 if the request is allowed, with 3 if \
it is denied, with 1 if no server replies, with 2 if the request is invalid. `tidegate explain` needs no server, and `tidegate peek` \
spends nothing.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate admit ip=192.0.2.7 path=/login user=ana
  tidegate admit user=ana path=/reports --cost 5 --json
  tidegate admit job=nightly && ./nightly.sh";

/// Decide about a request by the rules of a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Admit {
    /// Attributes of the request, as in path=/login
    #[arg(value_name = "NAME=VALUE")]
    attributes: Vec<OsString>,
    #[command(flatten)]
    ask: AskOfRule,
    #[command(flatten)]
    server: CalledServer,
    /// Print the reply as JSON, like `POST /v1/admit`
    #[arg(long)]
    json: bool,
}

/// The cost and the max wait of a request.
#[derive(Args)]
pub(super) struct AskOfRule {
    /// Cost of the request, which a rule multiplies by its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    cost: u64,
    /// Longest acceptable delay, as in 500ms [default: as the rules say]
    #[arg(long, value_name = "TIME")]
    max_wait: Option<String>,
}

impl AskOfRule {
    /// Adds the members `cost` and `max_wait_ms` to a body.
    pub(super) fn add_to(&self, mut body: Map<String, Value>) -> Result<Value, Failure> {
        body.insert("cost".to_owned(), self.cost.into());
        if let Some(text) = &self.max_wait {
            let wrong = |what| Failure::misused(format!("--max-wait {text:?}: {what}"));
            body.insert("max_wait_ms".to_owned(), ceil_ms(duration(text).map_err(wrong)?).into());
        }
        Ok(Value::Object(body))
    }
}

impl Admit {
    /// Runs the command. A denial is not an error: it has an exit code of its own.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let attributes = Value::Object(object(&self.attributes)?);
        let body = self.ask.add_to(Map::from_iter([("attributes".to_owned(), attributes)]))?;
        let reply = self.server.call(ServerRequest::with(Method::Post, "/v1/admit", &body))?;
        Ok(print_decision(&reply, self.json))
    }
}
