//! Tests of the commands of a support desk against a running server: `admit`, `peek`, `reset`, `override` and `top`.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};

use super::call::Call;
use crate::http::bans;
use crate::http::rule_key::RULES;
use crate::process::{Ended, Process};

/// A server with rules and a token, and the environment of its callers.
struct Desk {
    call: Call,
    _server: Process,
}

impl Desk {
    fn new(name: &str) -> Desk {
        // No unit is regained while a test runs.
        Desk::under(name, &RULES.replace("/60s", "/d").replace("/h", "/d"))
    }

    fn under(name: &str, rules: &str) -> Desk {
        let call = Call::from(name).file("tidegate.toml", rules).variable("TIDEGATE_TOKEN", "sesame");
        let (server, ready) = call.serve(&["--config", "tidegate.toml"]);
        let http = ready["http"].as_str().expect("it speaks HTTP").to_owned();
        Desk { call: call.variable("TIDEGATE_HTTP", &http), _server: server }
    }

    /// Runs a command of words separated by spaces. Returns its exit code, and its output or its messages.
    fn run(&self, words: &str) -> (Option<i32>, String) {
        let Ended { code, out, err } = self.call.run(&words.split(' ').collect::<Vec<_>>());
        (code, if out.is_empty() { err } else { out })
    }

    fn json(&self, words: &str) -> Value {
        let (code, out) = self.run(words);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words}: {code:?} {out}: {error}"))
    }
}

fn ended(code: i32, text: &str) -> (Option<i32>, String) {
    (Some(code), format!("{text}\n"))
}

const LOGIN: &str = "path=/login user=ana ip=192.0.2.7";

#[test]
fn attempts_are_spent_looked_at_and_given_back() {
    let desk = Desk::new("support");
    let admit = format!("admit {LOGIN}");
    assert_eq!(
        desk.run(&admit),
        ended(0, "allowed under rule \"login\", 2 of 3 left\n  site  99 of 100 left")
    );
    assert_eq!(desk.run(&admit).0, Some(0));
    let key = "login user=ana ip=192.0.2.7";
    assert_eq!(desk.run(&format!("peek {key}")), ended(0, "allowed under rule \"login\", 1 of 3 left"));
    assert_eq!(desk.run(&format!("admit {LOGIN} --cost 2")).0, Some(3));
    assert_eq!(desk.run(&admit).0, Some(0));
    let (code, denied) = desk.run(&format!("peek {key}"));
    assert_eq!(
        (code, denied.starts_with("denied by rule \"login\", try again in ")),
        (Some(3), true),
        "{denied}"
    );
    let never = "denied by rule \"login\", and no wait would help: at most 3 can pass at once";
    assert_eq!(desk.run(&format!("peek {key} --cost 4")), ended(3, never));

    assert_eq!(desk.run(&format!("reset {key}")), ended(0, "reset: the key has its whole limit again"));
    let nothing = "nothing to reset: the rule has counted nothing for this key";
    assert_eq!(desk.run(&format!("reset {key}")), ended(0, nothing));
    assert_eq!(desk.json(&format!("reset {key} --json")), json!({"reset": false}));
    assert_eq!(desk.json(&format!("peek {key} --json"))["remaining"], 3);
    assert_eq!(desk.json(&format!("{admit} --json"))["limits"][1]["name"], "site");
    assert_eq!(desk.run("admit ip=10.1.2.3"), ended(0, "allowed by rule \"office\", no limit counts it"));
}

