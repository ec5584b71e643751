//! Conversions of the small types: text, numbers and spans, at the ends of their ranges.

use std::collections::HashSet;
use std::num::NonZeroU64;
use std::time::Duration;

use tidegate::{
    Algorithm, Cost, Key, Limit, LimitBuilder, LimitError, Limiter, PermitId, Rate, SECOND, Ticks, Timestamp,
    Verdict,
};

#[test]
fn an_algorithm_is_parsed_from_what_it_is_written_as() {
    for algorithm in Algorithm::ALL {
        assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
    }
    for unknown in ["", "Token-Bucket", "token_bucket", " pacer"] {
        let error = unknown.parse::<Algorithm>().unwrap_err().to_string();
        assert!(error.starts_with("unknown algorithm") && error.ends_with("or calendar"), "{error}");
    }
}

#[test]
fn a_cost_is_a_number_above_zero() {
    assert!(Cost::try_from(0).is_err());
    assert_eq!(Cost::try_from(7), Ok(Cost::of(7)));
    assert_eq!(Cost::from(NonZeroU64::MAX).get(), u64::MAX);
    assert_eq!((u64::from(Cost::ONE), Cost::of(9).to_string()), (1, "9".to_owned()));
}

#[test]
fn sums_and_differences_of_time_saturate() {
    let second = Ticks::try_from(SECOND).expect("a second can be counted");
    assert_eq!(Duration::from(second + second), 2 * SECOND);
    assert_eq!((Ticks::MAX + second, Ticks::ZERO - second), (Ticks::MAX, Ticks::ZERO));
    let (mut span, mut at) = (second, Timestamp::EPOCH);
    span += second;
    at += span;
    span -= second;
    assert_eq!((span, at - Timestamp::EPOCH, Timestamp::EPOCH - at), (second, second + second, Ticks::ZERO));
    assert_eq!((Timestamp::LAST + second, Timestamp::EPOCH - second), (Timestamp::LAST, Timestamp::EPOCH));
    assert_eq!(at - second, Timestamp::after_epoch(SECOND));
    assert!(Ticks::try_from(Duration::MAX).unwrap_err().to_string().contains("36 years"));
}

#[test]
fn a_key_is_shown_by_its_parts_and_compared_by_its_bytes() {
    assert_eq!(Key::new("ana").to_string(), "ana");
    assert_eq!(Key::new(("a\nb", 7)).to_string(), "a\\nb, 7");
    assert_eq!(Key::new("").to_string(), "");
    let (one, two) = (Key::new("a, b"), Key::new(("a", "b")));
    assert_eq!(one.to_string(), two.to_string());
    assert_ne!(AsRef::<[u8]>::as_ref(&one), two.as_ref());
}

#[test]
fn a_permit_is_parsed_from_what_it_is_written_as() {
    for number in [1, 0xfeed, u64::MAX] {
        let permit = PermitId::from_number(number).expect("not zero");
        assert_eq!(permit.to_string().parse(), Ok(permit));
    }
    for wrong in ["", "0", "+1", "-1", "g", " 1", "10000000000000000"] {
        assert!(wrong.parse::<PermitId>().is_err(), "{wrong:?}");
    }
}

#[test]
fn a_limit_and_a_rate_are_made_of_text_or_numbers() {
    assert_eq!(Limit::try_from("10/s burst 20"), Ok(Limit::per_second(10).burst(20)));
    assert_eq!(Rate::try_from("10/s".to_owned()), Rate::new(10, SECOND));
    let builder = LimitBuilder::new(Algorithm::TokenBucket, 10, SECOND);
    assert_eq!(Limit::try_from(builder), Ok(Limit::per_second(10)));
    let error: LimitError = Limit::try_from("60/min").unwrap_err();
    assert_eq!(error, "60/min".parse::<Limit>().unwrap_err());
}

#[test]
fn equal_decisions_and_verdicts_have_one_hash() {
    let decisions = || Limiter::new(Limit::per_hour(1)).peek("ana");
    assert_eq!(HashSet::from([decisions(), decisions()]).len(), 1);
    let denied = |seconds: u32| Verdict::Denied { retry_after: seconds * SECOND };
    assert_eq!(HashSet::from([denied(1), denied(1), denied(2), Verdict::Impossible]).len(), 3);
}
