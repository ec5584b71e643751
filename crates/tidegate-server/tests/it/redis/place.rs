//! A server that keeps its counts in a Redis.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value as Json;
use testbed::{Flavour, Redis, until};

use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::http::Talk;
use crate::wire::resp::{Client, Value};

/// Longer than anything takes.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// A server, as a process.
pub(super) struct Node {
    pub(super) process: Process,
    ready: Json,
}

impl Node {
    /// One with this file, in a folder of this name.
    pub(super) fn start(name: &str, text: &str) -> Node {
        Node::of(&Call::from(&format!("redis_{name}")).file("tidegate.toml", text))
    }

    /// One that keeps its counts in a Redis of its own, and a client.
    pub(super) fn on_redis(name: &str) -> (Redis, Node, Client) {
        let redis = redis();
        let node = Node::start(name, &store(&redis));
        let client = node.resp();
        (redis, node, client)
    }

    pub(super) fn of(call: &Call) -> Node {
        let (process, ready) = call.serve(&[]);
        Node { process, ready }
    }

    pub(super) fn resp(&self) -> Client {
        Client::connect(self.address("resp"))
    }

    /// One connection, for somebody to write to and somebody to read from.
    pub(super) fn resp_twice(&self) -> (TcpStream, Client) {
        let client = self.resp();
        (client.writer(), client)
    }

    pub(super) fn http(&self) -> Talk {
        Talk::at(self.address("http"))
    }

    fn address(&self, front: &str) -> SocketAddr {
        address(&self.ready, front)
    }

    /// Waits until it says that its store answers, or that it does not.
    pub(super) fn wait_until_available(&self, is_available: bool) {
        let what = format!("a store of which it says available: {is_available}");
        until(&what, PATIENCE, || {
            // Somebody has to ask, or it would not be seen that nobody answers.
            self.resp().say("TG.TAKE nobody LIMIT 1000/s");
            let ready = self.http().get("/readyz").json();
            assert_eq!(ready["ready"], true, "it decides in any case");
            (ready["store"]["available"] == is_available).then_some(())
        });
    }

    /// The number behind the beginning of a line of `/metrics`.
    pub(super) fn metric(&self, beginning: &str) -> u64 {
        let page = self.http().get("/metrics").body;
        let line = page.lines().find(|line| line.starts_with(&format!("{beginning} ")));
        let line = line.unwrap_or_else(|| panic!("{beginning} in {page}"));
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

/// A Redis.
pub(super) fn redis() -> Redis {
    Redis::start(Flavour::Redis7)
}

/// The settings of a store there that waits for as long as anything takes on a busy machine.
pub(super) fn store(redis: &Redis) -> String {
    format!("[store]\nkind = \"redis\"\nurl = \"{}\"\ndeadline = \"5s\"\n", redis.url())
}

/// Who decided.
pub(super) fn decided_by(answer: &Value) -> String {
    answer.text("decided_by")
}

/// What does not change while a test runs.
pub(super) fn outline(answer: &Value) -> [i64; 3] {
    ["allowed", "limit", "remaining"].map(|name| answer.number(name))
}
