//! The text of a limit: one grammar for configuration, commands, the macro and the wire.
//!
//! ```text
//! LIMIT     = RATE { WORD VALUE | "count-denied" | ALGORITHM }    in any order, each once
//!           | AMOUNT "/" UNIT "calendar" [ ZONE ] [ "from" DAY ] [ "max-debt" NUMBER ]
//! RATE      = AMOUNT "/" PERIOD | "unlimited"           10/s   30/60s   5000/h   1/1m30s
//! PERIOD    = [ NUMBER ] UNIT { NUMBER UNIT }           units: us ms s m h d w
//! WORD      = burst | queue | delay-after | slots | mode | align | warm-up | cold-factor | pay | max-debt
//! ALGORITHM = token-bucket | leaky-bucket | fixed-window | sliding-log | sliding-window | pacer
//!           | concurrency
//! ```
//!
//! The units of a calendar are `hour`, `day`, `week`, `month` and `year`; its zone is an IANA name. `DAY` is the name of
//! a day of the week, a day of the month, or month and day as in `04-06`.
//!
//! `delay-after` takes a number or `all`, `mode` takes `strict` or `estimate`, `align` takes `epoch` or
//! `first-hit`, `pay` takes `next` or `self`, `warm-up` and a pacer's `burst` take a time. All numbers are
//! whole.

use std::ops::Range;
use std::time::Duration;

use super::Limit;
use super::builder::{Alignment, Burst, DelayAfter, LimitBuilder, Pay, WindowMode, WrittenRate};
use super::problem::{Field, LimitError};
use crate::algorithm::Algorithm;
use crate::time::{CalendarPeriods, CalendarUnit, TimeZone};

/// The longest text that is parsed; every valid limit is shorter.
const MAX_BYTES: usize = 512;
/// The units of time, each in microseconds.
pub const TIME_UNITS: [(&str, u64); 7] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("m", 60_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
    ("w", 604_800_000_000),
];

/// The words for settings of two choices.
pub(super) const MODES: [(&str, WindowMode); 2] =
    [("strict", WindowMode::Strict), ("estimate", WindowMode::Estimate)];
pub(super) const ALIGNMENTS: [(&str, Alignment); 2] =
    [("epoch", Alignment::Epoch), ("first-hit", Alignment::FirstHit)];
pub(super) const PAYS: [(&str, Pay); 2] = [("next", Pay::Next), ("self", Pay::Own)];

/// The days of the week.
pub(super) const DAYS_OF_WEEK: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// The length of their short names.
const SHORT_DAY: usize = 3;

/// An error in a part of the text, with its place.
pub(super) struct Wrong {
    place: Range<usize>,
    what: String,
}

/// The result of reading a part of the text.
pub(super) type Parsed<T> = Result<T, Wrong>;

/// Parses a span of time and nothing else, such as `1m30s`. Fails with the place of the first invalid character.
pub fn parse_span(text: &str) -> Result<Duration, LimitError> {
    read_span(&Word { text, place: 0..text.len() })
        .map_err(|wrong| LimitError::in_text(text, wrong.place, wrong.what))
}

/// Parses a whole text with [`Reader::limit`] or [`Reader::rate`].
pub(super) fn parse<'a, T>(
    text: &'a str,
    what: impl FnOnce(Reader<'a>) -> Parsed<T>,
) -> Result<T, LimitError> {
    if text.len() > MAX_BYTES {
        let what =
            format!("{} bytes are too long for a limit; write something like \"10/s burst 20\"", text.len());
        let start: String = text.chars().take(40).collect();
        return Err(LimitError::in_text(&format!("{start}..."), 0..0, what));
    }
    what(Reader::new(text)).map_err(|wrong| LimitError::in_text(text, wrong.place, wrong.what))
}

/// A word of the text and its place.
#[derive(Clone)]
struct Word<'a> {
    text: &'a str,
    place: Range<usize>,
}

impl Word<'_> {
    /// Returns an error at the place of this word.
    fn wrong<T>(&self, what: impl Into<String>) -> Parsed<T> {
        Err(Wrong { place: self.place.clone(), what: what.into() })
    }
}

/// A reader of the words of a limit. It notes the place of each setting, for errors that are found later.
pub(super) struct Reader<'a> {
    text: &'a str,
    words: std::vec::IntoIter<Word<'a>>,
    /// The place of each setting.
    places: Vec<(Field, Range<usize>)>,
}

