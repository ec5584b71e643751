//! The rules of the server: every algorithm, in every way to keep its states, in three zones.

use std::fmt::Write as _;
use std::time::Duration;

/// The keys of a rule.
pub(super) const KEYS: usize = 16;
/// The period of the limits.
const PERIOD: f64 = 4.0;
/// The lease of permits.
pub(super) const LEASE: Duration = Duration::from_secs(8);
/// The most permits of a key.
pub(super) const PERMITS: usize = 5;

/// A rule, and the most that it may admit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) limit: &'static str,
    pub(super) zone: Option<&'static str>,
    /// The most that is admitted at once, and at the end of each period or as time passes.
    bound: Bound,
}

/// The promise of an algorithm over a closed interval.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// A burst, and so many per second.
    Rate(f64, f64),
    /// So many in each window of the period that the interval touches.
    Windows(f64),
    /// So many in every trailing period.
    Trailing(f64),
    /// So many at the same time: not judged by counts.
    InFlight,
}

const LIMITS: [(&str, Bound); 11] = [
    ("5/4s", Bound::Rate(5.0, 1.25)),
    ("5/4s queue 4 delay-after all leaky-bucket", Bound::Rate(5.0, 1.25)),
    ("5/4s fixed-window", Bound::Windows(5.0)),
    ("5/4s fixed-window align first-hit", Bound::Windows(5.0)),
    ("5/4s sliding-log", Bound::Trailing(5.0)),
    ("150/4s sliding-log", Bound::Trailing(150.0)),
    ("5/4s sliding-window", Bound::Trailing(5.0)),
    // The estimate admits up to 2L - 1 in a period.
    ("5/4s sliding-window mode estimate", Bound::Trailing(9.0)),
    // What was saved, what is earned, and the last one, which the next has to pay for.
    ("2/s pacer burst 2s", Bound::Rate(5.0, 2.0)),
    ("2/s pacer warm-up 2s", Bound::Rate(2.0, 2.0)),
    ("5/8s concurrency", Bound::InFlight),
];

const ZONES: [Option<&str>; 3] = [None, Some("logins"), Some("api")];

/// All rules: each limit in each zone.
pub(super) fn all() -> Vec<Rule> {
    let in_zone = |zone| LIMITS.into_iter().map(move |(limit, bound)| Rule { limit, zone, bound });
    ZONES.into_iter().flat_map(in_zone).collect()
}

/// The number of all keys.
pub(super) fn keys() -> usize {
    LIMITS.len() * ZONES.len() * KEYS
}

impl Rule {
    pub(super) fn gives_permits(&self) -> bool {
        matches!(self.bound, Bound::InFlight)
    }

    /// The most that a key may be admitted within this span.
    pub(super) fn worst_case(&self, span: Duration) -> u64 {
        let seconds = span.as_secs_f64();
        (match self.bound {
            Bound::Rate(burst, per_second) => burst + seconds * per_second,
            Bound::Windows(each) => each * ((seconds / PERIOD).ceil() + 1.0),
            Bound::Trailing(each) => each * ((seconds / PERIOD).floor() + 1.0),
            Bound::InFlight => f64::MAX,
        }) as u64
    }
}

/// The settings of the server.
pub(super) fn config() -> String {
    let mut text =
        "[server]\nresp = '127.0.0.1:0'\nhttp = 'off'\n[store]\nfile = 'zone.tg'\nsize = '1MiB'\n".to_owned();
    for zone in ZONES.into_iter().flatten() {
        let _ = writeln!(text, "[zone.{zone}]\nsize = '512KiB'");
    }
    for (number, Rule { limit, zone, .. }) in all().iter().enumerate() {
        let zone = zone.map(|zone| format!("zone = '{zone}'\n")).unwrap_or_default();
        let _ = writeln!(
            text,
            "[[rule]]\nname = 'rule-{number}'\nwhen = {{ rule = 'rule-{number}' }}\nkey = ['user']\nlimit = '{limit}'\n{zone}"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_understands_the_rules() {
        let policy = tidegate_rules::Policy::from_toml(
            config().split_once("size = '1MiB'\n").expect("settings come first").1,
        );
        let policy = policy.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((policy.rules().len(), policy.zones().len()), (33, 2));
    }

    #[test]
    fn bounds_are_those_of_the_promises() {
        let most = |index: usize, seconds: u64| all()[index].worst_case(Duration::from_secs(seconds));
        assert_eq!((most(0, 0), most(0, 4), most(2, 4), most(4, 3), most(4, 4)), (5, 10, 10, 5, 10));
        assert!(all()[10].gives_permits() && !all()[9].gives_permits());
    }
}
