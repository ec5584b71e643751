//! Tests of `TG.PEEK RULE`, `TG.ADJUST RULE` and `TG.RESET RULE`.

use serde_json::json;

use crate::http::rule_key::{Desk, RULES, ana};
use crate::wire::Running;
use crate::wire::resp::Value;

/// Adds the token and `HELLO` of this version.
fn client(desk: &Desk, version: &str) -> crate::wire::resp::Client {
    let mut client = desk.running.resp();
    client.say(&format!("HELLO {version} AUTH default sesame"));
    client
}

const KEY: [&str; 4] = ["user", "ana", "ip", "192.0.2.7"];

#[test]
fn every_front_has_the_same_answer_about_a_key() {
    for version in ["2", "3"] {
        let mut desk = Desk::new();
        let mut client = client(&desk, version);
        let mut same = |desk: &mut Desk| {
            let resp = client.ask(&[&["TG.PEEK", "RULE", "login", "COST", "2"], &KEY[..]].concat());
            let http = desk.post("/v1/peek", &ana(&json!({"cost": 2}))).json();
            let none = |name: &str| http[name].as_i64().unwrap_or(-1);
            let names = ["limit", "remaining", "retry_after_ms", "reset_after_ms", "delay_ms"];
            let numbers = names.map(|name| resp.number(name.trim_end_matches("_ms")));
            assert_eq!(numbers, names.map(none), "{resp:?} {http}");
            assert_eq!(
                (resp.number("allowed") == 1, resp.text("rule")),
                (http["allowed"] == true, "login".to_owned())
            );
            numbers[1]
        };
        assert_eq!(same(&mut desk), 3);
        for left in [2, 1, 0] {
            assert_eq!(desk.login(), 200);
            assert_eq!(same(&mut desk), left);
        }
    }
}

#[test]
fn units_are_charged_and_given_back_and_a_reset_removes_all() {
    let mut desk = Desk::new();
    let mut client = client(&desk, "3");
    let mut adjust = |number: &str| {
        let reply = client.ask(&[&["TG.ADJUST", "RULE", "login"], &KEY[..], &[number]].concat());
        (reply.text("adjusted"), reply.number("remaining"), reply.text("rule"))
    };
    let expected = |word: &str, left| (word.to_owned(), left, "login".to_owned());
    assert_eq!(desk.login(), 200);
    assert_eq!(adjust("-1"), expected("whole", 3));
    assert_eq!(adjust("-1"), expected("capped", 3));
    assert_eq!(adjust("2"), expected("whole", 1));
    let reset = [&["tg.reset", "rule", "login"], &KEY[..]].concat();
    assert_eq!([client.ask(&reset), client.ask(&reset)], [Value::Integer(1), Value::Integer(0)]);
    assert_eq!(client.say("TG.PEEK RULE site").number("remaining"), 99);
    assert_eq!(client.say("TG.RESET RULE site"), Value::Integer(1));
    assert_eq!(client.say("TG.ADJUST RULE site 1").number("remaining"), 99);
}

#[test]
fn a_key_is_named_by_the_group_of_addresses_that_a_list_shows() {
    let desk = Desk::new();
    let mut client = client(&desk, "3");
    assert_eq!(client.say("TG.ADJUST RULE login user ana ip 2001:db8::/64 2").number("remaining"), 1);
    assert_eq!(client.say("TG.PEEK RULE login user ana ip 2001:db8::9").number("remaining"), 1);
    assert_eq!(client.say("TG.RESET RULE login user ana ip 2001:db8::/64"), Value::Integer(1));
    assert!(client.say("TG.ADMIT path /login user ana ip 2001:db8::/64").error().contains("is no address"));
}

#[test]
fn a_key_of_the_name_rule_is_still_a_key() {
    let mut client = Running::start().with_resp();
    let client = &mut client.1;
    assert_eq!(client.say("TG.TAKE RULE LIMIT 5/h").number("remaining"), 4);
    assert_eq!(client.say("TG.PEEK RULE LIMIT 5/h").number("remaining"), 4);
    assert_eq!(client.say("TG.ADJUST RULE limit 5/h 1").number("remaining"), 3);
    assert_eq!(client.say("TG.RESET RULE LIMIT 5/h"), Value::Integer(1));
    assert_eq!(client.say("TG.RESET RULE"), Value::Integer(0));
}

