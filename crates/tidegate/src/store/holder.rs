//! The store that holds the states of one limit, among those in memory.

use std::sync::Arc;

use super::bound::StateName;
use super::limit_table::{LimitTable, StateLimit, Unlisted};
use super::name::{Account, Name, Namespace};
use super::{Map, Zone};
use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask};
use crate::decision::{Decision, PermitId};
use crate::limit::Terms;
use crate::receipt::Receipt;
use crate::time::{Source, Timestamp};

/// A store in memory, made from a reference to a [`Zone`] or a [`Map`], whose clones share it.
#[derive(Clone, Debug)]
pub struct Memory(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Zone(Zone),
    Map(Map),
}

impl From<&Zone> for Memory {
    fn from(zone: &Zone) -> Memory {
        Memory(Kind::Zone(zone.clone()))
    }
}

impl From<&Map> for Memory {
    fn from(map: &Map) -> Memory {
        Memory(Kind::Map(map.clone()))
    }
}

impl From<&Memory> for Memory {
    fn from(memory: &Memory) -> Memory {
        memory.clone()
    }
}

impl Memory {
    /// Who holds the states of this limit.
    #[inline]
    pub(crate) fn holder(&self, terms: &Terms) -> Holder<'_> {
        match &self.0 {
            Kind::Zone(zone) => zone.holder(terms),
            Kind::Map(map) => Holder::Map(map),
        }
    }

    /// The table of the limits that its namespaces have had.
    #[inline]
    pub(crate) fn limits(&self) -> &Arc<LimitTable> {
        match &self.0 {
            Kind::Zone(zone) => zone.limits(),
            Kind::Map(map) => map.limits(),
        }
    }

    pub(crate) fn clock(&self) -> &Source {
        match &self.0 {
            Kind::Zone(zone) => zone.clock(),
            Kind::Map(map) => map.clock(),
        }
    }

    /// The zone, if it is one.
    pub(crate) fn zone(&self) -> Option<&Zone> {
        match &self.0 {
            Kind::Zone(zone) => Some(zone),
            Kind::Map(_) => None,
        }
    }

    /// Forgets a key under every limit that its namespace has had. Whether anything was known about it.
    pub(crate) fn forget(&self, namespace: &Namespace, name: &Name) -> Result<bool, Unlisted> {
        let listed = self.limits().listed(namespace.name(), self.clock().now())?;
        let state = |limit: StateLimit| StateName::new(self.limits(), namespace, limit);
        let states: Vec<_> = listed.into_iter().map(state).collect();
        Ok(states.iter().fold(false, |was_known, state| was_known | self.forget_state(name, state)))
    }

    /// Forgets a key under one limit. Whether anything was known about it.
    pub(crate) fn forget_state(&self, name: &Name, state: &StateName) -> bool {
        match &self.0 {
            Kind::Zone(zone) => zone.forget_state(name, state),
            Kind::Map(map) => map.forget_state(name, state),
        }
    }
}

/// Who holds the states of one limit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder<'a> {
    /// A zone, in a cell each.
    Zone(&'a Zone),
    /// A map, which holds states of any size.
    Map(&'a Map),
}

/// Runs the same line for whichever holder it is.
macro_rules! with_holder {
    ($all:expr, $holder:ident => $line:expr) => {
        match $all {
            Holder::Zone($holder) => $line,
            Holder::Map($holder) => $line,
        }
    };
}

impl Holder<'_> {
    pub(crate) fn take_from(self, account: &Account, ask: Ask) -> (Decision, Option<Receipt>) {
        with_holder!(self, holder => holder.take_from(account, ask))
    }

    /// Decides and spends if allowed, like [`Holder::take_from`], when nobody will give it back.
    #[inline]
    pub(crate) fn spend(self, account: &Account, ask: Ask) -> Decision {
        with_holder!(self, holder => holder.spend(account, ask))
    }

    /// Decides like [`Holder::spend`] as of a reading of the clock from a moment ago; that becomes a later one if it was
    /// too long ago.
    pub(crate) fn spend_as_of(self, account: &Account, ask: Ask, at: &mut Timestamp) -> Decision {
        with_holder!(self, holder => holder.spend_as_of(account, ask, at))
    }

    /// Takes if it passes, now or as of the given time; if not, leaves no trace.
    pub(crate) fn take_if_free(
        self,
        account: &Account,
        ask: Ask,
        at: Option<Timestamp>,
    ) -> (Decision, Option<Receipt>) {
        with_holder!(self, holder => holder.take_if_free(account, ask, at))
    }

    pub(crate) fn look(self, account: &Account, ask: Ask) -> Decision {
        with_holder!(self, holder => holder.look(account, ask))
    }

    pub(crate) fn adjust_in(self, account: &Account, adjustment: Adjustment) -> Adjusted {
        match adjustment {
            Adjustment::Charge(_) => with_holder!(self, holder => holder.adjust_in(account, adjustment)),
            Adjustment::Refund(_) => self
                .receipts()
                .without(account, || with_holder!(self, holder => holder.adjust_in(account, adjustment))),
        }
    }

    /// Gives one take of an era back, as far as it is surely still there.
    pub(crate) fn give_back_to(self, account: &Account, receipt: Receipt) -> Adjusted {
        let era = receipt.era;
        let give_back = || self.give_back_unlocked(account, receipt);
        self.receipts().out_of_order(account, era, give_back).unwrap_or(Adjusted::Capped)
    }

    /// The same under the lock of the receipts.
    pub(super) fn give_back_unlocked(self, account: &Account, receipt: Receipt) -> Adjusted {
        with_holder!(self, holder => holder.give_back_to(account, receipt))
    }

    pub(crate) fn state_of(self, account: &Account) -> State {
        with_holder!(self, holder => holder.state_of(account))
    }

    /// Only a map holds permits.
    pub(crate) fn release_in(self, account: &Account, permit: PermitId) -> bool {
        matches!(self, Holder::Map(map) if map.release_in(account, permit))
    }

    pub(crate) fn renew_in(self, account: &Account, permit: PermitId) -> bool {
        matches!(self, Holder::Map(map) if map.renew_in(account, permit))
    }
}
