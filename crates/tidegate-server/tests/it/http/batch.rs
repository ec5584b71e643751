//! Tests of `POST /v1/admit/batch`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use conformance::clock::TickingClock;
use serde_json::{Value, json};
use tidegate::{Clock, HOUR, MILLISECOND, ManualClock, Ticks, Timestamp, Zone};
use tidegate_rules::Policy;
use tidegate_server::{Server, Settings};

use crate::wire::http::{Answer, Talk, get, post};
use crate::wire::{Running, settings};

const MAX_ASKS: usize = 16_384;
const MAX_ASKS_TOGETHER: usize = 4_096;
/// The number of asks that are decided at one instant.
const STRETCH: usize = 64;
const MAX_BATCH_BYTES: usize = 1 << 20;

const RULES: &str = r#"
[[rule]]
name = "robots"
when = { user = "robot" }
decision = "deny"

[[rule]]
name = "api"
key = ["user"]
limit = "2/60s"
on_missing = "skip"

[[rule]]
name = "slow"
when = { path = "/slow" }
limit = "1/h"
"#;

fn of(user: &str) -> Value {
    json!({"attributes": {"user": user}})
}

fn ask(talk: &mut Talk, requests: &[Value], all: bool) -> Answer {
    talk.post("/v1/admit/batch", &json!({"requests": requests, "all": all}).to_string())
}

fn members(answer: &Answer, name: &str) -> Vec<Value> {
    answer.json()["answers"].as_array().expect("a list").iter().map(|one| one[name].clone()).collect()
}

#[test]
fn each_request_is_answered_by_itself_and_in_order() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let one = r#"{"requests":[{"attributes":{"user":"ana"}}]}"#;
    let answer = talk.post("/v1/admit/batch", one);
    let expected = r#"{"allowed":true,"answers":[{"allowed":true,"limit":2,"remaining":1,"retry_after_ms":null,"reset_after_ms":30000,"delay_ms":0,"rule":"api","decided_by":"memory","limits":[{"name":"api","limit":2,"remaining":1,"retry_after_ms":null,"reset_after_ms":30000}]}]}"#;
    assert_eq!((answer.status, &*answer.body), (200, expected));

    let answer = ask(&mut talk, &["ana", "ana", "robot", "bob"].map(of), false);
    assert_eq!((answer.status, &answer.json()["allowed"]), (200, &json!(false)));
    assert_eq!(members(&answer, "allowed"), [json!(true), json!(false), json!(false), json!(true)]);
    assert_eq!(members(&answer, "rule"), ["api", "api", "robots", "api"].map(Value::from));
    assert_eq!(members(&answer, "retry_after_ms"), [json!(null), json!(30_000), json!(null), json!(null)]);
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (None, None));
    assert_eq!(ask(&mut talk, &[], false).body, r#"{"allowed":true,"answers":[]}"#);
}

#[test]
fn all_are_allowed_or_nothing_is_spent() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    assert_eq!(ask(&mut talk, &["ana", "bob"].map(of), true).status, 200);

    let answer = ask(&mut talk, &["ana", "ana", "eve"].map(of), true);
    assert_eq!(answer.status, 429);
    let decision = answer.json();
    assert_eq!((&decision["allowed"], &decision["binding"]), (&json!(false), &json!(0)));
    assert_eq!(decision["violated-policies"], json!(["api"]));
    assert!(answer.detail().starts_with("Denied by rule \"api\"; the same request passes in 30000 ms"));
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (Some("30"), Some("no-store")));
    assert_eq!(members(&answer, "allowed"), [json!(false), json!(false), json!(false)]);
    assert_eq!(members(&answer, "delay_ms"), [Value::Null, Value::Null, Value::Null]);
    assert_eq!(members(&answer, "retry_after_ms"), [json!(30_000), json!(30_000), json!(0)]);
    let eve =
        json!([{"name": "api", "limit": 2, "remaining": 2, "retry_after_ms": null, "reset_after_ms": 0}]);
    assert_eq!(members(&answer, "limits")[2], eve, "the limit itself denies her nothing");

    // Nothing was spent: the remaining quota is unchanged.
    assert_eq!(members(&ask(&mut talk, &["ana", "eve"].map(of), true), "remaining"), [json!(0), json!(1)]);
}

