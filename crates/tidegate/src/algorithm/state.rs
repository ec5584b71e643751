//! The state of one subject under a limit of any algorithm, for those who keep states without asking which.

use super::concurrency::Holders;
use super::fixed_window::Window;
use super::pacer::Pace;
use super::sliding_log::Log;
use super::sliding_window::Slots;
use super::{
    Algorithm, Concurrency, Decide, FixedWindow, LeakyBucket, Pacer, SlidingLog, SlidingWindow, TokenBucket,
    Words,
};
use crate::time::{Ticks, Timestamp};

/// What is remembered about one subject; by default, nothing.
///
/// A state belongs to the limit that made it: (namespace, algorithm, numbers, key) names it. Under a limit of another
/// algorithm it is a key never seen; [`Limit::carry`](crate::Limit::carry) makes one for other numbers of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(Kind);

impl State {
    /// A key never seen.
    pub(crate) const FULL: State = State(Kind::Unseen);

    /// The state whose one word is this; the other algorithms need more than one.
    pub(crate) fn of_word(algorithm: Algorithm, clear_at: Timestamp) -> State {
        State(match algorithm {
            Algorithm::TokenBucket => Kind::Tokens(clear_at),
            Algorithm::LeakyBucket => Kind::Queue(clear_at),
            _ => Kind::Unseen,
        })
    }

    /// The state that [`State::words`] was; for a store that keeps states elsewhere.
    ///
    /// `None` if these are no words of such a state.
    ///
    /// | algorithm | words |
    /// |---|---|
    /// | token-bucket, leaky-bucket | when the debt is repaid |
    /// | fixed-window | end of the window, count |
    /// | sliding-log | the total before the oldest entry; then for each entry its time and the total up to it |
    /// | sliding-window | number of the newest slot, length of a slot, the counts, newest first |
    /// | pacer | when it was reckoned, what was owed then, what was saved, the units of that in a tick |
    /// | concurrency | the place of the next permit in the sequence, the longest lease that was given; then for each holder, soonest first: the end of its lease, its places, the number of its permit |
    ///
    /// Times and spans are in ticks. No words at all are a subject never seen.
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
            (Algorithm::SlidingLog, words) => Kind::Log(Log::from_words(words)?),
            (Algorithm::SlidingWindow, words) => Kind::Slots(Slots::from_words(words)?),
            (Algorithm::Pacer, words) => Kind::Pace(Pace::from_words(words)?),
            (Algorithm::Concurrency, words) => Kind::Holders(Box::new(Holders::from_words(words)?)),
            _ => return None,
        }))
    }

    /// What is remembered as plain numbers: [`State::from_words`] says which.
    pub fn words(&self) -> Vec<u64> {
        let mut words = Vec::with_capacity(self.word_count());
        self.each_word(&mut |word| words.push(word));
        words
    }

    /// Hands on each of [`State::words`], in their order.
    #[inline]
    pub(crate) fn each_word(&self, put: &mut impl FnMut(u64)) {
        match &self.0 {
            Kind::Unseen => {}
            Kind::Tokens(clear_at) | Kind::Queue(clear_at) => put(clear_at.ticks()),
            Kind::Window(window) => [window.end.ticks(), window.count].into_iter().for_each(put),
            Kind::Log(log) => log.each_word(put),
            Kind::Slots(slots) => slots.each_word(put),
            Kind::Pace(pace) => pace.words().into_iter().flatten().for_each(put),
            Kind::Holders(holders) => holders.each_word(put),
        }
    }

    /// The number of [`State::words`].
    #[inline]
    pub(crate) fn word_count(&self) -> usize {
        match &self.0 {
            Kind::Unseen => 0,
            Kind::Tokens(_) | Kind::Queue(_) => 1,
            Kind::Window(_) => 2,
            Kind::Log(log) => 1 + 2 * log.len(),
            Kind::Slots(slots) => slots.word_count(),
            Kind::Pace(pace) => pace.words().map_or(0, |words| words.len()),
            Kind::Holders(holders) => 2 + 3 * holders.len(),
        }
    }

    /// The log, if it is one.
    #[inline]
    pub(crate) fn as_log(&self) -> Option<&Log> {
        if let Kind::Log(log) = &self.0 { Some(log) } else { None }
    }

    /// The holders, if that is what it is.
    #[inline]
    pub(crate) fn as_holders(&mut self) -> Option<&mut Holders> {
        if let Kind::Holders(holders) = &mut self.0 { Some(holders) } else { None }
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<State>() + self.bytes_held()
    }

    /// The memory behind it, in bytes.
    #[inline]
    pub(crate) fn bytes_held(&self) -> usize {
        match &self.0 {
            Kind::Log(log) => log.bytes_held(),
            Kind::Slots(slots) => slots.bytes_held(),
            Kind::Holders(holders) => size_of::<Holders>() + holders.bytes_held(),
            Kind::Unseen | Kind::Tokens(_) | Kind::Queue(_) | Kind::Window(_) | Kind::Pace(_) => 0,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unseen,
    Tokens(Timestamp),
    Queue(Timestamp),
    Window(Window),
    Log(Log),
    Slots(Slots),
    Pace(Pace),
    Holders(Box<Holders>),
}

/// An algorithm whose states can be kept in [`State`].
pub(crate) trait Kept: Decide {
    /// Its state in there, which is a fresh one if there was another.
    fn within<'a>(&self, state: &'a mut State) -> &'a mut Self::State;

    /// Its state in there, if there is one.
    fn seen<'a>(&self, state: &'a State) -> Option<&'a Self::State>;

    /// The same, to be changed.
    fn seen_mut<'a>(&self, state: &'a mut State) -> Option<&'a mut Self::State>;
}

