//! Whether so many were admitted in every window, judged by counting.
//!
//! A decision counts in a window only if it was asked and answered there. Whatever was forgotten once gives one more
//! limit to every window that it may lie in.

use std::time::Duration;

use testbed::Decided;

/// The clock of a Redis is set by others: a window is taken to be so much shorter.
const DOUBT: Duration = Duration::from_millis(5);

/// So many per period.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    pub(crate) limit: u64,
    pub(crate) period: Duration,
    /// Between which times something may have been forgotten, once each.
    pub(crate) losses: Vec<(Duration, Duration)>,
}

impl Windows {
    /// At most the limit in every window of the period, wherever it begins. The fullest of them, and what it may hold.
    pub(crate) fn trailing(&self, log: &[Decided]) -> Result<(u64, u64), String> {
        let mut admitted: Vec<_> = log.iter().filter(|decided| decided.is_allowed).collect();
        admitted.sort_by_key(|decided| decided.asked);
        let spans = admitted.iter().enumerate().map(|(first, decided)| {
            let (from, to) = (decided.asked, decided.asked + self.period.saturating_sub(DOUBT));
            let later = admitted[first..].iter().take_while(|later| later.asked <= to);
            (from, to, later.filter(|later| later.answered <= to).map(|later| later.cost).sum())
        });
        self.fullest(spans)
    }

    /// At most the limit in every window that begins at a multiple of the period, by a clock that is so far ahead of
    /// that of the log.
    pub(crate) fn aligned(&self, log: &[Decided], ahead: Duration) -> Result<(u64, u64), String> {
        let window = |time: Duration| (time + ahead).as_nanos() / self.period.as_nanos();
        let mut counts = std::collections::BTreeMap::<u128, (Duration, Duration, u64)>::new();
        for decided in log.iter().filter(|decided| decided.is_allowed) {
            let (first, last) =
                (window(decided.asked.saturating_sub(DOUBT)), window(decided.answered + DOUBT));
            if first == last {
                let count = counts.entry(first).or_insert((decided.asked, decided.answered, 0));
                *count = (count.0.min(decided.asked), count.1.max(decided.answered), count.2 + decided.cost);
            }
        }
        self.fullest(counts.into_values())
    }

    fn fullest(&self, spans: impl Iterator<Item = (Duration, Duration, u64)>) -> Result<(u64, u64), String> {
        let mut fullest = (0, self.limit);
        for (from, to, admitted) in spans {
            let losses = self.losses.iter().filter(|loss| loss.0 <= to && loss.1 >= from).count() as u64;
            let at_most = self.limit * (1 + losses);
            if admitted > at_most {
                return Err(format!("{admitted} admitted from {from:?} to {to:?}; at most {at_most} may be"));
            }
            // Which share of the bound is larger, without fractions.
            if admitted * fullest.1 > fullest.0 * at_most {
                fullest = (admitted, at_most);
            }
        }
        Ok(fullest)
    }
}

#[cfg(test)]
mod tests {
    use testbed::By;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(milliseconds: u64) -> Decided {
        let time = Duration::from_millis(milliseconds);
        Decided { asked: time, answered: time, key: "ana".into(), is_allowed: true, cost: 1, by: By::Redis }
    }

    fn two_per_second(losses: &[(u64, u64)]) -> Windows {
        let time = Duration::from_millis;
        let losses = losses.iter().map(|(from, to)| (time(*from), time(*to))).collect();
        Windows { limit: 2, period: SECOND, losses }
    }

    #[test]
    fn one_too_many_in_any_window_is_seen() {
        assert_eq!(two_per_second(&[]).trailing(&[0, 900, 1000, 1900].map(at)), Ok((2, 2)));
        assert!(two_per_second(&[]).trailing(&[0, 900, 990].map(at)).is_err());
        let mut late = at(0);
        late.answered = SECOND;
        assert!(two_per_second(&[]).trailing(&[late, at(900), at(990)]).is_ok(), "it may have been later");
    }

    #[test]
    fn a_loss_gives_one_limit_more_where_it_may_have_been() {
        let log = [0, 10, 20, 30].map(at);
        assert_eq!(two_per_second(&[(15, 25)]).trailing(&log), Ok((4, 4)));
        assert!(two_per_second(&[(5000, 6000)]).trailing(&log).is_err());
    }

    #[test]
    fn aligned_windows_begin_by_the_other_clock() {
        let log = [700, 800, 1200, 1300].map(at);
        assert_eq!(two_per_second(&[]).aligned(&log, Duration::ZERO), Ok((2, 2)));
        assert!(two_per_second(&[]).aligned(&log, Duration::from_millis(500)).is_err());
    }
}
