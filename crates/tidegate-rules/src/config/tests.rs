//! Tests that files which are too large or have too many errors get short error messages.

use std::fmt::Write as _;

use tidegate_support::MAX_COMPLAINTS;

use super::valid::MAX_RULES;
use super::*;

fn rules(many: usize, rule: impl Fn(usize) -> String) -> String {
    (0..many).fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "[[rule]]\n{}", rule(number));
        text
    })
}

fn errors(text: &str) -> Vec<String> {
    read(text, OtherTables::Any).errors.into_iter().map(|error| error.what).collect()
}

fn warnings(text: &str) -> Vec<String> {
    let reading = read(text, OtherTables::Any);
    assert_eq!(reading.errors, []);
    reading.warnings.into_iter().map(|warning| warning.what).collect()
}

#[test]
fn too_many_rules_are_one_complaint_whatever_else_is_wrong() {
    let most = rules(MAX_RULES, |number| format!("name = 'r{number}'\nlimit = '1/s'"));
    assert_eq!(errors(&most), [""; 0]);
    for rule in ["", "name = 'same'", "name = 7\nlimit = '1/x'"] {
        let reported = errors(&rules(MAX_RULES + 1, |_| rule.to_owned()));
        assert_eq!(reported, ["rule: there are more than 10000; use fewer"], "{rule}");
    }
}

#[test]
fn of_many_complaints_the_first_are_listed_and_the_others_counted() {
    let same = rules(1000, |_| "name = 'same'\nlimit = '1/s'".to_owned());
    let reported = errors(&same);
    assert_eq!(reported.len(), MAX_COMPLAINTS + 1);
    assert!(reported[99].contains("the rule in line 2 has it, too"), "{}", reported[99]);
    assert_eq!(reported[MAX_COMPLAINTS], "and 899 more; these come first");
    let many_values =
        format!("[[rule]]\nname = 'a'\nlimit = '1/s'\nwhen = {{ ip = [{}] }}", "'x',".repeat(5000));
    assert_eq!(errors(&many_values)[MAX_COMPLAINTS], "and 4900 more; these come first");
}

#[test]
fn what_was_meant_is_said_for_the_first_unknown_names_only() {
    let mut text = rules(1, |_| "name = 'login'\nlimit = '1/s'".to_owned());
    text += &rules(50, |number| format!("name = 'c{number}'\ncandidate_for = 'logn'\nlimit = '1/s'"));
    let reported = errors(&text);
    let meant = reported.iter().filter(|what| what.contains("did you mean \"login\"?")).count();
    assert_eq!((reported.len(), meant), (50, 10));
}

#[test]
fn lists_that_are_too_long_are_one_complaint() {
    let list = |each: &str| format!("[{}]", format!("'{each}',").repeat(1000));
    for (field, what) in [
        (format!("key = {}", list("a")), "key: has more than 8 parts; use fewer"),
        (format!("key = ['a']\ntrusted = {}", list("a")), "trusted: has more than 8 parts; use fewer"),
    ] {
        let reported = errors(&format!("[[rule]]\nname = 'a'\nlimit = '1/s'\n{field}"));
        assert_eq!(reported.iter().filter(|reported| *reported == what).count(), 1, "{reported:?}");
        assert!(reported.len() <= 8, "{reported:?}");
    }
}

#[test]
fn rules_that_stand_twice_are_found_among_thousands() {
    let deny = |number: usize| {
        let number = if number == 4000 { 3999 } else { number };
        let ip = format!("10.{}.{}.1", number >> 8, number & 255);
        format!("when = {{ ip = '{ip}' }}\ndecision = 'deny'")
    };
    let reported = warnings(&rules(4001, |number| format!("name = 'r{number}'\n{}", deny(number))));
    assert_eq!(reported, ["rule \"r4000\": counts the same as \"r3999\"; leave one of them out"]);
}

