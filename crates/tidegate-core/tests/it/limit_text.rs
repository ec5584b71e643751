//! Tests of the text of a limit: the accepted forms, and the messages for invalid ones.

use std::time::Duration;

use proptest::prelude::*;
use tidegate::{
    Algorithm, Alignment, CalendarPeriods, CalendarUnit, DelayAfter, Limit, LimitBuilder, MINUTE, Pay, Rate,
    SECOND, TimeZone, WindowMode,
};

fn calendar(unit: CalendarUnit) -> CalendarPeriods {
    CalendarPeriods::new(unit)
}

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
        ("unlimited pacer", LimitBuilder::unlimited_pacer().build().unwrap()),
        ("8/30s concurrency", Limit::concurrency(8, 30 * SECOND)),
        ("1000/day calendar", Limit::calendar(1000, calendar(CalendarUnit::Day))),
        ("1000/d calendar UTC", Limit::calendar(1000, calendar(CalendarUnit::Day))),
        (
            "9/week from Sun calendar max-debt 3",
            Limit::calendar(9, calendar(CalendarUnit::Week).from_day_of_week(6).unwrap()).max_debt(3),
        ),
        ("9/month calendar from 1", Limit::calendar(9, calendar(CalendarUnit::Month))),
        (
            "9/month calendar from 31",
            Limit::calendar(9, calendar(CalendarUnit::Month).from_day_of_month(31).unwrap()),
        ),
        (
            "9/year calendar UTC from 4-6",
            Limit::calendar(9, calendar(CalendarUnit::Year).from_day_of_year(4, 6).unwrap()),
        ),
    ] {
        assert_eq!(parse(text), limit, "{text}");
        assert_eq!(parse(&limit.to_string()), limit, "{limit}");
    }
}

#[test]
fn the_text_of_a_zone_that_was_created_parses_as_the_same_limit() {
    let zone = TimeZone::new("Test/Text", 19_800, []).unwrap();
    let limit = Limit::calendar(7, calendar(CalendarUnit::Month).in_zone(zone)).max_debt(2);
    assert_eq!(limit.to_string(), "7/month calendar Test/Text max-debt 2");
    assert_eq!(parse(&limit.to_string()), limit);
    assert_eq!(parse("7/month calendar from 1"), Limit::calendar(7, calendar(CalendarUnit::Month)));
}

/// The rows are a text, the part of it that the error marks, and the message.
#[test]
fn an_error_points_at_the_fault_and_gives_a_remedy() {
    let mut rows = 0;
    for [text, place, what] in conformance::rows(include_str!("limit_text_wrong.txt")) {
        let error = text.parse::<Limit>().expect_err(text);
        assert_eq!(error.what(), what, "{text}");
        assert_eq!(&text[error.place()], place, "{text}");
        rows += 1;
    }
    assert_eq!(rows, 101);
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
    assert!(unknown.what().ends_with("sliding-window, pacer, concurrency, calendar"), "{unknown}");
    let hostile = "10/s \u{1b}[2J".parse::<Limit>().unwrap_err();
    assert!(!format!("{hostile:#}").contains('\u{1b}'), "control characters reach no terminal");
    let hostile = "10/s \u{1b}[2J".parse::<Rate>().unwrap_err();
    assert!(!format!("{hostile:#}").contains('\u{1b}'), "nor do those behind a rate");
    let long = "x".repeat(100_000).parse::<Limit>().unwrap_err();
    assert!(long.to_string().len() < 200, "{}", long.to_string().len());
}

#[test]
fn numbers_from_outside_get_the_same_errors() {
    let error = LimitBuilder::new(Algorithm::TokenBucket, 0, SECOND).build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "limit \"0 per 1s token-bucket\": an amount of 0 admits nothing; use at least 1"
    );
    assert_eq!((error.place(), error.column()), (0..0, 1));
    let fine = LimitBuilder::new(Algorithm::FixedWindow, 1, Duration::from_nanos(1500)).build().unwrap_err();
    assert_eq!(fine.what(), "times are whole microseconds; round it to 1us");
    let never =
        LimitBuilder::new(Algorithm::FixedWindow, 1, Duration::from_secs(u64::MAX)).build().unwrap_err();
    assert_eq!(never.what(), "the period is longer than 10 years; use at most 3650d");
    let unlimited = LimitBuilder::unlimited_pacer().burst(5).build().unwrap_err();
    assert_eq!(
        unlimited.to_string(),
        "limit \"pacer\": an unlimited pacer has no permits to count; give its burst as a time, as in burst 1s"
    );
}

fn drafts() -> impl Strategy<Value = LimitBuilder> {
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
            let mut draft = LimitBuilder::new(algorithm, amount, period);
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
