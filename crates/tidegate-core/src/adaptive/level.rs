//! A limit with a fraction, always within its bounds.
//!
//! The fraction has 16 bits, so that increments of a third per round add up.

use super::AdaptiveLimit;

/// One unit of the limit, and the ratio 1.
pub(super) const ONE: u64 = 1 << 16;

/// The concurrency limit, in 65,536ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) parts: u64,
    min: u64,
    max: u64,
}

impl Level {
    pub(super) fn new(adapt: &AdaptiveLimit) -> Level {
        Level { parts: adapt.start() * ONE, min: adapt.min, max: adapt.max }
    }

    /// Returns the whole part of the limit.
    pub(super) fn places(self) -> u64 {
        self.parts / ONE
    }

    /// Returns half of the limit, at least the lower bound.
    pub(super) fn half(self) -> u64 {
        (self.places() / 2).max(self.min)
    }

    /// Returns the square root of the limit, at least one: the approximate variation of random arrivals.
    pub(super) fn root(self) -> u64 {
        self.places().isqrt().max(1)
    }

    /// Raises the limit by so many.
    pub(super) fn raise(&mut self, places: u64) {
        self.set(u128::from(self.parts) + u128::from(places) * u128::from(ONE));
    }

    /// Lowers the limit by so many.
    pub(super) fn lower(&mut self, places: u64) {
        self.set(u128::from(self.parts).saturating_sub(u128::from(places) * u128::from(ONE)));
    }

    /// Multiplies the limit by `over / under`.
    pub(super) fn scale(&mut self, over: u64, under: u64) {
        self.set(u128::from(self.parts) * u128::from(over) / u128::from(under.max(1)));
    }

    /// Moves the limit half of the way to so many 65,536ths.
    pub(super) fn approach(&mut self, parts: u128) {
        self.set(u128::from(self.parts).saturating_add(parts) / 2);
    }

    fn set(&mut self, parts: u128) {
        let bounded = parts.clamp(u128::from(self.min * ONE), u128::from(self.max * ONE));
        self.parts = u64::try_from(bounded).unwrap_or(self.max * ONE);
    }
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn level(start: u64) -> Level {
        Level::new(&AdaptiveLimit::aimd(4..=100).starting_at(start))
    }

    #[test]
    fn a_level_stays_within_its_bounds() {
        let mut low = level(10);
        low.lower(u64::MAX);
        assert_eq!((low.places(), low.half()), (4, 4));
        low.raise(u64::MAX);
        assert_eq!((low.places(), low.half(), low.root()), (100, 50, 10));
        low.scale(u64::MAX, 0);
        low.approach(u128::MAX);
        assert_eq!(low.places(), 100);
        low.scale(0, 1);
        assert_eq!(low.places(), 4);
    }

    #[test]
    fn fractions_add_up() {
        let mut slow = level(10);
        slow.scale(9, 10);
        slow.scale(9, 10);
        slow.scale(9, 10);
        assert_eq!((slow.places(), slow.parts * 1000 / ONE), (7, 7289));
        slow.approach(u128::from(10 * ONE));
        assert_eq!(slow.parts * 1000 / ONE, 8644);
    }
}
