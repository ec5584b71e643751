//! Random windows and numbers, the same in every run.

use jiff::SignedDuration;
use jiff::civil::DateTime;

/// A random number generator (`SplitMix64`).
#[derive(Debug)]
pub(super) struct Random(u64);

pub(super) const ZONES: [&str; 9] = [
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Asia/Shanghai",
    "America/St_Johns",
    "Asia/Gaza",
];

const TIMES: [&str; 12] = [
    "00:00", "00:00:01", "00:30", "01:00", "01:30", "01:59:59", "02:00", "02:30", "03:00", "12:00", "23:30",
    "23:59:59",
];

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(super) fn below(&mut self, bound: i64) -> i64 {
        (self.next() % bound.cast_unsigned()).cast_signed()
    }

    pub(super) fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len().try_into().unwrap())).unwrap()]
    }

    /// Returns the text of a window, without its zone.
    pub(super) fn window(&mut self) -> String {
        let kind = self.below(3);
        let (mut from, mut to) = (self.moment(kind), self.moment(kind));
        while from == to {
            to = self.moment(kind);
        }
        if kind == 2 && to < from {
            (from, to) = (to, from);
        }
        if self.below(6) == 0 && !to.ends_with("T00:00") {
            let date = to.split_once('T').map_or(String::new(), |(date, _)| format!("{date}T"));
            to = format!("{date}24:00");
        }
        match kind {
            0 if self.below(2) == 0 => {
                format!("{} {from} to {to}", self.choose(&["mon", "sun", "tue,thu", "sat,sun"]))
            }
            _ => format!("{from} to {to}"),
        }
    }

    /// Returns a window of whole minutes that begins and ends within three hours of a local time near a clock change.
    pub(super) fn window_near(&mut self, shown: &[DateTime]) -> String {
        let kind = self.below(4);
        loop {
            let [from, to] = [(); 2].map(|()| {
                let minutes = self.below(360) - 180;
                *self.choose(shown) + SignedDuration::from_mins(minutes)
            });
            let written = |at: DateTime| match kind {
                0 | 1 => at.strftime("%H:%M").to_string(),
                2 => at.strftime("%m-%dT%H:%M").to_string(),
                _ => at.strftime("%Y-%m-%dT%H:%M").to_string(),
            };
            let day =
                if kind == 1 { format!("{} ", from.strftime("%a")).to_lowercase() } else { String::new() };
            match (written(from), written(to)) {
                (from, to) if from < to || (kind < 3 && from != to) => return format!("{day}{from} to {to}"),
                _ => {}
            }
        }
    }

    fn moment(&mut self, kind: i64) -> String {
        let time = *self.choose(&TIMES);
        // Dates near the days of clock changes, and others.
        let (month, days) = *self.choose(&[(1, 31), (2, 29), (3, 31), (4, 30), (10, 31), (11, 30), (12, 31)]);
        let (month, day) = (month, 1 + self.below(days));
        match kind {
            0 => time.to_owned(),
            1 => format!("{month:02}-{day:02}T{time}"),
            _ => format!("{}-{month:02}-{:02}T{time}", 2005 + self.below(90), day.min(28)),
        }
    }
}