impl<'a> Reader<'a> {
    /// Splits the text at white space.
    fn new(text: &'a str) -> Reader<'a> {
        let place = |word: &'a str| {
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            Word { text: word, place: start..start + word.len() }
        };
        let words: Vec<_> = text.split_ascii_whitespace().map(place).collect();
        Reader { text, words: words.into_iter(), places: Vec::new() }
    }

    /// Reads the rate, which always comes first.
    fn first_word(&mut self) -> Parsed<WrittenRate> {
        let Some(rate) = self.words.next() else { return Err(missing_rate(self.text)) };
        self.places.push((Field::Rate, rate.place.clone()));
        read_rate(&rate)
    }

    /// Reads a rate and nothing else, valid for a pacer.
    pub(super) fn rate(mut self) -> Parsed<WrittenRate> {
        let rate = self.first_word()?;
        if let Some(word) = self.words.next() {
            let shown = word.text.escape_debug();
            return word.wrong(format!("a rate ends before \"{shown}\"; leave the rest out"));
        }
        self.checked(LimitBuilder::with_rate(Algorithm::Pacer, rate)).map(|_| rate)
    }

    /// Reads a limit. Numbers are validated at the end, because a setting may precede the algorithm that it belongs to.
    pub(super) fn limit(mut self, time_zone: &FindZone<'_>) -> Parsed<Limit> {
        let names_calendar = |word: &Word<'_>| word.text == Algorithm::Calendar.name();
        if self.words.as_slice().iter().skip(1).any(names_calendar) {
            return self.calendar(time_zone);
        }
        let mut draft = LimitBuilder::with_rate(Algorithm::TokenBucket, self.first_word()?);
        let mut algorithm = None;
        while let Some(word) = self.words.next() {
            if let Some(named) = Algorithm::from_name(word.text) {
                if algorithm.replace(named).is_some() {
                    return word.wrong("a limit has one algorithm; leave one of them out");
                }
                draft.algorithm = named;
            } else {
                draft = self.option(draft, &word)?;
            }
        }
        self.checked(draft)
    }

    /// Reads a calendar limit. A word that is no setting is the zone.
    fn calendar(mut self, time_zone: &FindZone<'_>) -> Parsed<Limit> {
        let Some(rate) = self.words.next() else { return Err(missing_rate(self.text)) };
        self.places.push((Field::Rate, rate.place.clone()));
        let (amount, unit) = read_calendar_rate(&rate)?;
        let mut draft = LimitBuilder::calendar(amount, CalendarPeriods::new(unit));
        let (mut is_named, mut zone, mut first_day) = (false, None, None);
        while let Some(word) = self.words.next() {
            match Algorithm::from_name(word.text) {
                Some(Algorithm::Calendar) if !is_named => is_named = true,
                Some(_) => return word.wrong("a limit has one algorithm; leave one of them out"),
                None if word.text == FROM => {
                    let Some(day) = self.words.next() else {
                        return word.wrong(format!(
                            "from needs a day; write something like \"{}\"",
                            example_of(unit)
                        ));
                    };
                    if first_day.replace(day).is_some() {
                        return word.wrong("from is given twice; leave one of them out");
                    }
                }
                None if Field::OPTIONS.iter().any(|(_, name, _)| *name == word.text) => {
                    draft = self.option(draft, &word)?;
                }
                None if zone.is_none() => {
                    zone = Some(read_zone(&word, self.words.as_slice().first(), time_zone)?);
                }
                None => return word.wrong(unknown_in_calendar(word.text)),
            }
        }
        let periods = CalendarPeriods::new(unit).in_zone(zone.unwrap_or(TimeZone::UTC));
        let periods = first_day.map_or(Ok(periods), |day| read_first_day(periods, &day))?;
        self.checked(LimitBuilder { rate: WrittenRate::Calendar { amount, periods }, ..draft })
    }

    /// Validates the draft, and reports a problem at the place of its setting.
    fn checked(&self, draft: LimitBuilder) -> Parsed<Limit> {
        draft.valid().map_err(|problem| Wrong {
            place: self.place_of(problem.field()),
            what: problem.as_str().to_owned(),
        })
    }

