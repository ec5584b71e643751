//! node-redis.

use super::law::{Fields, Manner, Version, holds};
use super::place::Place;
use super::script::{Script, with_token};

const SCRIPT: &str = "node_redis.js";
const IN_RESP3: Manner = Manner { version: Version::Resp3, fields: Fields::Object, error: "ErrorReply" };

#[test]
fn as_it_is() {
    let place = Place::open();
    holds(Script::node(SCRIPT, &place, &[]), place, IN_RESP3);
}

#[test]
fn in_resp3_with_a_token() {
    let place = Place::guarded();
    holds(Script::node(SCRIPT, &place, &with_token(Version::Resp3)), place, IN_RESP3);
}

#[test]
fn in_resp2_with_a_token() {
    let place = Place::guarded();
    let manner = Manner { version: Version::Resp2, fields: Fields::List, ..IN_RESP3 };
    holds(Script::node(SCRIPT, &place, &with_token(Version::Resp2)), place, manner);
}
