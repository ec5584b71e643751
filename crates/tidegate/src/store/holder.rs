//! The store that holds the states of one limit, among those in memory.

use super::name::Account;
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

    /// The same, prepared for a limit that was not announced.
    pub(crate) fn ready_for(&self, account: &Account) -> Holder<'_> {
        match &self.0 {
            Kind::Zone(zone) => zone.ready_for(account),
            Kind::Map(map) => map.ready_for(account),
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

    /// Forgets a subject, whatever the algorithm. Whether anything was known about it.
    pub(crate) fn forget(&self, account: &Account) -> bool {
        match &self.0 {
            Kind::Zone(zone) => zone.forget(account),
            Kind::Map(map) => map.forget(account),
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
        with_holder!(self, holder => holder.adjust_in(account, adjustment))
    }

    pub(crate) fn give_back_to(self, account: &Account, receipt: Receipt) -> Adjusted {
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

    /// Prepares for a limit before it is in force.
    pub(crate) fn expect(self, namespace: &super::name::Namespace, terms: &Terms) {
        match self {
            Holder::Zone(zone) => zone.expect(terms),
            Holder::Map(map) => map.expect(namespace, terms),
        }
    }
}

/// What a store in memory can do for those who name a subject, and the same for those who must not care where
/// states live.
macro_rules! serves_subjects {
    ($store:ident) => {
        impl $store {
            /// Decides and spends if allowed; with proof of the take, by which it can be given back.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
                let account = subject.account();
                self.ready_for(&account).take_from(&account, ask)
            }

            /// Takes all or none: spends only if every ask passes.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                let accounts: Vec<_> = asks.iter().map(|(subject, _)| subject.account()).collect();
                let bids = accounts.iter().zip(asks).map(|(account, (_, ask))| Bid {
                    holder: self.ready_for(account),
                    account,
                    ask: *ask,
                });
                take_all(&bids.collect::<Vec<_>>())
            }

            /// What taking would say, without spending.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                let account = subject.account();
                self.holder(account.terms()).look(&account, ask)
            }

            /// Charges what turned out to be more, or gives back what was not used.
            pub fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
                let account = subject.account();
                self.ready_for(&account).adjust_in(&account, adjustment)
            }

            /// Gives one take back, as far as it is surely still there.
            pub fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
                let account = subject.account();
                self.holder(account.terms()).give_back_to(&account, receipt)
            }

            /// Gives a place in flight back. Whether the permit was still holding one.
            pub fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                let account = subject.account();
                self.holder(account.terms()).release_in(&account, permit)
            }

            /// Starts a permit's lease anew. Whether it was still holding its place.
            pub fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                let account = subject.account();
                self.holder(account.terms()).renew_in(&account, permit)
            }

            /// Forgets a subject, whatever the algorithm.
            pub fn reset(&self, subject: Subject<'_>) {
                self.forget(&subject.account());
            }

            /// What is remembered about a subject.
            pub fn state(&self, subject: Subject<'_>) -> State {
                let account = subject.account();
                self.holder(account.terms()).state_of(&account)
            }
        }

        impl Store for $store {
            fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions> {
                Answer::ready(self.take_all(asks))
            }

            fn peek<'a>(&'a self, subject: Subject<'a>, ask: Ask) -> Answer<'a, Decision> {
                Answer::ready($store::peek(self, subject, ask))
            }

            fn adjust<'a>(&'a self, subject: Subject<'a>, adjustment: Adjustment) -> Answer<'a, Adjusted> {
                Answer::ready($store::adjust(self, subject, adjustment))
            }

            fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
                Answer::ready($store::release(self, subject, permit))
            }

            fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
                Answer::ready($store::renew(self, subject, permit))
            }

            fn reset<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, ()> {
                $store::reset(self, subject);
                Answer::ready(())
            }
        }
    };
}

mod subjects {
    //! The calls that name a subject, for both stores.

    use super::{Adjusted, Adjustment, Ask, Decision, Map, PermitId, Receipt, State, Zone};
    use crate::decisions::Decisions;
    use crate::store::together::{Bid, take_all};
    use crate::store::{Answer, Store, Subject};

    serves_subjects! { Map }
    serves_subjects! { Zone }
}
