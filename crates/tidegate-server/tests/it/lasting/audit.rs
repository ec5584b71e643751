//! Tests of the audit log.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::place::{Node, RULES, in_folder, redis, store};

const AUDITED: &str = "[server]\naudit_log = \"audit.log\"\n";

fn lines(node: &Node) -> Vec<Value> {
    let text = fs::read_to_string(node.file("audit.log")).expect("there is a log");
    assert!(text.is_empty() || text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn each_change_is_a_line_with_its_author_and_time() {
    let redis = redis();
    for (place, settings) in [
        ("file", String::new()),
        ("memory", "overrides_file = \"off\"\n".to_owned()),
        ("redis", store(&redis)),
    ] {
        let mut node = Node::start(&format!("audit_{place}"), &(AUDITED.to_owned() + &settings));
        assert_eq!((node.page()["kept_in"].clone(), lines(&node)), (json!(place), vec![]));
        let body = json!({"rule": "api", "key": {"user": "eve"}, "limit": "9/h", "for": "2h"});
        assert_eq!(node.ask("PUT", "x-tidegate-by: ana \"a\"\r\n", &body).status, 200);
        assert_eq!(node.ask("PUT", "", &json!({})).status, 400);
        assert_eq!(node.put("eve", "deny").status, 428);
        assert_eq!(node.delete("bob").status, 200, "there is none");
        assert_eq!(node.delete("eve").status, 200);
        let rules = AUDITED.to_owned() + &settings + &RULES.replace("4/h", "5/h");
        assert_eq!(node.put_rules(&rules).status, 200);
        assert_eq!(node.put_rules("x = ").status, 422);
        let mut said = lines(&node);
        for line in &mut said {
            assert!(line["at"].take().as_str().is_some_and(|at| at.ends_with('Z')));
            assert!(line["from"].take().as_str().is_some_and(|from| from.starts_with("127.0.0.1:")));
        }
        assert!(said[0]["until"].take().is_string() && said[2]["etag"].take().is_string(), "{said:?}");
        let (at, from) = (Value::Null, Value::Null);
        assert_eq!(
            said,
            [
                json!({"at": at, "by": "ana \"a\"", "from": from, "do": "put_override", "rule": "api",
                       "key": {"user": "eve"}, "limit": "9/h", "until": null}),
                json!({"at": at, "by": "127.0.0.1", "from": from, "do": "delete_override", "rule": "api",
                       "key": {"user": "eve"}}),
                json!({"at": at, "by": "127.0.0.1", "from": from, "do": "put_rules", "file": "tidegate.toml",
                       "etag": null}),
            ],
            "{place}"
        );
        let mode = fs::metadata(node.file("audit.log")).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_reset_and_an_adjustment_of_a_key_are_lines() {
    let mut node = Node::start("audit_keys", AUDITED);
    let key = json!({"rule": "api", "key": {"user": "eve"}});
    let mut adjust = key.clone();
    adjust["amount"] = json!(-2);
    assert_eq!(node.post("/v1/adjust", "x-tidegate-by: ana\r\n", &adjust).status, 200);
    assert_eq!(node.post("/v1/reset", "", &key).status, 200);
    assert_eq!(node.post("/v1/reset", "", &json!({"rule": "none", "key": {}})).status, 404);
    assert_eq!(node.post("/v1/reset", "x-tidegate-by: \r\n", &key).status, 400);
    let mut said = lines(&node);
    for line in &mut said {
        assert!(line["at"].take().is_string() && line["from"].take().is_string(), "{line}");
    }
    assert_eq!(
        said,
        [
            json!({"at": null, "by": "ana", "from": null, "do": "adjust", "rule": "api", "key": {"user": "eve"},
                   "amount": -2}),
            json!({"at": null, "by": "127.0.0.1", "from": null, "do": "reset", "rule": "api", "key": {"user": "eve"}}),
        ]
    );
    fs::remove_file(node.file("audit.log")).expect("it is there");
    fs::create_dir(node.file("audit.log")).expect("a folder can be made");
    let refused = node.post("/v1/reset", "", &key);
    assert!(refused.status == 503 && refused.detail().contains("; nothing was changed"), "{refused:?}");
    let mut client = node.resp();
    client.say("AUTH sesame");
    assert!(client.say("TG.RESET RULE api user eve").error().contains("; nothing was changed"));
    fs::remove_dir(node.file("audit.log")).expect("it is empty");
    client.say("CLIENT SETNAME desk");
    assert_eq!(client.say("TG.ADJUST RULE api user eve 1").number("remaining"), 3);
    let said = lines(&node);
    assert_eq!(
        (&said[0]["do"], &said[0]["by"], &said[0]["amount"]),
        (&json!("adjust"), &json!("desk"), &json!(1))
    );
    assert!(said[0]["from"].as_str().is_some_and(|from| from.starts_with("127.0.0.1:")), "{said:?}");
}

#[test]
fn a_change_that_cannot_be_logged_is_not_made() {
    let redis = redis();
    for (place, settings) in [
        ("file", String::new()),
        ("memory", "overrides_file = \"off\"\n".to_owned()),
        ("redis", store(&redis)),
    ] {
        let mut node = Node::start(&format!("unlogged_{place}"), &(AUDITED.to_owned() + &settings));
        fs::remove_file(node.file("audit.log")).expect("it is there");
        fs::create_dir(node.file("audit.log")).expect("a folder can be made");
        let text = fs::read_to_string(node.file("tidegate.toml")).expect("there are rules");
        for refused in [node.put("eve", "deny"), node.put_rules(&text.replace("4/h", "5/h"))] {
            assert_eq!(refused.status, 503, "{place}: {refused:?}");
            assert!(refused.detail().starts_with("audit log audit.log: cannot be written: "), "{refused:?}");
            assert!(refused.detail().contains("; nothing was changed"), "{refused:?}");
        }
        assert!(node.process.says("warning: audit log").contains("nothing was changed"));
        assert_eq!((node.users(), node.admit("eve").json()["limit"].clone()), (vec![], json!(4)));
        assert_eq!(fs::read_to_string(node.file("tidegate.toml")).ok(), Some(text));
        fs::remove_dir(node.file("audit.log")).expect("it is empty");
        assert_eq!((node.put("eve", "deny").status, lines(&node).len()), (200, 1), "a log may be rotated");
    }
}

#[test]
fn a_change_that_is_logged_and_fails_has_a_second_line() {
    let redis = redis();
    let mut node = Node::start("audit_failed", &(AUDITED.to_owned() + &store(&redis)));
    assert_eq!(node.put("eve", "deny").status, 200);
    redis.command(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(node.put("bob", "deny").status, 503);
    let said = lines(&node);
    assert_eq!((said.len(), &said[1]["failed"]), (3, &Value::Null), "{said:?}");
    assert!(said[2]["failed"].as_str().is_some_and(|failed| failed.contains("OOM")), "{said:?}");
    redis.command(&["CONFIG", "SET", "maxmemory", "0"]);
}

#[test]
fn a_line_that_was_cut_off_does_not_spoil_the_next_one() {
    let mut node = Node::start("audit_torn", AUDITED);
    assert_eq!(node.put("eve", "deny").status, 200);
    let whole = fs::read_to_string(node.file("audit.log")).expect("there is a log");
    let torn = whole.clone() + &whole[..40];
    fs::write(node.file("audit.log"), &torn).expect("it can be written");
    assert_eq!((node.put("bob", "deny").status, node.put("dan", "deny").status), (200, 200));
    let text = fs::read_to_string(node.file("audit.log")).expect("there is a log");
    let rest = text.strip_prefix(&(torn + "\n")).expect("the next line begins on its own");
    let users: Vec<Value> = rest
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON")["key"]["user"].take())
        .collect();
    assert_eq!(users, ["bob", "dan"]);
}

#[test]
fn a_log_that_cannot_be_written_stops_the_start() {
    let call = in_folder("audit_start", "[server]\naudit_log = \"missing/audit.log\"\n");
    let ended = call.run(&["serve", "--config", "tidegate.toml", "--resp", "127.0.0.1:0", "--http", "off"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("audit log missing/audit.log: cannot be written: No such file"),
        "{}",
        ended.err
    );
}
