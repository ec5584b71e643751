//! The calls of every in-memory store, and its implementation of [`Store`].
//!
//! | call | spends | result |
//! |---|---|---|
//! | `take` | if allowed | a decision and a receipt |
//! | `take_all` | all or none | decisions, and receipts if an ask is tracked |
//! | `take_all_as_of` | all or none | decisions as of one instant |
//! | `peek` | nothing | the decision that a take would get |
//! | `adjust`, `charge_tracked` | always | the part that was applied |
//! | `refund`, `give_back` | negative | the part that was still owed |
//!
//! [`Map`], [`Zone`] and [`Zones`] have the same methods, from one macro. Several asks first try the path by cells,
//! which encodes no name and takes no lock. All other cases go by names.

use super::penalty;
use super::receipts::take_all_tracked;
use super::together::{Bid, take_again};
use super::zone::{CellTakes, MAX_CELL_TAKES};
use super::{LimitStore, Map, OpenReceipt, Store, StoreError, StoreFuture, Subject, Zone, Zones};
use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::few::Few;
use crate::limit::Limit;
use crate::receipt::Receipt;
use crate::store::state_key::{EncodedKey, Namespace, StateKey};
use crate::time::{RECENT, Timestamp};

/// An in-memory store, or several of them.
trait Holding: Sized {
    /// Returns the store that holds this key.
    fn store_of(&self, subject: &Subject<'_>) -> LimitStore<'_>;

    /// Returns the time of its clock. Stores beside each other share one clock, so this is one reading for all of them.
    fn time(&self) -> Timestamp;

    /// Returns the state's account. A limit that is used for the first time comes into force as of the given time.
    fn account(&self, subject: &Subject<'_>, at: Option<Timestamp>) -> StateKey {
        subject.account(self.store_of(subject).limits(), || at.unwrap_or_else(|| self.time()))
    }

    /// Calls `act` with the state's account and the store that holds it. It is the path of every call for one key:
    /// prepare the limit if it is new to this store, encode the key, select the holder.
    fn on<R>(&self, subject: &Subject<'_>, act: impl FnOnce(LimitStore<'_>, &StateKey) -> R) -> R {
        let account = self.account(subject, None);
        act(self.store_of(subject).holder(account.terms()), &account)
    }

