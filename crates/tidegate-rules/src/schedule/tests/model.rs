//! What a person with a wall clock and a calendar would say, who knows nothing of instants.
//!
//! The clock never goes back: it stands still while an hour repeats.
//! What it shows is compared with what was written, number by number.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// Longer than clocks are ever put back.
const LONGEST_REPEAT: SignedDuration = SignedDuration::from_hours(48);

/// A clock that stands still while the clocks of its zone show times that they have shown before.
#[derive(Debug)]
pub(super) struct WallClock {
    zone: TimeZone,
    shown: DateTime,
}

impl WallClock {
    /// Set to the latest time that was shown up to now: the present one, or that of the last second before a change.
    pub(super) fn new(zone: &TimeZone, now: i64) -> WallClock {
        let now = Timestamp::from_second(now).unwrap();
        let changes = zone.following(now - LONGEST_REPEAT).map(|change| change.timestamp());
        let shown = changes
            .take_while(|change| *change <= now)
            .map(|change| zone.to_datetime(change - SignedDuration::from_secs(1)))
            .fold(zone.to_datetime(now), DateTime::max);
        WallClock { zone: zone.clone(), shown }
    }

    /// What it shows, if it was asked about every second until now.
    pub(super) fn advance(&mut self, now: i64) -> DateTime {
        self.shown = self.shown.max(self.zone.to_datetime(Timestamp::from_second(now).unwrap()));
        self.shown
    }
}

/// A window as it was written.
#[derive(Debug)]
pub(super) enum Model {
    Daily { from: i32, to: i32, days: Vec<Weekday> },
    Yearly { from: (i8, i8, i32), to: (i8, i8, i32) },
    Once { from: (Date, i32), to: (Date, i32) },
}

impl Model {
    /// `mon,fri 22:00 to 06:00` or any other, the days being optional.
    pub(super) fn new(text: &str) -> Model {
        let (rest, to) = text.split_once(" to ").unwrap();
        let (days, from) = rest.split_once(' ').unwrap_or(("mon,tue,wed,thu,fri,sat,sun", rest));
        match from.split('-').count() {
            1 => {
                Model::Daily { from: time(from), to: time(to), days: days.split(',').map(weekday).collect() }
            }
            2 => Model::Yearly { from: yearly(from), to: yearly(to) },
            _ => Model::Once { from: once(from), to: once(to) },
        }
    }

    pub(super) fn covers(&self, shown: DateTime) -> bool {
        let second =
            3600 * i32::from(shown.hour()) + 60 * i32::from(shown.minute()) + i32::from(shown.second());
        match self {
            Model::Once { from, to } => (*from..*to).contains(&(shown.date(), second)),
            Model::Yearly { from, to } => {
                let shown = (shown.month(), shown.day(), second);
                if from < to { *from <= shown && shown < *to } else { *from <= shown || shown < *to }
            }
            Model::Daily { from, to, days } => {
                let today = days.contains(&shown.date().weekday());
                let yesterday = days.contains(&shown.date().yesterday().unwrap().weekday());
                if from < to {
                    today && *from <= second && second < *to
                } else {
                    (today && *from <= second) || (yesterday && second < *to)
                }
            }
        }
    }
}

fn weekday(name: &str) -> Weekday {
    let names = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
    let index = names.iter().position(|known| *known == name).unwrap();
    Weekday::from_sunday_zero_offset(index.try_into().unwrap()).unwrap()
}

fn time(text: &str) -> i32 {
    let parts = text.split(':').map(|part| part.parse::<i32>().unwrap());
    parts.zip([3600, 60, 1]).map(|(part, unit)| part * unit).sum()
}

fn yearly(text: &str) -> (i8, i8, i32) {
    let (date, at) = text.split_once('T').unwrap_or((text, "00:00"));
    let (month, day) = date.split_once('-').unwrap();
    (month.parse().unwrap(), day.parse().unwrap(), time(at))
}

fn once(text: &str) -> (Date, i32) {
    let (date, at) = text.split_once('T').unwrap_or((text, "00:00"));
    (date.parse().unwrap(), time(at))
}
