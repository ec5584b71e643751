//! How much may be admitted in an interval.

use std::time::Duration;

/// Burst + rate·t, and more where state was lost or two sides decided.
///
/// Everything is kept times the period in nanoseconds, so that nothing is rounded.
#[derive(Clone, Debug)]
pub struct Bound {
    burst: u64,
    amount: u64,
    period: Duration,
    slack: Duration,
    extras: Vec<Extra>,
}

/// What may be more in every interval that touches this one.
#[derive(Clone, Debug)]
pub(super) struct Extra {
    pub(super) from: i128,
    pub(super) to: i128,
    /// Times the period.
    pub(super) scaled: i128,
    is_loss: bool,
}

impl Bound {
    /// What a limit promises: `burst`, and `amount` per `period`.
    ///
    /// # Panics
    /// If the period is zero.
    pub fn new(burst: u64, amount: u64, period: Duration) -> Bound {
        assert!(!period.is_zero(), "period 0s: it has to be longer");
        Bound { burst, amount, period, slack: Duration::ZERO, extras: Vec::new() }
    }

    /// Takes every interval for this much longer: the store's clock counts whole microseconds, and is not ours.
    pub fn slack(mut self, slack: Duration) -> Bound {
        self.slack = slack;
        self
    }

    /// State may have been lost once, or replaced by an older one, at some time between these.
    pub fn loss(mut self, from: Duration, to: Duration) -> Bound {
        let scaled = self.capacity();
        self.extras.push(Extra { from: nanoseconds(from), to: nanoseconds(to), scaled, is_loss: true });
        self
    }

    /// So many sides may have decided apart from each other between these times.
    pub fn split(mut self, from: Duration, to: Duration, sides: u64) -> Bound {
        let (from, to) = (nanoseconds(from), nanoseconds(to));
        let scaled = (i128::from(sides) - 1) * (self.capacity() + i128::from(self.amount) * (to - from));
        self.extras.push(Extra { from, to, scaled, is_loss: false });
        self
    }

    /// The same, if nodes that do not know each other each have their part of it.
    pub(super) fn shared_by(&self, nodes: u64) -> Bound {
        let burst = nodes * (self.burst / nodes).max(1);
        let mut bound = Bound { burst, extras: Vec::new(), ..self.clone() };
        let scaled = bound.capacity();
        // A loss gives back what all nodes have; a split of those that are apart already is none.
        let losses = self.extras.iter().filter(|extra| extra.is_loss);
        bound.extras = losses.map(|extra| Extra { scaled, ..extra.clone() }).collect();
        bound
    }

    pub(super) fn extras(&self) -> &[Extra] {
        &self.extras
    }

    /// What a cost is, times the period.
    pub(super) fn scale(&self, cost: u64) -> i128 {
        i128::from(cost) * nanoseconds(self.period)
    }

    /// What whole units are in something that is times the period.
    pub(super) fn whole(&self, scaled: i128) -> u64 {
        u64::try_from(scaled.div_euclid(nanoseconds(self.period))).unwrap_or(0)
    }

    /// What is regained in this many nanoseconds, times the period.
    pub(super) fn regained(&self, nanoseconds: i128) -> i128 {
        i128::from(self.amount) * nanoseconds
    }

    /// What may be at one instant, times the period.
    pub(super) fn at_once(&self) -> i128 {
        self.capacity() + self.regained(nanoseconds(self.slack))
    }

    fn capacity(&self) -> i128 {
        self.scale(self.burst)
    }
}

/// A time as a number that can be subtracted.
pub(super) fn nanoseconds(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX)
}