#[test]
fn long_lists_cover_others_by_what_is_in_them() {
    let list = |from: usize, to: usize| {
        let all: Vec<_> =
            (from..to).map(|number| format!("'10.{}.{}.0/24'", number >> 8, number & 255)).collect();
        all.join(",")
    };
    let deny = |name: &str, ips: &str| {
        format!("[[rule]]\nname = '{name}'\nwhen = {{ ip = [{ips}] }}\ndecision = 'deny'\n")
    };
    let wide = deny("wide", &list(0, 5000));
    for (narrow, is_reported) in [
        (list(100, 4000), true),
        (list(0, 5000), true),
        (format!("'10.0.1.7',{}", list(3, 9)), true),
        (format!("'10.200.1.7',{}", list(3, 9)), false),
        (list(4000, 5001), false),
    ] {
        let reported = warnings(&format!("{wide}{}", deny("narrow", &narrow)));
        assert_eq!(
            reported.iter().any(|what| what.contains("is never reached")),
            is_reported,
            "{reported:?}"
        );
    }
}

#[test]
fn a_rule_that_may_be_backed_is_not_warned_of_however_many_there_are() {
    let one = |number: usize| {
        let (key, name) = if number.is_multiple_of(2) { ("ip", "i") } else { ("header.x", "h") };
        let path = if number == 9 { number } else { number / 2 };
        format!("name = '{name}{number}'\nwhen = {{ path = '/{path}' }}\nkey = ['{key}']\nlimit = '1/s'")
    };
    let few = warnings(&rules(8, one));
    assert_eq!(few, [""; 0]);
    assert!(warnings(&rules(10, one))[0].starts_with("rule \"h9\": counts by header.x"));
    assert!(warnings(&rules(MAX_RULES, one)).len() <= 1);
}

const NIGHTS: &str = "schedule = [{ from = '2026-11-01T00:00', to = '2026-11-02T00:00', limit = '2/s' }]";

#[test]
fn a_window_of_one_year_is_reported_from_its_end_on_and_not_before() {
    let text = rules(1, |_| format!("name = 'a'\nlimit = '1/s'\n{NIGHTS}"));
    let end = 1_793_577_600;
    let reported = |now| read_at(&text, OtherTables::Any, now).warnings.len();
    assert_eq!([reported(0), reported(end - 1), reported(end), reported(i64::MAX)], [0, 0, 1, 1]);
    for always in ["from = '11-01T00:00', to = '11-02T00:00'", "from = '09:00', to = '17:00'"] {
        let text =
            rules(1, |_| format!("name = 'a'\nlimit = '1/s'\nschedule = [{{ {always}, limit = '2/s' }}]"));
        assert_eq!(read_at(&text, OtherTables::Any, end).warnings, []);
    }
}

/// Returns true if there is a warning that the second of two rules never denies anything.
fn never_denies(first: &str, second: &str) -> bool {
    let reported =
        warnings(&format!("[[rule]]\nname = 'one'\n{first}\n[[rule]]\nname = 'other'\n{second}\n"));
    reported.iter().any(|what| {
        what.starts_with("rule \"other\": never denies anything: a request has to pass \"one\" as well")
    })
}

#[test]
fn a_rule_behind_a_stricter_one_is_reported() {
    let login = "when = { path = '/login' }\nkey = ['user']\nlimit = '5/m'";
    for second in [
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '5/m'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user', 'ip']\nlimit = '5/m burst 6'",
        "when = { path = '/login' }\nkey = ['user']\nlimit = '6/m'",
    ] {
        assert!(never_denies(login, second), "{second}");
    }
    for (first, second) in [
        ("limit = '5/m sliding-log'", "when = { user = 'vip' }\nlimit = '6/m sliding-log'"),
        ("limit = '5/m fixed-window'", "when = { user = 'vip' }\nlimit = '6/m fixed-window'"),
        ("limit = '5/m sliding-window'", "when = { user = 'vip' }\nlimit = '6/m sliding-window'"),
        ("limit = '5/m concurrency'", "when = { user = 'vip' }\nlimit = '6/s concurrency'"),
        ("limit = '100/s'", "key = ['ip']\nlimit = '200/s'"),
        ("key = ['ip']\nipv4_prefix = 24\nlimit = '5/s'", "key = ['ip']\nlimit = '9/s'"),
        ("cost = 2\nlimit = '5/s'", "when = { user = 'vip' }\nlimit = '5/s'"),
    ] {
        assert!(never_denies(first, second), "{first}\n{second}");
    }
}

