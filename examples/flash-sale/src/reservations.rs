//! How many pieces one address reserves.
//!
//! A visitor is a cookie that everybody gets, so "one for each buyer" keeps no one from having many. Reservations are
//! therefore counted by address, too: at most so many within any time as long as the time to pay, so at no moment more
//! unpaid ones than that. What was counted is in memory, and a shop that starts again starts with nothing counted.

use std::collections::HashMap;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate::{DAY, Limit, Limiter, SECOND, TrackedTake};

/// Times to pay beyond these count as these: every number of reservations is a valid limit for any time between them.
const SHORTEST: Duration = SECOND;
const LONGEST: Duration = DAY.saturating_mul(365);

/// The wait that is reported if the limiter reports none.
const A_WHILE: Duration = Duration::from_secs(1);

/// Counts reservations by address. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Reservations {
    most: NonZeroU16,
    /// A limiter for each time to pay: sales differ in it.
    limiters: Arc<Mutex<HashMap<Duration, Limiter>>>,
}

impl Reservations {
    /// At most so many for each address.
    pub(crate) fn new(most: NonZeroU16) -> Reservations {
        Reservations { most, limiters: Arc::default() }
    }

    /// Counts one more reservation, to be refunded if none is made.
    ///
    /// If the address has as many as it may, the error is the time after which to try again.
    pub(crate) fn take(&self, address: &str, pay_within: Duration) -> Result<TrackedTake, Duration> {
        let (decision, take) = self.limiter(pay_within).admit_tracked(address);
        take.ok_or_else(|| decision.retry_after().unwrap_or(A_WHILE))
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