    /// Returns the place of this setting, or the whole text if it was not set.
    fn place_of(&self, field: Field) -> Range<usize> {
        let said = self.places.iter().find(|(said, _)| *said == field);
        said.map_or(0..self.text.len(), |(_, place)| place.clone())
    }

    /// Reads one setting with its value. Each setting may occur once.
    fn option(&mut self, draft: LimitBuilder, word: &Word<'a>) -> Parsed<LimitBuilder> {
        let known = Field::OPTIONS.into_iter().find(|(_, name, _)| *name == word.text);
        let Some((field, _, example)) = known else {
            return word.wrong(unknown_word(word.text));
        };
        if self.places.iter().any(|(said, _)| *said == field) {
            return word.wrong(format!("{} is given twice; leave one of them out", word.text));
        }
        self.places.push((field, word.place.clone()));
        if field == Field::CountDenied {
            return Ok(draft.count_denied());
        }
        let Some(value) = self.words.next() else {
            return word.wrong(format!("{} needs a value; write something like \"{example}\"", word.text));
        };
        if let Some((_, place)) = self.places.last_mut() {
            place.end = value.place.end;
        }
        read_option(draft, field, &value)
    }
}

/// Stores the value of a setting in the draft.
fn read_option(draft: LimitBuilder, field: Field, value: &Word<'_>) -> Parsed<LimitBuilder> {
    Ok(match field {
        Field::Rate | Field::Periods | Field::CountDenied => draft,
        Field::Burst => match read_burst(value)? {
            Burst::Units(units) => draft.burst(units),
            Burst::Span(span) => draft.burst_span(span),
        },
        Field::Queue => draft.queue(read_number(value)?),
        Field::DelayAfter if value.text == "all" => draft.delay_after(DelayAfter::All),
        Field::DelayAfter => draft.delay_after(DelayAfter::Units(read_number(value)?)),
        Field::Slots => draft.slots(read_number(value)?),
        Field::Mode => draft.mode(read_choice(value, "mode", MODES)?),
        Field::Alignment => draft.alignment(read_choice(value, "align", ALIGNMENTS)?),
        Field::WarmUp => draft.warm_up(read_span(value)?),
        Field::ColdFactor => draft.cold_factor(read_number(value)?),
        Field::Pay => draft.pay(read_choice(value, "pay", PAYS)?),
        Field::MaxDebt => draft.max_debt(read_number(value)?),
    })
}

/// Finds a time zone by name. The error follows the name in a message.
type FindZone<'a> = dyn Fn(&str) -> Result<TimeZone, String> + 'a;

/// The word before the first day of a calendar's periods.
const FROM: &str = "from";

/// Finds UTC, the one time zone that this library has, and those that the program has created.
pub(super) fn created_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).ok_or_else(|| {
        "is not known here, only UTC is; parse the text with parse_limit of the crate tidegate-rules"
            .to_owned()
    })
}

/// Returns the error of a text without a word.
fn missing_rate(text: &str) -> Wrong {
    Wrong { place: 0..text.len(), what: "there is nothing here; write a rate such as \"10/s\"".into() }
}

/// Reads the amount and the unit of a calendar limit.
fn read_calendar_rate(word: &Word<'_>) -> Parsed<(u64, CalendarUnit)> {
    let Some((amount, unit)) = word.text.split_once('/') else {
        return word
            .wrong("a calendar limit begins with an amount per period; write something like \"1000/day\"");
    };
    let middle = word.place.start + amount.len();
    let amount = read_number(&Word { text: amount, place: word.place.start..middle })?;
    if let Some(known) = calendar_unit(unit) {
        return Ok((amount, known));
    }
    let place = if unit.is_empty() { middle..word.place.end } else { middle + 1..word.place.end };
    let shown = unit.escape_debug();
    let what = match alias(unit) {
        Some((unit @ ("s" | "m" | "ms" | "us"), _)) => format!(
            "a calendar has no unit \"{shown}\"; write \"{amount}/{unit} fixed-window\", which is the same in every zone"
        ),
        _ => format!(
            "a calendar counts per hour, day, week, month or year, not \"{shown}\"; write something like \"{amount}/day\""
        ),
    };
    Err(Wrong { place, what })
}