#[test]
fn a_rule_that_can_be_the_first_to_deny_is_not_reported() {
    let login = "when = { path = '/login' }\nkey = ['user']\nlimit = '5/m'";
    for second in [
        "when = { user = 'vip' }\nkey = ['user']\nlimit = '50/m'",
        "when = { path = '/login', user = 'vip' }\nkey = ['ip']\nlimit = '50/m'",
        "when = { path = '/login', user = 'vip' }\nlimit = '50/m'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '4/m'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/h'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m sliding-log'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'\ncost = 11",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'\nmode = 'shadow'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'\non_store_failure = 'closed'",
        "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'\n\
         schedule = [{ from = '02:00', to = '04:00', limit = '1/m' }]",
        "candidate_for = 'one'\nlimit = '50/m'",
    ] {
        assert!(!never_denies(login, second), "{second}");
    }
    for more in [
        "mode = 'shadow'",
        "on_store_failure = 'open'",
        "when_full = 'forget'",
        "on_missing = 'skip'",
        "on_repeated = 'last'",
        "schedule = [{ from = '02:00', to = '04:00', limit = '90/m' }]",
    ] {
        let second = "when = { path = '/login', user = 'vip' }\nkey = ['user']\nlimit = '50/m'";
        assert!(!never_denies(&format!("{login}\n{more}"), second), "{more}");
    }
    for (first, second) in [
        ("limit = '5/m sliding-log'", "when = { user = 'vip' }\nlimit = '6/2m sliding-log'"),
        (
            "limit = '5/m sliding-window slots 4'",
            "when = { user = 'vip' }\nlimit = '6/m sliding-window slots 5'",
        ),
        ("limit = '5/m concurrency'", "when = { user = 'vip' }\nlimit = '6/h concurrency'"),
        ("limit = '5/s pacer'", "when = { user = 'vip' }\nlimit = '6/s pacer'"),
        ("limit = '5/s leaky-bucket'", "when = { user = 'vip' }\nlimit = '6/s leaky-bucket'"),
        ("key = ['ip']\nlimit = '5/s'", "key = ['ip']\nipv4_prefix = 24\nlimit = '9/s'"),
    ] {
        assert!(!never_denies(first, second), "{first}\n{second}");
    }
}

#[test]
fn one_of_two_rules_with_the_same_effect_is_reported() {
    let one = "key = ['user']\nlimit = '5/m'\nwhen = { path = '/a' }";
    let same = warnings(&format!("[[rule]]\nname = 'one'\n{one}\n[[rule]]\nname = 'other'\n{one}\n"));
    assert_eq!(same, ["rule \"other\": counts the same as \"one\"; leave one of them out"]);
    let both = "when = { path = ['/a', '/a'] }\nkey = ['user']\nlimit = '5/m'";
    let alike = warnings(&format!("[[rule]]\nname = 'one'\n{one}\n[[rule]]\nname = 'other'\n{both}\n"));
    assert_eq!(alike.len(), 1, "{alike:?}");
    assert!(alike[0].starts_with("rule \"other\": never denies"), "{alike:?}");
}

#[test]
fn thousands_of_limits_are_compared_for_a_moment_only() {
    let many =
        rules(MAX_RULES, |number| format!("name = 'r{number}'\nkey = ['user']\nlimit = '{}/m'", number + 1));
    assert!(warnings(&many).len() > MAX_COMPLAINTS);
}

#[test]
fn names_of_header_fields_are_reported_and_other_names_are_not() {
    let reported = |name: &str| {
        let text =
            rules(1, |_| format!("name = 'a'\nlimit = '1/s'\nkey = ['{name}']\nwhen = {{ {name} = 'x' }}"));
        warnings(&text).iter().filter(|what| what.contains("no header field; write \"header.")).count()
    };
    for name in ["X-Api-Key", "x-api-key", "Api-Key", "Authorization", "authorization", "User-Agent"] {
        assert_eq!(reported(name), 2, "{name}");
    }
    for name in ["user", "user-id", "api_key", "X", "tenant", "UserId", "plan-2"] {
        assert_eq!(reported(name), 0, "{name}");
    }
}

