//! Tests of the output of `tidegate explain`.

use serde_json::{Value, json};

use super::call::Call;

const RULES: &str = r#"
[[rule]]
name = "office"
when = { ip = "10.0.0.0/8" }
decision = "allow"

[[rule]]
name = "api"
when = { path = "/api/{*rest}", method = ["GET", "POST"] }
key = ["ip", "user"]
limit = "10/s burst 20"
cost = 2

[[rule]]
name = "api-tighter"
candidate_for = "api"
limit = "5/s"

[[rule]]
name = "partner"
when = { user = "shop-*" }
key = ["header.x-partner"]
trusted = ["header.x-partner"]
on_missing = "skip"
limit = "5/60s sliding-log"
mode = "shadow"
"#;

fn explain(name: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let call = Call::from(name).file("tidegate.toml", RULES);
    let ended = call.run(&[&["explain"], arguments].concat());
    (ended.code, ended.out, ended.err)
}

/// Returns the start of the part about one rule.
fn place_of(text: &str, rule: &str) -> Option<usize> {
    text.find(&format!("\n  {rule}\n")).or_else(|| text.find(&format!("\n  {rule} ")))
}

/// Returns the part of a text about one rule, up to the next blank line.
fn of_rule<'t>(text: &'t str, rule: &str) -> &'t str {
    let start = place_of(text, rule).unwrap_or_else(|| panic!("{rule} is not in {text}"));
    let rest = &text[start + 1..];
    rest.split("\n\n").next().expect("it has an end").trim_end()
}

#[test]
fn a_repeated_part_of_the_key_is_explained_with_its_effect() {
    let explained = |on_repeated: &str| {
        let text = format!(
            "[[rule]]\nname = 'a'\nkey = ['query.u']\nlimit = '2/h'\non_repeated = '{on_repeated}'\n"
        );
        let call = Call::from(&format!("explain_repeated_{on_repeated}")).file("tidegate.toml", &text);
        call.run(&["explain", "query.u=x", "query.u=y"]).out
    };
    assert!(explained("share").contains("query.u is repeated, so counted with all that repeat it"));
    assert!(explained("first").contains("query.u = x, the first of several"));
    assert!(explained("last").contains("query.u = y, the last of several"));
    assert!(explained("deny").contains("denied, because query.u is repeated and on_repeated is \"deny\""));
}

#[test]
fn a_penalty_is_explained_and_aligned() {
    let text = "[[rule]]\nname = 'login'\nkey = ['user']\nlimit = '5/m'\n\
        penalty = { after = 3, within = '1m', for = '10m' }";
    let call = Call::from("explain_penalty").file("tidegate.toml", text);
    let text = call.run(&["explain", "user=ana"]).out;
    let lines: Vec<_> = of_rule(&text, "login").lines().take(5).collect();
    assert_eq!(
        lines,
        [
            "  login",
            "    when     ✓ always",
            "    key      user = ana",
            "    limit    5/m",
            "    penalty  after 3 denials within 1m, banned for 10m",
        ]
    );
    // The limit has a cell; the strikes and the ban are logs.
    let bytes = |limit: &str| limit.parse::<tidegate::Limit>().unwrap().bytes_per_key();
    let sum: usize = ["5/m", "3/m sliding-log", "1/10m sliding-log"].into_iter().map(bytes).sum();
    assert!(text.replace(',', "").contains(&format!("memory   {sum} bytes per key")), "{sum} in {text}");
    let json: Value = serde_json::from_str(&call.run(&["explain", "user=ana", "--json"]).out).unwrap();
    let rule = &json["rules"][0];
    assert_eq!(rule["penalty"], json!({"after": 3, "within_ms": 60_000, "for_ms": 600_000}));
    assert_eq!(rule["ban"], Value::Null);
}

