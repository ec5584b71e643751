//! Tests of groups, exceptions and unmatched requests where they meet overrides, batches, reloads and counts.

use tidegate::{DecidedBy, Verdict};
use tidegate_rules::{
    Attributes, Gate, Instead, PolicyBuilder, Rule, RuleBuilder, StaticVerdict, differences,
};

use crate::faulty::{Health, one_of};
use crate::requests::{admit, policy, remaining, still_gate};

const PLANS: &str = "
    [[rule]]
    name = 'vip'
    group = 'plan'
    when = { plan = 'vip' }
    key = ['user']
    limit = '5/h'
    [[rule]]
    name = 'default'
    group = 'plan'
    key = ['user']
    limit = '2/h'
    ";

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

fn vip() -> Attributes<'static> {
    ana().set("plan", "vip")
}

/// Returns the rule of an answer, or the word for its verdict.
fn says(gate: &Gate, request: &Attributes<'_>) -> String {
    let answer = admit(gate, request);
    let verdict = if answer.is_allowed() { "allowed" } else { "denied" };
    format!("{verdict} by {}", answer.rule().unwrap_or("nothing"))
}

#[test]
fn a_key_that_changes_plans_starts_full() {
    let gate = still_gate(PLANS);
    for _ in 0..2 {
        assert_eq!(says(&gate, &ana()), "allowed by default");
    }
    assert_eq!(says(&gate, &ana()), "denied by default");
    assert_eq!(says(&gate, &vip()), "allowed by vip");
    assert_eq!(remaining(&gate, "vip", &vip()), 4);
    assert_eq!(says(&gate, &ana()), "denied by default", "the other plan has its own counts");
}

#[test]
fn an_override_belongs_to_the_member_that_is_chosen() {
    let until = i64::MAX;
    for (instead, expected) in [
        (Instead::Allow, "allowed by nothing"),
        (Instead::Deny, "denied by vip"),
        (Instead::Limit("1/h".parse().expect("a limit")), "allowed by vip"),
    ] {
        let gate = still_gate(PLANS);
        gate.put_override("vip", &vip(), instead, until).expect("there is such a rule");
        let explained = gate.explain(&vip()).now().expect("at once");
        assert_eq!(says(&gate, &vip()), expected);
        assert_eq!(remaining(&gate, "default", &ana()), 2, "the default does not apply in its place");
        assert_eq!(explained.rules[1].chosen_first.as_deref(), Some("vip"));
        assert_eq!(explained.is_allowed, expected.starts_with("allowed"));
    }
}

#[test]
fn an_exemption_of_a_key_is_no_unmatched_request() {
    let gate = still_gate(&format!("[rules]\nunmatched = 'deny'\n{PLANS}"));
    gate.put_override("default", &ana(), Instead::Allow, i64::MAX).expect("there is such a rule");
    assert_eq!(says(&gate, &ana()), "allowed by nothing");
    let explained = gate.explain(&ana()).now().expect("at once");
    assert!(explained.is_allowed && !explained.is_unmatched);
    assert_eq!(gate.denied_unmatched(), 0);
}

#[test]
fn an_unmatched_request_is_denied_without_a_rule_and_counted() {
    let text = "[rules]\nunmatched = 'deny'\n[[rule]]\nname = 'api'\nwhen = { path = '/api/{*rest}' }\nlimit = '2/h'\n\
                [[rule]]\nname = 'new'\nlimit = '1/h'\nmode = 'shadow'\n";
    let gate = still_gate(text);
    let (known, other) = (Attributes::new().path("/api/x"), Attributes::new().path("/x"));
    assert!(admit(&gate, &known).is_allowed());
    let answer = admit(&gate, &other);
    assert!(!answer.is_allowed() && answer.is_forbidden() && answer.is_unmatched());
    assert_eq!(
        (answer.rule(), answer.verdict(), answer.binding().is_none()),
        (None, Verdict::Impossible, true)
    );
    assert_eq!((gate.denied_unmatched(), gate.unmatched()), (1, 0));
    let counts = gate.counts();
    assert_eq!((counts[1].1.allowed, counts[1].1.denied), (1, 0), "a denied request is not measured");

    let answers = gate.admit_all(&[known.clone(), other]).now().expect("at once");
    assert!(!answers[0].is_forbidden() && answers[1].is_unmatched());
    assert_eq!(remaining(&gate, "api", &known), 1, "nothing is spent under any of them");
    assert_eq!(gate.denied_unmatched(), 2);

    gate.replace(policy("")).expect("the store supports it");
    assert!(admit(&gate, &Attributes::new()).is_allowed());
}

