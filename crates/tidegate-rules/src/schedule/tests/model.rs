//! A model of windows by local time and calendar, without instants.
//!
//! It compares the local time of the zone with the text of the window, number by number.

use jiff::civil::{Date, DateTime, Weekday};

/// A window as written.
#[derive(Debug)]
pub(super) enum Model {
    Daily { from: i32, to: i32, days: Vec<Weekday> },
    Yearly { from: (i8, i8, i32), to: (i8, i8, i32) },
    Once { from: (Date, i32), to: (Date, i32) },
}

impl Model {
    /// Parses `mon,fri 22:00 to 06:00` or any other window; the days are optional.
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
