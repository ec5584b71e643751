//! Tests of the redis crate: its plain connection, and its manager, which reconnects by itself.

use redis::aio::ConnectionManager;
use redis::{Client as Opened, Cmd, Connection, Pipeline, RedisResult, Value as Reply};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::law::{Client, Fields, Manner, Version, holds};
use super::place::{Place, TOKEN};

const IN_RESP3: Manner = Manner { version: Version::Resp3, fields: Fields::Object, error: "ServerError" };

#[test]
fn as_it_is() {
    let place = Place::open();
    let client = Plain::open(&format!("redis://127.0.0.1:{}", place.port()));
    holds(client, place, Manner { version: Version::Resp2, fields: Fields::List, ..IN_RESP3 });
}

#[test]
fn in_resp3_with_a_token() {
    let place = Place::guarded();
    let client = Plain::open(&format!("redis://:{TOKEN}@127.0.0.1:{}?protocol=resp3", place.port()));
    holds(client, place, IN_RESP3);
}

#[test]
fn managed_in_resp3_with_a_token() {
    let place = Place::guarded();
    let client = Managed::open(&format!("redis://:{TOKEN}@127.0.0.1:{}?protocol=resp3", place.port()));
    holds(client, place, IN_RESP3);
}

/// A connection that the caller replaces.
struct Plain {
    opened: Opened,
    connection: Connection,
}

impl Plain {
    fn open(url: &str) -> Plain {
        let opened = Opened::open(url).expect("it is an address");
        let connection = opened.get_connection().expect("the server listens");
        Plain { opened, connection }
    }
}

impl Client for Plain {
    fn call(&mut self, words: &[&[u8]]) -> Value {
        value_of(command(words).query(&mut self.connection))
    }

    fn pipeline(&mut self, requests: &[Vec<&[u8]>]) -> Vec<Value> {
        let replies: RedisResult<Vec<_>> = pipeline(requests).query(&mut self.connection);
        replies.expect("errors are replies").into_iter().map(value_of).collect()
    }

    fn call_after(&mut self, restart: &mut dyn FnMut(), words: &[&[u8]]) -> Value {
        restart();
        let lost = command(words).query::<Reply>(&mut self.connection).expect_err("its server has gone");
        assert!(lost.is_unrecoverable_error(), "{lost}");
        self.connection = self.opened.get_connection().expect("another server listens");
        self.call(words)
    }

    fn leave(self) {}
}

/// A connection that reconnects by itself.
struct Managed {
    runtime: Runtime,
    manager: ConnectionManager,
}

impl Managed {
    fn open(url: &str) -> Managed {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be had");
        let opened = Opened::open(url).expect("it is an address");
        let manager = runtime.block_on(opened.get_connection_manager()).expect("the server listens");
        Managed { runtime, manager }
    }
}

impl Client for Managed {
    fn call(&mut self, words: &[&[u8]]) -> Value {
        value_of(self.runtime.block_on(command(words).query_async(&mut self.manager)))
    }

    fn pipeline(&mut self, requests: &[Vec<&[u8]>]) -> Vec<Value> {
        let replies = pipeline(requests);
        let replies: RedisResult<Vec<_>> = self.runtime.block_on(replies.query_async(&mut self.manager));
        replies.expect("errors are replies").into_iter().map(value_of).collect()
    }

    fn call_after(&mut self, restart: &mut dyn FnMut(), words: &[&[u8]]) -> Value {
        restart();
        // The first request after the restart fails, unless the manager has noticed before.
        let mut found: RedisResult<Reply> =
            self.runtime.block_on(command(words).query_async(&mut self.manager));
        if found.as_ref().is_err_and(|lost| lost.is_unrecoverable_error()) {
            found = self.runtime.block_on(command(words).query_async(&mut self.manager));
        }
        value_of(found)
    }

    fn leave(self) {}
}

fn command(words: &[&[u8]]) -> Cmd {
    let mut command = Cmd::new();
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command
}

fn pipeline(requests: &[Vec<&[u8]>]) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(requests.len());
    pipeline.ignore_errors();
    requests.iter().for_each(|words| {
        pipeline.add_command(command(words));
    });
    pipeline
}

fn value_of(outcome: RedisResult<Reply>) -> Value {
    match outcome {
        Ok(reply) => shown(reply),
        Err(error) if error.code().is_some() => {
            json!({ "error": "ServerError", "message": error.to_string() })
        }
        Err(error) => panic!("no reply: {error}"),
    }
}

fn shown(reply: Reply) -> Value {
    match reply {
        Reply::Nil => Value::Null,
        Reply::Int(number) => json!(number),
        Reply::BulkString(bytes) => json!(String::from_utf8_lossy(&bytes)),
        Reply::SimpleString(text) => json!(text),
        Reply::Array(replies) => replies.into_iter().map(shown).collect(),
        Reply::Map(pairs) => {
            let named = |name| shown(name).as_str().map(str::to_owned).expect("names are texts");
            Value::Object(pairs.into_iter().map(|(name, value)| (named(name), shown(value))).collect())
        }
        other => panic!("nothing that the server says: {other:?}"),
    }
}