/// Returns the unit of this name, of its plural, or of a fixed length that is called alike.
fn calendar_unit(text: &str) -> Option<CalendarUnit> {
    let known =
        CalendarUnit::ALL.into_iter().find(|unit| unit.name() == text.strip_suffix('s').unwrap_or(text));
    known.or(match text {
        "h" => Some(CalendarUnit::Hour),
        "d" => Some(CalendarUnit::Day),
        "w" => Some(CalendarUnit::Week),
        _ => None,
    })
}

/// Reads a time zone. A word that is probably a setting is answered with that setting, and a name in two words with the
/// name that they make.
fn read_zone(word: &Word<'_>, next: Option<&Word<'_>>, time_zone: &FindZone<'_>) -> Parsed<TimeZone> {
    time_zone(word.text).or_else(|what| {
        let is_near = |known: &&str| !word.text.contains('/') && distance(word.text, known) <= 2;
        if [FROM, "max-debt"].into_iter().any(|known| is_near(&known)) {
            return word.wrong(unknown_in_calendar(word.text));
        }
        let of_two = |next: &Word<'_>| time_zone(&format!("{}_{}", word.text, next.text)).ok();
        if let Some((next, zone)) = next.and_then(|next| Some((next, of_two(next)?))) {
            let what = format!("\"{} {}\" is no time zone; write \"{zone}\"", word.text, next.text);
            return Err(Wrong { place: word.place.start..next.place.end, what });
        }
        word.wrong(format!("\"{}\" {what}", word.text.escape_debug()))
    })
}

/// Returns the message of a word that a calendar limit does not have.
fn unknown_in_calendar(word: &str) -> String {
    let shown = word.escape_debug();
    match [FROM, "max-debt"].into_iter().find(|known| distance(word, known) <= 2) {
        Some(known) => format!("unknown word \"{shown}\"; did you mean \"{known}\"?"),
        None => {
            format!("unknown word \"{shown}\"; after calendar follow a time zone, from DAY and max-debt N")
        }
    }
}

/// Returns an example of a first day.
fn example_of(unit: CalendarUnit) -> &'static str {
    match unit {
        CalendarUnit::Week => "from sunday",
        CalendarUnit::Year => "from 04-06",
        CalendarUnit::Hour | CalendarUnit::Day | CalendarUnit::Month => "from 15",
    }
}

/// Reads the first day of a period.
fn read_first_day(periods: CalendarPeriods, day: &Word<'_>) -> Parsed<CalendarPeriods> {
    let shown = day.text.escape_debug();
    let (found, what) = match periods.unit() {
        CalendarUnit::Hour | CalendarUnit::Day => (
            None,
            "an hour and a day have no first day; leave it out, or count per week, month or year".to_owned(),
        ),
        CalendarUnit::Week => {
            let word = day.text.to_ascii_lowercase();
            let found = DAYS_OF_WEEK.iter().position(|name| *name == word || name[..SHORT_DAY] == word);
            let found = found.and_then(|day| periods.from_day_of_week(u8::try_from(day).ok()?));
            (found, format!("\"{shown}\" is no day of the week; write \"monday\" to \"sunday\""))
        }
        CalendarUnit::Month => {
            let found = number_of(day.text).and_then(|day| periods.from_day_of_month(day));
            (found, format!("\"{shown}\" is no day of a month; write 1 to 31"))
        }
        CalendarUnit::Year => {
            let date = day.text.split_once('-');
            let found =
                date.and_then(|(month, day)| periods.from_day_of_year(number_of(month)?, number_of(day)?));
            (found, format!("\"{shown}\" is no day of a year; write month and day, as in \"04-06\""))
        }
    };
    found.map_or_else(|| day.wrong(what), Ok)
}

