//! A server process whose store is Redis.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value as Json;
use testbed::{Flavour, Redis, until};

use crate::command::call::{Call, address};
use crate::process::Process;
use crate::wire::http::Talk;
use crate::wire::resp::{Client, Value};

/// Timeout of every wait.
pub(super) const TIMEOUT: Duration = Duration::from_secs(120);

/// A server process.
pub(super) struct Node {
    pub(super) process: Process,
    ready: Json,
}

impl Node {
    /// Starts a server with this settings file, in a folder of this name.
    pub(super) fn start(name: &str, text: &str) -> Node {
        Node::of(&Call::from(&format!("redis_{name}")).file("tidegate.toml", text))
    }

    /// Starts a Redis, a server on it, and a client.
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

    /// Returns one connection as a writer and a reader.
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

    /// Waits until the server reports its store as available, or as unavailable.
    pub(super) fn wait_until_available(&self, is_available: bool) {
        let what = format!("a store of which it says available: {is_available}");
        until(&what, TIMEOUT, || {
            // An outage is detected only by a request.
            self.resp().say("TG.TAKE probe LIMIT 1000/s");
            let ready = self.http().get("/readyz").json();
            assert_eq!(ready["ready"], true, "it decides in any case");
            (ready["store"]["available"] == is_available).then_some(())
        });
    }

    /// Returns the value of the metric with this name and labels.
    pub(super) fn metric(&self, beginning: &str) -> u64 {
        let page = self.http().get("/metrics").body;
        let line = page.lines().find(|line| line.starts_with(&format!("{beginning} ")));
        let line = line.unwrap_or_else(|| panic!("{beginning} in {page}"));
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

/// Starts a Redis.
pub(super) fn redis() -> Redis {
    Redis::start(Flavour::Redis7)
}

/// Returns store settings with a deadline that a busy machine meets.
pub(super) fn store(redis: &Redis) -> String {
    format!("[store]\nkind = \"redis\"\nurl = \"{}\"\ndeadline = \"5s\"\n", redis.url())
}

/// Returns the source of a decision.
pub(super) fn decided_by(answer: &Value) -> String {
    answer.text("decided_by")
}

/// Returns the fields of a reply that do not depend on time.
pub(super) fn outline(answer: &Value) -> [i64; 3] {
    ["allowed", "limit", "remaining"].map(|name| answer.number(name))
}
