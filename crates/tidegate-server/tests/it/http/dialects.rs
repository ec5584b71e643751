//! Tests of rate-limit header fields in every dialect.

use std::time::{SystemTime, UNIX_EPOCH};

use sfv::{BareItem, Dictionary, List, ListEntry, Parser};
use tidegate_server::Settings;
use tidegate_server::settings::Dialect;

use crate::wire::http::{Answer, Talk};
use crate::wire::{Running, settings};

fn speaking(headers: Dialect) -> Running {
    Running::with(Settings { headers, ..settings() })
}

/// Returns the two parameters of the only item of a list. The item has to be the string `adhoc`.
fn parameters(answer: &Answer, field: &str, names: [&str; 2]) -> [i64; 2] {
    let value = answer.field(field).unwrap_or_else(|| panic!("no {field} in {answer:?}"));
    let list: List = Parser::new(value).parse().unwrap_or_else(|error| panic!("{value}: {error}"));
    let [ListEntry::Item(item)] = &list[..] else { panic!("{value} is not one item") };
    assert_eq!(item.bare_item.as_string().map(|name| name.as_str()), Some("adhoc"), "{value}");
    assert_eq!(item.params.len(), 2, "{value}");
    names.map(|name| match item.params.get(name) {
        Some(BareItem::Integer(number)) => i64::from(*number),
        other => panic!("{name} of {value} is {other:?}"),
    })
}

