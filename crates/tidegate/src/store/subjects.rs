//! The calls that name a subject, for every store in memory, and the same for those who must not care where
//! states live.

use super::receipts::take_all_tracked;
use super::together::{Bid, take_all, take_all_as_of};
use super::{Answer, Holder, Map, Memory, OpenReceipt, Store, StoreError, Subject, Zone, Zones};
use crate::algorithm::State;
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::{Decision, PermitId};
use crate::decisions::Decisions;
use crate::few::Few;
use crate::limit::Limit;
use crate::receipt::Receipt;
use crate::store::name::{Account, Name, Namespace};
use crate::time::{RECENT, Timestamp};

/// A store in memory, or several: whoever holds a subject.
trait Holding {
    /// The store that holds this subject.
    fn memory(&self, subject: &Subject<'_>) -> Memory;

    /// The state of this subject. A limit that is used for the first time comes into force as of the given time.
    fn account_as_of(&self, subject: &Subject<'_>, at: Option<Timestamp>) -> Account;

    /// The same now.
    fn account(&self, subject: &Subject<'_>) -> Account {
        self.account_as_of(subject, None)
    }

    /// Who holds this subject.
    fn holding(&self, subject: &Subject<'_>, account: &Account) -> Holder<'_>;

    /// The subjects that may hold a permit of this one.
    fn holders<'a>(&'a self, subject: Subject<'a>) -> impl Iterator<Item = Subject<'a>> {
        std::iter::once(subject)
    }
}

macro_rules! holds_all {
    ($store:ident) => {
        impl Holding for $store {
            fn memory(&self, _: &Subject<'_>) -> Memory {
                Memory::from(self)
            }

            fn account_as_of(&self, subject: &Subject<'_>, at: Option<Timestamp>) -> Account {
                subject.account(self.limits(), || at.unwrap_or_else(|| self.clock().now()))
            }

            fn holding(&self, _: &Subject<'_>, account: &Account) -> Holder<'_> {
                self.holder(account.terms())
            }
        }
    };
}

holds_all! { Map }
holds_all! { Zone }

impl Holding for Zones {
    fn memory(&self, subject: &Subject<'_>) -> Memory {
        self.of(subject.zone()).clone()
    }

    fn account_as_of(&self, subject: &Subject<'_>, at: Option<Timestamp>) -> Account {
        let now = || at.unwrap_or_else(|| self.clock().now());
        subject.account(self.of(subject.zone()).limits(), now)
    }

    fn holding(&self, subject: &Subject<'_>, account: &Account) -> Holder<'_> {
        self.of(subject.zone()).holder(account.terms())
    }

    /// The zone that it names, and every other one: its rule may have had another zone when the permit was taken, or is
    /// gone.
    fn holders<'a>(&'a self, subject: Subject<'a>) -> impl Iterator<Item = Subject<'a>> {
        let all = std::iter::once(None).chain(self.names().map(Some));
        let others = all.filter(move |zone| *zone != subject.zone());
        std::iter::once(subject).chain(others.map(move |zone| subject.in_zone(zone)))
    }
}

/// The asks of subjects, each with who holds it.
fn bids<'a>(
    store: &'a impl Holding,
    accounts: &'a [Account],
    asks: &'a [(Subject<'_>, Ask)],
) -> Few<Bid<'a>> {
    let each = accounts.iter().zip(asks);
    each.map(|(account, (subject, ask))| Bid { holder: store.holding(subject, account), account, ask: *ask })
        .collect()
}

/// Forgets a key under every limit that its namespace has had.
fn reset(memory: &Memory, subject: &Subject<'_>) -> Result<bool, StoreError> {
    let namespace = Namespace::new(subject.namespace());
    let name = Name::new(&namespace, subject.key());
    memory.forget(&namespace, &name).map_err(StoreError::from)
}

impl Map {
    /// A map keeps states under every limit.
    fn supports(&self, _: &Limit) -> Result<(), String> {
        Ok(())
    }
}

macro_rules! serves_subjects {
    ($store:ident) => {
        impl $store {
            /// Decides and spends if allowed; with proof of the take, by which it can be given back.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn take(&self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
                let account = Holding::account(self, &subject);
                let holder = self.holding(&subject, &account);
                let era = holder.receipts().era();
                let (decision, receipt) = holder.take_from(&account, ask);
                (decision, receipt.map(|receipt| Receipt { era, ..receipt }))
            }

            /// Takes all or none: spends only if every ask passes. With receipts, by which [`refund`](Self::refund)
            /// gives back just that take, if a subject is [tracked](Subject::tracked).
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn take_all(&self, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                let is_tracked = Subject::are_tracked(asks);
                if let [(subject, ask)] = asks {
                    let account = Holding::account(self, subject);
                    let holder = self.holding(subject, &account);
                    if !is_tracked {
                        return Decisions::new(Few::from_iter([holder.spend(&account, *ask)]));
                    }
                    let (decision, receipt) = holder.take_tracked(&account, *ask);
                    let receipts = if decision.is_allowed() { vec![receipt] } else { Vec::new() };
                    return Decisions::new(Few::from_iter([decision])).with_receipts(receipts);
                }
                let accounts: Few<_> =
                    asks.iter().map(|(subject, _)| Holding::account(self, subject)).collect();
                let bids = bids(self, &accounts, asks);
                if is_tracked { take_all_tracked(&bids) } else { take_all(&bids) }
            }

            /// The time by its clock, for [`take_all_as_of`](Self::take_all_as_of).
            pub fn now(&self) -> Timestamp {
                self.clock().now()
            }

            /// Takes all or none as of a reading of [`now`](Self::now) from a moment ago, so that several calls are
            /// decided at one instant. A reading that is older than a twentieth of a second is not decided by: the clock
            /// is read again.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn take_all_as_of(&self, at: Timestamp, asks: &[(Subject<'_>, Ask)]) -> Decisions {
                let now = self.now();
                let mut at = if now.since(at) < RECENT { at } else { now };
                if let [(subject, ask)] = asks {
                    let account = Holding::account_as_of(self, subject, Some(at));
                    let holder = self.holding(subject, &account);
                    return Decisions::new(Few::from_iter([holder.spend_as_of(&account, *ask, &mut at)]));
                }
                let accounts: Few<_> =
                    asks.iter().map(|(subject, _)| Holding::account_as_of(self, subject, Some(at))).collect();
                take_all_as_of(Some(at), &bids(self, &accounts, asks))
            }

            /// What taking would say, without spending.
            #[must_use = "a decision that nobody reads limits nobody"]
            pub fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).look(&account, ask)
            }

            /// Charges what turned out to be more, or gives back what was not used.
            pub fn adjust(&self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).adjust_in(&account, adjustment)
            }

            /// Gives one take back, as far as it is surely still there.
            pub fn give_back(&self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).give_back_to(&account, receipt)
            }

            /// Charges what turned out to be more, with a receipt if all of it was charged.
            pub fn charge_tracked(
                &self,
                subject: Subject<'_>,
                cost: Cost,
            ) -> (Adjusted, Option<OpenReceipt>) {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).charge_tracked(&account, cost)
            }

            /// Gives units of one take back, at most what of it is still owed and was not refunded before.
            pub fn refund(&self, subject: Subject<'_>, receipt: &mut OpenReceipt, cost: Cost) -> Adjusted {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).refund(&account, receipt, Some(cost))
            }

            /// Gives a place in flight back. Whether the permit was still holding one.
            pub fn release(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                self.holders(subject).any(|subject| {
                    let account = Holding::account(self, &subject);
                    self.holding(&subject, &account).release_in(&account, permit)
                })
            }

            /// Starts a permit's lease anew. Whether it was still holding its place.
            pub fn renew(&self, subject: Subject<'_>, permit: PermitId) -> bool {
                self.holders(subject).any(|subject| {
                    let account = Holding::account(self, &subject);
                    self.holding(&subject, &account).renew_in(&account, permit)
                })
            }

            /// Forgets a key under every limit that its namespace has had. Whether anything was remembered about it.
            /// An error while the store has more limits in use than it lists, 1,024; [`reset_limit`](Self::reset_limit)
            /// works then, too.
            pub fn reset(&self, subject: Subject<'_>) -> Result<bool, StoreError> {
                reset(&self.memory(&subject), &subject)
            }

            /// Forgets a key under this limit only. Whether anything was remembered about it.
            pub fn reset_limit(&self, subject: Subject<'_>) -> bool {
                let account = Holding::account(self, &subject);
                self.memory(&subject).forget_state(account.name(), account.limit().name())
            }

            /// What is remembered about a subject.
            pub fn state(&self, subject: Subject<'_>) -> State {
                let account = Holding::account(self, &subject);
                self.holding(&subject, &account).state_of(&account)
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

            fn charge<'a>(
                &'a self,
                subject: Subject<'a>,
                cost: Cost,
            ) -> Answer<'a, (Adjusted, Option<OpenReceipt>)> {
                Answer::ready(self.charge_tracked(subject, cost))
            }

            fn refund<'a>(
                &'a self,
                subject: Subject<'a>,
                receipt: &'a mut OpenReceipt,
                cost: Cost,
            ) -> Answer<'a, Adjusted> {
                Answer::ready($store::refund(self, subject, receipt, cost))
            }

            fn release<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
                Answer::ready(!subject.is_local && $store::release(self, subject, permit))
            }

            fn renew<'a>(&'a self, subject: Subject<'a>, permit: PermitId) -> Answer<'a, bool> {
                Answer::ready(!subject.is_local && $store::renew(self, subject, permit))
            }

            fn reset<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, bool> {
                match $store::reset(self, subject) {
                    Ok(was_known) => Answer::ready(was_known),
                    Err(error) => Answer::failed(error),
                }
            }

            fn reset_limit<'a>(&'a self, subject: Subject<'a>) -> Answer<'a, bool> {
                Answer::ready($store::reset_limit(self, subject))
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
