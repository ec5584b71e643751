//! The state of one key under a limit of any algorithm, for stores that do not distinguish algorithms.

use super::concurrency::Holders;
use super::fixed_window::Window;
use super::pacer::Pace;
use super::sliding_log::Log;
use super::sliding_window::Slots;
use super::{
    Algorithm, Calendar, Concurrency, Decide, FixedWindow, LeakyBucket, PacerParams, SlidingLog,
    SlidingWindow, TokenBucket, Words,
};
use crate::time::{Ticks, Timestamp};

/// The state of one key; by default, that of a key never seen.
///
/// A state belongs to the limit that created it: (namespace, algorithm, numbers, key) identifies it. Under a limit of
/// another algorithm it is a key never seen. [`Limit::carry`](crate::Limit::carry) converts it to other numbers of its
/// own algorithm.
///
/// Its size depends on the algorithm, and on the limit for logs, slots and holders; [`State::bytes`] returns it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(Kind);

impl State {
    /// The state of a key never seen: the full quota is available.
    pub(crate) const FULL: State = State(Kind::Unseen);

    /// Returns the state whose only word is this. An algorithm with more than one word yields a key never seen.
    pub(crate) fn of_word(algorithm: Algorithm, clear_at: Timestamp) -> State {
        State(match algorithm {
            Algorithm::TokenBucket => Kind::Tokens(clear_at),
            Algorithm::LeakyBucket => Kind::Queue(clear_at),
            _ => Kind::Unseen,
        })
    }

    /// Restores a state from its [`State::words`], for a store that keeps states outside this process.
    ///
    /// Returns `None` if the words are not valid for this algorithm.
    ///
    /// | algorithm | words |
    /// |---|---|
    /// | token-bucket, leaky-bucket | the time at which the debt is repaid (TAT) |
    /// | fixed-window, calendar | end of the window or period, count |
    /// | sliding-log | the total before the oldest entry; then for each entry its time and the total up to it |
    /// | sliding-window | number of the newest slot, length of a slot, the counts, newest first |
    /// | pacer | the time of the last update, the debt at that time, the savings, the units of savings in a tick |
    /// | concurrency | the next number of the permit sequence, the longest lease granted; then for each holder, soonest first: the end of its lease, its units, the number of its permit |
    ///
    /// Times and spans are in ticks. An empty slice is a key never seen.
    pub fn from_words(algorithm: Algorithm, words: &[u64]) -> Option<State> {
        if words.is_empty() {
            return Some(State::default());
        }
        Some(State(match (algorithm, words) {
            (Algorithm::TokenBucket, [clear_at]) => Kind::Tokens(Timestamp::from_ticks(*clear_at)),
            (Algorithm::LeakyBucket, [clear_at]) => Kind::Queue(Timestamp::from_ticks(*clear_at)),
            (Algorithm::FixedWindow, [end, count]) => {
                Kind::Window(Window { end: Timestamp::from_ticks(*end), count: *count })
            }
            (Algorithm::Calendar, [end, count]) => {
                Kind::Period(Window { end: Timestamp::from_ticks(*end), count: *count })
            }
            (Algorithm::SlidingLog, words) => Kind::Log(Log::from_words(words)?),
            (Algorithm::SlidingWindow, words) => Kind::Slots(Slots::from_words(words)?),
            (Algorithm::Pacer, words) => Kind::Pace(Pace::from_words(words)?),
            (Algorithm::Concurrency, words) => Kind::Holders(Box::new(Holders::from_words(words)?)),
            _ => return None,
        }))
    }