/// Takes with this cost, and returns `q` and `w`, `r` and `t`, and `Retry-After`.
fn said(talk: &mut Talk, limit: &str, cost: u64) -> ([i64; 2], [i64; 2], Option<i64>) {
    let answer = talk.post("/v1/take", &format!(r#"{{"key":"ana","limit":"{limit}","cost":{cost}}}"#));
    let policy = parameters(&answer, "ratelimit-policy", ["q", "w"]);
    let left = parameters(&answer, "ratelimit", ["r", "t"]);
    let retry_after =
        answer.field("retry-after").map(|seconds| seconds.parse().expect("seconds are a number"));
    (policy, left, retry_after)
}

#[test]
fn the_fields_of_the_draft_are_well_formed_and_true() {
    let (_running, mut talk) = Running::start().with_http();
    assert_eq!(said(&mut talk, "30/60s burst 15", 10), ([15, 30], [5, 20], None));
    assert_eq!(said(&mut talk, "30/60s burst 15", 6), ([15, 30], [5, 2], Some(2)));
    assert_eq!(said(&mut talk, "3/1s sliding-log", 3), ([3, 1], [0, 1], None));
    assert_eq!(said(&mut talk, "100/s leaky-bucket queue 9", 1), ([10, 1], [9, 1], None));
    assert_eq!(
        said(&mut talk, "unlimited pacer", 1),
        ([999_999_999_999_999, 1], [999_999_999_999_999, 0], None)
    );
}

#[test]
fn retry_after_is_at_least_a_second_and_not_before_the_time_of_the_field() {
    let (_running, mut talk) = Running::start().with_http();
    for limit in [
        "1000/s burst 1",
        "1/s",
        "7/9s burst 1",
        "1/d fixed-window",
        "2/m sliding-window",
        "1/9s concurrency",
    ] {
        while talk.post("/v1/take", &format!(r#"{{"key":"bob","limit":"{limit}"}}"#)).status == 200 {}
        let refused = talk.post("/v1/take", &format!(r#"{{"key":"bob","limit":"{limit}"}}"#));
        let retry_after: i64 = refused.field("retry-after").unwrap().parse().unwrap();
        let [_, time] = parameters(&refused, "ratelimit", ["r", "t"]);
        let exact = refused.json()["retry_after_ms"].as_i64().unwrap();
        assert_eq!((retry_after, time), ((exact + 999) / 1000, retry_after), "{limit}");
        assert!(retry_after >= 1);
    }
}

#[test]
fn a_peek_reports_the_decision_of_the_same_take() {
    let (_running, mut talk) = Running::start().with_http();
    let ask = r#"{"key":"ana","limit":"1/60s"}"#;
    assert_eq!(talk.post("/v1/peek", ask).field("ratelimit"), Some("\"adhoc\";r=1;t=0"));
    talk.post("/v1/take", ask);
    let (looked, refused) = (talk.post("/v1/peek", ask), talk.post("/v1/take", ask));
    for field in ["ratelimit", "ratelimit-policy"] {
        assert_eq!(looked.field(field), refused.field(field));
    }
}

#[test]
fn an_impossible_cost_has_a_reset_after() {
    let running = Running::start();
    let answer = Talk::to(&running).post("/v1/take", r#"{"key":"ana","limit":"2/60s","cost":3}"#);
    assert_eq!((answer.field("ratelimit"), answer.field("retry-after")), (Some("\"adhoc\";r=2;t=0"), None));
}

#[test]
fn the_older_draft_has_three_plain_numbers() {
    let (_running, mut talk) = speaking(Dialect::Draft03).with_http();
    let answer = talk.post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15","cost":15}"#);
    let numbers =
        ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"].map(|name| answer.field(name));
    assert_eq!(numbers, [Some("15"), Some("0"), Some("30")]);
    assert_eq!(answer.fields_of("ratelimit").len(), 3);
    let refused = talk.post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15"}"#);
    assert_eq!((refused.field("ratelimit-reset"), refused.field("retry-after")), (Some("2"), Some("2")));
}

#[test]
fn the_draft_between_has_a_dictionary_and_a_number_with_its_window() {
    let (_running, mut talk) = speaking(Dialect::Draft07).with_http();
    let answer = talk.post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15","cost":15}"#);
    let fields =
        |answer: &Answer| ["ratelimit-policy", "ratelimit"].map(|name| answer.field(name).map(str::to_owned));
    let expected = |left: &str| [Some("15;w=30".to_owned()), Some(left.to_owned())];
    assert_eq!(fields(&answer), expected("limit=15, remaining=0, reset=30"));
    assert_eq!(answer.fields_of("ratelimit").len(), 2);
    let refused = talk.post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15"}"#);
    assert_eq!(fields(&refused), expected("limit=15, remaining=0, reset=2"));
    assert_eq!(refused.field("retry-after"), Some("2"));
    let unlimited = talk.post("/v1/take", r#"{"key":"ana","limit":"unlimited pacer"}"#);
    let [policy, left] = fields(&unlimited).map(Option::unwrap);
    let most = Some(999_999_999_999_999);
    let left: Dictionary = Parser::new(&left).parse().unwrap();
    let number = |name: &str| match left.get(name) {
        Some(ListEntry::Item(item)) => item.bare_item.as_integer().map(i64::from),
        _ => None,
    };
    assert_eq!([number("limit"), number("remaining"), number("reset")], [most, most, Some(0)]);
    assert_eq!(policy, "999999999999999;w=1");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "this dialect prints a time of day")]
fn the_vendors_dialect_has_a_time_since_1970() {
    let running = speaking(Dialect::XRateLimit);
    let now =
        || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos().div_ceil(1_000_000_000) as u64;
    let before = now();
    let answer = Talk::to(&running).post("/v1/take", r#"{"key":"ana","limit":"30/60s burst 15","cost":15}"#);
    assert_eq!(
        (answer.field("x-ratelimit-limit"), answer.field("x-ratelimit-remaining")),
        (Some("15"), Some("0"))
    );
    let reset: u64 = answer.field("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((before + 30..=now() + 30).contains(&reset), "{reset}");
    assert_eq!(answer.fields_of("ratelimit"), [""; 0]);
}

#[test]
fn without_a_dialect_only_a_denial_has_a_retry_after() {
    let (_running, mut talk) = speaking(Dialect::None).with_http();
    let ask = r#"{"key":"ana","limit":"1/60s"}"#;
    let (allowed, refused) = (talk.post("/v1/take", ask), talk.post("/v1/take", ask));
    for answer in [&allowed, &refused] {
        assert_eq!((answer.fields_of("ratelimit"), answer.fields_of("x-")), (vec![], vec![]));
    }
    assert_eq!((allowed.field("retry-after"), refused.field("retry-after")), (None, Some("60")));
}