#[test]
fn a_batch_counts_a_group_once_and_charges_the_chosen_members() {
    let gate = still_gate(PLANS);
    let batch = gate.batch();
    assert_eq!((batch.asks(&vip()), batch.asks(&ana())), (1, 1));
    let requests = [vip(), ana(), vip(), ana()];
    let answers = batch.admit_all(&requests).now().expect("at once");
    assert!(answers.iter().all(|answer| answer.is_allowed()));
    assert_eq!((remaining(&gate, "vip", &vip()), remaining(&gate, "default", &ana())), (3, 0));
    let answers = batch.admit_all(&requests).now().expect("at once");
    assert!(answers.iter().any(|answer| !answer.is_allowed()));
    assert_eq!(remaining(&gate, "vip", &vip()), 3);
}

#[test]
fn a_rule_keeps_its_counts_when_it_joins_or_leaves_a_group() {
    let gate = still_gate(PLANS);
    assert_eq!(says(&gate, &ana()), "allowed by default");
    let alone = PLANS.replace("group = 'plan'", "");
    let lines = gate.with_policy(|old| differences(old, &policy(&alone)));
    assert_eq!(lines, ["vip", "default"].map(|name| format!("~ rule {name:?}: group \"plan\" -> none")));
    gate.replace(policy(&alone)).expect("the store supports it");
    assert_eq!(remaining(&gate, "default", &ana()), 1);
    assert_eq!(says(&gate, &vip()), "allowed by default", "both apply now, and this one has less left");
    gate.replace(policy(PLANS)).expect("the store supports it");
    assert_eq!(
        (says(&gate, &vip()), says(&gate, &ana())),
        ("allowed by vip".into(), "denied by default".into())
    );
}

#[test]
fn while_the_store_is_down_the_chosen_member_alone_decides() {
    let closed = |text: &str, rule: &str| {
        text.replace(
            &format!("name = '{rule}'"),
            &format!("name = '{rule}'\n    on_store_failure = 'closed'"),
        )
    };
    let node = one_of(
        &closed(PLANS, "vip").replace("limit = '2/h'", "limit = '2/h'\n    on_store_failure = 'open'"),
        1,
    );
    node.store.is(Health::Down);
    let decided = |request: &Attributes<'_>| {
        let answer = admit(&node.gate, request);
        (answer.is_allowed(), answer.rule().map(str::to_owned), answer.decided_by())
    };
    assert_eq!(decided(&vip()), (false, Some("vip".to_owned()), DecidedBy::Closed));
    assert_eq!(decided(&ana()), (true, Some("default".to_owned()), DecidedBy::Open));
    node.store.is(Health::Up);
    assert_eq!(decided(&vip()), (true, Some("vip".to_owned()), DecidedBy::Remote));
    assert_eq!(remaining(&node.gate, "default", &ana()), 2, "nothing was taken from the other member");
}

#[test]
fn a_corrected_cost_goes_to_the_member_that_was_charged() {
    let gate = still_gate(PLANS);
    let (answer, mut charges) = gate.admit_tracked(&vip()).now().expect("at once");
    assert_eq!(answer.rule(), Some("vip"));
    gate.charge(&mut charges, 2).now().expect("at once");
    assert_eq!((remaining(&gate, "vip", &vip()), remaining(&gate, "default", &ana())), (2, 2));
    // Of the default a vip takes part in now, which was not charged.
    gate.replace(policy(&PLANS.replace("plan = 'vip'", "plan = 'gold'"))).expect("the store supports it");
    gate.refund(&mut charges, 3).now().expect("at once");
    assert_eq!(remaining(&gate, "default", &ana()), 2);
    gate.replace(policy(PLANS)).expect("the store supports it");
    assert_eq!(remaining(&gate, "vip", &vip()), 5);
}

#[test]
fn a_group_counts_as_one_of_the_limits_that_a_store_decides_together() {
    let member = |number: usize, group: &str| {
        format!("[[rule]]\nname = 'r{number}'\nlimit = '1/s'\ngroup = '{group}'\n")
    };
    let many = |groups: usize| -> String {
        (0..300).map(|number| member(number, &format!("g{}", number % groups))).collect()
    };
    assert!(policy(&many(1)).more_together_than(1).is_none());
    let found = policy(&many(3));
    assert_eq!(found.more_together_than(2).map(|(_, count)| count), Some(3));
    assert!(found.more_together_than(3).is_none());
}

#[test]
fn more_than_64_groups_are_chosen_from_each_by_itself() {
    let text: String = (0..200)
        .map(|number| format!("[[rule]]\nname = 'r{number}'\nlimit = '9/h'\ngroup = 'g{}'\n", number % 100))
        .collect();
    let gate = still_gate(&text);
    assert!(admit(&gate, &Attributes::new()).is_allowed());
    let allowed = gate.counts().into_iter().map(|(_, counts)| counts.allowed);
    assert_eq!(allowed.collect::<Vec<_>>(), [vec![1; 100], vec![0; 100]].concat());
}

