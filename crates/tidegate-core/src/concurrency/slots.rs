//! The calls in flight per class, and the admission rule: counting, without time or waiting.
//!
//! A class is admitted if a slot is free, and either the class is within its reserve or a slot is left over from all
//! reserves:
//!
//! ```text
//!   in flight < limit  and  ( used < reserve  or  sum over all classes of max(used, reserve) < limit )
//! ```
//!
//! While the limit is constant, that sum never exceeds it: so a class within its reserve always finds a slot.

use super::class::Class;

/// The slots of all classes.
#[derive(Debug)]
pub(super) struct ClassSlots {
    pub(super) limit: u64,
    pub(super) in_flight: u64,
    /// The slots that are used or reserved: the sum of the larger of both over all classes.
    claimed: u64,
    classes: Vec<ClassShare>,
}

#[derive(Debug)]
struct ClassShare {
    percent: u64,
    reserve: u64,
    used: u64,
}

impl ClassSlots {
    /// Creates the slots of a limit, all free.
    pub(super) fn new(limit: u64, classes: &[Class]) -> ClassSlots {
        let share = |class: &Class| ClassShare { percent: class.percent().into(), reserve: 0, used: 0 };
        let classes = classes.iter().map(share).collect();
        let mut slots = ClassSlots { limit, in_flight: 0, claimed: 0, classes };
        slots.set_limit(limit);
        slots
    }

    /// Returns the number of calls of a class in flight.
    pub(super) fn used(&self, class: usize) -> u64 {
        self.classes[class].used
    }

    /// Returns the number of slots that this class can still take within its reserve.
    pub(super) fn left_of_reserve(&self, class: usize) -> u64 {
        let share = &self.classes[class];
        share.reserve.saturating_sub(share.used)
    }

    /// Sets the limit; calls in flight continue.
    /// The reserves are computed anew. If the limit fell below the number in flight, no class enters until enough calls
    /// have ended.
    pub(super) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        for share in &mut self.classes {
            share.reserve = part(limit, share.percent);
        }
        let mut kept: u64 = self.classes.iter().map(|share| share.reserve).sum();
        // A share of less than one slot reserves one slot, the first classes first, as long as one slot stays
        // unreserved.
        for share in &mut self.classes {
            if share.percent > 0 && share.reserve == 0 && kept + 1 < limit {
                share.reserve = 1;
                kept += 1;
            }
        }
        self.claimed = self.classes.iter().map(|share| share.used.max(share.reserve)).sum();
    }

    /// Returns true if this class is admitted by the rule above.
    #[inline]
    pub(super) fn may_enter(&self, class: usize) -> bool {
        let share = &self.classes[class];
        self.in_flight < self.limit && (share.used < share.reserve || self.claimed < self.limit)
    }

    /// Takes a slot, if this class may have one. Returns true if it did.
    #[inline]
    pub(super) fn take(&mut self, class: usize) -> bool {
        let may = self.may_enter(class);
        if may {
            let share = &mut self.classes[class];
            self.claimed += u64::from(share.used >= share.reserve);
            share.used += 1;
            self.in_flight += 1;
        }
        may
    }

    /// Gives a slot back.
    #[inline]
    pub(super) fn give_back(&mut self, class: usize) {
        let share = &mut self.classes[class];
        self.claimed -= u64::from(share.used > share.reserve);
        share.used -= 1;
        self.in_flight -= 1;
    }
}

/// Returns `percent` percent of `whole`, rounded down, without overflow.
fn part(whole: u64, percent: u64) -> u64 {
    whole / 100 * percent + whole % 100 * percent / 100
}

#[cfg(all(test, not(tidegate_models)))]
mod tests {
    use super::*;

    fn slots(limit: u64, percents: &[u8]) -> ClassSlots {
        let classes: Vec<_> = percents.iter().map(|percent| Class::new("any").share(*percent)).collect();
        ClassSlots::new(limit, &classes)
    }

    fn reserves(limit: u64, percents: &[u8]) -> Vec<u64> {
        slots(limit, percents).classes.iter().map(|share| share.reserve).collect()
    }

    fn take_all(slots: &mut ClassSlots, class: usize) -> u64 {
        std::iter::repeat_with(|| slots.take(class)).take_while(|taken| *taken).map(u64::from).sum()
    }

