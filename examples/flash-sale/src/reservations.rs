//! A limit of the pieces that one address reserves.
//!
//! Every visitor gets a cookie, so one client can be many visitors, and "one for each buyer" does not limit it. So
//! reservations are counted by address, too: at most so many within any window as long as the time to pay. At no moment
//! are there more unpaid ones than that. The counts are in memory, and a shop that restarts starts with none.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{DAY, Limit, Limiter, SECOND, TrackedTake};

/// The bounds of times to pay: between them every number of reservations is a valid limit.
const SHORTEST: Duration = SECOND;
const LONGEST: Duration = DAY.saturating_mul(365);

/// A counter of reservations by address. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Reservations {
    most: NonZeroU16,
    /// A limiter for each time to pay, in which sales differ.
    limiters: Arc<Mutex<HashMap<Duration, Limiter>>>,
}

impl Reservations {
    /// Returns a counter with this maximum for each address.
    pub(crate) fn new(most: NonZeroU16) -> Reservations {
        Reservations { most, limiters: Arc::default() }
    }

    /// Counts one more reservation, to be refunded if none is made.
    ///
    /// If the address has reached its maximum, the error is the time to the next try.
    pub(crate) fn take(&self, address: &str, pay_within: Duration) -> Result<TrackedTake, Duration> {
        let (decision, take) = self.limiter(pay_within).admit_tracked(address);
        take.ok_or_else(|| decision.retry_after().unwrap_or(SECOND))
    }

    fn limiter(&self, pay_within: Duration) -> Limiter {
        let pay_within = pay_within.clamp(SHORTEST, LONGEST);
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = || Limiter::new(Limit::sliding_log(u64::from(self.most.get()), pay_within));
        limiters.entry(pay_within).or_insert_with(limit).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reserves_so_many_and_what_was_not_reserved_comes_back() {
        let reservations = Reservations::new(NonZeroU16::new(2).unwrap());
        let hour = Duration::from_secs(3600);
        let take = |address| reservations.take(address, hour);
        let (first, _second) = (take("192.0.2.1").unwrap(), take("192.0.2.1").unwrap());
        let wait = take("192.0.2.1").unwrap_err();
        assert!(wait > Duration::from_secs(3000) && wait <= hour, "{wait:?}");
        assert!(take("192.0.2.2").is_ok(), "another address");
        first.refund();
        assert!(take("192.0.2.1").is_ok());
        assert!(take("192.0.2.1").is_err());
    }

    #[test]
    fn any_time_to_pay_is_a_time() {
        let reservations = Reservations::new(NonZeroU16::MAX);
        for pay_within in [Duration::ZERO, Duration::MAX] {
            assert!(reservations.take("192.0.2.1", pay_within).is_ok());
        }
    }
}
