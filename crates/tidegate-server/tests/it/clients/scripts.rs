//! Tests of clients in other languages: redis-py, ioredis and node-redis.

use serde_json::json;

use super::law::{Client as _, Fields, Manner, Version, holds};
use super::place::Place;
use super::script::{Script, with_token};

/// Tests for a client: its runtime, its script, the class of its errors, and its default representation of fields.
macro_rules! client {
    ($name:ident: $start:ident $script:literal, $error:literal, $fields:ident) => {
        mod $name {
            use super::*;

            const IN_RESP3: Manner =
                Manner { version: Version::Resp3, fields: Fields::Object, error: $error };

            #[test]
            fn as_it_is() {
                let place = Place::open();
                let manner = Manner { fields: Fields::$fields, ..IN_RESP3 };
                holds(Script::$start($script, &place, &[]), place, manner);
            }

            #[test]
            fn in_resp3_with_a_token() {
                let place = Place::guarded();
                holds(Script::$start($script, &place, &with_token(Version::Resp3)), place, IN_RESP3);
            }

            #[test]
            fn in_resp2_with_a_token() {
                let place = Place::guarded();
                let manner = Manner { version: Version::Resp2, fields: Fields::List, ..IN_RESP3 };
                holds(Script::$start($script, &place, &with_token(Version::Resp2)), place, manner);
            }
        }
    };
}

client!(redis_py: python "redis_py.py", "ResponseError", Object);
client!(node_redis: node "node_redis.js", "ErrorReply", Object);
// It speaks RESP3, and converts replies to the same lists as in RESP2.
client!(ioredis: node "ioredis.js", "ReplyError", List);

#[test]
fn a_pipeline_of_redis_py_as_it_is_stands_between_multi_and_exec() {
    let place = Place::open();
    let mut script = Script::python("redis_py.py", &place, &[]);
    let takes = vec![vec![&b"CL.THROTTLE"[..], b"ana", b"1", b"1", b"3600"]; 3];
    let replies = script.together("transaction", &takes);
    let expected = [json!([0, 2, 1, -1, 3600]), json!([0, 2, 0, -1, 7200]), json!([1, 2, 0, 3600, 7200])];
    assert_eq!(replies, expected);
    script.leave();
}
