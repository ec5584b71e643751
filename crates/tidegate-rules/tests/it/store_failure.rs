//! Tests of a store that fails: each rule follows its `on_store_failure`, and no fallback is reported as the store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::{Clock as _, Cost, DecidedBy, FallbackStore, SECOND, Verdict, WithoutStore};
use tidegate_rules::{Admission, Attributes, Gate, Instead, RuleCounts};

use crate::faulty::{Health, Node, nodes, one_of};
use crate::requests::{admit, remaining};

fn ana() -> Attributes<'static> {
    Attributes::new().set("user", "ana")
}

fn rule(name: &str, limit: &str, on_failure: &str) -> String {
    format!(
        "[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{limit}'\non_store_failure = '{on_failure}'\n"
    )
}

fn down(text: &str, count: u64) -> Node {
    let node = one_of(text, count);
    node.store.is(Health::Down);
    node
}

fn ask(node: &Node) -> Admission {
    admit(&node.gate, &ana())
}

fn counts(gate: &Gate, rule: &str) -> RuleCounts {
    gate.counts().into_iter().find(|(known, _)| known.name() == rule).expect("there is such a rule").1
}

/// Returns the number of requests that are allowed before the first denial.
fn passing(node: &Node) -> u64 {
    (0..).find(|_| !ask(node).is_allowed()).expect("one is refused")
}

const REFUSED: Verdict = Verdict::Denied { retry_after: SECOND };

/// Returns the counts of decisions in place of a store, as `set` sets them.
fn without(set: impl FnOnce(&mut WithoutStore)) -> WithoutStore {
    let mut counts = WithoutStore::default();
    set(&mut counts);
    counts
}

#[test]
fn one_that_is_closed_refuses_until_the_store_is_asked_again() {
    let node = down(&rule("api", "10/h", "closed"), 3);
    let answer = ask(&node);
    assert_eq!((answer.is_allowed(), answer.verdict(), answer.is_forbidden()), (false, REFUSED, false));
    assert_eq!((answer.rule(), answer.decided_by()), (Some("api"), DecidedBy::Closed));
    let reported = answer.binding().expect("its limit").decision;
    assert_eq!((reported.limit(), reported.remaining()), (10, 0));
    node.store.is(Health::Up);
    assert_eq!(remaining(&node.gate, "api", &ana()), 10, "nothing was spent");
    assert_eq!(ask(&node).decided_by(), DecidedBy::Remote);
}

#[test]
fn one_that_is_open_lets_everybody_pass_and_spends_nothing() {
    let node = down(&rule("api", "1/h", "open"), 3);
    for _ in 0..100 {
        let answer = ask(&node);
        assert_eq!(answer.verdict(), Verdict::Allowed { delay: Duration::ZERO });
        assert_eq!((answer.rule(), answer.decided_by()), (Some("api"), DecidedBy::Open));
        assert!(answer.binding().is_none(), "no limit has said anything");
    }
    assert_eq!(
        counts(&node.gate, "api").without_store,
        without(|counts| {
            counts.open = 100;
        })
    );
    node.store.is(Health::Up);
    assert_eq!(remaining(&node.gate, "api", &ana()), 1);
}

#[test]
fn one_that_is_local_decides_by_the_share_of_this_node() {
    let node = down(&rule("api", "30/h burst 15", "local"), 3);
    assert_eq!(passing(&node), 5);
    let answer = ask(&node);
    let binding = answer.binding().expect("its share");
    assert_eq!(
        (binding.limit.to_string(), answer.decided_by()),
        ("10/h burst 5".to_owned(), DecidedBy::Local)
    );
    assert_eq!(answer.verdict(), Verdict::Denied { retry_after: 360 * SECOND });
    assert_eq!(passing_as(&node, "bob"), 5, "each key has its own");
    node.clock.advance(360 * SECOND);
    assert_eq!((passing(&node), passing(&node)), (1, 0), "and gets it back at the rate of the share");
}

fn passing_as(node: &Node, user: &'static str) -> u64 {
    let request = Attributes::new().set("user", user);
    (0..).find(|_| !admit(&node.gate, &request).is_allowed()).expect("one is refused")
}

#[test]
fn it_is_what_a_rule_does_that_says_nothing() {
    let node = down("[[rule]]\nname = 'api'\nlimit = '30/h'\n", 3);
    assert_eq!((passing(&node), ask(&node).decided_by()), (10, DecidedBy::Local));
}

