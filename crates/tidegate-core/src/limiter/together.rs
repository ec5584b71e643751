//! Several limits at once, each with its own keys: all asks are allowed, or none is charged.

use super::Limiter;
use crate::ask::Ask;
use crate::decisions::Decisions;
use crate::few::Few;
use crate::store::state_key::{EncodedKey, StateKey};
use crate::store::together::{Bid, take_all};
use crate::time::Ticks;
use crate::wait::WaitTarget as _;

/// One ask of one limiter; created by [`Limiter::ask`].
#[derive(Clone, Debug)]
#[must_use = "an ask does nothing until `admit_all` gets it"]
pub struct LimiterAsk {
    limiter: Limiter,
    name: EncodedKey,
    /// The ask; `None` if its cost is 0.
    ask: Option<Ask>,
}

impl LimiterAsk {
    pub(super) fn new(limiter: Limiter, name: EncodedKey, ask: Option<Ask>) -> LimiterAsk {
        LimiterAsk { limiter, name, ask }
    }

    /// Returns its part in a joint take; `None` for a cost of 0.
    fn bid<'a>(&'a self, account: &'a StateKey) -> Option<Bid<'a>> {
        Some(Bid { holder: self.limiter.inner.holder(account), account, ask: self.ask?, is_peek: false })
    }

    fn wait_behind(&self, account: &StateKey) -> Option<Ticks> {
        self.limiter.inner.wait_behind(account, self.ask?)
    }
}

/// Decides about several asks, of limiters on one store or on several, and spends only if all are allowed.
///
/// While waiters are queued for one of the keys, its ask is denied and nothing is spent.
///
/// ```
/// use tidegate::{Limit, Limiter, Zone, admit_all, ask};
///
/// let zone = Zone::new(1 << 20);
/// let per_user = Limiter::on(&zone, "user", Limit::per_minute(5));
/// let per_ip = Limiter::on(&zone, "ip", Limit::per_minute(20));
///
/// let both = admit_all([per_user.ask("ana"), per_ip.ask(ask("192.0.2.7").cost(2))]);
/// assert!(both.is_allowed());
/// ```
///
/// A denial by one limit spends nothing of the others, so a denied client cannot drain them.
#[doc(alias("all-or-nothing", "multi-limit", "composite"))]
#[must_use = "a decision that is not read limits nothing"]
pub fn admit_all(asks: impl IntoIterator<Item = LimiterAsk>) -> Decisions {
    let asks: Vec<_> = asks.into_iter().collect();
    let accounts: Vec<_> = asks.iter().map(|ask| ask.limiter.inner.account(&ask.name)).collect();
    let both = || asks.iter().zip(&accounts);
    let bids: Vec<_> = both().filter_map(|(asked, account)| asked.bid(account)).collect();
    let waits: Vec<_> = both().map(|(asked, account)| asked.wait_behind(account)).collect();
    let taken = waits.iter().all(Option::is_none).then(|| take_all(&bids));
    let mut taken = taken.iter().flat_map(Decisions::each);
    let each = both().zip(waits).map(|((asked, account), wait)| match (asked.ask, wait) {
        // A cost of 0 is allowed, whatever the decision about the other asks.
        (None, _) => asked.limiter.inner.ask_nothing(account),
        // Nothing is spent while waiters are queued for one of the keys.
        (Some(ask), None) => {
            taken.next().copied().unwrap_or_else(|| asked.limiter.inner.holder(account).look(account, ask))
        }
        (Some(ask), Some(wait)) => asked.limiter.inner.holder(account).look(account, ask).denied_for(wait),
    });
    Decisions::new(each.collect::<Few<_>>())
}
