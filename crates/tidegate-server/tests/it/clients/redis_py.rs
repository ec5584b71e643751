//! redis-py.

use serde_json::json;

use super::law::{Client as _, Fields, Manner, Version, holds};
use super::place::Place;
use super::script::{Script, with_token};

const SCRIPT: &str = "redis_py.py";
const IN_RESP3: Manner = Manner { version: Version::Resp3, fields: Fields::Object, error: "ResponseError" };

#[test]
fn as_it_is() {
    let place = Place::open();
    holds(Script::python(SCRIPT, &place, &[]), place, IN_RESP3);
}

#[test]
fn a_pipeline_as_it_is_stands_between_multi_and_exec() {
    let place = Place::open();
    let mut script = Script::python(SCRIPT, &place, &[]);
    let takes = vec![vec![&b"CL.THROTTLE"[..], b"ana", b"1", b"1", b"3600"]; 3];
    let replies = script.together("transaction", &takes);
    let expected = [json!([0, 2, 1, -1, 3600]), json!([0, 2, 0, -1, 7200]), json!([1, 2, 0, 3600, 7200])];
    assert_eq!(replies, expected);
    script.leave();
}

#[test]
fn in_resp3_with_a_token() {
    let place = Place::guarded();
    holds(Script::python(SCRIPT, &place, &with_token(Version::Resp3)), place, IN_RESP3);
}

#[test]
fn in_resp2_with_a_token() {
    let place = Place::guarded();
    let manner = Manner { version: Version::Resp2, fields: Fields::List, ..IN_RESP3 };
    holds(Script::python(SCRIPT, &place, &with_token(Version::Resp2)), place, manner);
}
