//! Places in flight, by their promise: at most so many at every instant.

use super::{Admitted, Oracle};

/// At most `max` of the actions that have begun and not ended; `departs` is when a place comes back.
pub(super) struct InFlight {
    pub(super) max: i128,
}

impl Oracle for InFlight {
    fn delay(&self, admitted: &[Admitted], now: i128, units: i128) -> Option<i128> {
        let holds = |action: &&Admitted| now < action.departs;
        let held: i128 = admitted.iter().filter(holds).map(|action| action.units).sum();
        (held + units <= self.max).then_some(0)
    }

    fn is_possible(&self, _: &[Admitted], _: i128, units: i128, _: i128) -> bool {
        units <= self.max
    }
}