#[test]
fn a_long_list_under_unless_excepts_what_it_matches() {
    let many: Vec<_> = (0..5000).map(|number| format!("'user{number}', 'team{number}-*'")).collect();
    let ips: Vec<_> = (0..5000).map(|number| format!("'10.{}.{}.0/24'", number >> 8, number & 255)).collect();
    let gate = still_gate(&format!(
        "[[rule]]\nname = 'users'\nlimit = '9/h'\nunless = {{ user = [{}] }}\n[[rule]]\nname = 'ips'\nlimit = '9/h'\n\
         unless = {{ ip = [{}, {{ missing = true }}] }}\n",
        many.join(", "),
        ips.join(", ")
    ));
    let applying = |request: Attributes<'_>| {
        gate.with_policy(|policy| {
            policy.matching(&request).iter().map(|rule| rule.name().to_owned()).collect::<Vec<_>>()
        })
    };
    for (user, is_excepted) in
        [("user17", true), ("user5000", false), ("team4999-x", true), ("team5000-x", false)]
    {
        assert_eq!(applying(Attributes::new().set("user", user)).is_empty(), is_excepted, "{user}");
    }
    for (ip, is_excepted) in [("10.3.7.1", true), ("10.200.0.1", false), ("nowhere", true)] {
        let rules = applying(Attributes::new().set("user", "user17").set("ip", ip));
        assert_eq!(rules.is_empty(), is_excepted, "{ip}");
    }
}

#[test]
fn an_ambiguous_request_obtains_no_exception() {
    let gate = still_gate(
        "[[rule]]\nname = 'site'\nlimit = '9/h'\nunless = { path = '/healthz', header.x-a = 'in' }\n\
         [[rule]]\nname = 'office'\nwhen = { ip = '10.0.0.0/8' }\nunless = { header.x-a = 'out' }\ndecision = 'allow'\n",
    );
    let request = |path: &'static str, values: &[&'static str]| {
        values.iter().fold(Attributes::new().path(path), |request, value| request.add("header.x-a", *value))
    };
    for (path, values, expected) in [
        ("/healthz", &["in"][..], "allowed by nothing"),
        ("/healthz", &["in", "out"], "allowed by site"),
        ("/healthz", &[], "allowed by site"),
        ("/x/..;/healthz", &["in"], "allowed by site"),
        ("/x", &["in"], "allowed by site"),
    ] {
        assert_eq!(says(&gate, &request(path, values)), expected, "{path} {values:?}");
    }
    for (values, expected) in [(&["in"][..], "allowed by office"), (&["in", "out"], "allowed by site")] {
        assert_eq!(says(&gate, &request("/x", values).set("ip", "10.0.0.1")), expected, "{values:?}");
    }
}

#[test]
fn attributes_that_no_rule_uses_are_counted_and_named_once() {
    let gate =
        still_gate("[attributes]\nnames = ['plan']\n[[rule]]\nname = 'site'\nkey = ['ip']\nlimit = '9/h'\n");
    let expected = |request: &Attributes<'_>, count, names: &[&str]| {
        admit(&gate, request);
        assert_eq!(
            (gate.unknown_attributes(), gate.take_unknown_attributes()),
            (count, names.iter().map(|name| (*name).to_owned()).collect())
        );
    };
    let usual = Attributes::new().set("ip", "192.0.2.7").path("/").set("method", "GET").set("host", "h");
    let usual = usual.set("header.x", "1").set("cookie.x", "1").set("query.x", "1").set("plan", "free");
    expected(&usual, 0, &[]);
    expected(&usual.clone().set("usr", "ana").set("headers.x", "1"), 1, &["headers.x", "usr"]);
    expected(&usual.clone().set("usr", "ana"), 2, &[]);
    gate.replace(policy("[[rule]]\nname = 'site'\nkey = ['usr']\nlimit = '9/h'\n"))
        .expect("the store supports it");
    expected(&usual.clone().set("usr", "ana"), 3, &["plan"]);
}

