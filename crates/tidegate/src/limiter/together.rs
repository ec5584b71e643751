//! Several limits at once, each with its own subjects: all pass, or none is charged.

use super::Limiter;
use crate::ask::Ask;
use crate::decisions::Decisions;
use crate::store::name::Name;
use crate::store::together::{Bid, take_all};
use crate::wait::Venue as _;

/// One ask of one limiter; made by [`Limiter::ask`].
#[derive(Clone, Debug)]
#[must_use = "an ask does nothing until `admit_all` gets it"]
pub struct LimiterAsk {
    limiter: Limiter,
    name: Name,
    ask: Ask,
}

impl LimiterAsk {
    pub(super) fn new(limiter: Limiter, name: Name, ask: Ask) -> LimiterAsk {
        LimiterAsk { limiter, name, ask }
    }
}

/// Decides about several asks, of limiters on one store or on several, and spends only if all are allowed.
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
#[must_use = "a decision that nobody reads limits nobody"]
pub fn admit_all(asks: impl IntoIterator<Item = LimiterAsk>) -> Decisions {
    let asks: Vec<_> = asks.into_iter().collect();
    let accounts: Vec<_> = asks.iter().map(|ask| ask.limiter.inner.account(&ask.name)).collect();
    let both = || asks.iter().zip(&accounts);
    let waits: Vec<_> =
        both().map(|(ask, account)| ask.limiter.inner.wait_behind(account, ask.ask)).collect();
    if waits.iter().all(Option::is_none) {
        let bids: Vec<_> = both()
            .map(|(asked, account)| Bid {
                holder: asked.limiter.inner.holder(account),
                account,
                ask: asked.ask,
            })
            .collect();
        return take_all(&bids);
    }
    // Somebody waits for one of the subjects: it is theirs, and nothing is spent.
    let looked = both().zip(waits).map(|((ask, account), wait)| {
        let decision = ask.limiter.inner.holder(account).look(account, ask.ask);
        wait.map_or(decision, |wait| decision.put_off(wait))
    });
    Decisions::new(looked.collect())
}