/// Returns true if there is a warning about the second of two rules that begins so.
fn is_warned_of(first: &str, second: &str, beginning: &str) -> bool {
    let text = format!("[[rule]]\nname = 'one'\n{first}\n[[rule]]\nname = 'other'\n{second}\n");
    warnings(&text).iter().any(|what| what.starts_with(&format!("rule \"other\": {beginning}")))
}

#[test]
fn a_rule_behind_one_with_an_exception_is_reached() {
    for (unless, narrow, is_reached) in [
        ("{ user = 'ana' }", "when = { path = '/a' }", true),
        ("{ user = 'ana' }", "when = { path = '/a' }\nunless = { user = 'an*' }", false),
        ("{ user = 'ana' }", "when = { path = '/a' }\nunless = { user = 'an*', ip = '10.0.0.0/8' }", true),
        ("{ user = 'ana', plan = 'x' }", "when = { path = '/a' }\nunless = { user = 'ana' }", false),
        ("{ user = { missing = true } }", "when = { path = '/a', user = 'ana' }", false),
        ("{ user = { present = true } }", "when = { path = '/a', user = { missing = true } }", false),
        ("{ user = { missing = true } }", "when = { path = '/a', user = ['ana', { missing = true }] }", true),
        ("{ user = { missing = true }, plan = 'x' }", "when = { path = '/a', user = 'ana' }", false),
    ] {
        let deny = format!("when = {{ path = '/a*' }}\nunless = {unless}\ndecision = 'deny'");
        let is_reported = is_warned_of(&deny, &format!("{narrow}\nlimit = '1/s'"), "is never reached");
        assert_eq!(is_reported, !is_reached, "{unless} {narrow}");
    }
}

#[test]
fn a_member_behind_one_for_all_of_its_requests_is_reported() {
    let second = "group = 'g'\nwhen = { plan = 'vip' }\nkey = ['user']\nlimit = '9/s'";
    for (first, is_reported) in [
        ("group = 'g'\nkey = ['user']\nlimit = '1/s'", true),
        ("group = 'g'\nwhen = { plan = ['vip', 'free'] }\nkey = ['user']\nlimit = '1/s'", true),
        ("group = 'g'\nwhen = { plan = { present = true } }\nlimit = '1/s'\non_missing = 'skip'", true),
        ("group = 'g'\nwhen = { plan = 'free' }\nkey = ['user']\nlimit = '1/s'", false),
        ("group = 'g'\nunless = { plan = 'vip' }\nkey = ['user']\nlimit = '1/s'", false),
        ("group = 'g'\nkey = ['user']\non_missing = 'skip'\nlimit = '1/s'", false),
        ("group = 'g'\nkey = ['user']\nlimit = '1/s'\nmode = 'shadow'", false),
        ("group = 'g'\nlimit = '1/s'\nschedule = [{ from = '02:00', to = '04:00', mode = 'shadow' }]", false),
        ("group = 'h'\nkey = ['user']\nlimit = '1/s'", false),
        ("key = ['user']\nlimit = '1/s'", false),
    ] {
        assert_eq!(
            is_warned_of(first, second, "is never chosen in group \"g\", as \"one\""),
            is_reported,
            "{first}"
        );
        let shadow = format!("{second}\nmode = 'shadow'");
        assert!(!is_warned_of(first, &shadow, "is never chosen"), "{first}");
    }
    let skips = second.to_owned() + "\non_missing = 'skip'";
    assert!(is_warned_of(
        "group = 'g'\nkey = ['user']\non_missing = 'skip'\nlimit = '1/s'",
        &skips,
        "is never chosen"
    ));
}

