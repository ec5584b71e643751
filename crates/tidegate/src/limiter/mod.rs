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
use crate::limit::{CurrentLimit, Limit, Terms};
use crate::receipt::Receipt;
use crate::store::Map;
use crate::store::name::{Name, Namespace};
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

    /// A limiter on a store that others use, too. Limiters with the same name on the same store share their
    /// subjects' states.
    pub fn on(map: &Map, name: &str, limit: Limit) -> Limiter {
        Limiter::build(map.clone(), Namespace::new(name), limit, MAX_WAITERS)
    }

    /// A limiter like this one in which at most so many wait at a time; 65,536 unless set. Those who wait in
    /// this one, if any, stay there.
    #[must_use]
    pub fn max_waiters(self, most: usize) -> Limiter {
        let Inner { map, namespace, limit, .. } = &*self.inner;
        Limiter::build(map.clone(), namespace.clone(), limit.limit(), most)
    }

    fn build(map: Map, namespace: Namespace, limit: Limit, max_waiters: usize) -> Limiter {
        let inner = Inner { map, namespace, limit: CurrentLimit::new(limit), room: Room::new(max_waiters) };
        Limiter { inner: Arc::new(inner) }
    }

    /// The limit in force.
    pub fn limit(&self) -> Limit {
        self.inner.limit.limit()
    }

    /// Decides about one ask of one subject, and spends if allowed.
    ///
    /// While others wait for the same subject ([`Limiter::acquire`]), it is theirs: an ask that cannot wait is
    /// refused.
    #[inline]
    pub fn admit(&self, ask: impl IntoAsk) -> Decision {
        let (name, terms, ask) = self.inner.read(ask);
        self.inner.admit(&name, &terms, ask)
    }

    /// An ask for [`admit_all`].
    pub fn ask(&self, ask: impl IntoAsk) -> LimiterAsk {
        let (name, _, ask) = self.inner.read(ask);
        LimiterAsk::new(self.clone(), name, ask)
    }

    /// What [`Limiter::admit`] would say, without spending.
    pub fn peek(&self, ask: impl IntoAsk) -> Decision {
        let (name, terms, ask) = self.inner.read(ask);
        let decision = self.inner.map.peek_named(&name, &terms, ask);
        self.inner.wait_behind(&name, ask).map_or(decision, |wait| decision.put_off(wait))
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
        let (name, terms) = self.inner.name(&key);
        let adjusted = self.inner.map.adjust_named(&name, &terms, adjustment(cost));
        self.look_again(&name);
        adjusted
    }

    /// Forgets a subject.
    pub fn reset(&self, key: impl IntoKey) {
        let (name, _) = self.inner.name(&key);
        self.inner.map.reset_named(&name);
        self.look_again(&name);
    }

    /// Puts another limit in force; subjects keep what they owe.
    pub fn set_limit(&self, limit: Limit) {
        let inner = &self.inner;
        let hold = |before: &Terms, after: &Terms| inner.map.hold(before, after);
        let replaced = inner.limit.replace(|_| Ok::<_, std::convert::Infallible>(limit), hold);
        match replaced {
            Ok(()) => inner.room.look_everywhere(&self.venue()),
            Err(never) => match never {},
        }
    }

    /// Waits until the ask passes; to be awaited on any runtime, or to block a thread with.
    ///
    /// Those who wait for one subject pass in the order in which they came.
    pub fn acquire(&self, ask: impl IntoAsk) -> Acquire {
        Acquire::new(self.visit(ask))
    }

    /// Gives a place in flight back, under a concurrency limit. Whether the permit was still holding one.
    pub fn release(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.release_named(&self.inner.name(&key).0, permit)
    }

    /// Starts a permit's lease anew, under a concurrency limit. Whether it was still holding its place.
    pub fn renew(&self, key: impl IntoKey, permit: PermitId) -> bool {
        self.renew_named(&self.inner.name(&key).0, permit)
    }

    pub(crate) fn visit(&self, ask: impl IntoAsk) -> Visit {
        let (key, units, patience) = ask.into_parts();
        Visit::new(self.venue(), self.inner.name(&key).0, ask_for(units, None), patience)
    }

    pub(crate) fn admit_named(&self, name: &Name, ask: Ask) -> Decision {
        self.inner.admit(name, &self.inner.terms(), ask)
    }

    pub(crate) fn release_named(&self, name: &Name, permit: PermitId) -> bool {
        let released = self.inner.map.release_named(name, &self.inner.terms(), permit);
        self.look_again(name);
        released
    }

    pub(crate) fn renew_named(&self, name: &Name, permit: PermitId) -> bool {
        self.inner.map.renew_named(name, &self.inner.terms(), permit)
    }

    pub(crate) fn clock(&self) -> &Source {
        self.inner.map.clock()
    }

    /// Those who wait for a subject may be in luck, now that its state was changed.
    fn look_again(&self, name: &Name) {
        self.inner.room.look_again(&self.venue(), name);
    }

    fn venue(&self) -> Arc<dyn Venue> {
        self.inner.clone()
    }
}

impl Inner {
    #[inline]
    fn read(&self, ask: impl IntoAsk) -> (Name, Terms, Ask) {
        let (key, units, patience) = ask.into_parts();
        let (name, terms) = self.name(&key);
        (name, terms, ask_for(units, patience))
    }

    #[inline]
    fn name(&self, key: &impl IntoKey) -> (Name, Terms) {
        let terms = self.limit.terms();
        (Name::new(&self.namespace, terms.algorithm(), key), terms)
    }

    #[inline]
    fn admit(&self, name: &Name, terms: &Terms, ask: Ask) -> Decision {
        match self.wait_behind(name, ask) {
            Some(wait) => self.map.peek_named(name, terms, ask).put_off(wait),
            None => self.map.spend_named(name, terms, ask),
        }
    }

    #[inline]
    fn wait_behind(&self, name: &Name, ask: Ask) -> Option<Ticks> {
        if self.room.is_empty() { None } else { self.room.wait_behind(self, name, ask) }
    }
}

impl Venue for Inner {
    fn room(&self) -> &Room {
        &self.room
    }

    fn clock(&self) -> &Source {
        self.map.clock()
    }

    fn terms(&self) -> Terms {
        self.limit.terms()
    }

    fn take_if_free(&self, name: &Name, ask: Ask, at: Option<Timestamp>) -> (Decision, Option<Receipt>) {
        let terms = self.limit.terms();
        self.map.take_if_free_named(&name.under(terms.algorithm()), &terms, ask, at)
    }

    fn peek(&self, name: &Name, ask: Ask) -> Decision {
        let terms = self.limit.terms();
        self.map.peek_named(&name.under(terms.algorithm()), &terms, ask)
    }

    fn give_back(&self, name: &Name, receipt: Receipt) {
        let terms = self.limit.terms();
        self.map.give_back_named(&name.under(terms.algorithm()), &terms, receipt);
    }

    fn state(&self, name: &Name) -> State {
        self.map.state_named(&name.under(self.limit.terms().algorithm()))
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Limiter").field("limit", &self.limit()).field("store", &self.inner.map).finish()
    }
}
