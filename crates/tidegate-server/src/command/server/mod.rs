//! A running server, as commands call it: its address, its token, and one request over HTTP.

pub(super) mod connect;
mod http;
pub(super) mod token;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::explain::object;
use super::failure::Failure;
pub(super) use http::{Method, ServerReply, ServerRequest};

/// The HTTP address that `tidegate serve` listens on by default.
const DEFAULT_SERVER: &str = "127.0.0.1:8380";

/// The server that a command calls.
#[derive(Args)]
pub(super) struct CalledServer {
    /// HTTP address of the server
    #[arg(long, value_name = "ADDRESS", env = "TIDEGATE_HTTP", hide_env_values = true, default_value = DEFAULT_SERVER)]
    server: String,
    /// File with the token of the server
    #[arg(long, value_name = "FILE", env = "TIDEGATE_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
}

impl CalledServer {
    /// Sends one request.
    pub(super) fn call(&self, request: ServerRequest<'_>) -> Result<ServerReply, Failure> {
        let token = token::read(self.token_file.clone())?;
        let address = if self.server.is_empty() { DEFAULT_SERVER } else { &self.server };
        http::call(address, token.as_deref(), request)
    }
}

/// A key of a rule in the arguments of a command.
#[derive(Args)]
pub(super) struct KeyOfRule {
    /// Rule of the key
    rule: String,
    /// Parts of the rule's key, as in user=ana
    #[arg(value_name = "NAME=VALUE")]
    key: Vec<OsString>,
}

impl KeyOfRule {
    /// Returns the members `rule` and `key` of a body.
    pub(super) fn body(&self) -> Result<Map<String, Value>, Failure> {
        let key = object(&self.key)?;
        let members = [("rule", Value::from(self.rule.as_str())), ("key", Value::Object(key))];
        Ok(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }
}