    #[test]
    fn a_reserve_is_the_share_rounded_down() {
        assert_eq!(reserves(100, &[50, 10, 0]), [50, 10, 0]);
        assert_eq!(reserves(19, &[50, 10]), [9, 1]);
        assert_eq!(reserves(1 << 32, &[100]), [1 << 32]);
        assert_eq!(part(u64::MAX, 100), u64::MAX);
        assert_eq!(part(u64::MAX, 99), (u128::from(u64::MAX) * 99 / 100) as u64);
    }

    #[test]
    fn a_small_share_reserves_one_slot_unless_it_is_the_last_one() {
        assert_eq!(reserves(3, &[50, 10]), [1, 1]);
        assert_eq!(reserves(2, &[50, 10]), [1, 0], "one stays unreserved");
        assert_eq!(reserves(2, &[10, 10, 0]), [1, 0, 0], "the first class first");
        assert_eq!(reserves(1, &[50, 10]), [0, 0]);
        assert_eq!(reserves(1, &[100]), [1], "no rounding: it has all");
        assert_eq!(reserves(2, &[50, 50]), [1, 1]);
        assert_eq!(reserves(9, &[0, 1]), [0, 1], "no share, no place");
    }

    #[test]
    fn the_others_stop_before_the_reserve_of_a_class() {
        let mut slots = slots(10, &[50, 10, 0]);
        assert_eq!(take_all(&mut slots, 2), 4);
        assert_eq!((take_all(&mut slots, 1), take_all(&mut slots, 0)), (1, 5));
        assert_eq!(slots.in_flight, 10);
    }

    #[test]
    fn a_class_may_use_more_than_its_reserve_if_no_other_class_does() {
        let mut slots = slots(10, &[50, 10]);
        assert_eq!(take_all(&mut slots, 0), 9);
        assert_eq!((take_all(&mut slots, 0), take_all(&mut slots, 1)), (0, 1));
    }

    #[test]
    fn a_freed_reserved_slot_goes_to_its_class() {
        let mut slots = slots(10, &[50, 0]);
        assert_eq!((take_all(&mut slots, 1), take_all(&mut slots, 0)), (5, 5));
        slots.give_back(0);
        assert!(!slots.take(1) && slots.take(0));
        slots.give_back(1);
        assert!(slots.take(0), "an unreserved slot is open to every class");
        assert!(!slots.take(1));
    }

    #[test]
    fn after_a_limit_has_fallen_no_call_enters_before_enough_have_left() {
        let mut slots = slots(10, &[50, 0]);
        assert_eq!((take_all(&mut slots, 1), take_all(&mut slots, 0)), (5, 5));
        slots.set_limit(4);
        assert_eq!((slots.limit, slots.in_flight), (4, 10));
        for _ in 0..6 {
            assert!(!slots.take(0) && !slots.take(1));
            slots.give_back(usize::from(slots.used(0) == 0));
        }
        assert_eq!((slots.used(0), slots.used(1)), (0, 4));
        slots.give_back(1);
        assert!(!slots.take(1), "two of four are kept for the first class");
        assert!(slots.take(0) && !slots.take(0));
    }

    /// Checks `claimed`, which is updated step by step, after random takes, releases and limit changes.
    #[test]
    #[cfg(not(miri))]
    fn the_running_claim_equals_a_fresh_count() {
        let mut word = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: u64| {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            word % below
        };
        let mut slots = slots(10, &[40, 7, 0]);
        for step in 0..100_000 {
            let class = usize::try_from(random(3)).expect("small");
            match random(20) {
                0 => slots.set_limit(1 + random(30)),
                1..10 if slots.used(class) > 0 => slots.give_back(class),
                _ => {
                    let share = &slots.classes[class];
                    let sum: u64 = slots.classes.iter().map(|share| share.used.max(share.reserve)).sum();
                    let expected =
                        slots.in_flight < slots.limit && (share.used < share.reserve || sum < slots.limit);
                    assert_eq!(slots.take(class), expected, "step {step}");
                }
            }
            let counted: u64 = slots.classes.iter().map(|share| share.used).sum();
            assert_eq!(slots.in_flight, counted);
        }
    }
}
