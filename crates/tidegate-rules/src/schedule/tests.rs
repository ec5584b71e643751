//! Tests of timetables, and a model without instants to compare them with.

mod calendar;
mod changes;
mod model;
mod properties;
mod random;
mod zoneinfo;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use self::model::Model;
use super::*;

/// Parses `mon,fri 22:00 to 06:00 America/New_York`; the days are optional.
pub(super) fn window(text: &str) -> Result<Window, String> {
    let mut words: Vec<&str> = text.split(' ').collect();
    let days = (words.len() == 5).then(|| {
        let names = words.remove(0).split(',');
        names.fold(Days::default(), |days, name| days.and(Days::one(name).unwrap()))
    });
    let [from, _, to, zone] = words[..] else { panic!("no window: {text}") };
    Window::new(Moment::parse(from)?, Moment::parse(to)?, days, time_zone(zone)?)
}

fn timetable<T: AsRef<str>>(texts: &[T]) -> Timetable {
    Timetable::new(texts.iter().map(|text| window(text.as_ref()).unwrap()).collect())
}

fn second(instant: &str) -> i64 {
    instant.parse::<Timestamp>().unwrap().as_second()
}

/// Returns the local time of the zone.
fn shown(zone: &TimeZone, now: i64) -> DateTime {
    zone.to_datetime(Timestamp::from_second(now).unwrap())
}

/// Returns the instants between two others at which a window begins or ends, by checking every second.
fn edges(text: &str, from: &str, to: &str) -> Vec<String> {
    let table = timetable(&[text]);
    let changes = (second(from)..second(to)).filter(|now| table.at(*now) != table.at(now - 1));
    changes.map(|now| Timestamp::from_second(now).unwrap().to_string()).collect()
}

/// Every second from before the earliest edge that a test has near a clock change to after the latest.
#[derive(Debug)]
struct Stretch {
    zone: &'static str,
    start: i64,
    shown: Vec<DateTime>,
}

impl Stretch {
    fn around(change: &str, zone: &'static str) -> Stretch {
        let (start, end) = (second(change) - 2 * 3600, second(change) + 3 * 3600);
        let clock = time_zone(zone).unwrap();
        Stretch { zone, start, shown: (start..end).map(|now| shown(&clock, now)).collect() }
    }

    fn compare(&self, text: &str) {
        let table = timetable(&[format!("{text} {}", self.zone)]);
        let model = Model::new(text);
        for (now, shown) in (self.start..).zip(&self.shown) {
            assert_eq!(
                table.at(now).is_some(),
                model.covers(*shown),
                "{text} {} at {now}, {shown}",
                self.zone
            );
        }
    }
}
