//! The memory of one more key.

use super::shard;
use crate::limit::Limit;

/// The bytes of a key in a zone: a cell of sixteen bytes, in a zone that is two thirds full.
const IN_ZONE: usize = 24;

impl Limit {
    /// Returns the most bytes of memory that one key takes: in a [`Zone`](crate::Zone), or in the map beside it if its
    /// states need more than one word ([`Zone::keeps`](crate::Zone::keeps)).
    ///
    /// That is 24 bytes in a zone. In a map it is an upper estimate of the growth of [`Map::bytes`](crate::Map::bytes).
    /// It includes an entry in tables that have just grown, and the log, the slots or the permits of a key that has
    /// used its whole quota. Names are added if those of the key and its rule are longer than 27 bytes together.
    ///
    /// ```
    /// use tidegate::{Limit, MINUTE};
    ///
    /// assert_eq!(Limit::per_second(10).bytes_per_key(), 24);
    /// let window = Limit::sliding_window(1_000_000, MINUTE);
    /// assert!(window.bytes_per_key() < 1000);
    /// let log = Limit::sliding_log(1_000_000, MINUTE);
    /// assert!(log.bytes_per_key() > 16_000_000, "it remembers each action");
    /// ```
    pub fn bytes_per_key(&self) -> usize {
        if self.fits_cell() { IN_ZONE } else { shard::MOST_PER_ENTRY + self.terms().most_held() }
    }

    /// Returns true if a state takes one cell of a [`Zone`](crate::Zone), where [`WhenFull`](crate::WhenFull) applies.
    /// Other states are stored in the map beside it. Token buckets and leaky buckets fit. So do fixed windows that are
    /// aligned to the epoch, of at least 2<sup>21</sup> ns and fewer than 2<sup>24</sup> units with their `max_debt`.
    pub fn fits_cell(&self) -> bool {
        self.terms().fits_word()
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::{Ask, Key, ManualClock, Map, SECOND, State, Subject, Ticks, Timestamp, Zone};

    const NANOSECOND: Duration = Duration::from_nanos(1);

    fn limit(text: &str) -> Limit {
        text.parse().expect(text)
    }

    fn map() -> (Map, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        clock.advance(1000 * SECOND);
        (Map::with_clock(clock.clone()), clock)
    }

    /// Takes one unit up to `times` times, each at a different instant, until one is denied.
    fn spend(map: &Map, clock: &ManualClock, key: &Key, limit: &Limit, times: u64) {
        for _ in 0..times {
            clock.advance(NANOSECOND);
            if !map.take(Subject::new("rule", key, limit), Ask::ONE).0.is_allowed() {
                return;
            }
        }
    }

    #[test]
    fn a_subject_that_has_used_everything_up_takes_no_more_and_not_much_less() {
        let logs = (1..40).chain([500, 1024, 1025]).take(if cfg!(miri) { 5 } else { 42 });
        let logs = logs.map(|amount| format!("{amount}/s sliding-log"));
        let others = [
            "3/s sliding-log count-denied",
            "3/s fixed-window align first-hit",
            "3/s sliding-window slots 1",
            "3/s sliding-window",
            "3/s sliding-window slots 1000",
            "3/s sliding-window mode estimate",
            "3/s pacer",
            "3/s pacer warm-up 2s",
            "1/s concurrency",
            "8/s concurrency",
            "100/s concurrency",
        ];
        for text in logs.chain(others.map(str::to_owned)) {
            let (map, clock) = map();
            let limit = limit(&text);
            spend(&map, &clock, &Key::new("ana"), &limit, u64::MAX);
            let (held, most) = (map.bytes(), limit.bytes_per_key());
            assert!(held <= most && most <= 2 * held, "{text}: {held} bytes of {most}");
        }
    }

    #[test]
    fn room_for_one_more_is_counted() {
        for text in
            ["1/s sliding-log", "4/s sliding-log", "5/s sliding-log", "64/s sliding-log", "3/s concurrency"]
        {
            let limit = limit(text);
            let (terms, mut state, mut now) = (limit.terms(), State::default(), Timestamp::EPOCH);
            let mut most = terms.growth(&state);
            while terms.decide(&mut state, now, Ask::ONE, 0).is_allowed() {
                most = most.max(state.bytes_held() + terms.growth(&state));
                now = now.saturating_add(Ticks::new(1));
            }
            assert!(most <= terms.most_held(), "{text}: {most} bytes of {}", terms.most_held());
        }
    }

    #[test]
    fn a_log_that_shrinks_and_grows_takes_no_more() {
        let limit = limit("60/s sliding-log");
        let (map, clock) = map();
        let key = Key::new("ana");
        let mut peak = 0;
        for few in 1..if cfg!(miri) { 3 } else { 60 } {
            for times in [60, few, 60 - few] {
                clock.advance(if times == 60 - few { NANOSECOND } else { 2 * SECOND });
                spend(&map, &clock, &key, &limit, times);
                peak = peak.max(map.bytes());
            }
        }
        assert!(peak <= limit.bytes_per_key(), "{peak} bytes of {}", limit.bytes_per_key());
    }

    #[test]
    fn no_number_of_subjects_takes_more_than_each_of_them() {
        let limit = limit("3/s pacer");
        let (map, clock) = map();
        let most = if cfg!(miri) { 100 } else { 100_000 };
        for key in 1..=most {
            spend(&map, &clock, &Key::new(key), &limit, 1);
            assert!(map.bytes() <= key * limit.bytes_per_key(), "{} bytes for {key} keys", map.bytes());
        }
        let held = map.bytes() / most;
        assert!(cfg!(miri) || limit.bytes_per_key() <= 2 * held, "{held} bytes each");
    }

    #[test]
    fn what_a_zone_keeps_takes_a_cell_and_half_of_one() {
        let zone = Zone::new(1 << 12);
        for text in
            ["10/s", "10/s queue 3 leaky-bucket", "10/s fixed-window", "10/s sliding-log", "10/s pacer"]
        {
            let limit = limit(text);
            assert_eq!(zone.keeps(&limit), limit.bytes_per_key() == IN_ZONE, "{text}");
        }
    }

    #[test]
    fn the_largest_limits_have_a_size_too() {
        let most = |text: &str| limit(text).bytes_per_key();
        assert!((32 << 20..34 << 20).contains(&most("1048576/d sliding-log")));
        assert!((96 << 20..98 << 20).contains(&most("1048576/d concurrency")));
        assert!((8 << 10..9 << 10).contains(&most("1/d sliding-window slots 1024")));
    }
}