#[test]
fn a_policy_in_code_has_groups_exceptions_and_declared_attributes() {
    let text = "
        [rules]
        unmatched = 'deny'
        [attributes]
        names = ['user', 'plan', 'team']
        [[rule]]
        name = 'anonymous'
        group = 'plan'
        when = { user = { missing = true }, plan = { present = true } }
        unless = { path = '/healthz', team = { missing = true } }
        limit = '1/s'
        [[rule]]
        name = 'others'
        group = 'plan'
        unless = { user = { present = true }, 'header.X-A' = ['a', 'b*'] }
        trusted = ['header.x-a']
        limit = '2/s'
        [[rule]]
        name = 'bots'
        when = { 'header.user-agent' = 'bot*' }
        trusted = ['header.user-agent']
        decision = 'deny'
        ";
    let rules = [
        Rule::builder("anonymous")
            .group("plan")
            .when_missing("user")
            .when_present("plan")
            .unless("path", "/healthz")
            .unless_missing("team")
            .limit("1/s"),
        Rule::builder("others")
            .group("plan")
            .unless_present("user")
            .unless_any("header.X-A", ["a", "b*"])
            .trusted(["header.x-a"])
            .limit("2/s"),
        Rule::builder("bots")
            .when("header.user-agent", "bot*")
            .trusted(["header.user-agent"])
            .decision(StaticVerdict::Deny),
    ];
    let of = |rules: Vec<RuleBuilder>| rules.into_iter().fold(PolicyBuilder::default(), PolicyBuilder::rule);
    let in_code =
        of(rules.to_vec()).unmatched(StaticVerdict::Deny).attributes(["user", "plan"]).attributes(["team"]);
    let (in_code, in_text) = (in_code.build().expect("it is valid"), policy(text));
    assert_eq!(in_code.rules(), in_text.rules());
    assert_eq!(in_code.attributes().collect::<Vec<_>>(), in_text.attributes().collect::<Vec<_>>());
    assert_eq!((in_code.unmatched(), in_text.unmatched()), (StaticVerdict::Deny, StaticVerdict::Deny));
    let shown: Vec<_> = in_code.rules()[1].unless().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["header.x-a = [\"a\", \"b*\"]", "user = { present = true }"]);
    assert_eq!(in_code.rules()[1].group(), Some("plan"));

    let error = of(vec![Rule::builder("a").limit("1/s").unless("usr", "x").group("")]);
    let error = error.attributes(["user", "user"]).build().expect_err("three faults").to_string();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(
        lines,
        [
            "rule \"a\": unless \"usr\": is not declared in [attributes]; did you mean \"user\"?",
            "rule \"a\": group \"\": is empty; write something like \"plan\"",
            "attributes: names \"user\": is there twice; leave one of them out",
        ]
    );
}

/// Regression: a path that some read as one of the first member, and a plan that was sent twice, chose a looser limit.
#[test]
fn a_member_that_applies_by_one_reading_alone_does_not_stand_for_the_others() {
    let gate = still_gate(
        "
        [[rule]]
        name = 'static'
        group = 'g'
        when = { path = '/static/{*rest}' }
        limit = '1000/h'
        [[rule]]
        name = 'vip'
        group = 'g'
        when = { 'header.x-plan' = 'vip' }
        trusted = ['header.x-plan']
        limit = '500/h'
        [[rule]]
        name = 'default'
        group = 'g'
        limit = '3/h'
        ",
    );
    let spellings =
        ["/static/..;/login", "/static/..%2flogin", "/login%00/../static/x", "/login#/../static/x"];
    let mut twice = Attributes::new().path("/");
    twice.append("header.x-plan", "vip");
    twice.append("header.x-plan", "free");
    let ambiguous = spellings.map(|path| Attributes::new().path(path)).into_iter().chain([twice]);
    for request in ambiguous {
        let explained = gate.explain(&request).now().expect("a store in memory");
        let applying: Vec<_> =
            explained.rules.iter().filter(|rule| rule.applies).map(|rule| rule.rule.name()).collect();
        assert_eq!((applying.len(), applying.last()), (2, Some(&"default")), "{request:?}: {applying:?}");
    }
    for (count, path) in spellings.iter().enumerate() {
        assert_eq!(admit(&gate, &Attributes::new().path(path)).is_allowed(), count < 3, "{path}");
    }
    assert_eq!(says(&gate, &Attributes::new().path("/static/x")), "allowed by static");
}

/// Regression: such a path was admitted as one that a rule is for.
#[test]
fn a_rule_that_applies_by_one_reading_alone_matches_no_request() {
    let text = "
        [rules]
        unmatched = 'deny'
        [[rule]]
        name = 'public'
        when = { path = '/public/{*rest}' }
        limit = '1000/h'
        ";
    let gate = still_gate(text);
    for path in ["/admin", "/public/..;/admin", "/public/..%2fadmin", "/admin%00/../public/x"] {
        let request = Attributes::new().path(path);
        let answer = admit(&gate, &request);
        assert!(!answer.is_allowed() && answer.is_unmatched(), "{path}");
        let explained = gate.explain(&request).now().expect("a store in memory");
        assert!(!explained.is_allowed && explained.is_unmatched, "{path}");
    }
    assert!(admit(&gate, &Attributes::new().path("/public/x")).is_allowed());
    assert_eq!(gate.denied_unmatched(), 4);
}