#[test]
fn without_the_token_resp_changes_no_key_of_a_rule() {
    let (running, mut client) = Running::under(RULES).with_resp();
    let said = "ERR this changes what holds for others, and the server has no token";
    for line in ["TG.RESET RULE site", "TG.ADJUST RULE site -1", "TG.ADJUST RULE site 1"] {
        assert!(client.say(line).error().starts_with(said), "{line}");
    }
    assert_eq!(client.say("TG.PEEK RULE site").number("remaining"), 100);
    drop(running);
    let desk = Desk::new();
    let mut stranger = desk.running.resp();
    for line in ["TG.RESET RULE site", "TG.ADJUST RULE site 1", "TG.PEEK RULE site"] {
        assert!(stranger.say(line).error().starts_with("NOAUTH"), "{line}");
    }
}

#[test]
fn what_names_no_key_is_an_error_that_changes_nothing() {
    let desk = Desk::new();
    let mut client = client(&desk, "2");
    for (words, said) in [
        ("lgoin user ana", "ERR rule \"lgoin\": there is no rule of this name; did you mean \"login\"?"),
        ("office", "ERR rule \"office\": has a decision in place of a limit"),
        ("tighter user ana ip ::1", "ERR rule \"tighter\": is a candidate, which decides nothing"),
        ("measured user ana", "ERR rule \"measured\": is in shadow mode now"),
        (
            "login user ana",
            "ERR key: \"ip\" is a part of the key of rule \"login\" and missing; send its value",
        ),
        ("login ip localhost user ana", "ERR attribute 'ip' is no address"),
    ] {
        for line in [
            format!("TG.PEEK RULE {words}"),
            format!("TG.RESET RULE {words}"),
            format!("TG.ADJUST RULE {words} 1"),
        ] {
            let reply = client.say(&line);
            assert!(reply.error().starts_with(said), "{line}: {reply:?}");
        }
    }
    for (line, said) in [
        ("TG.PEEK RULE login user", "ERR attribute 'user' has no value"),
        ("TG.RESET RULE login user", "ERR attribute 'user' has no value"),
        ("TG.ADJUST RULE login user ana", "ERR TG.ADJUST takes a whole number, not 'ana'"),
        ("TG.ADJUST RULE site 0", "ERR adjusting by 0 changes nothing"),
        ("TG.PEEK RULE site ALL", "ERR ALL is for TG.ADMIT"),
        ("TG.PEEK RULE site user ana ALL", "ERR ALL is for TG.ADMIT"),
        (
            "TG.PEEK RULE site user ana COST 2",
            "ERR attribute 'COST': COST comes before the attributes; write TG.PEEK RULE login COST 2 user ana",
        ),
        (
            "TG.PEEK RULE login user ana ip 2001:db8::/48",
            "ERR key: \"ip\" has the prefix length /48, and rule",
        ),
        (
            "TG.RESET login user ana",
            "ERR expected LIMIT behind the key, found 'user'; write key LIMIT \"30/60s burst 15\", or RULE login and the same",
        ),
        (
            "TG.ADJUST login user ana -2",
            "ERR expected LIMIT behind the key, found 'user'; write key LIMIT \"30/60s burst 15\", or RULE",
        ),
        (
            "TG.PEEK login user ana",
            "ERR expected LIMIT behind the key, found 'user'; write key LIMIT \"30/60s burst 15\", or RULE",
        ),
        ("TG.PEEK RULE site COST 0", "ERR COST is at least 1"),
    ] {
        let reply = client.say(line);
        assert!(reply.error().starts_with(said), "{line}: {reply:?}");
    }
    let no_text = client.ask(&[&b"TG.PEEK"[..], b"RULE", b"\xff"]);
    assert!(no_text.error().starts_with("ERR rule '\\xff': the name of a rule is text"), "{no_text:?}");
    assert_eq!(client.say("TG.PEEK RULE site").number("remaining"), 100);
}
