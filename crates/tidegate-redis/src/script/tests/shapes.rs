//! Tests of the keys that scripts write, and of keys that another program has written.

use std::time::Duration;

use redis::Value;
use testbed::Flavour;
use tidegate_core::{Adjusted, Adjustment, Ask, Cost, Decision, Key, Limit, Subject, Timestamp, Verdict};

use super::{Server, bids, decided, seen, take, target};
use crate::script::text::{Job, Kinds};
use crate::script::{
    TICKS, TakeRecord, Time, adjust, give_back, peek, read_adjust, release, renew, supports,
};

/// One limit of each algorithm, all of which allow three requests in a day, or in a year.
const DAILY: [&str; 10] = [
    "3/d",
    "3/d queue 2 delay-after all leaky-bucket",
    "3/d fixed-window align first-hit",
    "3/d sliding-log",
    "3/d sliding-log count-denied",
    "3/d sliding-window",
    "3/d sliding-window mode estimate",
    "3/d pacer burst 3d",
    "3/1d concurrency",
    "3/year calendar",
];

fn limit(text: &str) -> Limit {
    text.parse().expect(text)
}

/// Takes by the server's clock.
fn taken(server: &mut Server, asks: &[(Subject<'_>, Ask)]) -> (Vec<Decision>, Vec<Option<TakeRecord>>) {
    let call = take(bids(asks), Time::Server);
    decided(server.run(&call).expect("an answer"), asks).expect("a readable answer")
}

/// Returns the contents of a key, and its expiry.
fn held_there(server: &mut Server, key: &[u8]) -> (Value, Value) {
    let bytes = server.command(&[b"DUMP", key]).expect("bytes");
    (bytes, server.command(&[b"PEXPIRETIME", key]).expect("an end"))
}

#[test]
fn by_the_servers_own_clock_three_pass_and_a_fourth_does_not() {
    for flavour in Flavour::available() {
        let mut server = Server::start(flavour);
        for text in DAILY.into_iter().filter(|text| !text.contains("pacer")) {
            let (limit, key) = (limit(text), Key::new("ana"));
            let subject = Subject::new(text, &key, &limit);
            let allowed: Vec<_> =
                (0..5).map(|_| taken(&mut server, &[(subject, Ask::ONE)]).0[0].is_allowed()).collect();
            assert_eq!(allowed, [true, true, true, false, false], "{text} on {}", flavour.name());
        }
    }
}

#[test]
fn a_key_that_is_asked_about_once_outlives_its_debt_by_no_more_than_a_second() {
    let mut server = Server::start(Flavour::Redis7);
    for (text, longest) in [
        ("3/3s burst 1000", 2_010),
        ("30/30s queue 99 delay-after all leaky-bucket", 2_010),
        ("3/7s fixed-window align first-hit", 7_010),
        ("3/7s sliding-log", 7_010),
        ("3/7s sliding-window slots 7", 8_010),
        ("1/7s pacer burst 0s", 7_010),
        ("3/7s concurrency", 7_010),
    ] {
        let (limit, key) = (limit(text), Key::new("ana"));
        let subject = Subject::new("user", &key, &limit);
        assert!(taken(&mut server, &[(subject, Ask::ONE)]).0[0].is_allowed());
        let Ok(Value::Int(left)) = server.command(&[b"PTTL", &target(&subject).name]) else {
            panic!("{text}")
        };
        assert!(left > 0 && left <= longest, "{text}: {left} ms");
    }
}

/// A debt that is added to keeps the expiry of its key, which is not before the end of the debt.
#[test]
fn a_key_that_is_asked_about_again_outlives_its_debt_by_no_more_than_a_block() {
    let mut server = Server::start(Flavour::Redis7);
    for (text, interval, block) in [
        ("3/3s burst 1000", 1_000, 16_000),
        ("3/3s burst 100", 1_000, 12_000),
        ("10/s burst 1000", 100, 1_000),
        ("30/30s queue 999 delay-after all leaky-bucket", 1_000, 16_000),
        ("3/s burst 1000", 334, 1_000),
    ] {
        let (limit, key) = (limit(text), Key::new("ana"));
        let subject = Subject::new("user", &key, &limit);
        let name = target(&subject).name;
        for takes in 1..=40 {
            assert!(taken(&mut server, &[(subject, Ask::ONE)]).0[0].is_allowed(), "{text}");
            let Ok(Value::Int(left)) = server.command(&[b"PTTL", &name]) else { panic!("{text}") };
            let longest = takes * interval + block + 10;
            assert!(left <= longest, "{text}: {left} ms after {takes} takes");
            let Ok(Value::BulkString(state)) = server.command(&[b"GET", &name]) else { panic!("{text}") };
            let state = String::from_utf8_lossy(&state).into_owned();
            let repaid: i64 = state.trim_start_matches('-').split(':').next().unwrap().parse().unwrap();
            let Ok(Value::Int(end)) = server.command(&[b"PEXPIRETIME", &name]) else { panic!("{text}") };
            assert!(end >= 1_704_067_200_000 + repaid / 1000, "{text}: {state} ends at {end}");
        }
    }
}

#[test]
fn a_refusal_leaves_everything_as_it_was() {
    let mut server = Server::start(Flavour::Redis7);
    for text in DAILY.into_iter().filter(|text| !text.contains("count-denied") && !text.contains("pacer")) {
        let (limit, key) = (limit(text), Key::new("ana"));
        let subject = Subject::new("user", &key, &limit);
        let (all, other) = (Ask::new(Cost::of(3)), Subject::new("other", &key, &limit));
        assert!(taken(&mut server, &[(subject, all)]).0[0].is_allowed(), "{text}");
        let name = target(&subject).name;
        let before = held_there(&mut server, &name);
        let (decisions, given) = taken(&mut server, &[(other, Ask::ONE), (subject, Ask::ONE)]);
        assert_eq!(decisions.iter().map(Decision::is_allowed).collect::<Vec<_>>(), [true, false], "{text}");
        assert_eq!(given, [None, None]);
        assert_eq!(held_there(&mut server, &name), before, "{text}");
        let untouched = server.command(&[b"EXISTS", &target(&other).name]);
        assert_eq!(untouched, Ok(Value::Int(0)), "{text}: another limit of the same call");
        server.command(&[b"DEL", &name]).expect("deleted");
    }
}

/// Returns every call about a key.
fn every_call(
    subject: Subject<'_>,
    permit: tidegate_core::PermitId,
    given: &TakeRecord,
) -> Vec<crate::script::Call> {
    let fine = Limit::per_second(5);
    let fine = Subject::new("fine", subject.key(), &fine);
    let one = Ask::ONE;
    let mut calls = vec![
        take(bids(&[(subject, one)]), Time::Server),
        take(bids(&[(fine, one), (subject, one)]), Time::Server),
        peek(&bids(&[(subject, one)]), Time::Server),
        give_back(&target(&subject), given, Time::Server),
    ];
    if subject.limit().algorithm() == tidegate_core::Algorithm::Concurrency {
        calls.push(release(&target(&subject), permit, Time::Server));
        calls.push(renew(&target(&subject), permit, Time::Server));
    } else {
        calls.push(adjust(&target(&subject), Adjustment::Charge(Cost::ONE), None, Time::Server));
        calls.push(adjust(&target(&subject), Adjustment::Refund(Cost::ONE), None, Time::Server));
    }
    calls
}

#[test]
fn a_foreign_value_under_a_key_is_an_error_and_stays() {
    let mut server = Server::start(Flavour::Redis7);
    let strange: [&[&[u8]]; 17] = [
        &[b"SET", b""],
        &[b"SET", b"hello"],
        &[b"SET", b"-5"],
        &[b"SET", b"-hello"],
        &[b"SET", b"-nan"],
        &[b"SET", b"-99999e9"],
        &[b"SET", b"1e400"],
        &[b"SET", b"nan"],
        &[b"SET", b"0x10"],
        &[b"SET", b"1.5"],
        &[b"SET", b"12:"],
        &[b"SET", b"12:16000:"],
        &[b"SET", b"9007199254740993"],
        &[b"LPUSH", b"1"],
        &[b"HSET", b"a", b"1"],
        &[b"ZADD", b"1.5", b"hello"],
        &[b"ZADD", b"7", b"hello", b"-9", b"world"],
    ];
    for text in DAILY {
        let (limit, key) = (limit(text), Key::new("ana"));
        let subject = Subject::new("user", &key, &limit);
        let name = target(&subject).name;
        let (decisions, given) = taken(&mut server, &[(subject, Ask::ONE)]);
        let permit =
            decisions[0].permit().or_else(|| tidegate_core::PermitId::from_number(7)).expect("a number");
        for put in strange {
            server.command(&[b"DEL", &name]).expect("deleted");
            let put: Vec<_> = [put[0], &name].into_iter().chain(put[1..].iter().copied()).collect();
            server.command(&put).expect("put there");
            let before = held_there(&mut server, &name);
            for call in every_call(subject, permit, given[0].as_ref().expect("it was allowed")) {
                let answer = server.run(&call);
                let is_harmless = matches!(answer, Err(_) | Ok(Value::Int(0)));
                assert!(is_harmless, "{text} with {put:?}: {answer:?} to\n{}", call.script.text);
                assert_eq!(held_there(&mut server, &name), before, "{text} with {put:?}");
            }
            let fine = Limit::per_second(5);
            let fine = Subject::new("fine", subject.key(), &fine);
            assert_eq!(server.command(&[b"EXISTS", &target(&fine).name]), Ok(Value::Int(0)), "{text}");
            let single = take(bids(&[(subject, Ask::ONE)]), Time::Server);
            let error = server.run(&single).expect_err("a refusal to look");
            assert!(
                error.contains("TIDEGATE") || error.contains("WRONGTYPE"),
                "{text} with {put:?}: {error}"
            );
        }
        server.command(&[b"DEL", &name]).expect("deleted");
    }
}

/// Texts that Lua reads as a number and DECRBY does not: the value is judged, and written anew.
#[test]
fn a_debt_that_cannot_be_added_to_is_written_anew() {
    let mut server = Server::start(Flavour::Redis7);
    let (limits, key) = (["10/h", "20/h"].map(limit), Key::new("ana"));
    let [fine, strange] = limits.each_ref().map(|limit| Subject::new("user", &key, limit));
    let now = 90_000_000_000_000_u64;
    let owed = now + 60_000_000;
    for text in [
        format!("-0{owed}"),
        format!("-{owed}.0"),
        format!("-{owed} "),
        format!("-{owed:#x}"),
        format!("-{}e6", owed / 1_000_000),
    ] {
        for name in [fine, strange].map(|subject| target(&subject).name) {
            server.command(&[b"SET", &name, text.as_bytes()]).expect("put there");
        }
        for asks in [&[(strange, Ask::ONE)][..], &[(fine, Ask::ONE), (strange, Ask::ONE)]] {
            server.command(&[b"SET", &target(&strange).name, text.as_bytes()]).expect("put there");
            let time = Time::Given(Timestamp::from_ticks(now * TICKS));
            server.run(&take(bids(asks), time)).expect(&text);
            let state = server.command(&[b"GET", &target(&strange).name]);
            let added = format!("-{}", owed + 180_000_000);
            assert_eq!(state, Ok(Value::BulkString(added.into_bytes())), "{text}");
        }
    }
}

#[test]
fn every_mix_of_algorithms_has_a_script_that_servers_understand() {
    for flavour in Flavour::available() {
        let mut server = Server::start(flavour);
        for kinds in Kinds::every() {
            let script = Job::Take(kinds).script();
            let sha = server.command(&[b"SCRIPT", b"LOAD", script.text.as_bytes()]);
            assert_eq!(sha, Ok(Value::BulkString(script.sha.clone().into_bytes())), "{kinds:?}");
        }
    }
}

#[test]
fn no_cost_is_too_large_to_be_refused() {
    let mut server = Server::start(Flavour::Redis7);
    for text in DAILY {
        let (limit, key) = (limit(text), Key::new("ana"));
        let subject = Subject::new("user", &key, &limit);
        for cost in [4, 1 << 32, (1 << 53) + 1, 1 << 60, u64::MAX - 1, u64::MAX] {
            let ask = Ask::new(Cost::of(cost)).max_wait_in_ticks(tidegate_core::Ticks::ZERO);
            if !(text.contains("pacer") && cost == 4) {
                let decision = taken(&mut server, &[(subject, ask)]).0[0];
                assert_eq!(decision.verdict(), Verdict::Impossible, "{cost} of {text}");
            }
        }
    }
}

/// The script gets the periods around the clock of the client, and chooses by the clock of the server.
#[test]
fn a_calendar_period_is_chosen_by_the_clock_of_the_server_and_clocks_too_far_apart_are_an_error() {
    let mut server = Server::start(Flavour::Redis7);
    let (limit, key) = (limit("5/day calendar"), Key::new("ana"));
    let subject = Subject::new("user", &key, &limit);
    let hours = |hours: u32| Time::Given(Timestamp::after_epoch(hours * tidegate_core::HOUR));
    let mut ask = |client: u32, there: u32| {
        let mut call = take(bids(&[(subject, Ask::ONE)]), hours(client));
        let clock = call.arguments.len() - 2;
        call.arguments.splice(clock.., hours(there).arguments());
        let (decisions, _) = decided(server.run(&call)?, &[(subject, Ask::ONE)]).expect("a readable answer");
        Ok::<_, String>((decisions[0].remaining(), decisions[0].reset_after()))
    };
    let left = |hours: u32| hours * tidegate_core::HOUR;
    // From the last hour of the tenth day on, by clients whose clocks are up to a day behind or ahead.
    assert_eq!(ask(239, 239), Ok((4, left(1))));
    assert_eq!(ask(240, 239), Ok((3, left(1))));
    assert_eq!(ask(263, 239), Ok((2, left(1))));
    assert_eq!(ask(239, 240), Ok((4, left(24))));
    assert_eq!(ask(263, 263), Ok((3, left(1))));
    assert_eq!(ask(240, 264), Ok((4, left(24))));
    for (client, there) in [(239, 311), (383, 335)] {
        let error = ask(client, there).expect_err("the clocks are two days apart");
        assert!(error.contains("more than a calendar period apart; set them"), "{error}");
    }
}

#[test]
fn a_log_gives_a_take_back_while_few_have_followed_it() {
    let mut server = Server::start(Flavour::Redis7);
    let (limit, key) = (limit("1000/d sliding-log"), Key::new("ana"));
    let subject = Subject::new("user", &key, &limit);
    let at = |micros: u64| Time::Given(Timestamp::from_ticks((90_000_000_000_000 + micros) * TICKS));
    let take_at = |server: &mut Server, micros| {
        let asks = [(subject, Ask::new(Cost::of(3)))];
        let reply = server.run(&take(bids(&asks), at(micros))).expect("an answer");
        let (decisions, given) = decided(reply, &asks).expect("readable");
        (decisions[0].remaining(), given[0].expect("it was allowed"))
    };
    let (_, first) = take_at(&mut server, 0);
    let (_, second) = take_at(&mut server, 1);
    for micros in 2..66 {
        let _ = take_at(&mut server, micros);
    }
    let back = |server: &mut Server, given: &TakeRecord| {
        let call = give_back(&target(&subject), given, at(100));
        read_adjust(server.run(&call).expect("an answer")).expect("readable").expect("it was done")
    };
    assert_eq!(back(&mut server, &first), Adjusted::Capped, "65 have followed");
    assert_eq!(take_at(&mut server, 66).0, 1000 - 67 * 3);
    assert_eq!(back(&mut server, &second), Adjusted::Capped, "65 have followed by now");
    let (_, last) = take_at(&mut server, 67);
    assert_eq!(back(&mut server, &last), Adjusted::Whole);
    assert_eq!(back(&mut server, &last), Adjusted::Capped, "there is nothing left of it");
}

#[test]
fn a_bucket_gives_a_take_back_that_others_have_followed() {
    let mut server = Server::start(Flavour::Redis7);
    let at = |micros: u64| Time::Given(Timestamp::from_ticks((90_000_000_000_000 + micros) * TICKS));
    for (text, comes_back) in [
        ("10/h", true),
        ("7/h", true),
        ("10/h queue 9 delay-after all leaky-bucket", true),
        ("10/h queue 9 leaky-bucket", false),
    ] {
        let (limit, key) = (limit(text), Key::new(text));
        let subject = Subject::new("user", &key, &limit);
        let take_at = |server: &mut Server, micros| {
            let asks = [(subject, Ask::ONE.max_wait(9 * tidegate_core::HOUR))];
            let reply = server.run(&take(bids(&asks), at(micros))).expect("an answer");
            let (decisions, taken) = decided(reply, &asks).expect("readable");
            (decisions[0], taken[0].expect("it passed"))
        };
        let (_, first) = take_at(&mut server, 0);
        let (_, second) = take_at(&mut server, 1_000_000);
        let mut back = |given: &TakeRecord, micros| {
            let call = give_back(&target(&subject), given, at(micros));
            read_adjust(server.run(&call).expect("an answer")).expect("readable").expect("it was done")
        };
        assert_eq!(
            back(&first, 2_000_000),
            Adjusted::Capped,
            "{text}: two seconds of it are repaid, or it is not the last"
        );
        let call = peek(&bids(&[(subject, Ask::ONE)]), at(2_000_000));
        let left = seen(server.run(&call).expect("an answer"), &[(subject, Ask::ONE)]);
        let left = left.expect("readable")[0];
        let one = limit.time_to_full() / u32::try_from(left.limit()).expect("few");
        let owed = left.reset_after();
        assert_eq!(
            owed < one + 3 * tidegate_core::SECOND,
            comes_back,
            "{text}: {owed:?} of {one:?} are owed"
        );
        assert!(
            owed >= one - 2 * tidegate_core::SECOND,
            "{text}: no more came back than was taken, {owed:?}"
        );
        let call = give_back(&target(&subject), &second, at(3_000_000));
        read_adjust(server.run(&call).expect("an answer")).expect("readable").expect("it was done");
        let call = peek(&bids(&[(subject, Ask::ONE)]), at(3_000_000));
        let left = seen(server.run(&call).expect("an answer"), &[(subject, Ask::ONE)]);
        let left = left.expect("readable")[0];
        let owed = left.reset_after();
        assert_eq!(owed < 3 * tidegate_core::SECOND, comes_back, "{text}: in any order, {owed:?} are owed");
    }
}

#[test]
fn a_log_goes_on_when_its_running_total_begins_anew() {
    let mut server = Server::start(Flavour::Redis7);
    let (limit, key) = (limit("5/d sliding-log"), Key::new("ana"));
    let subject = Subject::new("user", &key, &limit);
    let name = target(&subject).name;
    let now = 90_000_000_000_000_u64;
    let score = (now - 9).to_string();
    let entries = [b"4503599627370490", &b"4503599627370494"[..]];
    server
        .command(&[b"ZADD", &name, score.as_bytes(), entries[0], score.as_bytes(), entries[1]])
        .expect("added");
    let take_one = |server: &mut Server| {
        let asks = [(subject, Ask::ONE)];
        let time = Time::Given(Timestamp::from_ticks(now * TICKS));
        let reply = server.run(&take(bids(&asks), time)).expect("an answer");
        decided(reply, &asks).expect("readable").0[0]
    };
    let first = take_one(&mut server);
    assert_eq!((first.is_allowed(), first.remaining()), (true, 0), "four are there, and one came");
    assert_eq!(
        take_one(&mut server).verdict_in_ticks(),
        Verdict::Denied {
            retry_after: tidegate_core::Ticks::saturating_from(Duration::from_micros(86_400_000_000 - 9))
        }
    );
    server.command(&[b"DEL", &name]).expect("deleted");
    let entries = [b"4503599627370492", &b"4503599627370496"[..]];
    server
        .command(&[b"ZADD", &name, score.as_bytes(), entries[0], score.as_bytes(), entries[1]])
        .expect("added");
    assert_eq!((take_one(&mut server).is_allowed(), take_one(&mut server).is_allowed()), (true, false));
    let newest: Vec<String> =
        redis::cmd("ZRANGE").arg(&name).arg(-1).arg(-1).query(&mut server.connection).expect("it");
    assert_eq!(newest, ["0000000000000005"]);
}

#[test]
fn limits_that_redis_cannot_hold_say_why_and_what_would_do() {
    for (text, why) in [
        (
            "2000000/s",
            "more than 1,000,000 per second; Redis tells the time in microseconds: write a lower rate, or keep it in memory",
        ),
        (
            "2000000/s sliding-window",
            "more than 1,000,000 per second; Redis tells the time in microseconds: write a lower rate, or keep it in memory",
        ),
        (
            "5/s fixed-window max-debt 4503599627370496",
            "a count with max-debt above 2^52; Redis counts no further: write a lower max-debt, or keep it in memory",
        ),
        (
            "5/day calendar max-debt 4503599627370496",
            "a count with max-debt above 2^52; Redis counts no further: write a lower max-debt, or keep it in memory",
        ),
        (
            "5/1ms sliding-window slots 9",
            "its slots are no whole microseconds; Redis counts those: write fewer slots, or keep it in memory",
        ),
    ] {
        let limit = limit(text);
        let unsupported = supports(&limit).expect_err(text);
        assert_eq!(unsupported.to_string(), format!("limit \"{limit}\": {why}"));
    }
    for text in [
        "1000000/s",
        "1000000/s fixed-window",
        "5/s sliding-window slots 7",
        "5/1ms sliding-window slots 10",
        "unlimited pacer",
    ] {
        assert_eq!(supports(&limit(text)), Ok(()), "{text}");
    }
}
