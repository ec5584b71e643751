//! Tests of calendar limits over HTTP and RESP: the ends of periods in their zones, and the errors of zones.

use serde_json::{Value, json};
use tidegate::{DAY, HOUR, Timestamp};

use crate::wire::Running;
use crate::wire::http::Talk;

/// The milliseconds of an hour.
const HOURS: i64 = 3_600_000;

/// The clock of a server in a test begins with 2024-01-01T00:00Z. Each row is a limit and the hours to its end.
const ENDS: [(&str, i64); 7] = [
    ("5/day calendar", 24),
    ("5/day calendar Europe/Berlin", 23),
    ("5/day calendar america/new_york", 5),
    ("5/week calendar Asia/Tokyo from sunday", 6 * 24 - 9),
    ("5/month calendar Asia/Shanghai from 15", 14 * 24 - 8),
    ("5/month calendar from 31", 30 * 24),
    ("5/year calendar Europe/London from 04-06", 96 * 24 - 1),
];

fn take(talk: &mut Talk, limit: &str) -> Value {
    let answer = talk.post("/v1/take", &json!({"key": "ana", "limit": limit}).to_string());
    assert_eq!(answer.status, 200, "{limit}: {}", answer.body);
    answer.json()
}

#[test]
fn a_period_ends_when_the_clock_of_its_zone_says_so() {
    let (running, mut talk) = Running::start().with_http();
    let mut resp = running.resp();
    for (limit, hours) in ENDS {
        let taken = take(&mut talk, limit);
        assert_eq!(
            (&taken["remaining"], &taken["reset_after_ms"]),
            (&json!(4), &json!(hours * HOURS)),
            "{limit}"
        );
        let reply = resp.ask(&["TG.TAKE", "ana", "LIMIT", limit]);
        assert_eq!((reply.number("remaining"), reply.number("reset_after")), (3, hours * HOURS), "{limit}");
        let reply = resp.ask(&["TG.PEEK", "ana", "LIMIT", limit, "COST", "4"]);
        assert_eq!((reply.number("allowed"), reply.number("retry_after")), (0, hours * HOURS), "{limit}");
    }
    // On 2024-03-31 Berlin has 23 hours, and on 2024-10-27 it has 25.
    for (day, hours) in [(90, 23), (300, 25)] {
        let begin = Timestamp::after_epoch(day * DAY - if hours == 23 { HOUR } else { 2 * HOUR });
        running.clock.set(begin);
        let taken = take(&mut talk, "5/day calendar Europe/Berlin");
        assert_eq!((&taken["remaining"], &taken["reset_after_ms"]), (&json!(4), &json!(hours * HOURS)));
    }
}

#[test]
fn header_fields_name_the_length_of_the_period() {
    let (_running, mut talk) = Running::start().with_http();
    for (limit, seconds) in [("5/day calendar Europe/Berlin", 86_400), ("5/month calendar", 31 * 86_400)] {
        let answer = talk.post("/v1/take", &json!({"key": "bob", "limit": limit, "cost": 2}).to_string());
        assert_eq!(answer.field("ratelimit-policy"), Some(&*format!("\"adhoc\";q=5;w={seconds}")), "{limit}");
    }
}

#[test]
fn an_unknown_zone_is_an_error_with_a_similar_name() {
    let (running, mut talk) = Running::start().with_http();
    let mut resp = running.resp();
    for (limit, what) in [
        ("5/day calendar Europe/Belrin", "\"Europe/Belrin\" is no time zone; write \"Europe/Berlin\""),
        ("5/day calendar Berlin", "\"Berlin\" is no time zone; write \"Europe/Berlin\""),
        (
            "5/day calendar UTC+8",
            "\"UTC+8\" is no time zone; write a name such as \"Europe/Berlin\", or \"UTC\"",
        ),
        ("5/month calendar from 32", "\"32\" is no day of a month; write 1 to 31"),
    ] {
        let answer = talk.post("/v1/take", &json!({"key": "ana", "limit": limit}).to_string());
        assert_eq!(answer.status, 400, "{limit}");
        let detail = answer.json()["detail"].as_str().expect("text").to_owned();
        assert!(detail.starts_with(&format!("limit {}: {what}", json!(limit))), "{detail}");
        let reply = resp.ask(&["TG.TAKE", "ana", "LIMIT", limit]);
        assert_eq!(reply.error(), format!("ERR limit {}: {what}", json!(limit)));
    }
}
