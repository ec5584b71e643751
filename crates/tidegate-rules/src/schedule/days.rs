//! Days of the week as text: `mon`, `Friday`.

use std::fmt;

use jiff::civil::Weekday;

/// Their order is that of ISO 8601, in which a week begins on Monday.
const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// The length of the short names, which are prefixes of the full names.
const SHORT: usize = 3;

/// A set of days of the week: one bit for each, Monday first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Days(u8);

impl Days {
    pub(super) const NONE: Days = Days(0);
    pub(super) const EVERY: Days = Days(0b111_1111);

    /// Parses a day by its name or the first three letters, case-insensitive.
    pub(crate) fn one(text: &str) -> Result<Days, String> {
        let word = text.to_lowercase();
        let start = word.get(..SHORT).unwrap_or_default();
        match NAMES.iter().position(|name| name[..SHORT] == *start) {
            Some(day) if word == start || word == NAMES[day] => Ok(Days(1 << day)),
            Some(_) => Err(format!("is no day of the week; write \"{start}\"")),
            None => {
                Err("is no day of the week; write \"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\" or \"sun\""
                    .to_owned())
            }
        }
    }

    /// Returns the union of both sets.
    pub(crate) fn and(self, others: Days) -> Days {
        Days(self.0 | others.0)
    }

    /// Returns true if the day is in the set.
    pub(super) fn contains(self, day: Weekday) -> bool {
        self.0 >> day.to_monday_zero_offset() & 1 == 1
    }
}

impl fmt::Display for Days {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chosen = NAMES.iter().enumerate().filter(|(day, _)| self.0 >> day & 1 == 1);
        let chosen: Vec<&str> = chosen.map(|(_, name)| &name[..SHORT]).collect();
        out.write_str(&chosen.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_its_name_or_the_beginning_of_it() {
        for (day, name) in Weekday::Monday.cycle_forward().zip(NAMES) {
            for text in [name, &name[..3], &name.to_uppercase(), &name[..3].to_uppercase()] {
                let one = Days::one(text).unwrap();
                assert!(
                    day.cycle_forward().take(7).all(|other| one.contains(other) == (other == day)),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn other_text_is_rejected_with_a_remedy() {
        let all =
            "is no day of the week; write \"mon\", \"tue\", \"wed\", \"thu\", \"fri\", \"sat\" or \"sun\"";
        for (text, expected) in [
            ("tues", "is no day of the week; write \"tue\""),
            ("Thurs", "is no day of the week; write \"thu\""),
            ("mon-fri", "is no day of the week; write \"mon\""),
            ("", all),
            ("mo", all),
            ("weekend", all),
            ("1", all),
            ("日曜日", all),
        ] {
            assert_eq!(Days::one(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn days_are_a_set_in_the_order_of_the_week() {
        let [friday, monday] = ["fri", "Monday"].map(|name| Days::one(name).unwrap());
        let both = Days::NONE.and(friday).and(monday).and(friday);
        assert_eq!(both.to_string(), "mon, fri");
        assert_eq!(both, monday.and(friday));
        assert_eq!(
            NAMES.iter().fold(Days::default(), |days, name| days.and(Days::one(name).unwrap())),
            Days::EVERY
        );
    }
}