/// Reads a number of one or two digits.
fn number_of(text: &str) -> Option<u8> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Reads an amount per period, or `unlimited`. An unknown unit is answered with the rate that was probably meant.
fn read_rate(word: &Word<'_>) -> Parsed<WrittenRate> {
    if word.text == "unlimited" {
        return Ok(WrittenRate::Unlimited);
    }
    let Some((amount, period)) = word.text.split_once('/') else {
        return word.wrong("a limit begins with a rate, an amount per period; write something like \"10/s\"");
    };
    let middle = word.place.start + amount.len();
    let amount = Word { text: amount, place: word.place.start..middle };
    let period = Word { text: period, place: middle + 1..word.place.end };
    let units = read_number(&amount)?;
    match read_period(&period) {
        Ok(period) => Ok(WrittenRate::Per { amount: units, period }),
        Err(Wrong { place, what }) if period.text.is_empty() => {
            let place = place.start - 1..place.end;
            Err(Wrong { place, what: format!("{what}; write \"{units}/s\"") })
        }
        Err(Wrong { place, what }) => {
            let remedy = alias(period.text.trim_start_matches(|c: char| c.is_ascii_digit()));
            let what = match remedy {
                Some((unit, span)) if period.text.starts_with(|c: char| !c.is_ascii_digit()) => {
                    let or = if calendar_unit(period.text).is_some() { "," } else { " or" };
                    let calendar = calendar_unit(period.text)
                        .map_or(String::new(), |unit| format!(" or \"{units}/{} calendar\"", unit.name()));
                    format!("{what}; write \"{units}/{unit}\"{or} \"{units}/{span}\"{calendar}")
                }
                _ => format!(
                    "{what}; write something like \"{units}/s\", \"{units}/60s\" or \"{units}/1m30s\""
                ),
            };
            Err(Wrong { place, what })
        }
    }
}

/// Reads a period: a span, or a unit alone.
fn read_period(word: &Word<'_>) -> Parsed<Duration> {
    match TIME_UNITS.into_iter().find(|(unit, _)| *unit == word.text) {
        Some((_, micros)) => Ok(Duration::from_micros(micros)),
        None => read_spans(word),
    }
}

/// Reads one span of time.
fn read_span(word: &Word<'_>) -> Parsed<Duration> {
    read_spans(word).map_err(|wrong| Wrong {
        what: format!("{}; write something like \"4s\" or \"1m30s\"", wrong.what),
        ..wrong
    })
}

/// Reads numbers with units, and returns their sum.
fn read_spans(word: &Word<'_>) -> Parsed<Duration> {
    if word.text.is_empty() {
        return word.wrong("the period is missing");
    }
    let mut rest = word.text;
    let mut micros = 0_u64;
    while !rest.is_empty() {
        let start = word.place.end - rest.len();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let (number, unit) = (&rest[..digits], &rest[digits..unit_end]);
        let part = Word { text: rest, place: start..start + unit_end };
        let Some((_, scale)) = TIME_UNITS.into_iter().find(|(known, _)| *known == unit) else {
            return unknown_unit(number, unit, start);
        };
        let number = read_number(&Word { text: number, place: start..start + digits })?;
        let sum = number.checked_mul(scale).and_then(|more| micros.checked_add(more));
        let Some(sum) = sum else {
            return part.wrong("this time is longer than can be counted");
        };
        micros = sum;
        rest = &rest[unit_end..];
    }
    Ok(Duration::from_micros(micros))
}

/// Returns the error of a missing or unknown unit, at the place of that unit.
fn unknown_unit<T>(number: &str, unit: &str, start: usize) -> Parsed<T> {
    let place = start + number.len()..start + number.len() + unit.len();
    if unit.is_empty() {
        return Err(Wrong {
            place: start..place.end,
            what: format!("\"{number}\" has no unit; the units are us, ms, s, m, h, d and w"),
        });
    }
    if unit.starts_with(['-', '.']) {
        return Err(Wrong { place, what: "a time is made of whole numbers above 0 with units".to_owned() });
    }
    let known = if alias(unit).is_some() { "" } else { "; the units are us, ms, s, m, h, d and w" };
    Err(Wrong { place, what: format!("unknown unit \"{}\"{known}", unit.escape_debug()) })
}

/// Returns the unit that a common alias means, and its length.
/// Months and years have no fixed length, so days are suggested for them.
fn alias(unit: &str) -> Option<(&'static str, &'static str)> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => ("s", "1s"),
        "m" | "min" | "mins" | "minute" | "minutes" => ("m", "60s"),
        "h" | "hr" | "hrs" | "hour" | "hours" => ("h", "3600s"),
        "d" | "day" | "days" => ("d", "24h"),
        "w" | "week" | "weeks" => ("w", "7d"),
        "month" | "months" | "mo" => ("30d", "4w"),
        "y" | "year" | "years" => ("365d", "52w"),
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => ("ms", "1000us"),
        "us" | "usec" | "micros" | "microsecond" | "microseconds" | "\u{b5}s" | "\u{3bc}s" => ("us", "1us"),
        _ => return None,
    })
}

