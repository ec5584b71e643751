//! The text of a limit: what it reads, what it says about what it cannot read.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{Algorithm, Alignment, DelayAfter, Draft, Limit, MINUTE, Pay, SECOND, WindowMode};

fn parse(text: &str) -> Limit {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_text_means_what_the_builder_says() {
    for (text, limit) in [
        ("10/s", Limit::per_second(10)),
        ("10/s burst 20", Limit::per_second(10).burst(20)),
        ("  30/60s   burst 15 ", Limit::per_minute(30).burst(15)),
        ("5000/h token-bucket", Limit::per_hour(5000)),
        ("1/1m30s burst 3", Limit::token_bucket(1, 90 * SECOND).burst(3)),
        ("10/s max-debt 5 burst 20", Limit::per_second(10).burst(20).max_debt(5)),
        ("100/s queue 50 leaky-bucket", Limit::leaky_bucket(100, SECOND).queue(50)),
        (
            "5/s queue 12 delay-after 8 leaky-bucket",
            Limit::leaky_bucket(5, SECOND).queue(12).delay_after(DelayAfter::Units(8)),
        ),
        (
            "5/s queue 12 delay-after all leaky-bucket",
            Limit::leaky_bucket(5, SECOND).queue(12).delay_after(DelayAfter::All),
        ),
        ("5/60s sliding-log", Limit::sliding_log(5, MINUTE)),
        ("5/m count-denied sliding-log", Limit::sliding_log(5, MINUTE).count_denied()),
        ("100/w fixed-window", Limit::fixed_window(100, 7 * 24 * 60 * MINUTE)),
        (
            "100/d align first-hit fixed-window",
            Limit::fixed_window(100, 24 * 60 * MINUTE).alignment(Alignment::FirstHit),
        ),
        ("9/500ms slots 8 sliding-window", Limit::sliding_window(9, SECOND / 2).slots(8)),
        (
            "9/250us mode estimate sliding-window",
            Limit::sliding_window(9, Duration::from_micros(250)).mode(WindowMode::Estimate),
        ),
        (
            "2/s warm-up 4s cold-factor 2 pay self pacer",
            Limit::pacer(2, SECOND).warm_up(4 * SECOND).cold_factor(2).pay(Pay::Own),
        ),
        ("2/s burst 3s pacer", Limit::pacer(2, SECOND).burst_span(3 * SECOND)),
        ("2/s burst 3 pacer", Limit::pacer(2, SECOND).burst(3)),
        ("unlimited pacer", Draft::unlimited_pacer().build().unwrap()),
        ("8/30s concurrency", Limit::concurrency(8, 30 * SECOND)),
    ] {
        assert_eq!(parse(text), limit, "{text}");
        assert_eq!(parse(&limit.to_string()), limit, "{limit}");
    }
}

#[test]
fn what_is_wrong_is_pointed_at_with_what_would_do() {
    for (text, place, what) in [
        ("", "", "there is nothing here; write a rate such as \"10/s\""),
        ("   ", "   ", "there is nothing here; write a rate such as \"10/s\""),
        ("10", "10", "a limit begins with a rate, an amount per period; write something like \"10/s\""),
        ("fast", "fast", "a limit begins with a rate, an amount per period; write something like \"10/s\""),
        ("60/min", "min", "unknown unit \"min\"; write \"60/m\" or \"60/60s\""),
        ("5/sec", "sec", "unknown unit \"sec\"; write \"5/s\" or \"5/1s\""),
        ("5/S", "S", "unknown unit \"S\"; write \"5/s\" or \"5/1s\""),
        ("5/Hour", "Hour", "unknown unit \"Hour\"; write \"5/h\" or \"5/3600s\""),
        ("5/month", "month", "unknown unit \"month\"; write \"5/30d\" or \"5/4w\""),
        ("10/5min", "min", "unknown unit \"min\"; write something like \"10/s\", \"10/60s\" or \"10/1m30s\""),
        (
            "10/x",
            "x",
            "unknown unit \"x\"; the units are us, ms, s, m, h, d and w; write something like \"10/s\", \"10/60s\" or \"10/1m30s\"",
        ),
        (
            "10/60",
            "60",
            "\"60\" has no unit; the units are us, ms, s, m, h, d and w; write something like \"10/s\", \"10/60s\" or \"10/1m30s\"",
        ),
        ("10/", "/", "the period is missing; write \"10/s\""),
        (
            "10/-5s",
            "-",
            "a time is made of whole numbers above 0 with units; write something like \"10/s\", \"10/60s\" or \"10/1m30s\"",
        ),
        (
            "10/1.5s",
            ".",
            "a time is made of whole numbers above 0 with units; write something like \"10/s\", \"10/60s\" or \"10/1m30s\"",
        ),
        ("/s", "", "a number is missing"),
        ("-5/s", "-5", "\"-5\" is negative; write a whole number from 0 up"),
        (
            "1.5/s",
            "1.5",
            "\"1.5\" is not a whole number written in digits; for 1.5 per second write \"3/2s\"",
        ),
        (
            "1e6/s",
            "1e6",
            "\"1e6\" is not a whole number written in digits; for 1.5 per second write \"3/2s\"",
        ),
        ("NaN/s", "NaN", "\"NaN\" is not a number; write digits only"),
        ("inf/s", "inf", "\"inf\" is not a number; write digits only"),
        ("5r/s", "5r", "\"5r\" is not a number; write digits only"),
        (
            "99999999999999999999/s",
            "99999999999999999999",
            "\"99999999999999999999\" is more than can be counted; the most is 18446744073709551615",
        ),
        ("0/s", "0/s", "an amount of 0 admits nothing; use at least 1"),
        ("10/0s", "10/0s", "a period of 0 has no rate; use at least 1us"),
        ("1/4000d", "1/4000d", "the period is longer than 10 years; use at most 3650d"),
        (
            "1/99999999999999w",
            "99999999999999w",
            "this time is longer than can be counted; write something like \"1/s\", \"1/60s\" or \"1/1m30s\"",
        ),
        (
            "10000001/s",
            "10000001/s",
            "the rate is above 10,000,000 per second; use a lower rate, or count in larger units",
        ),
        ("10/s burst 0", "burst 0", "a burst of 0 admits nothing; use at least 1"),
        ("10/s burst", "burst", "burst needs a value; write something like \"burst 20\""),
        ("10/s burst -1", "-1", "\"-1\" is negative; write a whole number from 0 up"),
        ("10/s burst 2s", "burst 2s", "only a pacer's burst is a time; give the burst as a number"),
        (
            "1/d burst 4000",
            "burst 4000",
            "the burst takes more than 10 years to earn; use a smaller burst or a higher rate",
        ),
        (
            "1/d burst 18446744073709551615",
            "burst 18446744073709551615",
            "the burst takes more than 10 years to earn; use a smaller burst or a higher rate",
        ),
        (
            "1/d max-debt 9999",
            "max-debt 9999",
            "the max-debt takes more than 10 years to repay; use a smaller one",
        ),
        ("10/s burst 5 burst 6", "burst", "burst is said twice; leave one of them out"),
        ("10/s busrt 5", "busrt", "unknown word \"busrt\"; did you mean \"burst\"?"),
        (
            "10/s token-buckets",
            "token-buckets",
            "unknown word \"token-buckets\"; did you mean \"token-bucket\"?",
        ),
        ("10/s pacer pacer", "pacer", "a limit has one algorithm; leave one of them out"),
        ("10/s queue 5", "queue 5", "queue belongs to leaky-bucket; leave it out, or add leaky-bucket"),
        (
            "1/d queue 18446744073709551615 leaky-bucket",
            "queue 18446744073709551615",
            "the queue takes more than 10 years to drain; use a shorter queue or a higher rate",
        ),
        (
            "1/d queue 4000 leaky-bucket",
            "queue 4000",
            "the queue takes more than 10 years to drain; use a shorter queue or a higher rate",
        ),
        (
            "10/s delay-after 5",
            "delay-after 5",
            "delay-after belongs to leaky-bucket; leave it out, or add leaky-bucket",
        ),
        (
            "10/s burst 5 leaky-bucket",
            "burst 5",
            "burst belongs to token-bucket and pacer; leave it out, or name one of them",
        ),
        ("10/s slots 4", "slots 4", "slots belong to sliding-window; leave them out, or add sliding-window"),
        (
            "10/s slots 0 sliding-window",
            "slots 0",
            "a period is cut into 1 to 1,024 slots; 16 is a good number",
        ),
        (
            "10/s slots 1025 sliding-window",
            "slots 1025",
            "a period is cut into 1 to 1,024 slots; 16 is a good number",
        ),
        (
            "1/us slots 999 sliding-window",
            "slots 999",
            "the period is too short for so many slots; use fewer slots, or a longer period",
        ),
        (
            "10/s max-debt 18446744073709551605 mode estimate sliding-window",
            "max-debt 18446744073709551605",
            "a window counts to at most 2^62, max-debt included; use a smaller one",
        ),
        (
            "10/s slots 4 mode estimate sliding-window",
            "slots 4",
            "mode estimate has two slots of a whole period; leave slots out",
        ),
        ("10/s mode loose sliding-window", "loose", "mode is strict or estimate, not \"loose\""),
        (
            "10/s mode strict",
            "mode strict",
            "mode belongs to sliding-window; leave it out, or add sliding-window",
        ),
        ("10/s align first sliding-log", "first", "align is epoch or first-hit, not \"first\""),
        (
            "10/s align epoch",
            "align epoch",
            "align belongs to fixed-window; leave it out, or add fixed-window",
        ),
        (
            "2000000/s sliding-log",
            "2000000/s",
            "a sliding-log remembers every action, at most 1,048,576; use sliding-window, which needs constant memory",
        ),
        (
            "10/s count-denied",
            "count-denied",
            "count-denied belongs to sliding-log; leave it out, or add sliding-log",
        ),
        ("10/s warm-up 4s", "warm-up 4s", "warm-up belongs to pacer; leave it out, or add pacer"),
        ("10/s warm-up 0s pacer", "warm-up 0s", "a warm-up lasts from 1us to 30d"),
        ("10/s warm-up 31d pacer", "warm-up 31d", "a warm-up lasts from 1us to 30d"),
        (
            "10/s warm-up 4 pacer",
            "4",
            "\"4\" has no unit; the units are us, ms, s, m, h, d and w; write something like \"4s\" or \"1m30s\"",
        ),
        (
            "10/s cold-factor 2 pacer",
            "cold-factor 2",
            "cold-factor goes with warm-up; leave it out, or add a warm-up",
        ),
        (
            "10/s warm-up 4s cold-factor 0 pacer",
            "cold-factor 0",
            "a cold-factor is from 1 to 100; 3 is a good number",
        ),
        (
            "10/s warm-up 4s cold-factor 101 pacer",
            "cold-factor 101",
            "a cold-factor is from 1 to 100; 3 is a good number",
        ),
        (
            "1/3650d warm-up 4s pacer",
            "1/3650d",
            "the rate is too slow to warm up; use at least 1/18d, or no warm-up",
        ),
        (
            "10/s warm-up 4s burst 2 pacer",
            "burst 2",
            "a pacer has a burst or a warm-up, not both; leave one of them out",
        ),
        ("10/s pay me pacer", "me", "pay is next or self, not \"me\""),
        ("10/s pay self", "pay self", "pay belongs to pacer; leave it out, or add pacer"),
        (
            "10/s max-debt 5 pacer",
            "max-debt 5",
            "max-debt belongs to token-bucket, leaky-bucket, fixed-window and sliding-window; leave it out",
        ),
        (
            "10/s burst 4000d pacer",
            "burst 4000d",
            "the burst takes more than 10 years to earn; use a smaller burst or a higher rate",
        ),
        ("unlimited", "unlimited", "only a pacer can be unlimited; give a rate such as 10/s"),
        (
            "unlimited burst 5 pacer",
            "burst 5",
            "an unlimited pacer has no permits to count; give its burst as a time, as in burst 1s",
        ),
        (
            "2000000/30s concurrency",
            "2000000/30s",
            "at most 1,048,576 can be in flight for one key; use fewer, or several keys",
        ),
        (
            "10 per second",
            "10",
            "a limit begins with a rate, an amount per period; write something like \"10/s\"",
        ),
    ] {
        let error = text.parse::<Limit>().expect_err(text);
        assert_eq!(error.what(), what, "{text}");
        assert_eq!(&text[error.place()], place, "{text}");
    }
}

#[test]
fn an_error_reads_as_one_line_or_with_carets() {
    let error = "10/s busrt 20".parse::<Limit>().unwrap_err();
    assert_eq!(error.to_string(), "limit \"10/s busrt 20\": unknown word \"busrt\"; did you mean \"burst\"?");
    assert_eq!(
        format!("{error:#}"),
        "limit \"10/s busrt 20\": unknown word \"busrt\"; did you mean \"burst\"?\n  10/s busrt 20\n       ^^^^^"
    );
    assert_eq!(error.column(), 6);
    let unknown = "10/s hello".parse::<Limit>().unwrap_err();
    assert!(unknown.what().ends_with("sliding-window, pacer, concurrency"), "{unknown}");
    let hostile = "10/s \u{1b}[2J".parse::<Limit>().unwrap_err();
    assert!(!format!("{hostile:#}").contains('\u{1b}'), "control characters reach no terminal");
    let long = "x".repeat(100_000).parse::<Limit>().unwrap_err();
    assert!(long.to_string().len() < 200, "{}", long.to_string().len());
}

#[test]
fn numbers_from_outside_get_the_same_errors() {
    let error = Draft::new(Algorithm::TokenBucket, 0, SECOND).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit \"0 per 1s token-bucket\": an amount of 0 admits nothing; use at least 1"
    );
    assert_eq!((error.place(), error.column()), (0..0, 1));
    let fine = Draft::new(Algorithm::FixedWindow, 1, Duration::from_nanos(1500)).build().unwrap_err();
    assert_eq!(fine.what(), "times are whole microseconds; round it to 1us");
    let never = Draft::new(Algorithm::FixedWindow, 1, Duration::from_secs(u64::MAX)).build().unwrap_err();
    assert_eq!(never.what(), "the period is longer than 10 years; use at most 3650d");
    let unlimited = Draft::unlimited_pacer().burst(5).build().unwrap_err();
    assert_eq!(
        unlimited.to_string(),
        "limit \"pacer\": an unlimited pacer has no permits to count; give its burst as a time, as in burst 1s"
    );
}

