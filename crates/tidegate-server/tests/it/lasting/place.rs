//! Server processes with one place for their overrides.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use testbed::{Flavour, Redis, until};

use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::http::{Answer, Talk, by, get, post, with_json};
use crate::wire::resp::Client;

/// Timeout of every wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

pub(super) const RULES: &str = r#"
[[rule]]
name = "api"
key = ["user"]
limit = "4/h"
"#;

/// A server process.
pub(super) struct Node {
    pub(super) process: Process,
    pub(super) call: Call,
    talk: Talk,
    pub(super) http: SocketAddr,
    resp: SocketAddr,
}

impl Node {
    pub(super) fn of(call: Call) -> Node {
        let (process, ready) = call.serve(&["--config", "tidegate.toml"]);
        let (http, resp) = (address(&ready, "http"), address(&ready, "resp"));
        Node { process, talk: Talk::at(http), call, http, resp }
    }

    /// Starts a server with these settings in a new folder.
    pub(super) fn start(name: &str, text: &str) -> Node {
        Node::of(in_folder(name, text))
    }

    /// Starts another server with the same files.
    pub(super) fn beside(&self) -> Node {
        Node::of(Call::beside(&self.call).variable("TIDEGATE_TOKEN", "sesame"))
    }

    /// Kills the process, and starts another one with the same files.
    pub(super) fn killed_and_started(self) -> Node {
        let Node { process, call, .. } = self;
        process.signal(Signal::KILL);
        drop(process.end());
        Node::of(call)
    }

    pub(super) fn ask(&mut self, method: &str, fields: &str, body: &Value) -> Answer {
        let message = by("sesame", &with_json(method, "/v1/overrides", &body.to_string()));
        self.talk.ask(message.replacen("\r\n", &format!("\r\n{fields}"), 1))
    }

    /// Puts an override that does not end, of any other one of its key.
    pub(super) fn put(&mut self, user: &str, what: &str) -> Answer {
        let mut body = json!({"rule": "api", "key": {"user": user}, "until": "never"});
        let member = if what == "deny" || what == "allow" { "decision" } else { "limit" };
        body[member] = json!(what);
        self.ask("PUT", "", &body)
    }

    pub(super) fn delete(&mut self, user: &str) -> Answer {
        self.ask("DELETE", "", &json!({"rule": "api", "key": {"user": user}}))
    }

    pub(super) fn page(&mut self) -> Value {
        let answer = self.talk.ask(by("sesame", &get("/v1/overrides")));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// Returns the users with an override, in the order of the list.
    pub(super) fn users(&mut self) -> Vec<String> {
        let page = self.page();
        let each = page["overrides"].as_array().expect("a list").iter();
        each.map(|one| one["key"]["user"].as_str().unwrap_or_default().to_owned()).collect()
    }

    pub(super) fn admit(&mut self, user: &str) -> Answer {
        let body = json!({"attributes": {"user": user}}).to_string();
        self.talk.ask(by("sesame", &post("/v1/admit", &body)))
    }

    /// Sends a body about a key of a rule, with these header fields.
    pub(super) fn post(&mut self, path: &str, fields: &str, body: &Value) -> Answer {
        let message = by("sesame", &post(path, &body.to_string()));
        self.talk.ask(message.replacen("\r\n", &format!("\r\n{fields}"), 1))
    }

    /// Opens a connection over RESP.
    pub(super) fn resp(&self) -> Client {
        Client::connect(self.resp)
    }

    pub(super) fn put_rules(&mut self, text: &str) -> Answer {
        let (length, fields) = (text.len(), "content-type: application/toml\r\nif-match: *");
        let head = format!(
            "PUT /v1/rules HTTP/1.1\r\nhost: localhost\r\n{fields}\r\ncontent-length: {length}\r\n\r\n"
        );
        self.talk.ask(by("sesame", &head) + text)
    }

    pub(super) fn wait_for_users(&mut self, users: &[&str]) {
        until(&format!("a list of {users:?}"), TIMEOUT, || (self.users() == users).then_some(()));
    }

    /// Waits until the page says that the place cannot be read, with this reason.
    pub(super) fn wait_until_wrong(&mut self, reason: &str) {
        until(&format!("a page with {reason:?}"), TIMEOUT, || {
            self.page()["wrong"].as_str().is_some_and(|wrong| wrong.contains(reason)).then_some(())
        });
    }

    pub(super) fn wait_until_right(&mut self) {
        until("a page without a complaint", TIMEOUT, || self.page()["wrong"].is_null().then_some(()));
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.call.folder().join(name)
    }

    /// Returns the text of the file of overrides.
    pub(super) fn kept(&self) -> String {
        fs::read_to_string(self.file("tidegate.toml.overrides")).expect("there is a file")
    }

    /// Puts a file in place atomically, with mode 0600.
    pub(super) fn keep(&self, text: &str) {
        write_private(&self.call, "tidegate.toml.overrides", text);
    }
}

/// Denies a user on a new connection, so that calls may be made at the same time.
pub(super) fn deny_at(http: SocketAddr, user: &str) -> Answer {
    let body = json!({"rule": "api", "key": {"user": user}, "decision": "deny", "until": "never"});
    Talk::at(http).ask(by("sesame", &with_json("PUT", "/v1/overrides", &body.to_string())))
}

/// Returns a call in a new folder with these settings.
pub(super) fn in_folder(name: &str, text: &str) -> Call {
    Call::from(&format!("lasting_{name}"))
        .file("tidegate.toml", &(text.to_owned() + RULES))
        .variable("TIDEGATE_TOKEN", "sesame")
}

/// Puts a file of mode 0600 in place atomically.
pub(super) fn write_private(call: &Call, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let beside = call.folder().join("beside");
    fs::write(&beside, text).expect("a file can be written");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).expect("its mode can be set");
    fs::rename(beside, call.folder().join(name)).expect("it can be moved");
}

pub(super) fn redis() -> Redis {
    Redis::start(Flavour::Redis7)
}

/// Returns store settings with a deadline that a busy machine meets.
pub(super) fn store(redis: &Redis) -> String {
    format!("[store]\nkind = \"redis\"\nurl = \"{}\"\ndeadline = \"5s\"\n", redis.url())
}