#[test]
fn the_answer_comes_first_and_then_why() {
    let (code, text, talk) = explain("explain_api", &["ip=192.0.2.7", "path=/api//x", "method=GET"]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(text.lines().next(), Some("allowed: 18 of 20 left under rule \"api\""));
    let api = of_rule(&text, "api");
    let begins = [
        "  api",
        "    when    ✓ method = [\"GET\", \"POST\"]",
        "            ✓ path = \"/api/{*rest}\"",
        "    key     ip = 192.0.2.7, user is missing, so counted with all that miss it",
        "    limit   10/s burst 20",
        "    cost    2",
        "    says    allowed, 20 of 20 are free",
        "    most    20 at one instant, 29 in any 1s, 39 in any 2s, 619 in any 1m",
        "    memory  24 bytes per key",
    ];
    assert_eq!(api.lines().count(), begins.len(), "{api}");
    for (line, begin) in api.lines().zip(begins) {
        assert!(line.starts_with(begin), "{line:?} does not begin with {begin:?}");
    }
    assert!(
        of_rule(&text, "api-tighter").contains("mode    candidate for \"api\": measured and never enforced")
    );
    assert!(of_rule(&text, "office").contains("✗ ip = \"10.0.0.0/8\", but it is \"192.0.2.7\""));
    assert!(of_rule(&text, "partner").contains("✗ user = \"shop-*\", but it is missing"));
    let (applies, not) = (text.find("\napplies:\n"), text.find("\ndoes not apply:\n"));
    assert!(applies < place_of(&text, "api") && place_of(&text, "api-tighter") < not);
    assert!(not < place_of(&text, "office") && not.is_some());
}

#[test]
fn a_decision_comes_before_all_limits() {
    let (_, text, _) = explain("explain_office", &["ip=::ffff:10.1.2.3", "path=/api/x", "method=GET"]);
    assert_eq!(text.lines().next(), Some("allowed: rule \"office\" always allows"));
    let passed = text.find("\nwould apply, but \"office\" decides first:\n").expect("a part of its own");
    assert!(place_of(&text, "office") < Some(passed) && Some(passed) < place_of(&text, "api"), "{text}");
}

#[test]
fn a_cost_that_can_never_pass_is_reported_as_impossible() {
    let arguments = ["ip=192.0.2.7", "path=/api/x", "method=GET", "--cost", "11"];
    let (code, text, _) = explain("explain_cost", &arguments);
    let refused = "denied by rule \"api\": it costs 22, and at most 20 can pass at once; no wait would help";
    assert_eq!((code, text.lines().next()), (Some(0), Some(refused)));
}

#[test]
fn a_skipped_rule_names_the_missing_attribute() {
    let (_, text, _) = explain("explain_skip", &["user=shop-7"]);
    assert_eq!(text.lines().next(), Some("allowed: no rule applies"));
    assert!(
        of_rule(&text, "partner")
            .ends_with("✗ header.x-partner is a part of the key and missing, and on_missing is \"skip\"")
    );
    let (_, text, _) = explain("explain_shadow", &["user=shop-7", "header.X-Partner=p"]);
    assert_eq!(text.lines().next(), Some("allowed: no rule that applies is enforced"));
    let partner = of_rule(&text, "partner");
    assert!(partner.contains("mode    shadow: decides and counts, and is not enforced"), "{partner}");
    assert!(partner.contains("most    5 at one instant, 5 in any 1s, 5 in any 1m"), "{partner}");
}

#[test]
fn without_a_request_every_rule_has_a_row() {
    let (code, text, talk) = explain("explain_all", &[]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    let rows: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let head = ["rule", "limit", "at once", "any 1s", "any 1m", "in its period", "bytes per key", "on disk"];
    assert_eq!(rows[0], head);
    assert_eq!(rows[1], ["office", "always allows"]);
    assert_eq!((rows[2][0], rows[2][1], rows[2][2]), ("api", "10/s burst 20", "20"));
    assert_eq!(rows[4][..6], ["partner (shadow)", "5/m sliding-log", "5", "5", "5", "5 in 1m"]);
    assert_eq!((rows[2][7], rows[4][7]), ("24", "256"));
    assert_eq!(rows.len(), 5);
    let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
    assert!(widths[2] == widths[0] && widths[3] == widths[0], "{text}");
}

#[test]
fn programs_get_json() {
    let (code, text, _) = explain("explain_json", &["--json", "ip=192.0.2.7", "path=/api/x", "method=GET"]);
    let explained: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((code, &explained["allowed"], &explained["rule"]), (Some(0), &json!(true), &json!("api")));
    assert_eq!(explained["rules"].as_array().map(Vec::len), Some(4));
    assert_eq!(explained["rules"][1]["worst_case"]["instant"], 20);
}

/// The arguments and the expected error.
const NO_QUESTIONS: &str = r#"
ip | "ip": has no "="; write NAME=VALUE, as in ip=192.0.2.7
=x | "=x": begins with no name; they have letters, digits, _ - and . only, as in user=ana
ip=192.0.2.7:80 | "ip=192.0.2.7:80": ip is no address; send one such as 192.0.2.7 or 2001:db8::1, without a port
user=ana user=bob | "user=bob": user is there twice; leave one of them out
ip=::1 ip=::1 | "ip=::1": ip is there twice; leave one of them out
--at tomorrow | --at "tomorrow": is no date with a time and a zone; write something like 2026-11-11T08:00:00Z
--config no.toml | no.toml: there is no such file; name another, or write one with `tidegate init`
"#;

#[test]
fn invalid_arguments_are_errors_with_a_remedy() {
    for [arguments, said] in conformance::rows(NO_QUESTIONS) {
        let (code, out, talk) = explain("explain_wrong", &arguments.split(' ').collect::<Vec<_>>());
        assert_eq!((code, out.as_str(), talk), (Some(2), "", format!("error: {said}\n")), "{arguments:?}");
    }
}

#[test]
fn a_slip_in_a_name_is_noticed() {
    let (code, _, talk) = explain("explain_slip", &["usr=ana", "path=/"]);
    assert_eq!((code, talk.as_str()), (Some(0), "note: no rule looks at \"usr\"; did you mean \"user\"?\n"));
}

#[test]
fn invalid_rules_are_reported_as_check_reports_them() {
    let call = Call::from("explain_broken").file("tidegate.toml", "[[rule]]\nname = 'a'\nlimit = '5/min'\n");
    let (checked, explained) = (call.run(&["check"]), call.run(&["explain", "ip=::1"]));
    assert_eq!((explained.code, explained.out.as_str()), (Some(2), ""));
    assert_eq!(explained.err, checked.err);
}

#[test]
fn settings_of_a_server_do_not_matter() {
    let text = format!("[server]\nresp = '0.0.0.0:0'\ntoken_file = 'not-here'\n{RULES}");
    let ended = Call::from("explain_open").file("tidegate.toml", &text).run(&["explain", "ip=10.0.0.1"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

/// Limits and their expected worst case.
const WORST_CASES: &str = "
10/s burst 20 | 20 at one instant, 29 in any 1s, 39 in any 2s, 619 in any 1m
10/s fixed-window | 10 at one instant, 20 in any 1s, 610 in any 1m
5/60s sliding-log | 5 at one instant, 5 in any 1s, 5 in any 1m
5/60s sliding-window | 5 at one instant, 5 in any 1s, 5 in any 1m
10/s queue 4 leaky-bucket | accepts 5 at one instant, 9 in any 500ms, 14 in any 1s, 604 in any 1m; they leave evenly
10/s queue 4 delay-after all leaky-bucket | 5 at one instant, 9 in any 500ms, 14 in any 1s, 604 in any 1m
2/s pacer | 2 and one request of any cost at one instant, 3 and one in any 1s, 121 and one in any 1m
8/30s concurrency | 8 at a time, however many come and go
";

#[test]
fn every_algorithm_has_its_words_for_the_worst_case() {
    for [limit, most] in conformance::rows(WORST_CASES) {
        let rules = format!("[[rule]]\nname = 'a'\nlimit = '{limit}'\n");
        let call = Call::from("explain_worst").file("tidegate.toml", &rules).variable("TIDEGATE_CONFIG", "");
        let ended = call.run(&["explain", "ip=192.0.2.7"]);
        let reported = ended.out.lines().find_map(|line| line.strip_prefix("    most    "));
        assert_eq!(reported, Some(most), "{limit}: {}{}", ended.out, ended.err);
    }
}

#[test]
fn a_scheduled_limit_is_explained_with_its_end() {
    let rules = "[[rule]]\nname = 'a'\nlimit = '10/s'\n\
                 schedule = [{ from = '11-11T00:00', to = '11-12T00:00', timezone = 'Asia/Shanghai', limit = '50/s' }]\n";
    let call = Call::from("explain_schedule").file("tidegate.toml", rules);
    let limit_at = |date: &str| {
        let out = call.run(&["explain", "ip=192.0.2.7", "--at", date]).out;
        out.lines().find_map(|line| line.strip_prefix("    limit   ")).expect("a limit").to_owned()
    };
    assert_eq!(limit_at("2026-11-10T15:59:59Z"), "10/s until 2026-11-10T16:00:00Z");
    assert_eq!(
        limit_at("2026-11-11T00:00:00+08:00"),
        "50/s until 2026-11-11T16:00:00Z, by the schedule: 11-11T00:00 to 11-12T00:00 Asia/Shanghai"
    );
    assert_eq!(limit_at("2026-11-11T16:00:00Z"), "10/s until 2027-11-10T16:00:00Z");
}

#[test]
fn a_window_in_the_hour_that_clocks_repeat_holds_both_times() {
    let rules = "[[rule]]\nname = 'a'\nlimit = '10/s'\n\
                 schedule = [{ from = '02:15', to = '02:45', timezone = 'Europe/Berlin', limit = '1/s' }]\n";
    let call = Call::from("explain_repeated_hour").file("tidegate.toml", rules);
    for (date, limit) in [
        ("2026-10-25T00:30:00Z", "1/s until 2026-10-25T00:45:00Z, by the schedule: "),
        ("2026-10-25T01:00:00Z", "10/s until 2026-10-25T01:15:00Z"),
        ("2026-10-25T01:30:00Z", "1/s until 2026-10-25T01:45:00Z, by the schedule: "),
        // On this night the hour is skipped.
        ("2026-03-29T00:30:00Z", "10/s until 2026-03-30T00:15:00Z"),
    ] {
        let ended = call.run(&["explain", "ip=192.0.2.7", "--at", date]);
        assert!(ended.out.contains(&format!("\n    limit   {limit}")), "{date}: {ended:?}");
    }
}

#[test]
fn a_file_that_is_too_long_is_not_read() {
    let call = Call::from("explain_long").file("tidegate.toml", &"#".repeat((4 << 20) + 1));
    let ended = call.run(&["explain", "ip=192.0.2.7"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.err.contains("tidegate.toml: cannot be read: it is longer than 4194304 bytes"),
        "{ended:?}"
    );
}

const PLANS: &str = r#"
[rules]
unmatched = "deny"

[[rule]]
name = "vip"
group = "plan"
when = { plan = "vip" }
key = ["user"]
limit = "100/m"

[[rule]]
name = "vip-next"
candidate_for = "default"
limit = "20/m"

[[rule]]
name = "default"
group = "plan"
unless = { path = "/healthz", method = "GET" }
key = ["user"]
limit = "10/m"
"#;

/// Returns the explanation under groups.
fn plans(name: &str, arguments: &[&str]) -> String {
    let ended = Call::from(name).file("tidegate.toml", PLANS).run(&[&["explain"], arguments].concat());
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    ended.out
}

#[test]
fn the_member_that_was_chosen_is_named_where_the_others_are_not() {
    let text = plans("explain_group", &["user=ana", "plan=vip", "path=/x"]);
    assert_eq!(text.lines().next(), Some("allowed: 99 of 100 left under rule \"vip\""));
    let others = text.split("does not apply:").nth(1).expect("there are others");
    assert!(others.contains("✗ group \"plan\": rule \"vip\" was chosen first"), "{text}");
    assert!(others.contains("✗ rule \"vip\" was chosen before \"default\""), "{text}");
    let text = plans("explain_group_default", &["user=ana", "plan=free", "path=/healthz"]);
    assert_eq!(text.lines().next(), Some("allowed: 9 of 10 left under rule \"default\""));
    let exception = "✓ unless method = \"GET\", path = \"/healthz\", but method is missing";
    assert!(of_rule(&text, "default").contains(exception), "{text}");
}

#[test]
fn an_excepted_request_that_no_rule_is_left_for_is_denied_and_the_exception_is_named() {
    let text = plans("explain_unmatched", &["user=ana", "path=/healthz", "method=GET"]);
    assert_eq!(text.lines().next(), Some("denied: no rule applies, and [rules] has unmatched = \"deny\""));
    assert!(text.contains("✗ unless method = \"GET\", path = \"/healthz\", and it is so"), "{text}");
}

#[test]
fn the_table_shows_limits_of_single_values_and_the_verdict_without_a_rule() {
    let rules = "[rules]\nunmatched = 'deny'\n\n[[rule]]\nname = 'exports'\nkey = ['user']\nlimit = '10/m'\n\
                 limit_for = { 'ana' = '50/m' }\n";
    let text = Call::from("explain_values").file("tidegate.toml", rules).run(&["explain"]).out;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[1].starts_with("exports         10/m "), "{text}");
    assert!(lines[2].starts_with("  user = \"ana\"  50/m "), "{text}");
    let last = "[rules] has unmatched = \"deny\": a request to which no rule applies is denied";
    assert_eq!(lines[3..], ["", last], "{text}");
    let values: String = (0..23).map(|user| format!("'u{user}' = '1/m', ")).collect();
    let rules = rules.replace("'ana' = '50/m'", values.trim_end_matches(", "));
    let text = Call::from("explain_many_values").file("tidegate.toml", &rules).run(&["explain"]).out;
    assert!(text.contains("\n  3 more values of limit_for\n"), "{text}");
}
