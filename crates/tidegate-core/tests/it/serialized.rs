//! Serialization by `serde`: `cargo test -p tidegate-core --features serde`.

use tidegate::{
    Algorithm, Decision, HOUR, Limit, LimitBuilder, Limiter, PermitId, Rate, SECOND, Verdict, ask,
};

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("it is serialized")
}

#[test]
fn limits_rates_algorithms_and_permits_are_their_texts() {
    let limit = Limit::per_second(10).burst(20);
    assert_eq!(json(&limit), r#""10/s burst 20""#);
    assert_eq!(serde_json::from_str::<Limit>(r#""10/s burst 20""#).ok(), Some(limit));
    assert_eq!(serde_json::from_str::<Rate>(r#""10/s""#).ok(), Rate::new(10, SECOND).ok());
    assert_eq!(
        (json(&Algorithm::Pacer), json(&Rate::UNLIMITED)),
        (r#""pacer""#.into(), r#""unlimited""#.into())
    );
    let permit = PermitId::from_number(0xfeed).expect("not zero");
    assert_eq!(serde_json::from_str::<PermitId>(&json(&permit)).ok(), Some(permit));
    for wrong in [r#""60/min""#, "7", "null"] {
        assert!(serde_json::from_str::<Limit>(wrong).is_err(), "{wrong}");
    }
    let error = serde_json::from_str::<Limit>(r#""60/min""#).unwrap_err().to_string();
    assert!(error.contains("unknown unit \"min\""), "{error}");
    assert!(
        LimitBuilder::new(Algorithm::TokenBucket, 10, SECOND)
            .build()
            .is_ok_and(|limit| json(&limit) == r#""10/s""#)
    );
}

#[test]
fn a_decision_reads_as_it_was_written() {
    let limiter = Limiter::new(Limit::fixed_window(2, HOUR));
    let permits = Limiter::new(Limit::concurrency(2, HOUR));
    let decisions = [
        limiter.admit("ana"),
        limiter.admit(ask("ana").cost(2)),
        limiter.admit(ask("ana").cost(3)),
        permits.admit("ana"),
    ];
    for decision in decisions {
        let again: Decision = serde_json::from_str(&json(&decision)).expect("a decision");
        assert_eq!(again.verdict(), decision.verdict());
        assert_eq!((again.limit(), again.remaining()), (decision.limit(), decision.remaining()));
        assert_eq!((again.reset_after(), again.permit()), (decision.reset_after(), decision.permit()));
    }
    assert_eq!(json(&Verdict::<std::time::Duration>::Impossible), r#""impossible""#);
    let denied = Verdict::Denied { retry_after: SECOND };
    assert_eq!(json(&denied), r#"{"denied":{"retry_after":{"secs":1,"nanos":0}}}"#);
}