#[test]
fn the_longest_wait_binds_and_what_is_forbidden_or_can_never_pass_has_none() {
    let (_running, mut talk) = Running::under(RULES).with_http();
    let slow = json!({"attributes": {"path": "/slow"}});
    assert_eq!(ask(&mut talk, &[of("ana"), of("ana"), slow.clone()], true).status, 200);

    let answer = ask(&mut talk, &[of("ana"), slow.clone(), of("bob")], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (429, &json!(1)));
    assert_eq!(answer.field("retry-after"), Some("3600"));

    let never = json!({"attributes": {"user": "bob"}, "cost": 3});
    let answer = ask(&mut talk, &[of("ana"), slow.clone(), never.clone()], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (429, &json!(2)));
    assert_eq!(answer.field("retry-after"), None);
    assert!(answer.detail().starts_with("A cost of 3 can never pass: rule \"api\""));

    let answer = ask(&mut talk, &[of("bob"), of("bob"), of("bob")], true);
    assert_eq!((answer.status, answer.field("retry-after")), (429, None));
    let together = "These costs, added up for one key, can never pass together: rule \"api\" holds at most 2";
    assert!(answer.detail().starts_with(together), "{}", answer.detail());

    let answer = ask(&mut talk, &[slow, never, of("robot"), of("robot")], true);
    assert_eq!((answer.status, &answer.json()["binding"]), (403, &json!(2)));
    assert_eq!((answer.field("retry-after"), answer.field("cache-control")), (None, Some("no-store")));
    assert!(answer.detail().starts_with("Rule \"robots\" always denies this"));
    assert_eq!(answer.json().get("violated-policies"), None);
    assert_eq!(members(&answer, "rule")[2], "robots");
}

/// Returns `count` rules that apply to every request.
fn rules(count: usize, more: &str) -> String {
    let rule = |nth: usize| format!("[[rule]]\nname = 'r{nth}'\nkey = ['user']\nlimit = '20/h'\n{more}");
    (0..count).map(rule).collect()
}

fn many(count: usize) -> Vec<Value> {
    vec![json!({"attributes": {}}); count]
}

const TOO_MANY: &str = "requests: more than 16384 asks, which are counted for each request and each rule with a limit \
    that applies to it; send them in several batches";
const TOO_MANY_TOGETHER: &str = "requests: more than 4096 asks, which are counted for each request and each rule with a \
    limit that applies to it; send fewer requests with \"all\": true, or leave it out";

#[test]
fn so_many_asks_are_taken_and_one_more_is_not() {
    let (_running, mut talk) = Running::start().with_http();
    for (all, most, detail) in [(false, MAX_ASKS, TOO_MANY), (true, MAX_ASKS_TOGETHER, TOO_MANY_TOGETHER)] {
        let answer = ask(&mut talk, &many(most), all);
        assert_eq!((answer.status, members(&answer, "allowed").len()), (200, most));
        for more in [most + 1, 30_000] {
            let answer = ask(&mut talk, &many(more), all);
            assert_eq!((answer.status, answer.detail()), (413, detail.to_owned()));
            assert_eq!(answer.field("connection"), None, "its body was read, so the connection goes on");
        }
    }
}

#[test]
fn each_rule_of_each_request_is_an_ask_and_a_batch_of_too_many_spends_nothing() {
    let server = server(&rules(200, ""), Arc::new(ManualClock::new()));
    let mut talk = Talk::at(server.http().expect("it speaks HTTP"));
    let user = |nth: usize| of(&format!("u{nth}"));
    let ask_about =
        |talk: &mut Talk, count: usize, all: bool| ask(talk, &(0..count).map(user).collect::<Vec<_>>(), all);
    for all in [false, true] {
        assert_eq!(ask_about(&mut talk, 1000, all).status, 413, "200,000 asks");
    }
    assert_eq!(ask_about(&mut talk, 82, false).detail(), TOO_MANY);
    assert_eq!(ask_about(&mut talk, 21, true).detail(), TOO_MANY_TOGETHER);
    let left = members(&ask_about(&mut talk, 20, true), "remaining");
    assert_eq!(left, vec![json!(19); 20], "nothing was spent before");
    let left = members(&ask_about(&mut talk, 81, false), "remaining");
    assert_eq!((&left[19], &left[20], left.len()), (&json!(18), &json!(19), 81));
}

#[test]
fn rules_that_are_only_measured_count_too_and_so_do_those_behind_a_decision() {
    let candidate = "[[rule]]\nname = 'c'\ncandidate_for = 'r0'\nlimit = '9/h'\n";
    let shadow = "[[rule]]\nname = 's'\nmode = 'shadow'\nlimit = '9/h'\n";
    let deny = "[[rule]]\nname = 'no'\nwhen = { path = '/no' }\ndecision = 'deny'\n";
    let (_running, mut talk) =
        Running::under(&[rules(2, "").as_str(), candidate, shadow, deny].concat()).with_http();
    assert_eq!(ask(&mut talk, &many(MAX_ASKS / 4), false).status, 200);
    assert_eq!(ask(&mut talk, &many(MAX_ASKS / 4 + 1), false).status, 413);
    let denied = |count| vec![json!({"attributes": {"path": "/no"}}); count];
    assert_eq!(ask(&mut talk, &denied(MAX_ASKS / 4), false).status, 200);
    assert_eq!(ask(&mut talk, &denied(MAX_ASKS / 4 + 1), false).status, 413);
}

