//! A client in another language: a script that executes requests from JSON lines.

use std::process::Command;

use serde_json::{Value, json};

use super::law::{Client, Version};
use super::place::{Place, TOKEN};
use super::tools;
use crate::process::Process;

/// A running script. `tests/clients/lines.js` describes its protocol.
pub(super) struct Script(Process);

impl Script {
    pub(super) fn python(name: &str, place: &Place, arguments: &[&str]) -> Script {
        Script::start(Command::new(tools::python()).arg("-I"), name, place, arguments)
    }

    pub(super) fn node(name: &str, place: &Place, arguments: &[&str]) -> Script {
        let mut node = Command::new(tools::node());
        Script::start(node.env("NODE_PATH", tools::node_modules()), name, place, arguments)
    }

    fn start(command: &mut Command, name: &str, place: &Place, arguments: &[&str]) -> Script {
        let script = tools::scripts().join(name);
        Script(Process::start(command.arg(script).arg(place.port()).args(arguments)))
    }

    /// Sends several requests in one of the ways that the script supports.
    pub(super) fn together(&mut self, way: &str, requests: &[Vec<&[u8]>]) -> Vec<Value> {
        let requests: Vec<_> = requests.iter().map(|words| texts(words)).collect();
        self.tell(&json!({ way: requests }));
        match self.reply() {
            Value::Array(replies) => replies,
            other => panic!("expected replies, got {other}"),
        }
    }

    fn tell(&mut self, line: &Value) {
        self.0.tell(format!("{line}\n").as_bytes());
    }

    fn reply(&mut self) -> Value {
        serde_json::from_str(&self.0.line()).expect("every line is JSON")
    }
}

impl Client for Script {
    fn call(&mut self, words: &[&[u8]]) -> Value {
        self.tell(&json!({ "call": texts(words) }));
        self.reply()
    }

    fn pipeline(&mut self, requests: &[Vec<&[u8]>]) -> Vec<Value> {
        self.together("pipeline", requests)
    }

    fn call_after(&mut self, restart: &mut dyn FnMut(), words: &[&[u8]]) -> Value {
        self.tell(&json!({ "restart": texts(words) }));
        assert_eq!(self.reply(), "restart?");
        restart();
        self.tell(&json!("restarted"));
        self.reply()
    }

    fn leave(self) {
        let ended = self.0.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    }
}

/// Converts words to text, one character per byte.
fn texts(words: &[&[u8]]) -> Vec<String> {
    words.iter().map(|word| word.iter().map(|byte| char::from(*byte)).collect()).collect()
}

/// Returns the arguments for a version of the protocol, with the token.
pub(super) fn with_token(version: Version) -> [&'static str; 2] {
    [version.number(), TOKEN]
}
