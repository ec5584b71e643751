//! `tidegate reset`: gives a key its whole limit back under a rule of a running server.

use std::process::ExitCode;

use clap::Args;
use serde_json::Value;

use super::failure::Failure;
use super::output::print_line;
use super::server::{CalledServer, ChangeAuthor, KeyOfRule, Method, ServerRequest};

/// The long help text.
const ABOUT: &str = "\
Give a key its whole limit back under a rule of a running server

Removes everything that the rule has counted for the key, also under the limits of its schedule, of overrides, and under those that it \
had before, and lifts a ban. The server needs a token for it, which is read from TIDEGATE_TOKEN, or from the file of --token-file. Exits with 0, also \
if there was nothing to remove, with 1 if the server denies it or does not reply, with 2 if the call is invalid.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate reset login user=ana
  tidegate reset api ip=192.0.2.7 --token-file token";

/// Give a key its whole limit back under a rule of a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Reset {
    #[command(flatten)]
    key: KeyOfRule,
    #[command(flatten)]
    author: ChangeAuthor,
    #[command(flatten)]
    server: CalledServer,
    /// Print the reply as JSON, like `POST /v1/reset`
    #[arg(long)]
    json: bool,
}

impl Reset {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        let (body, by) = (Value::Object(self.key.body()?), self.author.name()?);
        let request = ServerRequest::with(Method::Post, "/v1/reset", &body);
        let reply = self.server.call(ServerRequest { by: by.as_deref(), ..request })?;
        print_line(match (self.json, reply.json["reset"] == true) {
            (true, _) => &reply.text,
            (false, true) => "reset: the key has its whole limit again",
            (false, false) => "nothing to reset: the rule has counted nothing for this key",
        });
        Ok(ExitCode::SUCCESS)
    }
}
