//! Calendar periods against those of Python's zoneinfo, with the release of the database that is built in.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use conformance::random::Random;
use jiff::tz::TimeZoneDatabase;
use tidegate_core::{CalendarPeriods, CalendarUnit};

use crate::schedule::zone::offsets_of;

/// The script that prints the expected beginnings.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calendar_periods.py");

/// Zones with changes at midnight or before it, skipped days, half hours, two changes in a Ramadan and late decisions.
const ODD: [&str; 9] = [
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Europe/Dublin",
    "Pacific/Apia",
];

/// Returns the periods of a line.
fn periods_of(unit: &str, first_day: u16) -> CalendarPeriods {
    let unit = CalendarUnit::ALL.into_iter().find(|known| known.name() == unit).expect(unit);
    let (periods, day) = (CalendarPeriods::new(unit), (first_day % 100) as u8);
    match unit {
        CalendarUnit::Hour | CalendarUnit::Day => Some(periods),
        CalendarUnit::Week => periods.from_day_of_week(day),
        CalendarUnit::Month => periods.from_day_of_month(day),
        CalendarUnit::Year => periods.from_day_of_year((first_day / 100) as u8, day),
    }
    .expect("a day of its unit")
}

/// Compares the runs of one line, and returns the number of periods.
fn compare(line: &str) -> usize {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("a word");
    let (name, unit, first_day) = (word(), word(), word().parse().expect("a number"));
    let zone = TimeZoneDatabase::bundled().get(name).expect(name);
    let periods = periods_of(unit, first_day).in_zone(offsets_of(&zone).expect(name));
    let beginnings: Vec<i64> = words.map(|second| second.parse().expect("a number")).collect();
    for pair in beginnings.windows(2) {
        let expected = pair[0]..pair[1];
        // A skipped day or hour has no length.
        if !expected.is_empty() {
            for at in [expected.start, expected.end - 1] {
                assert_eq!(periods.period_of(at), expected, "{name}, {unit} from {first_day}, at {at}");
            }
        }
    }
    beginnings.len() - 1
}

/// Nine odd zones and five others; all with `TIDEGATE_FULL`.
#[test]
fn periods_begin_and_end_as_by_zoneinfo() {
    let all: Vec<String> =
        TimeZoneDatabase::bundled().available().map(|name| name.as_str().to_owned()).collect();
    let names = if std::env::var_os("TIDEGATE_FULL").is_some() {
        all
    } else {
        let mut random = Random::new(Random::seed_from_environment());
        let others = (0..5).map(|_| random.pick(&all.iter().collect::<Vec<_>>()).clone());
        ODD.iter().map(|name| (*name).to_owned()).chain(others.collect::<Vec<_>>()).collect()
    };
    let python = testbed::client_program("venv/bin/python").unwrap_or_else(|missing| panic!("{missing}"));
    // Without a path, zoneinfo has the database of the package tzdata alone.
    let mut script = Command::new(python)
        .arg(SCRIPT)
        .env("PYTHONTZPATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    script.stdin.take().expect("a pipe").write_all(names.join("\n").as_bytes()).expect("Python reads");
    let lines = BufReader::new(script.stdout.take().expect("a pipe")).lines();
    let (mut periods, mut zones) = (0, std::collections::BTreeSet::new());
    for line in lines {
        let line = line.expect("text");
        periods += compare(&line);
        zones.insert(line.split(' ').next().unwrap_or_default().to_owned());
    }
    assert!(script.wait().expect("Python ends").success());
    let missing: Vec<_> = names.iter().filter(|name| !zones.contains(*name)).collect();
    assert!(missing.is_empty(), "zoneinfo has no {missing:?}");
    println!("zoneinfo: {} zones, {periods} periods, 0 mismatches", zones.len());
}