#[test]
fn overrides_are_put_listed_replaced_and_removed() {
    let desk = Desk::new("support_overrides");
    assert_eq!(desk.run("override"), ended(0, "no overrides"));
    let put = "override put login user=ana ip=192.0.2.7";
    let (code, line) = desk.run(&format!("{put} --limit 50/60s --for 2h"));
    assert_eq!(code, Some(0), "{line}");
    assert!(line.contains("user=ana") && line.contains(": 50/m until ") && line.ends_with("Z\n"), "{line}");
    assert_eq!(desk.json("peek login user=ana ip=192.0.2.7 --json")["limit"], 50);
    let (code, refused) = desk.run(&format!("{put} --deny --for 2h"));
    let replace =
        "the override of this key would be replaced; `tidegate override` shows it, and --replace replaces it";
    assert!(code == Some(1) && refused.contains(replace), "{refused}");
    assert_eq!(
        desk.run(&format!("{put} --deny --until 2099-01-01T00:00:00Z --replace")).0,
        Some(2),
        "too far ahead"
    );
    assert_eq!(desk.run(&format!("{put} --deny --for 1d --replace")).0, Some(0));
    let banned = "denied by rule \"login\": an override of this key denies it";
    assert_eq!(desk.run("peek login user=ana ip=192.0.2.7"), ended(3, banned));
    let (code, table) = desk.run("override");
    let lines: Vec<_> = table.lines().collect();
    assert!(code == Some(0) && lines.len() == 2 && lines[0].starts_with("RULE   KEY"), "{table}");
    assert!(lines[1].starts_with("login  ") && lines[1].contains("user=ana"), "{table}");
    assert!(lines[1].contains("ip=192.0.2.7") && lines[1].contains("  deny  "), "{table}");
    assert_eq!(desk.json("override --json")["overrides"][0]["decision"], "deny");
    let remove = "override remove login user=ana ip=192.0.2.7";
    assert_eq!(desk.run(remove), ended(0, "removed: the rule applies to the key again"));
    assert_eq!(desk.run(remove), ended(0, "nothing to remove: the key has no override"));
}

#[test]
fn the_heaviest_keys_are_listed_once_without_a_terminal() {
    let desk = Desk::new("support_top");
    let none = "no denials in the last minute; --by asked lists the keys with the most requests";
    assert_eq!(desk.run("top"), ended(0, none));
    assert_eq!(desk.run("top --by asked"), ended(0, "no requests in the last minute"));
    for _ in 0..5 {
        desk.run(&format!("admit {LOGIN}"));
    }
    let [head, tighter, login] = [
        "RULE     KEY            ASKED  DENIED  ERROR",
        "tighter  ana 192.0.2.7  5      4       0",
        "login    ana 192.0.2.7  5      2       0",
    ];
    assert_eq!(desk.run("top"), ended(0, &[head, tighter, login].join("\n")));
    let login = "RULE   KEY            ASKED  DENIED  ERROR\nlogin  ana 192.0.2.7  5      2       0";
    assert_eq!(desk.run("top --once --rule login --every 1s"), ended(0, login));
    let asked = desk.json("top --by asked --json -n 1");
    assert_eq!(asked["keys"].as_array().map(Vec::len), Some(1));
    assert_eq!(asked["keys"][0]["asked"], 5);
}

#[test]
fn banned_keys_are_listed_below_the_heaviest_and_a_reset_lifts_a_ban() {
    // No ban ends while a test runs.
    let rules = bans::RULES.replace("\"10h\"", "\"10d\"").replace("\"1h\"", "\"1d\"").replace("/h", "/d");
    let desk = Desk::under("support_bans", &rules);
    let login = "admit path=/login user=ana";
    assert_eq!(desk.run(login).0, Some(0));
    assert!(!desk.run("top").1.contains("BANNED"), "no ban, no list");
    assert_eq!(desk.json("top --json")["bans"], json!([]));
    for begins in ["denied by", "denied by", "denied and banned by", "banned by"] {
        let (code, line) = desk.run(login);
        assert!(
            code == Some(3) && line.starts_with(&format!("{begins} rule \"login\", try again")),
            "{line}"
        );
    }
    let (code, list) = desk.run("top --rule login");
    assert_eq!(code, Some(0), "{list}");
    let lines: Vec<_> = list.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "RULE   KEY  ASKED  DENIED  ERROR",
            "login  ana  5      4       0",
            "",
            "RULE   BANNED KEY  ENDS IN"
        ]
    );
    assert!(lines.len() == 5 && lines[4].starts_with("login  ana         "), "{list}");
    let both = desk.json("top --json");
    assert_eq!((&both["bans"][0]["rule"], &both["bans"][0]["key"]), (&json!("login"), &json!(["ana"])));
    assert!(both["keys"].is_array() && both["bans"][0]["ends_in_ms"].is_u64(), "{both}");
    assert_eq!(desk.json("top --json --rule day")["bans"], json!([]));
    assert!(desk.run("peek login user=ana").1.starts_with("banned by rule \"login\", try again in "));
    assert_eq!(desk.run("reset login user=ana"), ended(0, "reset: the key has its whole limit again"));
    assert_eq!(desk.json("top --json")["bans"], json!([]));
    assert_eq!(desk.run(login).0, Some(0));
}

