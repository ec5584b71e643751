//! One promise in the words of every candidate.

use std::fmt;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use governor::Quota;
use leaky_bucket::RateLimiter as LeakyBucket;
use ratelimit::Ratelimiter;
use throttlecrab::{RateLimiter as ThrottleCrab, Store};
use tidegate::Limit;

/// So many per so many seconds, and so many at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    amount: u32,
    seconds: u32,
    burst: u32,
}

impl Promise {
    /// Read from a text like `10/60s burst 20`, as from a configuration: the compiler knows nothing of it.
    pub(crate) fn read(text: &str) -> Promise {
        let mut numbers = black_box(text)
            .split(|character: char| !character.is_ascii_digit())
            .filter(|number| !number.is_empty())
            .map(|number| number.parse().expect("a number"));
        let mut next = || numbers.next().expect("three numbers");
        Promise { amount: next(), seconds: next(), burst: next() }
    }

    pub(crate) fn limit(self) -> Limit {
        self.to_string().parse().expect("a limit")
    }

    pub(crate) fn quota(self) -> Quota {
        let burst = NonZeroU32::new(self.burst).expect("not zero");
        Quota::with_period(self.interval()).expect("not zero").allow_burst(burst)
    }

    pub(crate) fn ratelimit(self) -> Ratelimiter {
        let builder =
            Ratelimiter::builder(self.amount.into()).period(Duration::from_secs(self.seconds.into()));
        let full = builder.max_tokens(self.burst.into()).initial_available(self.burst.into());
        full.build().expect("a limit")
    }

    pub(crate) fn leaky_bucket(self) -> LeakyBucket {
        // Its shortest interval.
        let interval = self.interval().max(Duration::from_millis(1));
        let refill = interval.as_nanos() / self.interval().as_nanos();
        let burst = self.burst as usize;
        LeakyBucket::builder().refill(refill as usize).interval(interval).max(burst).initial(burst).build()
    }

    pub(crate) fn throttlecrab<S: Store>(self, store: S) -> Crab<S> {
        Crab { limiter: ThrottleCrab::new(store), promise: self }
    }

    /// The time in which one unit is earned.
    fn interval(self) -> Duration {
        Duration::from_secs(self.seconds.into()) / self.amount
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}s burst {}", self.amount, self.seconds, self.burst)
    }
}

/// throttlecrab, which gets the promise and the time at every decision.
pub(crate) struct Crab<S: Store> {
    limiter: ThrottleCrab<S>,
    promise: Promise,
}

impl<S: Store> Crab<S> {
    #[expect(clippy::disallowed_methods, reason = "the clock that its documentation passes")]
    pub(crate) fn is_allowed(&mut self, key: &str) -> bool {
        let Promise { amount, seconds, burst } = self.promise;
        let answer =
            self.limiter.rate_limit(key, burst.into(), amount.into(), seconds.into(), 1, SystemTime::now());
        answer.is_ok_and(|(allowed, _)| allowed)
    }
}
