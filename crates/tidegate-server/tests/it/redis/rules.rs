//! Tests that rules which Redis does not support never come into force.

use std::fs;

use rustix::process::Signal;

use super::place::{Node, redis, store};
use crate::command::call::Call;
use crate::wire::http::{by, with_json};

fn rule(limit: &str) -> String {
    format!("[[rule]]\nname = \"api\"\nkey = [\"user\"]\nlimit = \"{limit}\"\n")
}

#[test]
fn a_reload_with_a_limit_that_redis_cannot_store_is_an_error_with_its_place() {
    let redis = redis();
    let call = Call::from("redis_reload").file("tidegate.toml", &(store(&redis) + &rule("1/h sliding-log")));
    let node = Node::of(&call);
    let admit = |allowed: i64| assert_eq!(node.resp().say("TG.ADMIT user ana").number("allowed"), allowed);
    admit(1);
    admit(0);
    let write =
        |text: &str| fs::write(call.folder().join("tidegate.toml"), text).expect("a file can be written");
    write(&(store(&redis) + &rule("2000000/s")));
    node.process.signal(Signal::HUP);
    node.process.says("rules: ./tidegate.toml is invalid");
    let error = node.process.says("error: ");
    assert!(error.starts_with("error: ./tidegate.toml:8:9: rule \"api\": limit \"2000000/s\": "), "{error}");
    admit(0);
    write(&(store(&redis) + &rule("2/h sliding-log")));
    node.process.signal(Signal::HUP);
    node.process.says("rules: ./tidegate.toml is valid again");
    admit(1);
    admit(0);
    // Changes of store settings take effect after a restart.
    write(&(store(&redis) + "nodes = 7\n" + &rule("3/h sliding-log")));
    node.process.signal(Signal::HUP);
    assert_eq!(node.process.says("  ~ store."), "  ~ store.nodes: takes effect after a restart");
}

#[test]
fn rules_that_are_put_have_to_fit_too() {
    let redis = redis();
    let call = Call::from("redis_put").file("tidegate.toml", &(store(&redis) + &rule("1/h")));
    let node = Node::of(&call.variable("TIDEGATE_TOKEN", "secret"));
    let text = store(&redis) + &rule("2000000/s");
    let put = with_json("PUT", "/v1/rules", &text).replace("application/json", "application/toml");
    let answer = node.http().ask(by("secret", &put));
    assert_eq!(answer.status, 422, "{}", answer.body);
    let error = &answer.json()["errors"][0];
    assert_eq!((&error["line"], &error["column"]), (&8.into(), &9.into()), "{error}");
}

#[test]
fn a_schedule_is_looked_at_too() {
    let text = format!(
        "[store]\nkind = \"redis\"\n{}schedule = [{{ from = \"11-11\", to = \"11-12\", limit = \"3000000/s\" }}]\n",
        rule("1/h")
    );
    let ended = Call::from("redis_schedule").file("tidegate.toml", &text).run(&["check"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("tidegate.toml:7:53: rule \"api\": limit \"3000000/s\": "), "{}", ended.err);
}
