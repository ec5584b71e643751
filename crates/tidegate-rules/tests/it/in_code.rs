//! Tests that a policy made in code is the same as that policy from text, with the same errors.

use std::time::Duration;

use tidegate::{Limit, OnStoreFailure, WhenFull};
use tidegate_rules::{
    Mode, OnMissing, OnRepeated, Policy, PolicyBuilder, PolicyError, Rule, RuleBuilder, ScheduleWindow,
    StaticVerdict,
};

use crate::requests::policy;

/// Returns what can be compared of a policy: its rules with all their parameters, and its zones.
fn contents(policy: &Policy) -> (&[Rule], &[tidegate_rules::NamedZone], Vec<&str>) {
    (policy.rules(), policy.zones(), policy.attributes().collect())
}

fn of(rules: impl IntoIterator<Item = RuleBuilder>) -> PolicyBuilder {
    rules.into_iter().fold(Policy::builder(), PolicyBuilder::rule)
}

fn errors(error: &PolicyError) -> Vec<String> {
    error.complaints().iter().map(|complaint| complaint.what.clone()).collect()
}

#[test]
fn a_policy_in_code_equals_the_same_policy_from_text() {
    let text = r#"
        [zone.logins]
        size = "1MiB"
        [[rule]]
        name = "office"
        when = { ip = ["10.0.0.0/8", "192.0.2.7"] }
        decision = "allow"
        [[rule]]
        name = "api"
        when = { path = "/api/{*rest}", method = "POST", header.X-Plan = "free*" }
        key = ["header.X-User", "ip"]
        limit = "10/s burst 20"
        cost = 3
        max_wait = "1500us"
        mode = "shadow"
        on_missing = "skip"
        on_repeated = "deny"
        on_store_failure = "closed"
        ipv4_prefix = 24
        ipv6_prefix = 56
        trusted = ["header.x-user"]
        [[rule]]
        name = "login"
        key = ["ip"]
        limit = "5/m fixed-window"
        when_full = "forget"
        zone = "logins"
        [[rule.schedule]]
        from = "22:00"
        to = "06:00"
        days = ["sat", "sun"]
        timezone = "Europe/Berlin"
        limit = "1/m fixed-window"
        cost = 2
        max_wait = "1s"
        mode = "shadow"
        [[rule]]
        name = "next"
        candidate_for = "login"
        limit = "4/m fixed-window"
    "#;
    let nights = ScheduleWindow::new("22:00", "06:00")
        .days(["sat", "sun"])
        .timezone("Europe/Berlin")
        .limit("1/m fixed-window")
        .cost(2)
        .max_wait(Duration::from_secs(1))
        .mode(Mode::Shadow);
    let rules = [
        Rule::builder("office").when_any("ip", ["10.0.0.0/8", "192.0.2.7"]).decision(StaticVerdict::Allow),
        Rule::builder("api")
            .when("path", "/api/{*rest}")
            .when("method", "POST")
            .when("header.X-Plan", "free*")
            .key(["header.X-User", "ip"])
            .limit(Limit::per_second(10).burst(20))
            .cost(3)
            .max_wait(Duration::from_nanos(1_499_001))
            .mode(Mode::Shadow)
            .on_missing(OnMissing::Skip)
            .on_repeated(OnRepeated::Deny)
            .on_store_failure(OnStoreFailure::Closed)
            .ipv4_prefix(24)
            .ipv6_prefix(56)
            .trusted(["header.x-user"]),
        Rule::builder("login")
            .key(["ip"])
            .limit("5/m fixed-window")
            .when_full(WhenFull::Forget)
            .zone("logins")
            .window(nights),
        Rule::builder("next").candidate_for("login").limit("4/m fixed-window"),
    ];
    let in_code = of(rules).zone("logins", 1 << 20).build().expect("it is valid");
    assert_eq!(contents(&in_code), contents(&policy(text)));
}

#[test]
fn a_second_value_of_a_field_replaces_the_first() {
    let rule = Rule::builder("a").key(["ip"]).key(["user"]).limit("1/x").limit("2/s").cost(2).cost(3);
    let error = of([rule.clone()]).build().expect_err("an invalid limit is reported, replaced or not");
    assert_eq!(error.complaints().len(), 1, "{error}");
    let rule = Rule::builder("a").key(["ip"]).key(["user"]).limit("1/s").limit("2/s").cost(2).cost(3);
    let text = "[[rule]]\nname = 'a'\nkey = ['user']\nlimit = '2/s'\ncost = 3\n";
    assert_eq!(contents(&of([rule]).build().expect("valid")), contents(&policy(text)));
}

#[test]
fn the_errors_of_a_policy_in_code_are_those_of_the_text_with_the_name_of_the_rule() {
    let window = || ScheduleWindow::new("09:00", "11-11").limit("2/min");
    let cases: [(RuleBuilder, &str); 10] = [
        (Rule::builder("a").limit("60/min"), "limit = '60/min'"),
        (Rule::builder("a").limit("60/min").key(["IP"]), "limit = '60/min'\nkey = ['IP']"),
        (Rule::builder("a"), ""),
        (Rule::builder("a").when("path", "api").limit("1/s"), "when = { path = 'api' }\nlimit = '1/s'"),
        (Rule::builder("a").when_any("user", [""; 0]).limit("1/s"), "when = { user = [] }\nlimit = '1/s'"),
        (Rule::builder("a").key(["IP", "ip"]).limit("1/s"), "key = ['IP', 'ip']\nlimit = '1/s'"),
        (
            Rule::builder("a").limit("1/s").cost(0).zone("x").ipv4_prefix(33),
            "limit = '1/s'\ncost = 0\nzone = 'x'\nipv4_prefix = 33",
        ),
        (Rule::builder("a").decision(StaticVerdict::Deny).key(["ip"]), "decision = 'deny'\nkey = ['ip']"),
        (Rule::builder("a").candidate_for("b").limit("1/s"), "candidate_for = 'b'\nlimit = '1/s'"),
        (
            Rule::builder("a").limit("1/s").window(window()),
            "limit = '1/s'\nschedule = [{ from = '09:00', to = '11-11', limit = '2/min' }]",
        ),
    ];
    for (rule, fields) in cases {
        let in_code = errors(&of([rule]).build().expect_err(fields));
        let text = format!("[[rule]]\nname = 'a'\n{fields}\n");
        let mut in_text = errors(&Policy::from_toml(&text).expect_err(fields));
        let without_name = in_text.iter_mut().filter(|what| !what.starts_with("rule \"a\": "));
        without_name.for_each(|what| *what = format!("rule \"a\": {what}"));
        // A file has its errors in the order of their places, of which a rule in code has one.
        let sorted = |mut all: Vec<String>| {
            all.sort();
            all
        };
        assert_eq!(sorted(in_code), sorted(in_text), "{fields}");
    }
}

#[test]
fn an_error_in_code_has_no_place_in_a_text() {
    let error = of([Rule::builder("a").limit("1/s"), Rule::builder("a").limit("1/s")]).build().unwrap_err();
    let expected = "rule \"a\": name \"a\": rule 1 has it, too; counts are kept by name, so choose another";
    assert_eq!(error.to_string(), expected);
    let error = Policy::builder().zone("small", 100).build().unwrap_err();
    assert!(error.to_string().starts_with("zone \"small\": size \"100\": "), "{error}");
    let many = (0..=10_000).map(|number| Rule::builder(number.to_string()).limit("1/s"));
    let error = of(many).build().unwrap_err();
    assert_eq!(error.to_string(), "rule: there are more than 10000; use fewer");
}
