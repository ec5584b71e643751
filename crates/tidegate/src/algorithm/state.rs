//! The state of one subject under a limit of any algorithm, for those who keep states without asking which.

use super::concurrency::Holders;
use super::fixed_window::Window;
use super::pacer::Pace;
use super::sliding_log::Log;
use super::sliding_window::Slots;
use super::{
    Algorithm, Concurrency, Decide, FixedWindow, LeakyBucket, Pacer, SlidingLog, SlidingWindow, TokenBucket,
};
use crate::time::Timestamp;

/// What is remembered about one subject; by default, nothing.
///
/// A state belongs to the algorithm that made it. Under a limit of another algorithm it is a subject never
/// seen: (rule, algorithm, key) names a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(Kind);

impl State {
    /// The state whose one word is this; the other algorithms need more than one.
    pub(crate) fn of_word(algorithm: Algorithm, clear_at: Timestamp) -> State {
        State(match algorithm {
            Algorithm::TokenBucket => Kind::Tokens(clear_at),
            Algorithm::LeakyBucket => Kind::Queue(clear_at),
            _ => Kind::Unseen,
        })
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

    /// Whether its clear time would be another one if the limit had other numbers.
    #[inline]
    pub(crate) fn depends_on_limit(&self) -> bool {
        matches!(&self.0, Kind::Log(_) | Kind::Slots(_) | Kind::Pace(_))
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

/// What a store that keeps states in memory has to know about them.
pub(crate) trait Stored: Decide {
    /// From when on it only matters for as long as the limit's numbers say.
    fn settled_at(&self, state: &Self::State) -> Timestamp {
        self.clear_at(state)
    }

    /// The most by which one take can make the memory behind it larger.
    fn growth(&self, _: &Self::State) -> usize {
        0
    }

    /// The same for a subject never seen.
    fn growth_at_first(&self) -> usize {
        0
    }

    /// The most memory behind a state of this limit, with what room is made for before one more take.
    fn most_held(&self) -> usize {
        0
    }
}

impl Stored for TokenBucket {}
impl Stored for LeakyBucket {}
impl Stored for FixedWindow {}

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
