//! Many subjects under one limit.

mod together;

pub use together::{LimiterAsk, admit_all};

use std::fmt;
use std::sync::Arc;

use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::asking::{IntoAsk, ask_for};
use crate::decision::{Decision, PermitId};
use crate::key::IntoKey;
use crate::limit::{CurrentLimit, Limit};
use crate::receipt::Receipt;
use crate::store::Map;
use crate::store::name::{Account, Name, Namespace};
use crate::time::{Clock, Source, Ticks, Timestamp};
use crate::wait::{Acquire, MAX_WAITERS, Room, Venue, Visit};

/// One limit for any number of subjects, each with its own state; clones share them.
///
/// ```
/// use tidegate::{Limit, Limiter, Verdict, ask};
///
/// let limiter = Limiter::new(Limit::per_second(10).burst(20));
/// match limiter.admit("ana").verdict() {
///     Verdict::Allowed { .. } => println!("welcome"),
///     Verdict::Denied { retry_after } => println!("try again in {retry_after:?}"),
///     Verdict::Impossible => println!("never"),
/// }
/// limiter.admit(("192.0.2.7", "login")).into_result()?; // any parts, joined injectively
/// limiter.admit(ask("ana").cost(3)).into_result()?;
/// # Ok::<(), tidegate::Refusal>(())
/// ```
#[derive(Clone)]
pub struct Limiter {
    inner: Arc<Inner>,
}

struct Inner {
    map: Map,
    namespace: Namespace,
    limit: CurrentLimit,
    room: Room,
}

impl Limiter {
    /// A limiter with a store of its own.
    pub fn new(limit: Limit) -> Limiter {
        Limiter::on(&Map::new(), "", limit)
    }

    /// A limiter with a store of its own that decides by another clock.
    pub fn with_clock(limit: Limit, clock: Arc<dyn Clock>) -> Limiter {
        Limiter::on(&Map::with_clock(clock), "", limit)
    }

    /// A limiter on a store that others use, too.
    ///
    /// Limiters with the same name on the same store share their subjects' states, but not the lines of those
    /// who wait: for the same limit in several places, clone one limiter. Under logs, windows and pacers the
    /// shorter of two limits forgets what the longer one would need: give those names of their own.
    pub fn on(map: &Map, name: &str, limit: Limit) -> Limiter {
        let namespace = Namespace::new(name);
        map.expect(&namespace, limit.terms());
        let (limit, room) = (CurrentLimit::new(limit), Room::new(MAX_WAITERS));
        Limiter { inner: Arc::new(Inner { map: map.clone(), namespace, limit, room }) }
    }