#[test]
fn members_of_groups_are_not_taken_for_limits_that_always_apply() {
    let one = "key = ['user']\nlimit = '5/m'";
    for (first, second) in [
        (
            format!("group = 'g'\nwhen = {{ plan = 'x' }}\n{one}"),
            "group = 'g'\nkey = ['user']\nlimit = '50/m'".to_owned(),
        ),
        (format!("group = 'g'\n{one}"), "when = { plan = 'x' }\nkey = ['user']\nlimit = '50/m'".to_owned()),
        (one.to_owned(), "group = 'g'\nwhen = { plan = 'x' }\nkey = ['user']\nlimit = '50/m'".to_owned()),
        (format!("unless = {{ plan = 'x' }}\n{one}"), "key = ['user']\nlimit = '50/m'".to_owned()),
    ] {
        assert!(!never_denies(&first, &second), "{first}\n{second}");
    }
    assert!(!is_warned_of(&format!("group = 'g'\n{one}"), &format!("group = 'h'\n{one}"), "counts the same"));
    assert!(!is_warned_of(one, &format!("unless = {{ plan = 'x' }}\n{one}"), "counts the same"));
    // The same requests, counted by what a client chooses and by address: one of the two counts each request.
    let chosen = "group = 'g'\nwhen = { plan = 'x' }\nkey = ['header.k']\nlimit = '5/s'";
    let alone = "when = { plan = 'x' }\nkey = ['header.k']\nlimit = '5/s'";
    assert!(is_warned_of("group = 'g'\nkey = ['ip']\nlimit = '1/s'", chosen, "counts by header.k"));
    assert!(!is_warned_of("key = ['ip']\nlimit = '1/s'", alone, "counts by header.k"));
}

#[test]
fn thousands_of_members_are_compared_for_a_moment_only() {
    let many = rules(MAX_RULES, |number| {
        format!(
            "name = 'r{number}'\ngroup = 'g'\nwhen = {{ plan = 'p{number}' }}\nkey = ['user']\nlimit = '1/m'"
        )
    });
    assert_eq!(warnings(&many), [""; 0]);
}

#[test]
fn a_penalty_of_a_rule_for_all_callers_bans_all_of_them() {
    let banning = |more: &str| {
        let penalty = "limit = '5/s'\npenalty = { after = 3, within = '1m', for = '10m' }\n";
        let reported = warnings(&format!("[[rule]]\nname = 'a'\n{penalty}{more}"));
        reported.iter().filter(|what| what.contains("bans all callers")).count()
    };
    for (more, count) in [
        ("", 1),
        ("when = { path = '/login', method = 'POST', host = 'x.example' }", 1),
        ("when = { path = '/login' }\nunless = { user = 'ana' }", 1),
        ("schedule = [{ from = '01:00', to = '02:00', mode = 'shadow' }]", 1),
        ("key = ['ip']", 0),
        ("when = { user = 'ana' }", 0),
        ("when = { ip = '192.0.2.7' }", 0),
        ("mode = 'shadow'", 0),
        ("[[rule]]\nname = 'b'\ncandidate_for = 'a'\nlimit = '6/s'", 1),
    ] {
        assert_eq!(banning(more), count, "{more}");
    }
}

#[test]
fn a_penalty_of_a_limit_that_denies_nothing_never_bans() {
    let never = |limit: &str, more: &str| {
        let penalty = "penalty = { after = 3, within = '1m', for = '10m' }\n";
        let reported =
            warnings(&format!("[[rule]]\nname = 'a'\nkey = ['ip']\nlimit = '{limit}'\n{penalty}{more}"));
        assert!(reported.len() <= 1, "{reported:?}");
        reported
            == [
                "rule \"a\": never bans, as an unlimited pacer denies nothing; leave the penalty out, or write a rate",
            ]
    };
    assert!(never("unlimited pacer", ""));
    assert!(never("unlimited pacer", "mode = 'shadow'"));
    assert!(!never("unlimited pacer", "limit_for = { '192.0.2.7' = '5/s pacer' }"));
    assert!(!never("unlimited pacer", "schedule = [{ from = '01:00', to = '02:00', limit = '5/s pacer' }]"));
    for limit in ["5/s pacer", "5/s", "9/m concurrency", "5/day calendar", "5/s queue 1000000 leaky-bucket"] {
        assert!(!never(limit, ""), "{limit}");
    }
}