/// Reads a burst: units or, for a pacer, a span. A span begins with a digit and ends with a letter.
fn read_burst(word: &Word<'_>) -> Parsed<Burst> {
    let is_span = word.text.starts_with(|c: char| c.is_ascii_digit())
        && word.text.ends_with(|c: char| c.is_ascii_lowercase())
        && !word.text.contains(['e', '.']);
    if is_span { read_span(word).map(Burst::Span) } else { read_number(word).map(Burst::Units) }
}

/// Reads a whole number. Missing, negative and fractional numbers have errors of their own, with other remedies.
fn read_number(word: &Word<'_>) -> Parsed<u64> {
    let text = word.text;
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().or_else(|_| {
            word.wrong(format!("\"{text}\" is more than can be counted; the most is {}", u64::MAX))
        });
    }
    let shown = text.escape_debug();
    let what = if text.is_empty() {
        "a number is missing".to_owned()
    } else if text.starts_with('-') {
        format!("\"{shown}\" is negative; write a whole number from 0 up")
    } else if text.parse::<f64>().is_ok_and(f64::is_finite) || text.contains('.') {
        format!("\"{shown}\" is not a whole number written in digits; for 1.5 per second write \"3/2s\"")
    } else {
        // `5r/s` is a rate of nginx.
        let digits = text.strip_suffix('r').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        match digits.filter(|digits| !digits.is_empty()) {
            Some(digits) => format!("\"{shown}\" is not a number; write \"{digits}\" without the r"),
            None => format!("\"{shown}\" is not a number; write digits only"),
        }
    };
    word.wrong(what)
}

/// Reads one of two words.
fn read_choice<T: Copy>(word: &Word<'_>, name: &str, choices: [(&str, T); 2]) -> Parsed<T> {
    match choices.into_iter().find(|(text, _)| *text == word.text) {
        Some((_, choice)) => Ok(choice),
        None => {
            let [(first, _), (second, _)] = choices;
            let shown = word.text.escape_debug();
            word.wrong(format!("{name} is {first} or {second}, not \"{shown}\""))
        }
    }
}

/// Returns the message of an unknown word. It suggests a known word, if at most two characters differ.
fn unknown_word(word: &str) -> String {
    let names = Algorithm::ALL.map(Algorithm::name);
    let known = || Field::OPTIONS.map(|(_, word, _)| word).into_iter().chain(names);
    let shown = word.escape_debug();
    if let Some(meant) = word_of_another_tool(word) {
        return format!("unknown word \"{shown}\"; write \"{meant}\"");
    }
    match known().map(|name| (distance(word, name), name)).min() {
        Some((distance, name)) if distance <= 2 => {
            format!("unknown word \"{shown}\"; did you mean \"{name}\"?")
        }
        _ => format!("unknown word \"{shown}\"; known are {}", known().collect::<Vec<_>>().join(", ")),
    }
}

/// Returns the words to write for a word of another tool: `burst=10`, `nodelay`, `gcra`.
fn word_of_another_tool(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    if let Some((name, value)) = lower.split_once('=') {
        let (_, name, _) = Field::OPTIONS.into_iter().find(|(_, known, _)| *known == name)?;
        return Some(format!("{name} {value}"));
    }
    let meant = match lower.as_str() {
        "nodelay" | "no-delay" => "delay-after all",
        "gcra" | "tokenbucket" | "token_bucket" | "bucket" => "token-bucket",
        "leakybucket" | "leaky_bucket" | "leaky" => "leaky-bucket",
        "fixedwindow" | "fixed_window" | "fixed" | "window" => "fixed-window",
        "slidingwindow" | "sliding_window" | "sliding" => "sliding-window",
        "slidinglog" | "sliding_log" | "log" => "sliding-log",
        "semaphore" | "concurrent" | "inflight" | "in-flight" => "concurrency",
        "guava" | "warmup" | "warm_up" => "pacer",
        _ => Algorithm::from_name(&lower).filter(|_| lower != word)?.name(),
    };
    Some(meant.to_owned())
}

/// Returns the edit distance of two words (Levenshtein): the least number of characters to change, insert or remove.
///
/// The time is proportional to the product of both lengths, so pass short words.
pub fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for column in 0..to.len() {
            let changed = diagonal + usize::from(letter != to[column]);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[to.len()]
}
