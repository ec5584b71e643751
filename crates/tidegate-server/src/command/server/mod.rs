//! A running server, as commands call it: its address, its token, and one request over HTTP.

pub(super) mod connect;
mod http;
pub(super) mod token;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::explain::key_object;
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
        http::call(address, token.as_ref(), request)
    }
}

/// The author of a change in the arguments of a command.
#[derive(Args)]
pub(super) struct ChangeAuthor {
    /// Name of the author, for lists and the audit log [default: USER or LOGNAME of the environment]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
}

impl ChangeAuthor {
    /// Returns the name of the author. A name of the environment is used only if the server accepts it.
    pub(super) fn name(&self) -> Result<Option<String>, Failure> {
        let is_name = |name: &String| (1..=256).contains(&name.len()) && !name.contains(char::is_control);
        match &self.by {
            Some(name) => {
                let name = name.trim().to_owned();
                let invalid =
                    || Failure::misused("--by: is no name; write a text of 1 to 256 bytes".to_owned());
                Some(name).filter(is_name).map(Some).ok_or_else(invalid)
            }
            None => {
                let names = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
                Ok(names.map(|name| name.trim().to_owned()).find(is_name))
            }
        }
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
        let key = key_object(&self.key)?;
        let members = [("rule", Value::from(self.rule.as_str())), ("key", Value::Object(key))];
        Ok(members.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
    }
}