/// An algorithm whose numbers and states are kept by stores.
pub(crate) trait Stored: Decide {
    /// Its numbers as a few words, as they are kept in files and names.
    fn pack(&self) -> Words;

    /// The state under these numbers of a key that has this state under `old`; none if nothing is in use at the
    /// change.
    fn carry(&self, old: &Self, state: &Self::State, changed_at: Timestamp) -> Option<Self::State>;

    /// The longest time after a change for which a carried state matters.
    fn longest_carried(&self) -> Ticks;

    /// The most by which one take can make the memory behind a state larger, or that of a subject never seen.
    fn growth(&self, _: Option<&Self::State>) -> usize {
        0
    }

    /// The most memory behind a state of this limit, with what room is made for before one more take.
    fn most_held(&self) -> usize {
        0
    }

    /// The most words of a state that one take leaves, of which there were so many before.
    fn words_after(&self, words: usize) -> usize;

    /// The most words of a state of this limit, with what room is made for before one more take.
    fn most_words(&self) -> usize {
        self.words_after(0)
    }
}

macro_rules! kept {
    ($($algorithm:ident: $kind:ident)+) => {$(
        impl Kept for $algorithm {
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
    SlidingLog: Log
    SlidingWindow: Slots
    Pacer: Pace
    Concurrency: Holders
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;
    use crate::{Ask, Cost, Limit, SECOND};

    /// A state of each algorithm that two asks have left.
    fn states() -> Vec<(Limit, State)> {
        let texts = [
            "3/s burst 20",
            "3/s queue 5 delay-after all leaky-bucket",
            "9/60s fixed-window",
            "9/60s sliding-log",
            "9/60s sliding-window",
            "5/s pacer warm-up 4s",
            "9/30s concurrency",
        ];
        let after_two = |text: &str| {
            let limit: Limit = text.parse().expect(text);
            let mut state = State::default();
            for second in [7, 8] {
                let now = Timestamp::after_epoch(second * SECOND);
                let ask = Ask::new(Cost::of(2)).patience(100 * SECOND);
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
                let told = |decision: crate::Decision| {
                    (decision.verdict_in_ticks(), decision.remaining(), decision.reset_after_in_ticks())
                };
                assert_eq!(told(one), told(other), "{limit}");
            }
        }
    }

    #[test]
    fn words_that_no_state_has_are_refused() {
        for (algorithm, words) in [
            (Algorithm::TokenBucket, &[1, 2][..]),
            (Algorithm::LeakyBucket, &[1, 2]),
            (Algorithm::FixedWindow, &[1]),
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
