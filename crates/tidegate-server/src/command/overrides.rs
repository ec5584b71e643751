//! `tidegate override`: lists, puts and removes overrides of a running server.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};

use super::failure::Failure;
use super::output::{print_line, say};
use super::server::{CalledServer, ChangeAuthor, KeyOfRule, Method, ServerRequest};
use super::table::Table;

/// The path of overrides.
const PATH: &str = "/v1/overrides";

/// The long help text.
const ABOUT: &str = "\
List and change overrides of a running server

An override gives one key of a rule another limit, exempts it or denies it, until a time or without an end. Without a subcommand the overrides in force \
are listed. A change needs a server with a token, which is read from TIDEGATE_TOKEN, or from the file of --token-file.";

/// The examples at the end of the help text.
const EXAMPLES: &str = "\
Examples:
  tidegate override
  tidegate override put login user=ana --limit 50/m --for 2h
  tidegate override put api ip=192.0.2.7 --deny --for 1d
  tidegate override put api ip=192.0.2.9 --deny --until never --by ana
  tidegate override remove login user=ana";

/// List and change overrides of a running server
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Overrides {
    #[command(subcommand)]
    change: Option<Change>,
    #[command(flatten)]
    server: CalledServer,
    /// Print the reply as JSON, like `/v1/overrides`
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Change {
    /// Put an override in force
    Put {
        #[command(flatten)]
        key: KeyOfRule,
        #[command(flatten)]
        instead: Instead,
        /// Length, as in 2h
        #[arg(long = "for", value_name = "TIME", required_unless_present = "until")]
        span: Option<String>,
        /// End, as in 2026-11-11T08:00:00Z, or never
        #[arg(long, value_name = "DATE", conflicts_with = "span")]
        until: Option<String>,
        /// Replace another override of the key
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        author: ChangeAuthor,
        #[command(flatten)]
        server: CalledServer,
        /// Print the reply as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an override, so that the rule applies again
    Remove {
        #[command(flatten)]
        key: KeyOfRule,
        #[command(flatten)]
        author: ChangeAuthor,
        #[command(flatten)]
        server: CalledServer,
        /// Print the reply as JSON
        #[arg(long)]
        json: bool,
    },
}

/// The limit or decision in place of the rule's limit.
#[derive(Args)]
#[group(required = true, multiple = false)]
struct Instead {
    /// Limit in place of the rule's, as in 50/m
    #[arg(long, value_name = "TEXT")]
    limit: Option<String>,
    /// Exempt the key from the rule
    #[arg(long)]
    allow: bool,
    /// Deny every request of the key
    #[arg(long)]
    deny: bool,
}

impl Overrides {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<ExitCode, Failure> {
        match &self.change {
            None => list(&self.server, self.json),
            Some(Change::Put { key, instead, span, until, replace, author, server, json }) => {
                if span.as_deref() == Some("never") {
                    return Err(Failure::misused("--for \"never\": is no length; write --until never"));
                }
                let mut body = key.body()?;
                instead.add_to(&mut body);
                let ends = [("for", span), ("until", until)];
                body.extend(
                    ends.into_iter().filter_map(|(name, end)| Some((name.to_owned(), end.clone()?.into()))),
                );
                let (body, by) = (Value::Object(body), author.name()?);
                let request = ServerRequest::with(Method::Put, PATH, &body);
                put(server, ServerRequest { replaces: *replace, by: by.as_deref(), ..request }, *json)
            }
            Some(Change::Remove { key, author, server, json }) => {
                let (body, by) = (Value::Object(key.body()?), author.name()?);
                let request = ServerRequest::with(Method::Delete, PATH, &body);
                remove(server, ServerRequest { by: by.as_deref(), ..request }, *json)
            }
        }
        .map(|()| ExitCode::SUCCESS)
    }
}

impl Instead {
    /// Adds the member `limit` or `decision` to a body.
    fn add_to(&self, body: &mut Map<String, Value>) {
        let (name, value) = match (&self.limit, self.deny) {
            (Some(limit), _) => ("limit", limit.as_str()),
            (None, true) => ("decision", "deny"),
            (None, false) => ("decision", "allow"),
        };
        body.insert(name.to_owned(), value.into());
    }
}

/// Prints all overrides in force.
fn list(server: &CalledServer, is_json: bool) -> Result<(), Failure> {
    let reply = server.call(ServerRequest::get(PATH))?;
    if is_json {
        print_line(&reply.text);
        return Ok(());
    }
    let all = reply.json["overrides"].as_array().map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        print_line("no overrides");
        return Ok(());
    }
    let mut table = Table::new(["RULE", "KEY", "INSTEAD", "UNTIL", "BY", "AT"]);
    for one in all {
        let by = one["by"].as_str().unwrap_or("-").escape_debug().to_string();
        table.row([text(&one["rule"]), key(&one["key"]), instead(one), end(one), by, text(&one["at"])]);
    }
    print_line(table);
    Ok(())
}

/// Puts an override in force. Warnings of the server are messages.
fn put(server: &CalledServer, request: ServerRequest<'_>, is_json: bool) -> Result<(), Failure> {
    let reply = server.call(request)?;
    let warnings = reply.json["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    warnings.iter().for_each(|warning| say(format_args!("warning: {}", text(warning))));
    let one = &reply.json;
    print_line(match is_json {
        true => reply.text.clone(),
        false => format!("{}: {} until {}", key(&one["key"]), instead(one), end(one)),
    });
    Ok(())
}

/// Removes an override.
fn remove(server: &CalledServer, request: ServerRequest<'_>, is_json: bool) -> Result<(), Failure> {
    let reply = server.call(request)?;
    print_line(match (is_json, reply.json["removed"] == true) {
        (true, _) => &reply.text,
        (false, true) => "removed: the rule applies to the key again",
        (false, false) => "nothing to remove: the key has no override",
    });
    Ok(())
}

/// Returns the text of a member.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Returns the parts of a key by name.
fn key(parts: &Value) -> String {
    let parts = parts.as_object().into_iter().flatten();
    let parts: Vec<_> = parts.map(|(name, value)| format!("{name}={}", text(value).escape_debug())).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(" ") }
}

/// Returns the end of an override.
fn end(one: &Value) -> String {
    one["until"].as_str().unwrap_or("never").to_owned()
}

/// Returns what is in place of the rule's limit.
fn instead(one: &Value) -> String {
    text(if one["limit"].is_string() { &one["limit"] } else { &one["decision"] })
}