fn drafts() -> impl Strategy<Value = Draft> {
    let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
    let number = || prop_oneof![0_u64..20, any::<u64>()];
    let some = |strategy: BoxedStrategy<u64>| prop::option::weighted(0.3, strategy);
    let span = || {
        prop_oneof![
            (1_u64..100).prop_map(Duration::from_secs),
            any::<u32>().prop_map(|us| Duration::from_micros(us.into()))
        ]
    };
    (
        (algorithm, number(), span()),
        (some(number().boxed()), some(number().boxed()), some(number().boxed()), some(number().boxed())),
        (prop::option::weighted(0.2, span()), any::<u16>()),
    )
        .prop_map(|((algorithm, amount, period), (burst, queue, slots, max_debt), (warm_up, bits))| {
            let mut draft = Draft::new(algorithm, amount, period);
            let bit = |index: u16| bits & (1 << index) != 0 && bits & 0x0f00 == 0;
            draft = if let Some(units) = burst { draft.burst(units) } else { draft };
            draft = if let Some(units) = queue { draft.queue(units) } else { draft };
            draft = if let Some(slots) = slots { draft.slots(slots) } else { draft };
            draft = if let Some(units) = max_debt { draft.max_debt(units) } else { draft };
            draft = if let Some(length) = warm_up { draft.warm_up(length).cold_factor(3) } else { draft };
            draft = if bit(0) { draft.count_denied() } else { draft };
            draft = if bit(1) { draft.mode(WindowMode::Estimate) } else { draft };
            draft = if bit(2) { draft.alignment(Alignment::FirstHit) } else { draft };
            draft = if bit(3) { draft.pay(Pay::Own) } else { draft };
            if bit(4) { draft.delay_after(DelayAfter::All) } else { draft }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(20_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_limit_reads_back_from_its_own_text(draft in drafts()) {
        if let Ok(limit) = draft.build() {
            let text = limit.to_string();
            prop_assert_eq!(text.parse::<Limit>().expect(&text), limit);
        }
    }

    #[test]
    fn no_text_panics_and_every_error_points_into_it(text in "[ -~\u{e9}\n]{0,30}|([0-9]{1,3}/[smhdw]|burst|queue|[0-9]{1,20}|pacer|[a-z-]{1,8}| ){0,8}") {
        if let Err(error) = text.parse::<Limit>() {
            prop_assert!(text.get(error.place()).is_some());
            prop_assert!(!error.what().is_empty());
            let _ = format!("{error:#}");
        }
    }
}