    /// Lets at most so many wait at a time, here and in all clones; 65,536 unless set.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Limiter {
        self.inner.room.set_max_waiters(most);
        self
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.limit.limit()
    }

    /// Decides about one ask of one subject, and spends if allowed.
    ///
    /// While others wait for the same subject ([`Limiter::acquire`]), it is theirs: this ask is refused, and told
    /// when all of them will have passed. Whoever wants to wait behind them acquires.
    #[must_use = "a decision that nobody reads limits nobody"]
    #[inline]
    pub fn admit(&self, ask: impl IntoAsk) -> Decision {
        let (account, ask) = self.inner.read(ask);
        self.inner.admit(&account, ask)
    }

    /// An ask for [`admit_all`].
    pub fn ask(&self, ask: impl IntoAsk) -> LimiterAsk {
        let (key, units, patience) = ask.into_parts();
        LimiterAsk::new(self.clone(), self.inner.name(&key), ask_for(units, patience))
    }

    /// What [`Limiter::admit`] would say, without spending.
    #[must_use = "a decision that nobody reads limits nobody"]
    pub fn peek(&self, ask: impl IntoAsk) -> Decision {
        let (account, ask) = self.inner.read(ask);
        let decision = self.inner.map.look(&account, ask);
        self.inner.wait_behind(&account, ask).map_or(decision, |wait| decision.put_off(wait))
    }

    /// Gives back what was not used: as much as the ask weighs, at most what is owed.
    pub fn refund(&self, ask: impl IntoAsk) -> Adjusted {
        self.adjust(ask, Adjustment::Refund)
    }

    /// Charges what turned out to be more, allowed or not, as far as the limit's `max_debt`.
    pub fn charge(&self, ask: impl IntoAsk) -> Adjusted {
        self.adjust(ask, Adjustment::Charge)
    }

    fn adjust(&self, ask: impl IntoAsk, adjustment: impl FnOnce(Cost) -> Adjustment) -> Adjusted {
        let (key, units, _) = ask.into_parts();
        let Ok(cost) = Cost::new(units) else { return Adjusted::Whole };
        let account = self.inner.account(&self.inner.name(&key));
        let adjusted = self.inner.map.adjust_in(&account, adjustment(cost));
        self.inner.room.look_again(&self.venue(), account.name());
        adjusted
    }

    /// Forgets a subject.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn reset(&self, key: impl IntoKey) {
        let account = self.inner.account(&self.inner.name(&key));
        self.inner.map.forget(&account);
        self.inner.room.begin_anew(&self.venue(), account.name());
    }

    /// Puts another limit in force; subjects keep what they owe.
    pub fn set_limit(&self, limit: Limit) {
        let inner = &self.inner;
        inner.map.expect(&inner.namespace, limit.terms());
        inner.limit.set(limit);
        inner.room.begin_all_anew(&self.venue());
    }

    /// Waits until the ask passes; to be awaited on any runtime, or to block a thread with.
    ///
    /// Those who wait for one subject pass in the order in which they came.
    pub fn acquire(&self, ask: impl IntoAsk) -> Acquire {
        Acquire::new(self.visit(ask))
    }

    /// Gives a place in flight back, under a concurrency limit. Whether the permit was still holding one.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn release(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.release_named(&self.inner.name(&key), permit)
    }

    /// Starts a permit's lease anew, under a concurrency limit. Whether it was still holding its place.
    #[expect(clippy::needless_pass_by_value, reason = "a tuple of parts is written in place")]
    pub fn renew(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.renew_named(&self.inner.name(&key), permit)
    }

    pub(crate) fn visit(&self, ask: impl IntoAsk) -> Visit {
        let (key, units, patience) = ask.into_parts();
        Visit::new(self.venue(), self.inner.name(&key), ask_for(units, None), patience)
    }

    pub(crate) fn admit_named(&self, name: &Name, ask: Ask) -> Decision {
        self.inner.admit(&self.inner.account(name), ask)
    }

    pub(crate) fn release_named(&self, name: &Name, permit: PermitId) -> bool {
        let account = self.inner.account(name);
        let released = self.inner.map.release_in(&account, permit);
        self.inner.room.look_again(&self.venue(), name);
        released
    }

    pub(crate) fn renew_named(&self, name: &Name, permit: PermitId) -> bool {
        self.inner.map.renew_in(&self.inner.account(name), permit)
    }

    fn venue(&self) -> Arc<dyn Venue> {
        self.inner.clone()
    }
}

impl Inner {
    #[inline]
    fn read(&self, ask: impl IntoAsk) -> (Account, Ask) {
        let (key, units, patience) = ask.into_parts();
        (self.name(&key).under(self.limit.terms()), ask_for(units, patience))
    }

    #[inline]
    fn name(&self, key: &impl IntoKey) -> Name {
        Name::new(&self.namespace, key)
    }

    #[inline]
    fn admit(&self, account: &Account, ask: Ask) -> Decision {
        match self.wait_behind(account, ask) {
            Some(wait) => self.map.look(account, ask).put_off(wait),
            None => self.map.spend(account, ask),
        }
    }

    #[inline]
    fn wait_behind(&self, account: &Account, ask: Ask) -> Option<Ticks> {
        if self.room.is_empty() { None } else { self.room.wait_behind(self, account.name(), ask) }
    }
}

impl Venue for Inner {
    fn room(&self) -> &Room {
        &self.room
    }

    fn clock(&self) -> &Source {
        self.map.clock()
    }

    fn account(&self, name: &Name) -> Account {
        name.clone().under(self.limit.terms())
    }

    fn take_if_free(
        &self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        self.map.take_if_free(account, ask, at)
    }

    fn look(&self, account: &Account, ask: Ask) -> Decision {
        self.map.look(account, ask)
    }

    fn give_back(&self, account: &Account, receipt: Receipt) {
        self.map.give_back_to(account, receipt);
    }

    fn state(&self, account: &Account) -> State {
        self.map.state_of(account)
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Limiter").field("limit", &self.limit()).field("store", &self.inner.map).finish()
    }
}
