//! Tests of `TG.TOP`, `TG.BANS` and `TG.OVERRIDES`: the same lists as over HTTP.

use serde_json::json;

use crate::http::bans;
use crate::http::rule_key::{Desk, ana};
use crate::wire::http::{by, get, with_json};
use crate::wire::resp::{Client, Value};

fn client(desk: &Desk, version: &str) -> Client {
    let mut client = desk.running.resp();
    client.say(&format!("HELLO {version} AUTH default sesame"));
    client
}

fn rows(reply: &Value) -> &[Value] {
    match reply {
        Value::Array(rows) => rows,
        other => panic!("no list: {other:?}"),
    }
}

#[test]
fn the_heaviest_keys_are_those_over_http() {
    let mut desk = Desk::new();
    for _ in 0..5 {
        desk.login();
    }
    for version in ["2", "3"] {
        let mut client = client(&desk, version);
        let top = client.say("TG.TOP");
        let [candidate, row] = rows(&top) else { panic!("{top:?}") };
        assert_eq!((candidate.text("rule"), candidate.number("denied")), ("tighter".to_owned(), 4));
        let numbers = ["asked", "denied", "error"].map(|name| row.number(name));
        assert_eq!((row.text("rule"), numbers), ("login".to_owned(), [5, 2, 0]));
        assert_eq!(row.field("key"), Some(&Value::Array(vec![Value::bulk("ana"), Value::bulk("192.0.2.7")])));
        assert_eq!(rows(&client.say("TG.TOP BY asked")).len(), 4, "all rules but the static one");
        assert_eq!(rows(&client.say("tg.top by asked count 1 rule site"))[0].number("asked"), 3);
    }
    let mut client = client(&desk, "3");
    client.say("TG.TAKE ana LIMIT 1/h");
    client.say("TG.TAKE ana LIMIT 1/h");
    let top = client.say("TG.TOP");
    assert_eq!(rows(&top)[2].field("rule"), Some(&Value::Null), "{top:?}");
}

#[test]
fn the_bans_are_those_over_http() {
    let mut desk = bans::Desk::new();
    desk.logins("ana", 4);
    desk.logins("bob", 4);
    for version in ["2", "3"] {
        let mut client = desk.running.resp();
        client.say(&format!("HELLO {version} AUTH default sesame"));
        let list = client.say("TG.BANS");
        let http = desk.get("/v1/bans").json();
        let shown: Vec<_> = rows(&list)
            .iter()
            .zip(["ana", "bob"])
            .map(|(row, user)| {
                assert_eq!(row.field("key"), Some(&Value::Array(vec![Value::bulk(user)])));
                json!({"rule": row.text("rule"), "key": [user], "ends_in_ms": row.number("ends_in")})
            })
            .collect();
        assert_eq!(json!({ "bans": shown }), http);
        assert_eq!(rows(&client.say("TG.BANS COUNT 1")).len(), 1);
        assert_eq!(rows(&client.say("tg.bans rule day count 9")).len(), 0);
        // It asks the store, as a peek does, so a transaction may contain it.
        assert_eq!(client.say("MULTI"), Value::Simple("OK".to_owned()));
        assert_eq!(client.say("TG.BANS"), Value::Simple("QUEUED".to_owned()));
        assert_eq!(rows(&client.say("EXEC"))[0], list);
    }
}

#[test]
fn the_overrides_are_those_over_http() {
    let mut desk = Desk::new();
    let mut put = |body: serde_json::Value| {
        let message = by("sesame", &with_json("PUT", "/v1/overrides", &body.to_string()));
        assert_eq!(desk.talk.ask(message).status, 200);
    };
    put(ana(&json!({"limit": "20/60s", "for": "2h"})));
    put(json!({"rule": "site", "key": {}, "decision": "deny", "until": "never"}));
    let mut client = client(&desk, "3");
    let list = client.say("TG.OVERRIDES");
    let [login, site] = rows(&list) else { panic!("{list:?}") };
    assert_eq!((login.text("rule"), login.text("limit")), ("login".to_owned(), "20/m".to_owned()));
    let http = desk.talk.ask(by("sesame", &get("/v1/overrides"))).json();
    assert_eq!(
        (login.field("decision"), json!(login.text("until"))),
        (Some(&Value::Null), http["overrides"][0]["until"].clone())
    );
    assert_eq!(
        login.field("key").map(|key| (key.text("user"), key.text("ip"))),
        Some(("ana".into(), "192.0.2.7".into()))
    );
    assert_eq!((site.text("decision"), site.field("limit")), ("deny".to_owned(), Some(&Value::Null)));
    assert_eq!(
        (login.field("in_effect"), site.field("until")),
        (Some(&Value::Integer(1)), Some(&Value::Null))
    );
    assert_eq!(
        json!([login.text("by"), login.text("at")]),
        json!([http["overrides"][0]["by"], http["overrides"][0]["at"]])
    );
    assert_eq!(rows(&client.say("TG.OVERRIDES RULE site")).len(), 1);
    assert_eq!(rows(&client.say("TG.OVERRIDES RULE other")).len(), 0);
}

#[test]
fn an_option_that_is_unknown_or_has_no_value_is_an_error() {
    let desk = Desk::new();
    let mut client = client(&desk, "2");
    for (line, said) in [
        ("TG.TOP login", "ERR 'login' has no value"),
        ("TG.TOP login 5", "ERR unexpected 'login'; write [RULE name] [COUNT n] [BY denied|asked]"),
        ("TG.TOP COUNT 101", "ERR COUNT \"101\": has to be a number from 1 to 100"),
        ("TG.TOP BY allowed", "ERR BY \"allowed\": is unknown; write denied or asked"),
        (
            "TG.TOP RULE nothing",
            "ERR rule \"nothing\": there is no rule of this name; name one that is in force",
        ),
        ("TG.BANS login", "ERR 'login' has no value"),
        ("TG.BANS BY denied", "ERR unexpected 'BY'; write [RULE name] [COUNT n]"),
        ("TG.BANS COUNT 0", "ERR COUNT \"0\": has to be a number from 1 to 100"),
        (
            "TG.BANS RULE nothing",
            "ERR rule \"nothing\": there is no rule of this name; name one that is in force",
        ),
        ("TG.OVERRIDES login", "ERR unexpected 'login'; write [RULE name]"),
        ("TG.OVERRIDES RULE a b", "ERR unexpected 'RULE'; write [RULE name]"),
    ] {
        let reply = client.say(line);
        assert!(reply.error().starts_with(said), "{line}: {reply:?}");
    }
}
