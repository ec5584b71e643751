//! The in-memory store that holds the states of one limit.
//!
//! A zone holds states of one word. States of any other size are in a map, also under a zone, which has a map beside it
//! for them. A call therefore selects its store in two steps: [`MemoryStore`] by the choice of the user, [`LimitStore`]
//! by the algorithm of the limit.

use std::sync::Arc;

use super::bound::StateName;
use super::limit_table::{LimitTable, StateLimit, Unlisted};
use super::receipts::Receipts;
use super::state_key::{EncodedKey, Namespace, StateKey};
use super::{Map, Zone};
use crate::algorithm::{Claim, State, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::limit::AlgorithmParams;
use crate::receipt::Receipt;
use crate::time::{Source, Timestamp};

/// An in-memory store, created from a reference to a [`Zone`] or a [`Map`]; clones share it.
///
/// ```
/// use tidegate::{Limit, Limiter, MemoryStore, Zone};
///
/// let store = MemoryStore::from(&Zone::new(1 << 20)); // or from a map
/// let login = Limiter::on(&store, "login", Limit::per_minute(5));
/// let mail = Limiter::on(&store, "mail", Limit::per_day(50));
/// assert!(login.admit("ana").is_allowed() && mail.admit("ana").is_allowed());
/// ```
#[doc(alias = "in-memory backend")]
#[doc(alias = "storage")]
#[derive(Clone, Debug)]
pub struct MemoryStore(Kind);

/// The store, by its type: a call costs one branch instead of a virtual call.
#[derive(Clone, Debug)]
enum Kind {
    Zone(Zone),
    Map(Map),
}

impl From<&Zone> for MemoryStore {
    fn from(zone: &Zone) -> MemoryStore {
        MemoryStore(Kind::Zone(zone.clone()))
    }
}

impl From<&Map> for MemoryStore {
    fn from(map: &Map) -> MemoryStore {
        MemoryStore(Kind::Map(map.clone()))
    }
}

impl From<&MemoryStore> for MemoryStore {
    fn from(memory: &MemoryStore) -> MemoryStore {
        memory.clone()
    }
}

impl MemoryStore {
    /// Returns the store itself.
    #[inline]
    pub(super) fn store(&self) -> LimitStore<'_> {
        match &self.0 {
            Kind::Zone(zone) => LimitStore::Zone(zone),
            Kind::Map(map) => LimitStore::Map(map),
        }
    }

    /// Returns the store that holds the states of this limit.
    #[inline]
    pub(crate) fn holder(&self, terms: &AlgorithmParams) -> LimitStore<'_> {
        self.store().holder(terms)
    }

    /// Returns the table of limits, which a zone and the map beside it share.
    #[inline]
    pub(crate) fn limits(&self) -> &Arc<LimitTable> {
        self.store().limits()
    }

    /// Returns the clock of the store, which a zone and the map beside it share.
    pub(crate) fn clock(&self) -> &Source {
        self.store().clock()
    }

    /// Returns the zone, if it is one.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match self.store() {
            LimitStore::Zone(zone) => Some(zone),
            LimitStore::Map(_) => None,
        }
    }

    /// Removes the states of a key under every listed limit of its namespace, also those in the map beside a zone.
    pub(crate) fn forget(&self, namespace: &Namespace, name: &EncodedKey) -> Result<bool, Unlisted> {
        self.store().forget(namespace, name)
    }

    /// Removes the state of a key under one limit, in the zone and in the map beside it.
    pub(crate) fn forget_state(&self, name: &EncodedKey, state: &StateName) -> bool {
        self.store().forget_state(name, state)
    }
}