#[test]
fn what_a_server_denies_or_does_not_know_is_reported_with_its_remedy() {
    let desk = Desk::new("support_wrong");
    for (words, code, said) in [
        ("peek lgoin user=ana", 2, "there is no rule of this name; did you mean \"login\"?"),
        ("reset login user=ana", 2, "key: \"ip\" is a part of the key of rule \"login\" and missing"),
        ("reset login usr=ana", 2, "key: \"usr\" is no part of this rule's key"),
        ("reset office", 1, "rule \"office\": has a decision in place of a limit"),
        ("peek login ip=localhost", 2, "\"ip=localhost\": ip is no address"),
        ("admit login", 2, "\"login\": has no \"=\"; write NAME=VALUE"),
        ("admit user=ana --max-wait 5", 2, "--max-wait \"5\": "),
        ("top --rule nothing", 2, "rule \"nothing\": there is no rule of this name; /v1/rules lists"),
        ("top --every 0s", 2, "--every \"0s\": "),
        ("top -n 101", 2, "101"),
        ("override put login user=ana ip=::1 --for 2h", 2, "--limit"),
        ("override put login user=ana ip=::1 --deny", 2, "--for"),
        (
            "override put login user=ana ip=::1 --deny --for never",
            2,
            "--for \"never\": is no length; write --until never",
        ),
        (
            "override put login user=ana ip=::1 --deny --for 2h --replace",
            1,
            "there is no override of this key to replace, or it has ended; leave --replace out",
        ),
        ("adjust login user=ana ip=::1", 2, "--give-back"),
        ("adjust login user=ana ip=::1 --charge 0", 2, "--charge"),
        ("adjust login user=ana ip=::1 --charge 1 --give-back 1", 2, "cannot be used with"),
        (
            "peek login user=ana ip=2001:db8::/48",
            2,
            "the prefix length /48, and rule \"login\" counts by /64",
        ),
    ] {
        let (ended, line) = desk.run(words);
        assert!(ended == Some(code) && line.contains(said), "{words}: {ended:?} {line}");
    }
    let server = desk.call.value("TIDEGATE_HTTP").to_owned();
    let stranger = Call::from("support_stranger").variable("TIDEGATE_HTTP", &server);
    for words in [&["peek", "site"][..], &["reset", "site"], &["override"], &["top", "--once"], &["admit"]] {
        let ended = stranger.run(words);
        let wants = format!("error: {server} wants a token; set TIDEGATE_TOKEN or --token-file\n");
        assert_eq!((ended.code, ended.err), (Some(1), wants), "{words:?}");
    }
    let wrong =
        Call::from("support_wrong_token").file("token", "wrong-token\n").variable("TIDEGATE_HTTP", &server);
    let is_wrong = |origin: &str| {
        format!(
            "error: the token from {origin} is wrong: {server} has another one; correct TIDEGATE_TOKEN or --token-file\n"
        )
    };
    assert_eq!(wrong.run(&["override", "--token-file", "token"]).err, is_wrong("token"));
    let wrong = wrong.variable("TIDEGATE_TOKEN", "wrong-token");
    assert_eq!(wrong.run(&["override"]).err, is_wrong("TIDEGATE_TOKEN"));
}

