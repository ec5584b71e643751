//! The textbook forms of the one-word debt: a bucket of tokens and a funnel of water.
//!
//! Both are written as every introduction writes them, with an amount that is brought up to date at each
//! call, in exact fractions (units of 1/interval). They must decide as the product does, step by step, late
//! charges and refunds included.

use crate::promise::{Promise, interval};

/// Tokens in a bucket: refilled at the rate, never above the burst, below zero only by late charges.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    interval: i128,
    burst: i128,
    max_debt: i128,
    /// Tokens times interval.
    tokens: i128,
    refilled_at: i128,
}

impl TokenBucket {
    /// A full bucket, from the numbers of a token-bucket promise.
    pub fn new(promise: &Promise) -> TokenBucket {
        let Promise::TokenBucket { amount, period, burst, max_debt } = *promise else {
            panic!("a token bucket is promised as one");
        };
        let interval = i128::from(interval(amount, period));
        let burst = i128::from(burst);
        TokenBucket { interval, burst, max_debt: max_debt.into(), tokens: burst * interval, refilled_at: 0 }
    }

    fn refill(&mut self, now: i128) {
        self.tokens = (self.tokens + (now - self.refilled_at)).min(self.burst * self.interval);
        self.refilled_at = now;
    }

    /// Takes tokens if there are enough.
    pub fn take(&mut self, now: i128, units: i128) -> bool {
        self.refill(now);
        let enough = units * self.interval <= self.tokens;
        if enough {
            self.tokens -= units * self.interval;
        }
        enough
    }

    /// Takes tokens that may not be there, down to the deepest debt.
    pub fn charge(&mut self, now: i128, units: i128) {
        self.refill(now);
        self.tokens = (self.tokens - units * self.interval).max(-self.max_debt * self.interval);
    }

    /// Puts tokens back, up to the burst.
    pub fn refund(&mut self, now: i128, units: i128) {
        self.refill(now);
        self.tokens = (self.tokens + units * self.interval).min(self.burst * self.interval);
    }
}

/// Water in a funnel: leaks at the rate, never below nothing.
#[derive(Clone, Debug)]
pub struct Funnel {
    interval: i128,
    capacity: i128,
    max_debt: i128,
    /// Water times interval.
    water: i128,
    leaked_at: i128,
}

impl Funnel {
    /// An empty funnel that holds the burst of a token-bucket promise.
    pub fn new(promise: &Promise) -> Funnel {
        let Promise::TokenBucket { amount, period, burst, max_debt } = *promise else {
            panic!("a funnel is promised as a token bucket");
        };
        let interval = interval(amount, period).into();
        Funnel { interval, capacity: burst.into(), max_debt: max_debt.into(), water: 0, leaked_at: 0 }
    }

    fn leak(&mut self, now: i128) {
        self.water = (self.water - (now - self.leaked_at)).max(0);
        self.leaked_at = now;
    }

    /// Pours if it does not overflow.
    pub fn take(&mut self, now: i128, units: i128) -> bool {
        self.leak(now);
        let fits = self.water + units * self.interval <= self.capacity * self.interval;
        if fits {
            self.water += units * self.interval;
        }
        fits
    }

    /// Pours what may not fit, up to the deepest debt.
    pub fn charge(&mut self, now: i128, units: i128) {
        self.leak(now);
        let most = (self.capacity + self.max_debt) * self.interval;
        self.water = (self.water + units * self.interval).min(most);
    }

    /// Draws water off.
    pub fn refund(&mut self, now: i128, units: i128) {
        self.leak(now);
        self.water = (self.water - units * self.interval).max(0);
    }
}