    /// Returns the takes of these asks from their cells. Returns `None` unless each limit is in use, its states are
    /// cells, and no state is asked for twice. Every `None` is decided by names instead, with the same result; it only
    /// costs more.
    #[inline(always)]
    fn place<'a>(&'a self, asks: &[(Subject<'a>, Ask)]) -> Option<CellTakes<'a>> {
        let mut takes = CellTakes::default();
        for (place, (subject, ask)) in asks.iter().enumerate() {
            let store = self.store_of(subject);
            let limit = subject.bound_in(store.limits())?;
            let LimitStore::Zone(zone) = store.holder(limit.terms()) else { return None };
            if subject.penalty.is_some() || !takes.place(place, zone, limit, subject, *ask) {
                return None;
            }
        }
        Some(takes)
    }

    /// Takes all or none, now or as of a recent reading of the clock. At most [`MAX_CELL_TAKES`] asks are tried on the
    /// path by cells. If another thread was faster, the takes that were already made are undone on the general path.
    #[inline(always)]
    fn take_several(&self, asks: &[(Subject<'_>, Ask)], at: Option<Timestamp>) -> Decisions {
        let mut taken = Vec::new();
        if asks.len() <= MAX_CELL_TAKES {
            if let Some(takes) = self.place(asks) {
                match takes.take(at.unwrap_or_else(|| self.time())) {
                    Ok(decisions) => return decisions,
                    Err(written) => taken = written,
                }
            }
        }
        self.take_by_name(asks, at, taken)
    }

    /// Takes all or none on the general path, after it undoes the takes of `taken`. A single ask needs no undo and no
    /// second look, so it is spent directly.
    #[cold]
    fn take_by_name(
        &self,
        asks: &[(Subject<'_>, Ask)],
        at: Option<Timestamp>,
        taken: Vec<Receipt>,
    ) -> Decisions {
        if Subject::have_penalties(asks) {
            return self.take_penalized(asks, at, |bids| take_again(at, bids, taken));
        }
        if let [(subject, ask)] = asks {
            let account = self.account(subject, at);
            let holder = self.store_of(subject).holder(account.terms());
            let decision = match at {
                Some(mut at) => holder.spend_as_of(&account, *ask, &mut at),
                None => holder.spend(&account, *ask),
            };
            return Decisions::new(Few::from_iter([decision]));
        }
        let accounts: Few<_> = asks.iter().map(|(subject, _)| self.account(subject, at)).collect();
        take_again(at, &self.bids(&accounts, asks), taken)
    }

    /// Returns the asks, each with the store that holds its state.
    fn bids<'a>(&'a self, accounts: &'a [StateKey], asks: &[(Subject<'_>, Ask)]) -> Few<Bid<'a>> {
        let each = accounts.iter().zip(asks);
        each.map(|(account, (subject, ask))| {
            let holder = self.store_of(subject).holder(account.terms());
            Bid { holder, account, ask: *ask, is_peek: false }
        })
        .collect()
    }

    /// Takes all or none under limits of which some have a penalty: with a peek at each ban, and a strike for each
    /// denial by such a limit.
    #[cold]
    fn take_penalized(
        &self,
        asks: &[(Subject<'_>, Ask)],
        at: Option<Timestamp>,
        take: impl FnOnce(&[Bid<'_>]) -> Decisions,
    ) -> Decisions {
        let bans = asks.iter().filter_map(|(subject, _)| Some((subject.ban_and_strikes()?[0], Ask::ONE)));
        let with_bans: Vec<_> = asks.iter().copied().chain(bans).collect();
        let accounts: Few<_> = with_bans.iter().map(|(subject, _)| self.account(subject, at)).collect();
        let mut bids = self.bids(&accounts, &with_bans);
        bids[asks.len()..].iter_mut().for_each(|bid| bid.is_peek = true);
        penalty::settle(asks, take(&bids), &Strikes { store: self, at })
    }

    /// Returns the decision that an ask would get under a limit with a penalty.
    #[cold]
    fn peek_penalized(&self, subject: &Subject<'_>, own: Decision) -> Decision {
        let peek = |subject: Subject<'_>| self.on(&subject, |holder, account| holder.look(account, Ask::ONE));
        match subject.ban_and_strikes().map(|both| both.map(peek)) {
            Some([ban, strikes]) => subject.penalized(own, &ban, &strikes),
            None => own,
        }
    }

    /// Returns the keys and zones that may hold a permit of this one.
    fn holders<'a>(&'a self, subject: Subject<'a>) -> impl Iterator<Item = Subject<'a>> {
        std::iter::once(subject)
    }
}

/// The calls for strikes on a store, now or as of the given time.
struct Strikes<'a, S> {
    store: &'a S,
    at: Option<Timestamp>,
}

impl<S: Holding> penalty::Strike for Strikes<'_, S> {
    fn spend(&self, subject: Subject<'_>) -> Decision {
        let account = self.store.account(&subject, self.at);
        let holder = self.store.store_of(&subject).holder(account.terms());
        match self.at {
            Some(mut at) => holder.spend_as_of(&account, Ask::ONE, &mut at),
            None => holder.spend(&account, Ask::ONE),
        }
    }

    fn look(&self, subject: Subject<'_>) -> Decision {
        self.store.on(&subject, |holder, account| holder.look(account, Ask::ONE))
    }

    fn forget(&self, subject: Subject<'_>) {
        let (account, store) = (self.store.account(&subject, self.at), self.store.store_of(&subject));
        if store.forget(account.limit().namespace(), account.name()).is_err() {
            // While not all limits are listed, the state under this one is removed.
            store.forget_state(account.name(), account.limit().name());
        }
    }
}

impl Holding for Map {
    fn store_of(&self, _: &Subject<'_>) -> LimitStore<'_> {
        LimitStore::Map(self)
    }

    fn time(&self) -> Timestamp {
        self.clock().now()
    }
}

impl Holding for Zone {
    #[inline]
    fn store_of(&self, _: &Subject<'_>) -> LimitStore<'_> {
        LimitStore::Zone(self)
    }

    #[inline]
    fn time(&self) -> Timestamp {
        self.clock().now()
    }
}

impl Holding for Zones {
    #[inline]
    fn store_of(&self, subject: &Subject<'_>) -> LimitStore<'_> {
        self.of(subject.zone()).store()
    }

    #[inline]
    fn time(&self) -> Timestamp {
        self.clock().now()
    }

    /// Returns the selected zone, then every other one: its rule may have had another zone when the permit was taken,
    /// or may have been removed.
    fn holders<'a>(&'a self, subject: Subject<'a>) -> impl Iterator<Item = Subject<'a>> {
        let all = std::iter::once(None).chain(self.names().map(Some));
        let others = all.filter(move |zone| *zone != subject.zone());
        std::iter::once(subject).chain(others.map(move |zone| subject.in_zone(zone)))
    }
}

impl Zones {
    /// Prefetches the state of a key that is decided soon, if it is in a cell. It changes nothing. Call it for each key
    /// of a batch before the first one is decided: the memory accesses then overlap. It does nothing for a limit that
    /// the zone has not used yet.
    #[doc(alias = "cache")]
    #[doc(alias = "batch")]
    #[inline]
    pub fn prefetch(&self, subject: &Subject<'_>) {
        let store = self.store_of(subject);
        if let Some(limit) = subject.bound_in(store.limits()) {
            if let LimitStore::Zone(zone) = store.holder(limit.terms()) {
                zone.prefetch(limit, subject.key);
            }
        }
    }
}

impl Map {
    /// Returns `Ok`: a map stores states under every limit.
    fn supports(&self, _: &Limit) -> Result<(), String> {
        Ok(())
    }
}

macro_rules! serves_subjects {
    ($store:ident) => {
        impl $store {
            /// Decides, and spends if allowed. Returns a receipt, by which the take can be given back.
            ///
            /// The receipt is plain data and is not entered in a table. [`give_back`](Self::give_back) returns the take
            /// as far as it is certainly still there. A permit is released by its id instead.
            ///
            /// ```
            /// use tidegate::{Ask, Key, Limit, Map, Subject};
            ///
            /// let (map, key, limit) = (Map::new(), Key::new("ana"), Limit::per_hour(1));
            /// let subject = Subject::new("mail", &key, &limit);
            /// let (decision, receipt) = map.take(subject, Ask::ONE);
            /// assert!(decision.is_allowed());
            /// assert!(!map.take(subject, Ask::ONE).0.is_allowed());
            /// let receipt = receipt.expect("an allowed take has a receipt");
            /// map.give_back(subject, receipt); // the mail was not sent
            /// assert!(map.take(subject, Ask::ONE).0.is_allowed());
            /// ```
            #[doc(alias = "acquire")]
            #[doc(alias = "check")]
            #[doc(alias = "hit")]
            #[doc(alias = "token bucket")]
            #[doc(alias = "GCRA")]
            #[must_use = "a decision that is not read limits no caller"]
            pub fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
                self.on(&subject, |holder, account| {
                    let era = holder.receipts().era();
                    let (decision, receipt) = holder.take_from(account, ask);
                    (decision, receipt.map(|receipt| Receipt { era, ..receipt }))
                })
            }

            /// Takes all or none: spends only if every ask is allowed. If an ask is tracked ([`Subject::tracked`]),
            /// returns receipts, by which [`refund`](Self::refund) gives back only that take.
            ///
            /// A denied request changes no limit and reports the decision of each. A state that is asked for twice is
            /// decided for both asks together, so they cannot both get the last unit.
            ///
            /// ```
            /// use tidegate::{Ask, Key, Limit, Subject, Zone};
            ///
            /// let (zone, ana, site) = (Zone::new(1 << 20), Key::new("ana"), Key::new("site"));
            /// let (user, all) = (Limit::per_hour(1), Limit::per_hour(100));
            /// let by_user = Subject::new("user", &ana, &user);
            /// let by_site = Subject::new("all", &site, &all);
            /// let asks = [(by_user, Ask::ONE), (by_site, Ask::ONE)];
            /// assert!(zone.take_all(&asks).is_allowed());
            /// assert!(!zone.take_all(&asks).is_allowed()); // denied by the user's limit
            /// assert_eq!(zone.peek(by_site, Ask::ONE).remaining(), 99); // and not charged to the site
            /// ```
            #[doc(alias = "transaction")]
            #[doc(alias = "atomic")]
            #[doc(alias = "multi-limit")]
            #[must_use = "a decision that is not read limits no caller"]
            pub fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                if !Subject::are_tracked(asks) {
                    return self.take_several(asks, None);
                }
                if Subject::have_penalties(asks) {
                    return self.take_penalized(asks, None, take_all_tracked);
                }
                if let [(subject, ask)] = asks {
                    let (decision, receipt) =
                        self.on(subject, |holder, account| holder.take_tracked(account, *ask));
                    let receipts = if decision.is_allowed() { vec![receipt] } else { Vec::new() };
                    return Decisions::new(Few::from_iter([decision])).with_receipts(receipts);
                }
                let accounts: Few<_> = asks.iter().map(|(subject, _)| self.account(subject, None)).collect();
                take_all_tracked(&self.bids(&accounts, asks))
            }

            /// Returns the time of its clock, for [`take_all_as_of`](Self::take_all_as_of). It is comparable with
            /// readings of the same store only: each store may have its own clock.
            pub fn now(&self) -> Timestamp {
                self.clock().now()
            }

            /// Takes all or none as of a recent reading of [`now`](Self::now), so that several calls are decided at one
            /// instant. If the reading is older than a twentieth of a second, the clock is read again.
            #[doc(alias = "pipeline")]
            #[doc(alias = "batch")]
            #[must_use = "a decision that is not read limits no caller"]
            pub fn take_all_as_of(&self, at: Timestamp, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                let now = self.now();
                self.take_several(asks, Some(if now.since(at) < RECENT { at } else { now }))
            }

            /// Returns the decision that a take would get, without spending.
            ///
            /// Between a peek and a take other callers may spend, so a peek guarantees nothing. Use it to report quota,
            /// not to decide.
            #[doc(alias = "dry run")]
            #[doc(alias = "remaining")]
            #[doc(alias = "quota")]
            #[must_use = "a decision that is not read limits no caller"]
            pub fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                let own = self.on(&subject, |holder, account| holder.look(account, ask));
                if subject.penalty.is_none() { own } else { self.peek_penalized(&subject, own) }
            }

            /// Charges additional cost, or refunds unused cost. A charge is applied even beyond the limit, as debt, up
            /// to the maximum of the limit. A refund is not bound to one take; for that use [`refund`](Self::refund).
            #[doc(alias = "settle")]
            #[doc(alias = "penalty")]
            pub fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
                self.on(&subject, |holder, account| holder.adjust_in(account, adjustment))
            }

            /// Gives one take back, as far as it is certainly still there. It is [`Adjusted::Capped`] after a reset of
            /// the key, or if the limit has changed its algorithm.
            pub fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
                self.on(&subject, |holder, account| holder.give_back_to(account, receipt))
            }

            /// Charges additional cost. Returns a receipt if all of it was charged. A charge that was capped has no
            /// receipt, because it is not known which part of it is owed.
            pub fn charge_tracked(
                &self,
                subject: Subject<'_>,
                cost: Cost,
            ) -> (Adjusted, Option<OpenReceipt>) {
                self.on(&subject, |holder, account| holder.charge_tracked(account, cost))
            }

            /// Refunds units of one take, at most those that are still owed and were not refunded before. The receipt
            /// keeps the count of its units, so a repeated refund cannot give back more than the take.
            #[doc(alias = "idempotent refund")]
            #[doc(alias = "cancel")]
            pub fn refund(&self, subject: Subject<'_>, receipt: &mut OpenReceipt, cost: Cost) -> Adjusted {
                self.on(&subject, |holder, account| holder.refund(account, receipt, Some(cost)))
            }

            /// Releases a permit. Returns true if it was still in flight. The number of the permit is random, so a
            /// caller cannot release the permit of another one by guessing.
            #[doc(alias = "semaphore")]
            #[doc(alias = "concurrency limit")]
            pub fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                let holds = |subject| self.on(&subject, |holder, account| holder.release_in(account, permit));
                self.holders(subject).any(holds)
            }

            /// Restarts a permit's lease. Returns true if the permit was still in flight. Renew before the lease ends;
            /// a permit whose lease has ended may already belong to another holder.
            #[doc(alias = "heartbeat")]
            #[doc(alias = "keepalive")]
            #[doc(alias = "lease")]
            pub fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                let holds = |subject| self.on(&subject, |holder, account| holder.renew_in(account, permit));
                self.holders(subject).any(holds)
            }

            /// Removes the states of a key under every limit that its namespace has had, and a ban with its strikes.
            /// Returns true if there were any.
            ///
            /// # Errors
            /// If more limits are in use than the store lists, 1,024. [`reset_limit`](Self::reset_limit) still works
            /// then.
            #[doc(alias = "clear")]
            #[doc(alias = "unblock")]
            #[doc(alias = "delete")]
            pub fn reset(&self, subject: Subject<'_>) -> Result<bool, StoreError> {
                let forget = |subject: Subject<'_>| {
                    let namespace = Namespace::new(subject.namespace());
                    let name = EncodedKey::new(&namespace, subject.key());
                    self.store_of(&subject).forget(&namespace, &name).map_err(StoreError::from)
                };
                let was_known = forget(subject)?;
                let of_penalty = subject.ban_and_strikes().into_iter().flatten();
                of_penalty.map(forget).try_fold(was_known, |known, other| Ok(known | other?))
            }

            /// Removes the state of a key under this limit only. Returns true if there was one. Open receipts of the
            /// state become invalid.
            pub fn reset_limit(&self, subject: Subject<'_>) -> bool {
                let account = self.account(&subject, None);
                self.store_of(&subject).forget_state(account.name(), account.limit().name())
            }

            /// Returns the state of a key under its limit, or an empty state if there is none. The copy is for tests
            /// and tools; a decision on it does not spend in the store.
            pub fn state(&self, subject: Subject<'_>) -> State {
                self.on(&subject, |holder, account| holder.state_of(account))
            }
        }