    /// Returns the state as plain numbers, in the format of [`State::from_words`].
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.word_count());
        self.each_word(&mut |word| words.push(word));
        words
    }

    /// Passes each of [`State::words`] to `put`, in order.
    #[inline]
    pub(crate) fn each_word(&self, put: &mut impl FnMut(u64)) {
        match &self.0 {
            Kind::Unseen => {}
            Kind::Tokens(clear_at) | Kind::Queue(clear_at) => put(clear_at.ticks()),
            Kind::Window(window) | Kind::Period(window) => {
                [window.end.ticks(), window.count].into_iter().for_each(put);
            }
            Kind::Log(log) => log.each_word(put),
            Kind::Slots(slots) => slots.each_word(put),
            Kind::Pace(pace) => pace.words().into_iter().flatten().for_each(put),
            Kind::Holders(holders) => holders.each_word(put),
        }
    }

    /// Returns the number of [`State::words`].
    #[inline]
    pub(crate) fn word_count(&self) -> usize {
        match &self.0 {
            Kind::Unseen => 0,
            Kind::Tokens(_) | Kind::Queue(_) => 1,
            Kind::Window(_) | Kind::Period(_) => 2,
            Kind::Log(log) => 1 + 2 * log.len(),
            Kind::Slots(slots) => slots.word_count(),
            Kind::Pace(pace) => pace.words().map_or(0, |words| words.len()),
            Kind::Holders(holders) => 2 + 3 * holders.len(),
        }
    }

    /// Returns the log, if this is the state of a sliding log.
    #[inline]
    pub(crate) fn as_log(&self) -> Option<&Log> {
        if let Kind::Log(log) = &self.0 { Some(log) } else { None }
    }

    /// Returns the holders, if this is the state of a concurrency limit.
    #[inline]
    pub(crate) fn as_holders(&mut self) -> Option<&mut Holders> {
        if let Kind::Holders(holders) = &mut self.0 { Some(holders) } else { None }
    }

    /// Returns the memory that the state uses, in bytes, including its heap allocations.
    pub fn bytes(&self) -> usize {
        size_of::<State>() + self.bytes_held()
    }

    /// Returns the heap memory of the state, in bytes.
    #[inline]
    pub(crate) fn bytes_held(&self) -> usize {
        match &self.0 {
            Kind::Log(log) => log.bytes_held(),
            Kind::Slots(slots) => slots.bytes_held(),
            Kind::Holders(holders) => size_of::<Holders>() + holders.bytes_held(),
            Kind::Unseen
            | Kind::Tokens(_)
            | Kind::Queue(_)
            | Kind::Window(_)
            | Kind::Period(_)
            | Kind::Pace(_) => 0,
        }
    }
}

/// The state of each algorithm, and that of a key never seen, which fits all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unseen,
    Tokens(Timestamp),
    Queue(Timestamp),
    Window(Window),
    Period(Window),
    Log(Log),
    Slots(Slots),
    Pace(Pace),
    Holders(Box<Holders>),
}

/// An algorithm whose states can be kept in [`State`].
pub(crate) trait StateSlot: Decide {
    /// Returns this algorithm's state, and replaces a state of another algorithm with a fresh one.
    fn within<'a>(&self, state: &'a mut State) -> &'a mut Self::State;

    /// Returns this algorithm's state, if there is one.
    fn seen<'a>(&self, state: &'a State) -> Option<&'a Self::State>;

    /// Returns this algorithm's state for modification, if there is one.
    fn seen_mut<'a>(&self, state: &'a mut State) -> Option<&'a mut Self::State>;
}

/// An algorithm whose numbers and states are kept by stores.
pub(crate) trait StateFootprint: Decide {
    /// Returns the numbers as a few words, as files and keys contain them.
    fn pack(&self) -> Words;

    /// Returns the state under these numbers of a key that has this state under `old`. Returns `None` if nothing is in
    /// use at the time of the change.
    fn carry(&self, old: &Self, state: &Self::State, changed_at: Timestamp) -> Option<Self::State>;

    /// Returns the longest time after a change for which a carried state matters.
    fn longest_carried(&self) -> Ticks;

    /// Returns the largest growth of heap memory by one take on this state, or on a key never seen.
    fn growth(&self, _: Option<&Self::State>) -> usize {
        0
    }

    /// Returns the largest heap memory of a state of this limit, including the reservation for one more take.
    fn most_held(&self) -> usize {
        0
    }

    /// Returns the largest number of words after one take on a state of so many words.
    fn words_after(&self, words: usize) -> usize;

    /// Returns the largest number of words of a state of this limit, including the reservation for one more take.
    fn most_words(&self) -> usize {
        self.words_after(0)
    }
}