#[test]
fn a_long_request_counts_for_each_kibibyte_of_its_attributes() {
    let (_running, mut talk) = Running::under(&rules(100, "")).with_http();
    // Names and values take 4 KiB: a hundred rules count as four hundred asks.
    let long = |bytes: usize| json!({"attributes": {"user": "x".repeat(bytes - "user".len())}});
    assert_eq!(ask(&mut talk, &vec![long(4096); 10], true).status, 200);
    assert_eq!(ask(&mut talk, &vec![long(4096); 11], true).status, 413);
    assert_eq!(ask(&mut talk, &vec![long(4097); 9], true).status, 413, "five hundred each");
}

#[test]
fn the_longest_batch_is_taken_and_the_next_is_not() {
    let running = Running::start();
    let body = |bytes: usize| {
        let rest = r#"{"requests":[]}"#;
        format!("{}{rest}", " ".repeat(bytes - rest.len()))
    };
    assert_eq!(Talk::to(&running).post("/v1/admit/batch", &body(MAX_BATCH_BYTES)).status, 200);
    let answer = Talk::to(&running).post("/v1/admit/batch", &body(MAX_BATCH_BYTES + 1));
    assert_eq!((answer.status, answer.field("connection")), (413, Some("close")));
    assert!(answer.detail().contains("more than 1048576 bytes"));
}

/// The body and the expected error.
const WRONG: &str = r#"
 | send one such as {"requests":[{"attributes":{"ip":"192.0.2.7"}}]}
{} | missing field `requests`
{"requests":{}} | invalid type: map, expected a sequence
{"requests":[7]} | invalid type: integer `7`, expected an object such as
{"requests":[[{}]]} | invalid type: sequence, expected an object such as
{"requests":[{"attributes":{"ip":"x"}}]} | attribute "ip" is no address
{"requests":[],"all":1} | invalid type: integer `1`, expected a boolean
{"requests":[],"any":true} | unknown field `any`, expected `requests` or `all`
"#;

#[test]
fn an_invalid_batch_is_an_error_with_its_reason() {
    let (_running, mut talk) = Running::start().with_http();
    for [body, said] in conformance::rows(WRONG) {
        let answer = talk.post("/v1/admit/batch", body);
        answer.is_problem_of(body, 400, said);
    }
}

