//! The state of one subject under a limit of any algorithm, for those who keep states without asking which.

use super::concurrency::Holders;
use super::fixed_window::Window;
use super::pacer::Pace;
use super::sliding_log::Log;
use super::sliding_window::Slots;
use crate::time::Timestamp;

/// What is remembered about one subject; by default, nothing.
///
/// A state belongs to the algorithm that made it. Under a limit of another algorithm it is a subject never
/// seen: (rule, algorithm, key) names a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State(Kind);

impl State {
    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let more = match &self.0 {
            Kind::Log(log) => log.bytes_held(),
            Kind::Slots(slots) => slots.bytes_held(),
            Kind::Holders(holders) => size_of::<Holders>() + holders.bytes_held(),
            Kind::Unseen | Kind::ClearAt(_) | Kind::Window(_) | Kind::Pace(_) => 0,
        };
        size_of::<State>() + more
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unseen,
    ClearAt(Timestamp),
    Window(Window),
    Log(Log),
    Slots(Slots),
    Pace(Pace),
    Holders(Box<Holders>),
}

/// A state that can be kept in [`State`].
pub(crate) trait Kept: Default {
    /// The state in it, which is a fresh one if there was another.
    fn within(state: &mut State) -> &mut Self;

    /// The state in it, if it is of this kind.
    fn seen(state: &State) -> Option<&Self>;

    /// The same, to be changed.
    fn seen_mut(state: &mut State) -> Option<&mut Self>;
}

macro_rules! kept {
    ($($kind:ident: $state:ty)+) => {$(
        impl Kept for $state {
            fn within(state: &mut State) -> &mut Self {
                if Self::seen(state).is_none() {
                    state.0 = Kind::$kind(Default::default());
                }
                let Kind::$kind(kept) = &mut state.0 else { unreachable!("it was just put there") };
                kept
            }

            fn seen(state: &State) -> Option<&Self> {
                let Kind::$kind(kept) = &state.0 else { return None };
                let kept: &Self = kept;
                Some(kept)
            }

            fn seen_mut(state: &mut State) -> Option<&mut Self> {
                let Kind::$kind(kept) = &mut state.0 else { return None };
                let kept: &mut Self = kept;
                Some(kept)
            }
        }
    )+};
}

kept! { ClearAt: Timestamp  Window: Window  Log: Log  Slots: Slots  Pace: Pace  Holders: Holders }
