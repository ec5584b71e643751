//! Header fields, parsed by another library.

use std::sync::Arc;

use http::StatusCode;
use sfv::{BareItem, List, ListEntry, Parser};
use tidegate::{Limit, Limiter, MILLISECOND, ManualClock};
use tidegate_tower::{Dialect, RateLimitLayer, key};

use super::{Counting, Got, field, now, of};

/// Parses a list of one item: its name, and its parameters as text.
fn read(text: &str) -> (String, Vec<(String, String)>) {
    let list: List = Parser::new(text).parse().unwrap();
    let [ListEntry::Item(item)] = &list[..] else { panic!("one item: {text}") };
    let BareItem::String(name) = &item.bare_item else { panic!("a name: {text}") };
    let value = |value: &BareItem| match value {
        BareItem::Integer(number) => number.to_string(),
        BareItem::String(text) => text.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    let parameters = item.params.iter().map(|(key, of)| (key.as_str().to_owned(), value(of)));
    (name.as_str().to_owned(), parameters.collect())
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns the responses to three requests under a limit of two, half a second apart.
fn answers(layer: impl Fn(RateLimitLayer) -> RateLimitLayer) -> [Got; 3] {
    let clock = Arc::new(ManualClock::new());
    let limiter = Limiter::with_clock(Limit::per_minute(30).burst(2), clock.clone());
    let mut service = Counting::default().behind(&layer(RateLimitLayer::with(limiter, key::everyone())));
    [(); 3].map(|()| {
        let response = now(&mut service, of("ana"));
        clock.advance(500 * MILLISECOND);
        response
    })
}

#[test]
fn the_fields_of_the_ietf_are_structured_and_true() {
    let [first, second, refused] = answers(|layer| layer.named("per user"));
    for (response, left, seconds) in [(&first, "1", "2"), (&second, "0", "4"), (&refused, "0", "1")] {
        let (name, policy) = read(field(response, "ratelimit-policy").unwrap());
        assert_eq!((&*name, policy), ("per user", pairs(&[("q", "2"), ("w", "4")])));
        let (name, state) = read(field(response, "ratelimit").unwrap());
        assert_eq!((&*name, state), ("per user", pairs(&[("r", left), ("t", seconds)])));
    }
    assert_eq!((field(&first, "retry-after"), field(&second, "retry-after")), (None, None));
    assert_eq!(field(&refused, "retry-after"), Some("1"), "a second is left of the two that a unit takes");
}

#[test]
fn the_fields_of_older_drafts_are_what_they_were() {
    let [first, _, refused] = answers(|layer| layer.fields(Dialect::Draft03));
    let numbers = |response: &Got| {
        ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]
            .map(|name| field(response, name).unwrap().parse::<u64>().unwrap())
    };
    assert_eq!((numbers(&first), numbers(&refused)), ([2, 1, 2], [2, 0, 1]));
    assert_eq!((field(&first, "ratelimit"), field(&refused, "retry-after")), (None, Some("1")));

    let [first, _, refused] = answers(|layer| layer.fields(Dialect::Draft07));
    assert_eq!(field(&first, "ratelimit"), Some("limit=2, remaining=1, reset=2"));
    assert_eq!(field(&first, "ratelimit-policy"), Some("2;w=4"));
    assert_eq!(field(&refused, "ratelimit"), Some("limit=2, remaining=0, reset=1"));
}

#[test]
fn the_fields_without_a_standard_have_a_date() {
    #[expect(clippy::disallowed_methods, reason = "the date is what is tested")]
    let today = || {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A second that has begun is not over: a retry at the date is not too early.
        since.unwrap().as_nanos().div_ceil(1_000_000_000) as u64
    };
    let before = today();
    let [first, _, refused] = answers(|layer| layer.fields(Dialect::XRateLimit));
    let after = today();
    let number = |response: &Got, name| field(response, name).unwrap().parse::<u64>().unwrap();
    assert_eq!((number(&first, "x-ratelimit-limit"), number(&first, "x-ratelimit-remaining")), (2, 1));
    assert!((before + 2..=after + 2).contains(&number(&first, "x-ratelimit-reset")));
    assert!((before + 1..=after + 1).contains(&number(&refused, "x-ratelimit-reset")));
    assert_eq!(number(&refused, "retry-after"), 1);
}

#[test]
fn without_fields_only_a_refusal_says_anything() {
    let [first, second, refused] = answers(|layer| layer.fields(Dialect::None));
    assert!(first.headers().is_empty() && second.headers().is_empty());
    assert_eq!((refused.headers().len(), field(&refused, "retry-after")), (2, Some("1")));
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn a_replaced_limit_is_reported_as_it_is_now() {
    let limiter = Limiter::with_clock(Limit::per_second(10), Arc::new(ManualClock::new()));
    let mut service = Counting::default().behind(&RateLimitLayer::with(limiter.clone(), key::everyone()));
    let mut policy = || field(&now(&mut service, of("ana")), "ratelimit-policy").unwrap().to_owned();
    assert_eq!(policy(), "\"default\";q=10;w=1");
    limiter.set_limit(Limit::per_minute(10));
    assert_eq!(
        (policy(), policy()),
        ("\"default\";q=10;w=60".to_owned(), "\"default\";q=10;w=60".to_owned())
    );
    limiter.set_limit(Limit::per_minute(20));
    assert_eq!(policy(), "\"default\";q=20;w=60");
}

#[test]
fn a_name_is_reported_in_characters_that_every_parser_accepts() {
    let long = "x".repeat(100);
    for (name, reported) in [("a\"b\\c\n", "a_b_c_"), ("käse", "k_se"), (&long, &*long), ("", "")] {
        let layer = RateLimitLayer::new(Limit::per_second(5), key::everyone()).named(name);
        let response = now(&mut Counting::default().behind(&layer), of("ana"));
        assert_eq!(read(field(&response, "ratelimit").unwrap()).0, reported);
        assert_eq!(read(field(&response, "ratelimit-policy").unwrap()).0, reported);
    }
}

#[test]
fn every_algorithm_says_what_it_promises_and_the_largest_numbers_can_be_read() {
    for text in [
        "10/s burst 20",
        "10/s leaky-bucket queue 5",
        "10/60s fixed-window",
        "10/60s sliding-log",
        "10/60s sliding-window",
        "10/s pacer burst 5",
        "unlimited pacer",
        "8/30s concurrency",
    ] {
        let limit: Limit = text.parse().unwrap();
        let mut service = Counting::default().behind(&RateLimitLayer::new(limit, key::header("x-user")));
        let response = now(&mut service, of("ana"));
        assert_eq!(response.status(), StatusCode::OK, "{text}");
        let (_, state) = read(field(&response, "ratelimit").unwrap());
        assert_eq!(state.iter().map(|(name, _)| &**name).collect::<Vec<_>>(), ["r", "t"], "{text}");
        let (_, policy) = read(field(&response, "ratelimit-policy").unwrap());
        assert!(policy[0].0 == "q" && policy.last().unwrap().0 == "w", "{text}: {policy:?}");
    }
}

/// Returns the responses of a layer around another one.
fn nested(outer: RateLimitLayer, inner: RateLimitLayer) -> impl FnMut() -> Got {
    let mut service =
        tower_layer::Layer::layer(&outer.named("outer"), Counting::default().behind(&inner.named("inner")));
    move || {
        let response = super::at_once(tower::Service::call(&mut service, of("ana"))).unwrap().unwrap();
        super::whole(response)
    }
}

#[test]
fn layers_around_each_other_tell_their_limits_in_one_list() {
    let inner = Limiter::with_clock(Limit::per_hour(1), Arc::new(ManualClock::new()));
    let outer = Limiter::with_clock(Limit::per_hour(9), Arc::new(ManualClock::new()));
    let mut answer =
        nested(RateLimitLayer::with(outer, key::everyone()), RateLimitLayer::with(inner, key::everyone()));
    let all = |response: &Got, name| {
        let values = response.headers().get_all(name).iter().map(|value| value.to_str().unwrap());
        values.collect::<Vec<_>>().join(", ")
    };
    for (status, left) in [
        (200, "\"inner\";r=0;t=3600, \"outer\";r=8;t=400"),
        (429, "\"inner\";r=0;t=3600, \"outer\";r=7;t=800"),
    ] {
        let response = answer();
        assert_eq!((response.status().as_u16(), &*all(&response, "ratelimit")), (status, left));
        assert_eq!(all(&response, "ratelimit-policy"), "\"inner\";q=1;w=3600, \"outer\";q=9;w=3600");
        let list: List = Parser::new(&all(&response, "ratelimit")).parse().unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(field(&response, "retry-after"), (status == 429).then_some("3600"));
    }
}

#[test]
fn fields_for_one_limit_report_that_of_the_innermost_layer() {
    for (dialect, name, value) in [
        (Dialect::Draft07, "ratelimit", "limit=1, remaining=0, reset=3600"),
        (Dialect::Draft03, "ratelimit-limit", "1"),
        (Dialect::XRateLimit, "x-ratelimit-limit", "1"),
    ] {
        let layer = |limit| RateLimitLayer::new(limit, key::everyone()).fields(dialect);
        let mut answer = nested(layer(Limit::per_hour(9)), layer(Limit::per_hour(1)));
        for status in [200, 429] {
            let response = answer();
            assert_eq!((response.status().as_u16(), field(&response, name)), (status, Some(value)));
            assert_eq!(response.headers().get_all(name).iter().count(), 1, "{dialect:?}");
        }
    }
}