#[test]
fn too_much_for_one_node_is_put_off_and_too_much_for_all_is_refused_for_good() {
    let node = down(&rule("api", "30/h", "local"), 3);
    let verdict = |cost| admit(&node.gate, &ana().cost(Cost::of(cost))).verdict();
    assert_eq!((verdict(11), verdict(30), verdict(31)), (REFUSED, REFUSED, Verdict::Impossible));
    assert!(admit(&node.gate, &ana().cost(Cost::of(10))).is_allowed(), "and nothing was spent");
    let node = down(&rule("api", "30/h", "closed"), 3);
    assert_eq!(admit(&node.gate, &ana().cost(Cost::of(31))).verdict(), Verdict::Impossible);
}

#[test]
fn one_that_is_open_does_not_let_pass_what_can_never_pass() {
    let node = down(&format!("{}{}", rule("wide", "10/h", "open"), rule("own", "90/h", "local")), 3);
    assert!(admit(&node.gate, &ana().cost(Cost::of(10))).is_allowed());
    let answer = admit(&node.gate, &ana().cost(Cost::of(11)));
    assert_eq!((answer.verdict(), answer.is_forbidden()), (Verdict::Impossible, false));
    assert_eq!((answer.rule(), answer.decided_by()), (Some("wide"), DecidedBy::Open));
    assert_eq!(answer.binding().map(|binding| binding.decision.limit()), Some(10));
    let counted = counts(&node.gate, "wide");
    assert_eq!((counted.allowed, counted.denied, counted.impossible), (1, 0, 1));
    assert_eq!(
        counted.without_store,
        without(|counts| {
            counts.open = 1;
            counts.open_denied = 1;
        })
    );
    assert_eq!(node.gate.store_failures().decided.open_denied, 1);
    assert_eq!(counts(&node.gate, "own").allowed, 1, "nothing of the others was spent");
    let left = ask(&node).binding().map(|binding| binding.decision.remaining());
    assert_eq!(left, Some(19), "of a share of thirty, ten and one are gone");
}

#[test]
fn one_that_is_open_delays_as_for_a_key_that_has_spent_nothing() {
    let text = format!("{}max_wait = '1s'\n", rule("calls", "10/s burst 2 pay self pacer", "open"));
    let (node, dear) = (down(&text, 3), ana().cost(Cost::of(5)));
    let delay = Duration::from_millis(500);
    assert_eq!(admit(&node.gate, &dear).verdict(), Verdict::Allowed { delay });
    assert_eq!(admit(&node.gate, &dear).verdict(), Verdict::Allowed { delay }, "and nothing is spent");
}