#[test]
fn a_key_is_named_as_it_is_listed() {
    let desk = Desk::new("support_listed");
    assert_eq!(desk.run("admit path=/login user=ana ip=2001:db8::7").0, Some(0));
    let listed = "login user=ana ip=2001:db8::/64";
    assert_eq!(desk.run(&format!("peek {listed}")), ended(0, "allowed under rule \"login\", 2 of 3 left"));
    assert_eq!(desk.run(&format!("adjust {listed} --charge 1")), ended(0, "charged; 1 of 3 left"));
    assert_eq!(desk.run(&format!("adjust {listed} --give-back 1")), ended(0, "given back; 2 of 3 left"));
    let capped = "given back in part: the key owed less; 3 of 3 left";
    assert_eq!(desk.run(&format!("adjust {listed} --give-back 9")), ended(0, capped));
    assert_eq!(desk.run(&format!("adjust {listed} --charge 1")).0, Some(0));
    assert_eq!(desk.run(&format!("reset {listed}")), ended(0, "reset: the key has its whole limit again"));
    let (code, line) = desk.run(&format!("override put {listed} --allow --for 2h --by ana"));
    assert!(code == Some(0) && line.contains("ip=2001:db8::/64"), "{line}");
    let exempt = "allowed by rule \"login\": an override of this key exempts it";
    assert_eq!(desk.run("peek login user=ana ip=2001:db8::9"), ended(0, exempt));
    let (_, table) = desk.run("override");
    let head: Vec<_> = table.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["RULE", "KEY", "INSTEAD", "UNTIL", "BY", "AT"], "{table}");
    assert!(table.contains("  ana  20"), "{table}");
    assert_eq!(
        desk.run(&format!("override remove {listed}")),
        ended(0, "removed: the rule applies to the key again")
    );
    // Without the flag, the author is the user of the environment.
    let call = Call::beside(&desk.call).variable("TIDEGATE_TOKEN", "sesame").variable("LOGNAME", "bob");
    let call = call.variable("TIDEGATE_HTTP", desk.call.value("TIDEGATE_HTTP"));
    let put = ["override", "put", "site", "--deny", "--for", "1h", "--json"];
    let put: Value = serde_json::from_str(&call.run(&put).out).expect("JSON");
    assert_eq!(put["by"], "bob");
}

#[test]
fn a_denial_without_a_rule_names_the_setting_and_an_override_that_will_be_lost_is_a_warning() {
    let rules = "[server]\noverrides_file = 'off'\n[rules]\nunmatched = 'deny'\n\
                 [[rule]]\nname = 'a'\nwhen = { path = '/a' }\nkey = ['user']\nlimit = '1/h'\n";
    let desk = Desk::under("support_unmatched", rules);
    let denied = "denied: no rule applies to the request, and [rules] unmatched is \"deny\"";
    assert_eq!(desk.run("admit path=/q"), ended(3, denied));
    let Ended { code, err, .. } =
        desk.call.run(&["override", "put", "a", "user=ana", "--deny", "--until", "never"]);
    let warning =
        "warning: until \"never\": this server keeps overrides in memory, so this one ends with the server";
    assert!(code == Some(0) && err.starts_with(warning), "{err}");
}

#[test]
fn a_reset_needs_a_server_with_a_token() {
    let call = Call::from("support_open").file("tidegate.toml", RULES);
    let (_server, ready) = call.serve(&["--config", "tidegate.toml"]);
    let server = ready["http"].as_str().expect("it speaks HTTP");
    let ended = call.run(&["reset", "site", "--server", server]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.err.contains("the server has no token to know who may; start it with TIDEGATE_TOKEN"),
        "{}",
        ended.err
    );
    assert_eq!(call.run(&["peek", "site", "--server", server]).code, Some(0));
}

#[test]
fn another_protocol_and_a_closed_port_are_named() {
    let stranger = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = stranger.local_addr().unwrap().to_string();
    thread::spawn(move || {
        let (mut stream, _) = stranger.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        stream.write_all(b"-ERR unknown command\r\n").unwrap();
    });
    let call = Call::from("support_other");
    let ended = call.run(&["peek", "site", "--server", &address]);
    let said = "it does not answer as a tidegate server over HTTP does; name the HTTP port of a tidegate server with --server";
    assert_eq!((ended.code, ended.err), (Some(1), format!("error: no answer from {address}: {said}\n")));
    let closed = call.run(&["top", "--once", "--server", "127.0.0.1:1"]);
    assert!(closed.code == Some(1) && closed.err.contains("no server at 127.0.0.1:1: "), "{}", closed.err);
    let invalid = call.run(&["top", "--once", "--server", "nowhere"]);
    assert!(
        invalid.code == Some(2) && invalid.err.contains("write something like \"127.0.0.1:8380\""),
        "{}",
        invalid.err
    );
}
