//! Property tests: random windows, at random times, from several threads.

use std::thread;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::super::{Timetable, time_zone};
use super::model::Model;
use super::random::{Random, ZONES};
use super::{second, shown, timetable};

/// A distance from now that reaches another year.
const FAR: i64 = 500 * 86_400;

/// Returns an instant anywhere in a hundred years, at an edge of the timetable, or near a clock change.
fn instant(random: &mut Random, table: &Timetable, zone: &TimeZone) -> i64 {
    let anywhere = second("2000-01-01T00:00:00Z") + random.below(100 * 365 * 86_400);
    match random.below(3) {
        0 => anywhere,
        1 => table.look(anywhere).1.end.min(anywhere + FAR) + random.below(3) - 1,
        _ => {
            let change = zone.following(Timestamp::from_second(anywhere).unwrap()).next();
            change.map_or(anywhere, |change| change.timestamp().as_second()) + random.below(7201) - 3600
        }
    }
}

#[test]
fn random_timetables_answer_as_the_model_does() {
    let seed = 0x7469_6465;
    let mut random = Random::new(seed);
    for round in 0..200 {
        let name = *random.choose(&ZONES);
        let zone = time_zone(name).unwrap();
        let texts: Vec<String> = (0..=random.below(4)).map(|_| random.window()).collect();
        let context = format!("seed {seed:#x}, round {round}: {texts:?} {name}");
        let table = timetable(&texts.iter().map(|text| format!("{text} {name}")).collect::<Vec<_>>());
        let models: Vec<Model> = texts.iter().map(|text| Model::new(text)).collect();
        let expected = |now| models.iter().position(|model| model.covers(shown(&zone, now)));
        for _ in 0..20 {
            let now = instant(&mut random, &table, &zone);
            let (choice, span) = table.look(now);
            assert!(span.contains(&now), "{context} at {now} within {span:?}");
            let (start, end) = (span.start.max(now - FAR), span.end.min(now + FAR));
            for now in [now, start, start + random.below(end - start), end - 1] {
                assert_eq!(expected(now), choice, "{context} at {now} within {span:?}");
                assert_eq!(table.look(now).0, choice, "{context} at {now}");
                assert_eq!(table.at(now), choice, "{context} at {now}, remembered");
            }
            if let Some(change) = table.next_change(now) {
                assert_ne!(expected(change), choice, "{context} at {now} until {change}");
                assert_eq!(expected(change - 1), choice, "{context} at {now} until {change}");
            }
        }
    }
}

/// Checks every minute around every clock change of two years. Edges lie on minutes, so none is missed.
#[test]
fn each_minute_of_days_with_a_change_is_as_the_clock_shows() {
    const AROUND: i64 = 26 * 3600;
    let seed = 0x6d69_6e75;
    let mut random = Random::new(seed);
    for name in ZONES {
        let zone = time_zone(name).unwrap();
        let begin: Timestamp = "2025-01-01T00:00:00Z".parse().unwrap();
        let changes = zone.following(begin).map(|change| change.timestamp().as_second());
        for change in changes.take_while(|change| *change < begin.as_second() + 2 * 365 * 86_400) {
            for _ in 0..12 {
                let text = random.window_near(&[shown(&zone, change - 1), shown(&zone, change)]);
                let context = format!("seed {seed:#x}: {text} {name}");
                let (table, model) = (timetable(&[format!("{text} {name}")]), Model::new(&text));
                let covers = |now| model.covers(shown(&zone, now));
                let mut next = change - AROUND;
                for now in (change - AROUND..change + AROUND).step_by(60) {
                    assert_eq!(table.at(now).is_some(), covers(now), "{context} at {now}");
                    if now >= next {
                        next = table.next_change(now).unwrap_or(i64::MAX);
                    }
                    assert!(next > now, "{context} at {now}: changes at {next}");
                    let is_change = covers(now) != covers(now + 60);
                    assert_eq!(is_change, next == now + 60, "{context} at {now}: changes at {next}");
                }
            }
        }
    }
}

#[test]
fn threads_that_ask_about_any_times_get_their_own_answers() {
    let table = &timetable(&[
        "2026-11-11 to 2026-11-12 Asia/Shanghai",
        "mon,fri 22:00 to 06:00 America/New_York",
        "12-20 to 01-05 Europe/Berlin",
        "12:00 to 12:00:01 UTC",
    ]);
    let begin = second("2026-10-20T00:00:00Z");
    let next_edge = |now: &i64| Some(table.look(*now).1.end);
    let edges: &Vec<i64> = &std::iter::successors(Some(begin), next_edge).take(100).collect();
    thread::scope(|scope| {
        for seed in 0..8 {
            scope.spawn(move || {
                let mut random = Random::new(seed);
                for _ in 0..2_000 {
                    let now = match random.below(8) {
                        0 => random.next().cast_signed(),
                        1 => begin + random.below(90 * 86_400),
                        _ => random.choose(edges) + random.below(5) - 2,
                    };
                    assert_eq!(table.at(now), table.look(now).0, "seed {seed} at {now}");
                }
            });
        }
    });
}
