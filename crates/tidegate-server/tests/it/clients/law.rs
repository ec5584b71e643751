//! The behavior that every client has to see.

use serde_json::{Value, json};

use super::place::Place;
use crate::wire::resp;

/// A connected client. It returns replies as JSON; an error is its class and its message.
pub(super) trait Client {
    fn call(&mut self, words: &[&[u8]]) -> Value;

    /// Sends all requests before it reads the first reply.
    fn pipeline(&mut self, requests: &[Vec<&[u8]>]) -> Vec<Value>;

    /// Runs `restart`, then sends a request on the same client, which has to find the new server.
    fn call_after(&mut self, restart: &mut dyn FnMut(), words: &[&[u8]]) -> Value;

    fn leave(self);
}

/// The version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Resp2,
    Resp3,
}

impl Version {
    pub(super) fn number(self) -> &'static str {
        match self {
            Version::Resp2 => "2",
            Version::Resp3 => "3",
        }
    }
}

/// The representation of names and values in a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// An object of its language.
    Object,
    /// A list of alternating names and values.
    List,
}

/// The properties in which clients differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) version: Version,
    pub(super) fields: Fields,
    /// The class of an error reply.
    pub(super) error: &'static str,
}

/// The number of pipelined requests; [`PASSING`] of them are allowed.
const PIPELINED: usize = 1000;
const PASSING: usize = 100;

/// A key that is not valid in any text encoding.
const BYTES: &[u8] = b"\0\xff\xfe\r\n*1\r\n\x80'\" ";

const ARITY: &str = "usage: TG.TAKE key LIMIT text [COST n] [MAXWAIT ms]";

/// Runs every check with a client, and repeats the first one after a restart.
pub(super) fn holds(mut client: impl Client, mut place: Place, manner: Manner) {
    speaks(&mut client, manner);
    sees_decisions(&mut client, manner);
    pipelines(&mut client);
    sees_errors(&mut client, manner);
    sends_any_key(&mut client, &place);

    let after = client.call_after(&mut || place.restart(), &words("CL.THROTTLE user123 15 30 60"));
    assert_eq!(after, json!([0, 16, 15, -1, 2]), "another server has no state of the key");
    speaks(&mut client, manner);
    client.leave();
}

fn speaks(client: &mut impl Client, manner: Manner) {
    assert_eq!(client.call(&words("PING")), "PONG");
    let connection = client.call(&words("CLIENT INFO"));
    let spoken = format!(" resp={}\n", manner.version.number());
    assert!(connection.as_str().is_some_and(|line| line.ends_with(&spoken)), "{connection}");
}

fn sees_decisions(client: &mut impl Client, manner: Manner) {
    let throttle = words("CL.THROTTLE user123 15 30 60");
    assert_eq!(client.call(&throttle), json!([0, 16, 15, -1, 2]));
    assert_eq!(client.call(&words("CL.THROTTLE user123 15 30 60 16")), json!([1, 16, 15, 2, 2]));
    assert_eq!(client.call(&throttle), json!([0, 16, 14, -1, 4]));

    let mut take = words("TG.TAKE user456 LIMIT limit COST 5");
    take[3] = b"30/60s burst 15";
    let fields = [
        ("allowed", json!(1)),
        ("limit", json!(15)),
        ("remaining", json!(10)),
        ("retry_after", json!(-1)),
        ("reset_after", json!(10_000)),
        ("delay", json!(0)),
        ("rule", json!(null)),
        ("decided_by", json!("memory")),
    ];
    let seen: Value = match manner.fields {
        Fields::Object => fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        Fields::List => fields.into_iter().flat_map(|(name, value)| [json!(name), value]).collect(),
    };
    assert_eq!(client.call(&take), seen);
}

fn pipelines(client: &mut impl Client) {
    // The limit allows one request per hour, with a burst of 100.
    let requests = vec![words("CL.THROTTLE pipelined 99 1 3600"); PIPELINED];
    let replies = client.pipeline(&requests);
    let expected = (1..=PIPELINED).map(|number| match PASSING.checked_sub(number) {
        Some(left) => json!([0, PASSING, left, -1, number * 3600]),
        None => json!([1, PASSING, 0, 3600, PASSING * 3600]),
    });
    assert_eq!(replies, expected.collect::<Vec<_>>());
}

fn sees_errors(client: &mut impl Client, manner: Manner) {
    let (good, bad) = (words("CL.THROTTLE between 9 1 3600"), words("TG.TAKE between"));
    let is_error = |reply: &Value, text: &str| {
        assert_eq!(reply["error"], manner.error, "{reply}");
        assert!(reply["message"].as_str().is_some_and(|message| message.ends_with(text)), "{reply}");
    };
    is_error(&client.call(&bad), ARITY);
    is_error(&client.call(&words("CL.THROTTLE between 9 1")), "<period> [<quantity>]");
    is_error(&client.call(&words("NO.SUCH.COMMAND")), "with args beginning with: (COMMAND LIST shows all)");

    let replies = client.pipeline(&[good.clone(), bad, good]);
    assert_eq!(replies[0], json!([0, 10, 9, -1, 3600]));
    is_error(&replies[1], ARITY);
    assert_eq!(replies[2], json!([0, 10, 8, -1, 7200]));
}

fn sends_any_key(client: &mut impl Client, place: &Place) {
    let mut take = words("CL.THROTTLE key 4 1 3600");
    take[1] = BYTES;
    assert_eq!(client.call(&take), json!([0, 5, 4, -1, 3600]));
    let of_the_same_key = place.connect().ask(&take);
    assert_eq!(of_the_same_key, resp::Value::integers(&[0, 5, 3, -1, 7200]));
}

/// Splits a request into words.
pub(super) fn words(line: &str) -> Vec<&[u8]> {
    line.split(' ').map(str::as_bytes).collect()
}