#[test]
fn permits_come_with_the_answers_that_have_them() {
    let (_running, mut talk) =
        Running::under("[[rule]]\nname = 'up'\nkey = ['user']\nlimit = '1/30s concurrency'").with_http();
    let answer = ask(&mut talk, &["ana", "ana", "bob"].map(of), false);
    let permits = members(&answer, "permit");
    assert!(permits[0].is_string() && permits[1].is_null() && permits[2].is_string(), "{permits:?}");
    let released = talk.post("/v1/release", &json!({"permit": permits[0]}).to_string());
    assert_eq!(released.body, r#"{"released":true}"#);
    assert_eq!(ask(&mut talk, &[of("ana")], true).status, 200);
}

#[test]
fn a_denied_request_gets_no_permit_even_if_a_candidate_has_one() {
    let running = Running::under(
        "[[rule]]\nname = 'uploads'\nlimit = '1/30s concurrency'\n\
         [[rule]]\nname = 'wide'\ncandidate_for = 'uploads'\nlimit = '5/30s concurrency'\n",
    );
    let body = r#"{"requests":[{"attributes":{}},{"attributes":{}}]}"#;
    let answers = Talk::to(&running).post("/v1/admit/batch", body).json()["answers"].clone();
    let decisions = [0, 1].map(|nth| (answers[nth]["allowed"].clone(), answers[nth]["permit"].is_string()));
    assert_eq!(decisions, [(true.into(), true), (false.into(), false)]);
}

/// Starts a server with one thread whose zone uses this clock.
fn server(rules: &str, clock: Arc<dyn Clock>) -> Server {
    let policy = Policy::from_toml(rules).unwrap_or_else(|error| panic!("{error}"));
    // Enough for every key of the largest batch.
    let zone = Zone::with_clock(1 << 20, clock);
    Server::start(Settings { policy, ..settings() }, zone).expect("free ports of loopback can be had")
}

fn ticking() -> Arc<TickingClock> {
    let clock = Arc::new(TickingClock::new());
    clock.set(Timestamp::after_epoch(HOUR));
    clock
}

#[test]
fn each_stretch_of_a_batch_is_decided_at_one_instant() {
    for algorithm in ["token-bucket", "sliding-log", "fixed-window"] {
        // The limit refills as fast as the clock advances, 0.1 ms per reading. At separate instants more would be
        // allowed.
        let limit = match algorithm {
            "token-bucket" => "10000/s burst 2".to_owned(),
            other => format!("2/100us {other}"),
        };
        let rule = |name: &str| format!("[[rule]]\nname = '{name}'\nkey = ['user']\nlimit = '{limit}'\n");
        // One rule is taken from alone; two rules are decided all or none.
        for (rules, asks) in [(rule("a"), 1), (rule("a") + &rule("b"), 2)] {
            let clock = ticking();
            let server = server(&rules, clock.clone());
            let mut talk = Talk::at(server.http().expect("it speaks HTTP"));
            clock.tick(Ticks::saturating_from(Duration::from_micros(100)));
            let in_stretch = STRETCH / asks;
            let answer = ask(&mut talk, &vec![of("ana"); 3 * in_stretch], false);
            let allowed: Vec<_> = members(&answer, "allowed").iter().map(|allowed| allowed == true).collect();
            let expected: Vec<_> = (0..3 * in_stretch).map(|nth| nth % in_stretch < 2).collect();
            assert_eq!(allowed, expected, "{limit}, {asks} asks for each request");
        }
    }
}

#[test]
fn a_batch_that_stands_or_falls_together_is_decided_at_one_instant() {
    let rules = "[[rule]]\nname = 'bucket'\nkey = ['user']\nlimit = '1/h'\n\
                 [[rule]]\nname = 'log'\nkey = ['user']\nlimit = '1/2h sliding-log'\n";
    let clock = ticking();
    let server = server(rules, clock.clone());
    let mut talk = Talk::at(server.http().expect("it speaks HTTP"));
    let users: Vec<_> = (0..10).map(|user| of(&format!("u{user}"))).collect();
    assert_eq!(ask(&mut talk, &users, true).status, 200);
    clock.set(Timestamp::after_epoch(HOUR + 100 * MILLISECOND));
    clock.tick(Ticks::saturating_from(Duration::from_millis(1)));
    let waits = members(&ask(&mut talk, &users, true), "retry_after_ms");
    assert_eq!(waits, vec![json!(2 * 3_600_000 - 100); 10], "one reading of the clock, and none behind it");
}

/// A clock whose readings a test can block. The server reads it while it decides about a batch.
#[derive(Debug, Default)]
struct Held {
    readings: AtomicUsize,
    is_armed: AtomicBool,
    /// The step that the test has reached.
    step: Mutex<usize>,
    turned: Condvar,
    is_late: AtomicBool,
}

impl Held {
    /// A reading in the middle of a batch.
    const MIDDLE: usize = 400;

    fn go_on_to(&self, step: usize) {
        *self.step.lock().expect("no thread panics") = step;
        self.turned.notify_all();
    }

    fn wait_for(&self, step: usize) {
        let (guard, longest) = (self.step.lock().expect("no thread panics"), Duration::from_secs(15));
        let waited = self.turned.wait_timeout_while(guard, longest, |now| *now < step);
        let is_late = waited.expect("no thread panics").1.timed_out();
        self.is_late.fetch_or(is_late, Ordering::SeqCst);
    }
}

impl Clock for Held {
    fn now(&self) -> Timestamp {
        if self.is_armed.load(Ordering::SeqCst) {
            match self.readings.fetch_add(1, Ordering::SeqCst) {
                // The test sends the other request after the batch has begun.
                0 => self.wait_for(1),
                // That request is answered before the batch ends.
                Held::MIDDLE => self.wait_for(2),
                _ => {}
            }
        }
        Timestamp::after_epoch(HOUR)
    }
}

#[test]
fn others_are_served_while_a_batch_is_decided() {
    let clock = Arc::new(Held::default());
    let server = server(&rules(1, ""), clock.clone());
    let address = server.http().expect("it speaks HTTP");
    let (mut batch, mut other) = (Talk::at(address), Talk::at(address));
    assert!(other.is_served() && other.answer().status == 200);
    clock.is_armed.store(true, Ordering::SeqCst);
    let body = json!({"requests": (0..1000).map(|user| of(&user.to_string())).collect::<Vec<_>>()});
    batch.send(post("/v1/admit/batch", &body.to_string()));
    // Sent earlier, it could be served while the batch is still read or counted.
    while clock.readings.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    other.send(get("/livez"));
    clock.go_on_to(1);
    let answered = std::thread::scope(|scope| {
        let answered = scope.spawn(|| other.answer().status);
        let status = answered.join().expect("it is answered");
        clock.go_on_to(2);
        status
    });
    assert_eq!((answered, batch.answer().status), (200, 200));
    assert!(clock.readings.load(Ordering::SeqCst) > Held::MIDDLE, "the batch was that long");
    assert!(
        !clock.is_late.load(Ordering::SeqCst),
        "the worker decided about the whole batch before it served others"
    );
}