/// An in-memory store, as a whole or as the one that holds the states of a limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LimitStore<'a> {
    /// A zone, with one cell per state.
    Zone(&'a Zone),
    /// A map, which holds states of any size.
    Map(&'a Map),
}

/// Runs the same expression for any holder.
macro_rules! with_holder {
    ($all:expr, $holder:ident => $line:expr) => {
        match $all {
            LimitStore::Zone($holder) => $line,
            LimitStore::Map($holder) => $line,
        }
    };
}

impl<'a> LimitStore<'a> {
    /// Returns the holder of this limit's states: the store, or the map beside a zone.
    #[inline]
    pub(crate) fn holder(self, terms: &AlgorithmParams) -> LimitStore<'a> {
        match self {
            LimitStore::Zone(zone) if !terms.fits_word() => LimitStore::Map(zone.map()),
            holder => holder,
        }
    }

    /// Returns the table of the limits that its namespaces have had.
    #[inline]
    pub(crate) fn limits(self) -> &'a Arc<LimitTable> {
        with_holder!(self, holder => holder.limits())
    }

    /// Returns the clock by which its states are decided.
    pub(crate) fn clock(self) -> &'a Source {
        with_holder!(self, holder => holder.clock())
    }

    /// Returns the table of open receipts.
    pub(crate) fn receipts(self) -> &'a Receipts {
        with_holder!(self, holder => holder.receipts())
    }

    /// Removes the states of a key under every limit that its namespace has had. Returns true if there were any.
    ///
    /// # Errors
    /// If the table of limits is full, because some limits are not listed then.
    pub(crate) fn forget(self, namespace: &Namespace, name: &EncodedKey) -> Result<bool, Unlisted> {
        let listed = self.limits().listed(namespace.name(), self.clock().now())?;
        let state = |limit: StateLimit| StateName::new(self.limits(), namespace, limit);
        let states: Vec<_> = listed.into_iter().map(state).collect();
        Ok(states.iter().fold(false, |was_known, state| was_known | self.forget_state(name, state)))
    }

    /// Removes the state of a key under one limit. Returns true if there was one.
    pub(crate) fn forget_state(self, name: &EncodedKey, state: &StateName) -> bool {
        with_holder!(self, holder => holder.forget_state(name, state))
    }

    /// Decides, and spends if allowed, and returns a receipt. With `count_denied`, a denial is counted too;
    /// [`LimitStore::take_if_free`] never counts one.
    pub(crate) fn take_from(self, account: &StateKey, ask: Ask) -> (Decision, Option<Receipt>) {
        match self {
            LimitStore::Zone(zone) => zone.take_if_free(account, ask, None),
            LimitStore::Map(map) => map.take_by(account, ask, None, AlgorithmParams::decide),
        }
    }

    /// Decides, and spends if allowed, like [`LimitStore::take_from`], without a receipt.
    #[inline]
    pub(crate) fn spend(self, account: &StateKey, ask: Ask) -> Decision {
        with_holder!(self, holder => holder.spend(account, ask))
    }

    /// Decides like [`LimitStore::spend`], as of `at`, a recent reading of the clock. Sets `at` to a later reading if it is
    /// too old.
    pub(crate) fn spend_as_of(self, account: &StateKey, ask: Ask, at: &mut Timestamp) -> Decision {
        with_holder!(self, holder => holder.spend_as_of(account, ask, at))
    }

    /// Takes if allowed, now or as of the given time. A denial changes nothing.
    pub(crate) fn take_if_free(
        self,
        account: &StateKey,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        match self {
            LimitStore::Zone(zone) => zone.take_if_free(account, ask, at),
            LimitStore::Map(map) => map.take_by(account, ask, at, AlgorithmParams::decide_if_free),
        }
    }

    /// Returns the decision that a take would get, without spending.
    pub(crate) fn look(self, account: &StateKey, ask: Ask) -> Decision {
        match self {
            LimitStore::Zone(zone) => zone.look(account, ask, None),
            LimitStore::Map(map) => map.look(account, ask),
        }
    }

    /// A refund without a receipt moves debts, so it invalidates the open receipts of the state. A charge adds debt at
    /// the end and moves none.
    pub(crate) fn adjust_in(self, account: &StateKey, adjustment: Adjustment) -> Adjusted {
        let adjust = || self.adjust_unlocked(account, adjustment).0;
        match adjustment {
            Adjustment::Charge(_) => adjust(),
            Adjustment::Refund(_) => self.receipts().without(account, adjust),
        }
    }

    /// Adjusts without locking the receipts; for a refund the caller must have locked them. Returns a receipt of a
    /// charge.
    pub(super) fn adjust_unlocked(
        self,
        account: &StateKey,
        adjustment: Adjustment,
    ) -> (Adjusted, Option<Receipt>) {
        with_holder!(self, holder => holder.adjust_in(account, adjustment))
    }

    /// Gives one take of an era back, as far as it is certainly still there.
    pub(crate) fn give_back_to(self, account: &StateKey, receipt: Receipt) -> Adjusted {
        let era = receipt.era;
        let give_back = || self.give_back_unlocked(account, receipt);
        self.receipts().out_of_order(account, era, give_back).unwrap_or(Adjusted::Capped)
    }

    /// Gives one take back without locking the receipts, for a caller that has locked them.
    pub(super) fn give_back_unlocked(self, account: &StateKey, receipt: Receipt) -> Adjusted {
        with_holder!(self, holder => holder.give_back_to(account, receipt))
    }

    /// Removes units of one take from its debt, as far as they are still owed. `None` means that the claim contradicts
    /// the state; the receipts of the state are invalid then.
    pub(super) fn take_off(self, account: &StateKey, claim: Claim, units: Cost) -> Option<TakenOff> {
        with_holder!(self, holder => holder.take_off(account, claim, units))
    }

    /// Returns a copy of the state, or an empty one for an unknown key.
    pub(crate) fn state_of(self, account: &StateKey) -> State {
        with_holder!(self, holder => holder.state_of(account))
    }

    /// Releases a permit. Only a map holds permits.
    pub(crate) fn release_in(self, account: &StateKey, permit: PermitId) -> bool {
        matches!(self, LimitStore::Map(map) if map.release_in(account, permit))
    }

    /// Restarts the lease of a permit, which only a map can hold.
    pub(crate) fn renew_in(self, account: &StateKey, permit: PermitId) -> bool {
        matches!(self, LimitStore::Map(map) if map.renew_in(account, permit))
    }
}
