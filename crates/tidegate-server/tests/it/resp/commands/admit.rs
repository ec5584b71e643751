//! Tests of `TG.ADMIT`.

use std::time::Duration;

use super::{NAMES, bulk};
use crate::wire::{self, Running};

const RULES: &str = r#"
[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "robots"
when = { "header.user-agent" = "Bad*" }
decision = "deny"

[[rule]]
name = "login"
when = { path = "/login" }
key = ["ip"]
limit = "2/60s burst 2"

[[rule]]
name = "site"
when = { path = "/{*any}" }
key = ["user"]
limit = "10/s burst 5"

[[rule]]
name = "uploads"
when = { path = "/upload" }
key = ["user"]
limit = "1/30s concurrency"

[[rule]]
name = "queue"
when = { path = "/queue" }
limit = "1/s queue 2 leaky-bucket"
"#;

fn running() -> Running {
    Running::under(RULES)
}

/// Returns the expected fields with this rule, in RESP2.
fn fields(figures: [i64; 6], rule: Option<&str>) -> String {
    let numbers = NAMES.iter().zip(figures).map(|(name, number)| format!("{}:{number}\r\n", bulk(name)));
    let rule = rule.map_or("$-1\r\n".to_owned(), bulk);
    format!(
        "*16\r\n{}{}{rule}{}{}",
        numbers.collect::<String>(),
        bulk("rule"),
        bulk("decided_by"),
        bulk("memory")
    )
}

#[test]
fn the_binding_rule_is_named_and_all_or_none_is_charged() {
    let (running, mut talk) = running().with_raw();
    let mut login = || talk.ask(&["TG.ADMIT", "ip", "192.0.2.7", "path", "/login", "user", "ana"]);
    assert_eq!(login(), fields([1, 2, 1, -1, 30_000, 0], Some("login")));
    assert_eq!(login(), fields([1, 2, 0, -1, 60_000, 0], Some("login")));
    assert_eq!(login(), fields([0, 2, 0, 30_000, 60_000, -1], Some("login")));
    let other = talk.ask(&["TG.ADMIT", "path", "/x", "user", "ana"]);
    assert_eq!(other, fields([1, 5, 2, -1, 300, 0], Some("site")), "the refused login cost nothing here");
    running.clock.advance(Duration::from_secs(30));
    let again = talk.ask(&["TG.ADMIT", "ip", "192.0.2.7", "path", "/login", "user", "ana"]);
    assert_eq!(again, fields([1, 2, 0, -1, 60_000, 0], Some("login")));
}

#[test]
fn a_ban_is_the_last_field_and_is_there_only_if_there_is_one() {
    let (_running, mut talk) = Running::under(
        "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '1/h'\npenalty = { after = 2, within = '1h', for = '10h' }",
    )
    .with_raw();
    let mut login = |all: &[&str]| talk.ask(&[&["TG.ADMIT"], all, &["user", "ana"]].concat());
    assert_eq!(login(&[]), fields([1, 1, 0, -1, 3_600_000, 0], Some("login")));
    assert_eq!(login(&[]), fields([0, 1, 0, 3_600_000, 3_600_000, -1], Some("login")));
    let banned = |word: &str, figures| {
        fields(figures, Some("login")).replacen("*16", "*18", 1) + &bulk("ban") + &bulk(word)
    };
    let figures = [0, 1, 0, 36_000_000, 36_000_000, -1];
    assert_eq!(login(&[]), banned("begun", figures));
    assert_eq!(login(&[]), banned("in_force", figures));
    let limit = format!(
        "*1\r\n*12\r\n{}{}{}:1\r\n{}:0\r\n{}:36000000\r\n{}:36000000\r\n{ban}",
        bulk("name"),
        bulk("login"),
        bulk("limit"),
        bulk("remaining"),
        bulk("retry_after"),
        bulk("reset_after"),
        ban = bulk("ban") + &bulk("in_force")
    );
    let all = fields(figures, Some("login")).replacen("*16", "*20", 1) + &bulk("limits") + &limit;
    assert_eq!(login(&["ALL"]), all + &bulk("ban") + &bulk("in_force"));
    let peek = talk.ask(&["TG.PEEK", "RULE", "login", "user", "ana"]);
    assert_eq!(peek, banned("in_force", figures));
    assert_eq!(
        talk.ask(&["TG.PEEK", "RULE", "login", "user", "bob"]),
        fields([1, 1, 1, -1, 0, 0], Some("login"))
    );
}

#[test]
fn decisions_come_first_and_what_no_rule_is_for_is_allowed() {
    let (_running, mut talk) = running().with_raw();
    let none = [-1, -1, -1, -1];
    let fixed =
        |allowed: i64, delay, rule| fields([allowed, none[0], none[1], none[2], none[3], delay], rule);
    let office = talk.ask(&["TG.ADMIT", "ip", "::ffff:10.1.2.3", "path", "/login"]);
    assert_eq!(office, fixed(1, 0, Some("office")));
    let robot = talk.ask(&["TG.ADMIT", "header.User-Agent", "BadBot/1.0", "path", "/x"]);
    assert_eq!(robot, fixed(0, -1, Some("robots")));
    assert_eq!(talk.ask(&["TG.ADMIT"]), fixed(1, 0, None));
    assert_eq!(talk.ask(&["TG.ADMIT", "action", "reply"]), fixed(1, 0, None));
}

#[test]
fn cost_and_max_wait_come_first() {
    let (_running, mut talk) = running().with_raw();
    let three = talk.ask(&["tg.admit", "cost", "3", "path", "/x", "user", "ana"]);
    assert_eq!(three, fields([1, 5, 2, -1, 300, 0], Some("site")));
    let six = talk.ask(&["TG.ADMIT", "COST", "6", "path", "/x", "user", "ana"]);
    assert_eq!(six, fields([0, 5, 2, -1, 300, -1], Some("site")), "never");
    let mut queue = |max_wait: &[&str]| {
        talk.ask(
            &[&["TG.ADMIT"], max_wait, &["user", "bob", "path", "/queue", "cost", "an attribute"]].concat(),
        )
    };
    assert!(queue(&[]).contains("delay\r\n:0\r\n"));
    assert!(queue(&[]).contains("delay\r\n:1000\r\n"), "the whole queue unless MAXWAIT is less");
    assert!(queue(&["MAXWAIT", "1999"]).contains("retry_after\r\n:1\r\n"));
    assert!(queue(&["MAXWAIT", "2000"]).contains("delay\r\n:2000\r\n"));
}

#[test]
fn a_permit_releases_its_slot() {
    let (_running, mut client) = running().with_resp();
    let upload = ["TG.ADMIT", "path", "/upload", "user", "ana"];
    let permit = client.ask(&upload).text("permit");
    assert_eq!(client.ask(&upload).number("allowed"), 0);
    for (verb, is_held) in [("TG.RENEW", 1), ("TG.RELEASE", 1), ("TG.RELEASE", 0)] {
        assert_eq!(client.ask(&[verb, &permit]), wire::resp::Value::Integer(is_held));
    }
    assert_eq!(client.ask(&upload).number("allowed"), 1);
}

#[test]
fn a_denied_request_holds_no_permit_of_a_candidate() {
    let rules = "[[rule]]\nname = 'one'\nkey = ['user']\nlimit = '1/h concurrency'\n\
                 [[rule]]\nname = 'three'\ncandidate_for = 'one'\nlimit = '3/h concurrency'\n";
    let (running, mut client) = Running::under(rules).with_resp();
    assert_eq!(client.ask(&["TG.ADMIT", "user", "ana"]).number("allowed"), 1);
    for _ in 0..10 {
        let refused = client.ask(&["TG.ADMIT", "user", "ana"]);
        assert!(refused.number("allowed") == 0 && refused.field("permit").is_none());
    }
    let metrics = wire::http::Talk::to(&running).get("/metrics").body;
    let looser =
        "tidegate_candidate_differences_total{rule=\"three\",candidate_for=\"one\",difference=\"looser\"} 10";
    assert!(metrics.contains(looser), "{metrics}");
}

#[test]
fn an_invalid_admission_is_an_error_and_charges_no_key() {
    let (_running, mut talk) = running().with_raw();
    for (words, said) in [
        (&["user"][..], "-ERR attribute 'user' has no value"),
        (&["ALL", "user"], "-ERR attribute 'user' has no value"),
        (&["user", "ana", "path"], "-ERR attribute 'path' has no value"),
        (&["user", "ana", "user", "bob"], "-ERR attribute 'user' is there twice; leave one of them out"),
        (&["ip", "::1", "ip", "::2"], "-ERR attribute 'ip' is there twice"),
        (&["ip", "192.0.2.7:80"], "-ERR attribute 'ip' is no address; send one such as 192.0.2.7"),
        (
            &["path", "/login", "COST", "2"],
            "-ERR attribute 'COST': COST comes before the attributes; write TG.ADMIT COST 2 path /login",
        ),
        (
            &["path", "/login", "MAXWAIT", "2", "user", "ana"],
            "-ERR attribute 'MAXWAIT': MAXWAIT comes before the attributes; write TG.ADMIT MAXWAIT 500 path /login",
        ),
        (
            &["path", "/login", "ALL"],
            "-ERR attribute 'ALL': ALL comes before the attributes; write TG.ADMIT ALL path /login",
        ),
        (&["COST", "0", "user", "ana"], "-ERR COST is at least 1"),
        (&["COST", "x", "user", "ana"], "-ERR COST takes a whole number, not 'x'"),
        (&["MAXWAIT", "-1", "user", "ana"], "-ERR MAXWAIT takes whole milliseconds, not '-1'"),
    ] {
        let reply = talk.ask(&[&["TG.ADMIT"], words].concat());
        assert!(reply.starts_with(said), "{words:?}: {reply}");
    }
    let names: Vec<_> = (0..65).map(|number| format!("a{number}")).collect();
    let many = |count: usize| names[..count].iter().flat_map(|name| [name.as_str(), "x"]);
    let words: Vec<_> = ["TG.ADMIT"].into_iter().chain(many(64)).collect();
    assert!(talk.ask(&words).starts_with("*16"));
    let words: Vec<_> = ["TG.ADMIT"].into_iter().chain(many(65)).collect();
    assert!(talk.ask(&words).starts_with("-ERR a request has at most 64 attributes"));
    let long = "x".repeat((64 << 10) - 1);
    assert!(talk.ask(&["TG.ADMIT", "a", &long]).starts_with("*16"));
    assert!(
        talk.ask(&["TG.ADMIT", "ab", &long]).starts_with("-ERR the attributes of a request have at most")
    );
}

#[test]
fn names_have_a_bound() {
    let (_running, mut talk) = running().with_raw();
    let mut named = |bytes: usize| talk.ask(&["TG.ADMIT", &"n".repeat(bytes), "x"]);
    assert!(named(128).starts_with("*16"));
    assert!(named(129).contains(" has a name of 129 bytes; at most 128, as in rules"), "{}", named(129));
}

#[test]
fn a_denied_request_gets_no_permit_even_if_a_candidate_has_one() {
    let running = Running::under(
        r#"
        [[rule]]
        name = "uploads"
        key = ["user"]
        limit = "1/30s concurrency"

        [[rule]]
        name = "uploads-wide"
        candidate_for = "uploads"
        limit = "5/30s concurrency"
        "#,
    );
    let mut client = running.resp();
    let upload = ["TG.ADMIT", "user", "ana"];
    assert!(client.ask(&upload).field("permit").is_some());
    let refused = client.ask(&upload);
    assert_eq!((refused.number("allowed"), refused.field("permit")), (0, None));
}

/// Returns the expected field `limits` with these limits: the name, and the four numbers of each.
fn limits(map: &str, each: &[(&str, [i64; 4])]) -> String {
    let numbers = ["limit", "remaining", "retry_after", "reset_after"];
    let each = each.iter().map(|(rule, figures)| {
        let numbers =
            numbers.iter().zip(figures).map(|(name, number)| format!("{}:{number}\r\n", bulk(name)));
        format!("{map}\r\n{}{}{}", bulk("name"), bulk(rule), numbers.collect::<String>())
    });
    let each: Vec<_> = each.collect();
    format!("{}*{}\r\n{}", bulk("limits"), each.len(), each.concat())
}

#[test]
fn all_lists_every_limit_that_decided_the_binding_one_first() {
    let (_running, mut talk) = running().with_raw();
    let login = ["path", "/login", "ip", "192.0.2.7", "user", "ana"];
    let expected = fields([1, 2, 1, -1, 30_000, 0], Some("login")).replacen("*16", "*18", 1);
    let all = talk.ask(&[&["TG.ADMIT", "ALL", "COST", "1"], &login[..]].concat());
    let [two, three] = [1, 2].map(|spent: i64| [5, 5 - spent, -1, 100 * spent]);
    assert_eq!(all, expected + &limits("*10", &[("login", [2, 1, -1, 30_000]), ("site", two)]));

    talk.ask(&["HELLO", "3"]);
    let all = talk.ask(&[&["tg.admit", "cost", "1", "all"], &login[..]].concat());
    assert!(all.starts_with("%9\r\n"), "{all}");
    assert!(all.ends_with(&limits("%5", &[("login", [2, 0, -1, 60_000]), ("site", three)])), "{all}");

    let denied = talk.ask(&[&["TG.ADMIT", "ALL"], &login[..]].concat());
    let site = ("site", three);
    assert!(denied.ends_with(&limits("%5", &[("login", [2, 0, 30_000, 60_000]), site])), "{denied}");
    let without = talk.ask(&[&["TG.ADMIT"], &login[..]].concat());
    assert!(without.starts_with("%8\r\n") && !without.contains("limits"), "{without}");
}

#[test]
fn all_lists_nothing_where_no_limit_decided() {
    let (_running, mut talk) = running().with_raw();
    for request in [&["ip", "10.1.2.3"][..], &["header.user-agent", "BadBot"], &["user", "ana"], &[]] {
        let reply = talk.ask(&[&["TG.ADMIT", "ALL"], request].concat());
        assert!(
            reply.starts_with("*18") && reply.ends_with("$6\r\nlimits\r\n*0\r\n"),
            "{request:?}: {reply}"
        );
    }
}

#[test]
fn all_stands_beside_a_permit_and_is_an_option_only_in_front() {
    let (_running, mut client) = running().with_resp();
    let upload = client.ask(&["TG.ADMIT", "ALL", "path", "/upload", "user", "ana"]);
    let Some(wire::resp::Value::Array(listed)) = upload.field("limits") else { panic!("{upload:?}") };
    assert_eq!(listed.len(), 2);
    let permit = upload.text("permit");
    assert_eq!(client.ask(&["TG.RELEASE", &permit]), wire::resp::Value::Integer(1));
    let attribute = client.ask(&["TG.ADMIT", "user", "ana", "all", "x", "path", "/upload"]);
    assert_eq!((attribute.number("allowed"), attribute.field("limits")), (1, None));
}
