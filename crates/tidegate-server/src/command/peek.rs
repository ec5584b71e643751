//! `tidegate peek`: what a rule of a running server would decide about a key.

use std::process::ExitCode;

use clap::Args;

use super::admit::AskOfRule;
use super::failure::Failure;
use super::ruled::print_decision;
use super::server::{CalledServer, KeyOfRule, Method, ServerRequest};

/// The long help text.
const ABOUT: &str = "\
Look at a key under a rule of a running server, and spend nothing

Prints what the rule alone would decide about a request of the key, under the limit in force for it. Exits with 0 if the request \
would be allowed, with 3 if it would be denied, with 1 if no server replies, with 2 if the call is invalid.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate peek login user=ana
  tidegate peek api ip=192.0.2.7 --cost 5 --json";

/// Look at a key under a rule of a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Peek {
    #[command(flatten)]
    key: KeyOfRule,
    #[command(flatten)]
    ask: AskOfRule,
    #[command(flatten)]
    server: CalledServer,
    /// Print the reply as JSON, like `POST /v1/peek`
    #[arg(long)]
    json: bool,
}

impl Peek {
    /// Runs the command. A denial is not an error: it has an exit code of its own.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let body = self.ask.add_to(self.key.body()?)?;
        let reply = self.server.call(ServerRequest::with(Method::Post, "/v1/peek", &body))?;
        Ok(print_decision(&reply, self.json))
    }
}