macro_rules! kept {
    ($($algorithm:ident: $kind:ident)+) => {$(
        impl StateSlot for $algorithm {
            fn within<'a>(&self, state: &'a mut State) -> &'a mut Self::State {
                if self.seen(state).is_none() {
                    state.0 = Kind::$kind(Default::default());
                }
                let Kind::$kind(kept) = &mut state.0 else { unreachable!("it was just put there") };
                kept
            }

            fn seen<'a>(&self, state: &'a State) -> Option<&'a Self::State> {
                let Kind::$kind(kept) = &state.0 else { return None };
                let kept: &Self::State = kept;
                Some(kept)
            }

            fn seen_mut<'a>(&self, state: &'a mut State) -> Option<&'a mut Self::State> {
                let Kind::$kind(kept) = &mut state.0 else { return None };
                let kept: &mut Self::State = kept;
                Some(kept)
            }
        }
    )+};
}

kept! {
    TokenBucket: Tokens
    LeakyBucket: Queue
    FixedWindow: Window
    Calendar: Period
    SlidingLog: Log
    SlidingWindow: Slots
    PacerParams: Pace
    Concurrency: Holders
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, Limit, SECOND};

    /// Returns a state of each algorithm after two asks.
    fn states() -> Vec<(Limit, State)> {
        let texts = [
            "3/s burst 20",
            "3/s queue 5 delay-after all leaky-bucket",
            "9/60s fixed-window",
            "9/60s sliding-log",
            "9/60s sliding-window",
            "5/s pacer warm-up 4s",
            "9/30s concurrency",
            "9/day calendar",
        ];
        let after_two = |text: &str| {
            let limit: Limit = text.parse().expect(text);
            let mut state = State::default();
            for second in [7, 8] {
                let now = Timestamp::after_epoch(second * SECOND);
                let ask = Ask::new(Cost::of(2)).max_wait(100 * SECOND);
                assert!(limit.decide(&mut state, now, ask).is_allowed(), "{text}");
            }
            (limit, state)
        };
        texts.into_iter().map(after_two).collect()
    }

    #[test]
    fn a_state_decides_the_same_after_it_was_written_down() {
        for (limit, mut state) in states() {
            let mut read = State::from_words(limit.algorithm(), &state.words()).expect("its own words");
            assert_eq!(read.words(), state.words());
            for (tenths, cost) in [(80, 9), (81, 5), (90, 3), (120, 8), (400, 9), (700, 4)] {
                let now = Timestamp::after_epoch(tenths * SECOND / 10);
                let ask = Ask::new(Cost::of(cost));
                let (one, other) = (limit.decide(&mut state, now, ask), limit.decide(&mut read, now, ask));
                let fields = |decision: crate::Decision| {
                    (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after_in_ticks())
                };
                assert_eq!(fields(one), fields(other), "{limit}");
            }
        }
    }

    #[test]
    fn invalid_words_are_rejected() {
        for (algorithm, words) in [
            (Algorithm::TokenBucket, &[1, 2][..]),
            (Algorithm::LeakyBucket, &[1, 2]),
            (Algorithm::FixedWindow, &[1]),
            (Algorithm::Calendar, &[1]),
            (Algorithm::SlidingLog, &[1, 2]),
            (Algorithm::SlidingLog, &[5, 10, 7, 11, 6]),
            (Algorithm::SlidingLog, &[5, 10, 7, 9, 8]),
            (Algorithm::SlidingWindow, &[1, 0, 3]),
            (Algorithm::SlidingWindow, &[1, 7]),
            (Algorithm::Pacer, &[1, 2, 3]),
            (Algorithm::Pacer, &[1, 2, 3, 0]),
            (Algorithm::Concurrency, &[1]),
            (Algorithm::Concurrency, &[1, 5, 9]),
            (Algorithm::Concurrency, &[1, 5, 9, 1]),
            (Algorithm::Concurrency, &[1, 5, 9, 1, 0]),
            (Algorithm::Concurrency, &[1, 5, 9, 1, 7, 9, 1, 7]),
            (Algorithm::Concurrency, &[1, 5, 9, u64::MAX, 7, 9, 1, 8]),
        ] {
            assert_eq!(State::from_words(algorithm, words), None, "{algorithm} {words:?}");
        }
        assert_eq!(State::from_words(Algorithm::Pacer, &[]), Some(State::default()));
        assert!(State::default().words().is_empty());
    }
}