#[test]
fn what_several_requests_weigh_together_is_too_much_with_the_store_and_without_it() {
    let pair = [ana().cost(Cost::of(6)), ana().cost(Cost::of(6))];
    for policy in ["local", "open", "closed"] {
        let node = one_of(&rule("api", "10/h", policy), 1);
        let verdicts = || {
            let answers = node.gate.admit_all(&pair).now().expect("at once");
            answers.iter().map(Admission::verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(), [Verdict::Impossible; 2], "{policy}");
        node.store.is(Health::Down);
        assert_eq!(verdicts(), [Verdict::Impossible; 2], "{policy}");
    }
    let node = down(&rule("api", "12/h", "local"), 2);
    let answers = node.gate.admit_all(&pair).now().expect("at once");
    assert!(answers.iter().all(|answer| answer.verdict() == REFUSED), "twelve pass when the store is back");
}

#[test]
fn a_share_without_room_for_another_key_denies_for_a_second() {
    let clock = std::sync::Arc::new(tidegate::ManualClock::new());
    let store = crate::faulty::Faulty::new(clock.clone());
    store.is(Health::Down);
    let local = tidegate::Map::with_clock(clock).max_keys(1);
    let policy = crate::requests::policy(&rule("api", "10/h", "local"));
    let gate = Gate::new(policy, FallbackStore::new(store, &local)).expect("the store supports the policy");
    assert!(admit(&gate, &ana()).is_allowed());
    let answer = admit(&gate, &Attributes::new().set("user", "bob"));
    assert_eq!((answer.verdict(), answer.decided_by()), (REFUSED, DecidedBy::Local));
    assert!(answer.binding().is_some_and(|binding| binding.decision.is_store_full()));
    assert_eq!(counts(&gate, "api").store_full, 1);
}

#[test]
fn one_that_is_closed_stops_the_others_from_spending() {
    let text = format!(
        "{}{}{}",
        rule("shut", "9/h", "closed"),
        rule("own", "9/h", "local"),
        rule("wide", "9/h", "open")
    );
    let node = down(&text, 3);
    for _ in 0..5 {
        assert_eq!(
            (ask(&node).rule(), ask(&node).decided_by(), ask(&node).verdict()),
            (Some("shut"), DecidedBy::Closed, REFUSED)
        );
    }
    let of = |rule| counts(&node.gate, rule).without_store;
    assert_eq!(
        of("shut"),
        without(|counts| {
            counts.closed = 15;
        })
    );
    assert_eq!((of("own").total(), of("wide").total()), (0, 0), "they have decided nothing");
    let shut = Attributes::new().set("user", "ana");
    node.gate.put_override("shut", &shut, Instead::Allow, i64::MAX).expect("there is such a rule");
    assert_eq!(passing(&node), 3, "the share is whole");
}

#[test]
fn of_those_that_let_it_pass_the_one_that_counts_is_spoken_of() {
    let node = down(&format!("{}{}", rule("wide", "1/h", "open"), rule("own", "9/h", "local")), 3);
    for left in [2, 1, 0] {
        let answer = ask(&node);
        assert_eq!((answer.rule(), answer.decided_by()), (Some("own"), DecidedBy::Local));
        assert_eq!(answer.binding().map(|binding| binding.decision.remaining()), Some(left));
    }
    assert!(!ask(&node).is_allowed());
    assert_eq!(
        counts(&node.gate, "wide").without_store.open,
        3,
        "a rule allows no request that does not happen"
    );
    let own = without(|counts| {
        counts.local_allowed = 3;
        counts.local_denied = 1;
    });
    assert_eq!(counts(&node.gate, "own").without_store, own);
}

#[test]
fn shares_are_taken_all_or_none() {
    let wide = "[[rule]]\nname = 'wide'\nlimit = '90/h'\n";
    let node = down(&format!("{}{wide}", rule("narrow", "6/h", "local")), 3);
    for _ in 0..50 {
        ask(&node);
    }
    assert_eq!(counts(&node.gate, "wide").allowed, 2);
    let users = (0..).take(28).map(|user: u32| Attributes::new().set("user", user.to_string()));
    let passed = users.filter(|user| admit(&node.gate, user).is_allowed()).count();
    assert_eq!(passed, 28, "fifty refusals of one user took nothing from the others");
    assert!(!admit(&node.gate, &Attributes::new().set("user", "last")).is_allowed());
}

#[test]
fn several_requests_stand_or_fall_together() {
    let text = format!(
        "{}{}",
        rule("own", "9/h", "local"),
        rule("shut", "9/h", "closed").replace("key", "when = { path = '/pay' }\nkey")
    );
    let node = down(&text, 3);
    let all = |requests: &[Attributes<'_>]| {
        let answers = node.gate.admit_all(requests).now().expect("at once");
        answers.iter().map(|answer| (answer.is_allowed(), answer.decided_by())).collect::<Vec<_>>()
    };
    let pay = || ana().path("/pay");
    let both = all(&[ana(), pay()]);
    assert_eq!(both, [(true, DecidedBy::Local), (false, DecidedBy::Closed)], "each says what it thinks");
    assert_eq!(counts(&node.gate, "own").allowed, 0, "and nothing has happened");
    assert_eq!(all(&[ana(), ana(), ana(), ana()]), [(false, DecidedBy::Local); 4], "four of three");
    assert_eq!(all(&[ana(), ana(), ana()]), [(true, DecidedBy::Local); 3]);
    assert_eq!(all(&[ana()]), [(false, DecidedBy::Local)]);
    let reported = without(|counts| {
        counts.local_allowed = 3;
        counts.local_denied = 5;
        counts.closed = 1;
    });
    assert_eq!(node.gate.store_failures().decided, reported);
}

#[test]
fn rules_that_need_no_store_answer_as_ever() {
    let text = format!(
        "[[rule]]\nname = 'robots'\nwhen = {{ path = '/robots.txt' }}\ndecision = 'allow'\n\
         [[rule]]\nname = 'admin'\nwhen = {{ path = '/admin' }}\ndecision = 'deny'\n{}",
        rule("api", "9/h", "closed").replace("key", "when = { path = '/api' }\nkey")
    );
    let node = down(&text, 3);
    let at = |path| admit(&node.gate, &ana().path(path));
    let verdict = |answer: Admission| (answer.is_allowed(), answer.decided_by());
    assert_eq!(verdict(at("/robots.txt")), (true, DecidedBy::Memory));
    assert_eq!((verdict(at("/admin")), at("/admin").is_forbidden()), ((false, DecidedBy::Memory), true));
    assert_eq!(verdict(at("/other")), (true, DecidedBy::Memory));
    assert_eq!(node.gate.store_failures().failed, 0, "the store was not called");
    assert_eq!(verdict(at("/api")), (false, DecidedBy::Closed));
}

#[test]
fn when_the_store_is_back_its_counts_decide_again() {
    let node = one_of(&rule("api", "9/h", "local"), 3);
    for _ in 0..4 {
        assert_eq!(ask(&node).decided_by(), DecidedBy::Remote);
    }
    node.store.is(Health::Down);
    assert_eq!((passing(&node), node.gate.store_failures().is_failing), (3, true));
    assert!(
        node.gate.explain(&ana()).now().is_err(),
        "an explanation needs the store and reports its failure"
    );
    node.store.is(Health::Up);
    assert_eq!(remaining(&node.gate, "api", &ana()), 5);
    assert_eq!((passing(&node), node.gate.store_failures().is_failing), (5, false));
}

#[test]
fn an_answer_that_was_lost_is_charged_once_at_most() {
    let node = one_of(&rule("api", "9/h", "local"), 3);
    node.store.is(Health::Silent);
    assert_eq!(ask(&node).decided_by(), DecidedBy::Local);
    assert_eq!(node.store.takes.load(Ordering::SeqCst), 1, "it is not asked again");
    node.store.is(Health::Up);
    assert_eq!(remaining(&node.gate, "api", &ana()), 8);
}

#[test]
fn a_failure_of_the_store_is_reported() {
    let node = one_of(&rule("api", "9/h", "local"), 3);
    assert_eq!(node.gate.store_failures(), Default::default());
    node.store.is(Health::Down);
    node.clock.advance(5 * SECOND);
    ask(&node);
    let reported = node.gate.store_failures();
    let error = "the store cannot be reached: the plug is out".to_owned();
    assert_eq!(reported.last.map(|last| (last.at, last.error)), Some((node.clock.now(), error)));
    assert_eq!((reported.is_failing, reported.failed, reported.decided.total()), (true, 1, 1));
}

/// Returns rules of which none covers another, and a request to which all of them apply.
fn apart(policy: &str) -> (String, Attributes<'static>) {
    let names = ["a", "b", "c", "d"];
    let when = |name: &str| format!("when = {{ {name} = 'x' }}\nkey");
    let rules = names.map(|name| rule(name, "9/h", policy).replace("key", &when(name)));
    (rules.concat(), names.into_iter().fold(ana(), |request, name| request.set(name, "x")))
}

#[test]
fn more_limits_than_the_store_decides_together_go_by_what_the_rules_say() {
    for (policy, by, is_allowed) in [
        ("local", DecidedBy::Local, true),
        ("open", DecidedBy::Open, true),
        ("closed", DecidedBy::Closed, false),
    ] {
        let (text, request) = apart(policy);
        let node = one_of(&text, 3);
        node.store.most_together.store(4, Ordering::SeqCst);
        assert_eq!(admit(&node.gate, &request).decided_by(), DecidedBy::Remote);
        node.store.most_together.store(3, Ordering::SeqCst);
        let answer = admit(&node.gate, &request);
        assert_eq!((answer.decided_by(), answer.is_allowed()), (by, is_allowed));
        let reported = node.gate.store_failures();
        assert_eq!((reported.failed, reported.decided.total(), reported.is_failing), (1, 1, true));
        let few = ana().set("a", "x");
        assert_eq!(admit(&node.gate, &few).decided_by(), DecidedBy::Remote);
        let both = node.gate.admit_all(&[request.clone(), few]).now().expect("no error, whatever is asked");
        assert_eq!(both.iter().all(Admission::is_allowed), is_allowed);
    }
}

#[test]
fn rules_that_are_certain_to_apply_together_are_found_before_they_are_in_force() {
    let node = one_of(&rule("api", "9/h", "local"), 3);
    node.store.most_together.store(3, Ordering::SeqCst);
    let wide = ["a", "b", "c"].map(|name| rule(name, "9/h", "local")).concat();
    let policy = |more: &str| crate::requests::policy(&format!("{wide}{more}"));
    let narrow = rule("d", "9/h", "local").replace("key", "when = { path = '/x' }\nkey");
    let error = node.gate.replace(policy(&narrow)).expect_err("four are too many");
    assert_eq!(
        error.to_string(),
        "rule \"d\": at least 4 rules with a limit apply to its requests, and the store decides at most 3 limits \
         together; narrow the conditions of some, or join rules that count by the same key"
    );
    let all = node.gate.with_policy(|policy| policy.rules().len());
    assert_eq!(all, 1, "what was in force stays in force");
    for harmless in [
        "",
        &narrow.replace("limit", "mode = 'shadow'\nlimit"),
        "[[rule]]\nname = 'd'\ncandidate_for = 'a'\nlimit = '9/h'\n",
        &format!("[[rule]]\nname = 'no'\nwhen = {{ path = '/x' }}\ndecision = 'deny'\n{narrow}"),
    ] {
        node.gate.replace(policy(harmless)).unwrap_or_else(|error| panic!("{harmless}: {error}"));
    }
}

#[test]
fn a_store_that_decides_about_less_than_was_asked_has_failed() {
    let text = format!("{}{}", rule("api", "9/h", "closed"), rule("site", "1/h", "closed"));
    let node = one_of(&text, 3);
    node.store.is(Health::Short);
    for _ in 0..3 {
        let answer = ask(&node);
        assert_eq!((answer.is_allowed(), answer.decided_by()), (false, DecidedBy::Closed));
    }
    let last = node.gate.store_failures().last.expect("it was noted");
    assert!(last.error.contains("the store decided about 1 of 2 limits"), "{}", last.error);
}

#[test]
fn an_override_holds_without_the_store_too() {
    let node = down(&rule("api", "3/h", "local"), 3);
    let thirty = Instead::Limit("30/h".parse().expect("a limit"));
    node.gate.put_override("api", &ana(), thirty, i64::MAX).expect("there is such a rule");
    assert_eq!((passing(&node), passing_as(&node, "bob")), (10, 1));
}

#[test]
fn a_caller_that_stops_waiting_leaves_no_state_behind() {
    let node = one_of(&rule("api", "9/h", "local"), 3);
    node.store.is(Health::Stuck);
    let (request, mut context) = (ana(), std::task::Context::from_waker(std::task::Waker::noop()));
    for _ in 0..100 {
        let mut waiting = Box::pin(node.gate.admit(&request));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        // Other rules come into force while it waits.
        node.gate.replace(crate::requests::policy(&rule("api", "6/h", "local"))).expect("it fits");
    }
    assert_eq!((counts(&node.gate, "api"), node.gate.store_failures()), Default::default());
    node.store.is(Health::Down);
    assert_eq!(passing(&node), 2);
}

#[test]
fn nodes_that_cannot_talk_keep_to_the_limit_together() {
    let limits = [
        ("30/h", 30, 1),
        ("30/h burst 7", 6, 1),
        ("60/h burst 2", 3, 1),
        ("30/h queue 8 leaky-bucket", 9, 1),
        ("31/h fixed-window", 30, 10),
        ("31/h sliding-log", 30, 10),
        ("31/h sliding-window", 30, 10),
        ("2/h sliding-log", 3, 0),
        ("31/h concurrency", 30, 0),
    ];
    for (limit, at_once, after_a_while) in limits {
        let nodes = nodes(&rule("api", limit, "local"), 3);
        nodes[0].store.is(Health::Down);
        let all = || nodes.iter().map(passing).collect::<Vec<_>>();
        assert_eq!(all().iter().sum::<u64>(), at_once, "{limit}: all of the burst, and not more");
        assert_eq!(all(), [0; 3], "{limit}");
        // Long enough for one unit of a share, or for a whole window.
        let is_window = limit.starts_with("31/h") && !limit.ends_with("concurrency");
        let rate: u64 = limit.split('/').next().and_then(|rate| rate.parse().ok()).expect("a rate");
        let wait = if is_window { 2 * 3600 } else { 3 * 3600 / rate };
        nodes[0].clock.advance(SECOND * u32::try_from(wait).expect("seconds"));
        if after_a_while > 0 {
            assert_eq!(all(), [after_a_while; 3], "{limit}");
        }
    }
}