        impl Store for $store {
            fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> StoreFuture<'a, Decisions> {
                StoreFuture::ready(self.take_all(asks))
            }

            fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> StoreFuture<'a, Decision> {
                StoreFuture::ready($store::peek(self, subject, ask))
            }

            fn adjust<'a>(
                &'a self,
                subject: Subject<'a>,
                adjustment: Adjustment,
            ) -> StoreFuture<'a, Adjusted> {
                StoreFuture::ready($store::adjust(self, subject, adjustment))
            }

            fn charge<'a>(
                &'a self,
                subject: Subject<'a>,
                cost: Cost,
            ) -> StoreFuture<'a, (Adjusted, Option<OpenReceipt>)> {
                StoreFuture::ready(self.charge_tracked(subject, cost))
            }

            fn refund<'a>(
                &'a self,
                subject: Subject<'a>,
                receipt: &'a mut OpenReceipt,
                cost: Cost,
            ) -> StoreFuture<'a, Adjusted> {
                StoreFuture::ready($store::refund(self, subject, receipt, cost))
            }

            fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
                StoreFuture::ready(!subject.is_local && $store::release(self, subject, permit))
            }

            fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> StoreFuture<'a, bool> {
                StoreFuture::ready(!subject.is_local && $store::renew(self, subject, permit))
            }

            fn reset<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
                match $store::reset(self, subject) {
                    Ok(was_known) => StoreFuture::ready(was_known),
                    Err(error) => StoreFuture::failed(error),
                }
            }

            fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> StoreFuture<'a, bool> {
                StoreFuture::ready($store::reset_limit(self, subject))
            }

            fn supports(&self, limit: &Limit) -> Result<(), String> {
                $store::supports(self, limit)
            }
        }
    };
}

serves_subjects! { Map }
serves_subjects! { Zone }
serves_subjects! { Zones }
