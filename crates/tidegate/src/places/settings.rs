//! What places are to be like.

use super::class::Class;
use crate::adaptive::Adapt;
use crate::time::{Source, Ticks};

/// The most places there may be.
pub(super) const MOST_PLACES: u64 = 1 << 32;

/// All that is said about places before anybody enters.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) most: Most,
    /// How many may wait.
    pub(super) line: usize,
    /// After how long a line that is never empty means overload.
    pub(super) newest_first_after: Option<Ticks>,
    /// In the order of their rank, at least one.
    pub(super) classes: Vec<Class>,
    pub(super) clock: Source,
}

/// How many may be in flight.
#[derive(Clone, Debug)]
pub(super) enum Most {
    Fixed(u64),
    Adaptive(Adapt),
}

impl Most {
    /// A fixed number, if there can be so many.
    pub(super) fn fixed(places: u64) -> Most {
        assert!(
            0 < places && places <= MOST_PLACES,
            "{places} places: there may be 1 to {MOST_PLACES} in flight"
        );
        Most::Fixed(places)
    }
}

impl Settings {
    pub(super) fn new(most: Most) -> Settings {
        let classes = vec![Class::new("all")];
        Settings { most, line: 0, newest_first_after: None, classes, clock: Source::default() }
    }
}
