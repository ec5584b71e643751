//! The changes of one key: of its own state, or of a cell that it shares with other keys.
//!
//! Each change has two forms. `change` has the exact state of the key. `share` has only an upper bound of its debt,
//! from a shared cell, and must be correct for every debt up to it: it may deny too early, and never admits too much.
//!
//! | change | own state | shared cell |
//! |---|---|---|
//! | `Spend`, `SpendAsOf`, `Take` | decides | decides by the bound |
//! | `Refuse` | applies a denial | decides, and writes nothing |
//! | `Adjust` | charges or refunds | charges; refunds nothing |
//! | `GiveBack` | gives back | only if no other key has charged since |
//! | `TakeOff` | removes units of a debt | nothing |

use crate::algorithm::{Claim, DebtQueue, OneWord, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::store::Reported;
use crate::time::Timestamp;

/// A change of one key.
pub(super) trait Change<W: OneWord> {
    /// The reply; it may contain a decision, whose reported values are corrected while counts are carried.
    type Answer: Reported;

    /// Applies the change to the key's own state.
    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer;

    /// Applies the change to a shared cell, where only an upper bound `clear_at` of the key's debt is known. Returns
    /// the new word too, or `None` if it is unchanged.
    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>);

    /// Returns the ask of the change, by which a key with several carried states gets the strictest. `None` if the
    /// change concerns only a take under this limit, so that nothing is carried.
    fn ask(&self) -> Option<Ask> {
        None
    }
}

/// A change that decides, and spends if allowed. It is the change of the hot path: no receipt is computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spend(pub(super) Ask);

impl<W: OneWord> Change<W> for Spend {
    type Answer = Decision;

    #[inline]
    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Decision {
        terms.decide(state, now, self.0)
    }

    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Decision, Option<u64>) {
        let (decision, word) = terms.decide_sharing(clear_at, now, self.0);
        (decision, decision.is_allowed().then_some(word))
    }

    fn ask(&self) -> Option<Ask> {
        Some(self.0)
    }
}

/// A change like [`Spend`], which also returns the time as of which it decided. A batch uses it for a key that was not
/// found at once, and decides the asks after it as of the returned time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpendAsOf(pub(super) Ask);

impl<W: OneWord> Change<W> for SpendAsOf {
    type Answer = (Decision, Timestamp);

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        (Spend(self.0).change(terms, state, now), now)
    }

    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>) {
        let (decision, word) = Spend(self.0).share(terms, clear_at, now);
        ((decision, now), word)
    }

    fn ask(&self) -> Option<Ask> {
        Some(self.0)
    }
}

/// A change like [`Spend`], which also returns a receipt. A receipt from a shared cell is marked as such, because only
/// an undo right after it can use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take(pub(super) Ask);

impl<W: OneWord> Change<W> for Take {
    type Answer = (Decision, Option<Receipt>);

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        let decision = terms.decide(state, now, self.0);
        (decision, decision.is_allowed().then(|| terms.receipt(state, now, self.0.cost)))
    }

    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>) {
        let (decision, word) = Spend(self.0).share(terms, clear_at, now);
        let receipt = |word| terms.receipt(&terms.state_of_word(word), now, self.0.cost);
        let receipt = word.map(|word| Receipt { shared: true, ..receipt(word) });
        ((decision, receipt), word)
    }

    fn ask(&self) -> Option<Ask> {
        Some(self.0)
    }
}

/// A change that applies a denial which is already known, because a denial shortens a debt that is too large.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refuse(pub(super) Ask);

impl<W: OneWord> Change<W> for Refuse {
    type Answer = Decision;

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Decision {
        let looked = terms.peek(state, now, self.0);
        if looked.is_allowed() { looked } else { terms.decide(state, now, self.0) }
    }

    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Decision, Option<u64>) {
        (terms.decide_sharing(clear_at, now, self.0).0, None)
    }

    fn ask(&self) -> Option<Ask> {
        Some(self.0)
    }
}

/// A change that charges additional cost and returns a receipt, or refunds unused cost. A refund to a shared cell is
/// not possible, because its debt is not of one key. A charge there has no receipt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Adjust(pub(super) Adjustment);

impl<W: OneWord> Change<W> for Adjust {
    type Answer = (Adjusted, Option<Receipt>);

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        let adjusted = terms.adjust(state, now, self.0);
        let Adjustment::Charge(cost) = self.0 else { return (adjusted, None) };
        (adjusted, Some(terms.receipt(state, now, cost)))
    }

    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>) {
        match self.0 {
            Adjustment::Charge(cost) => {
                let (adjusted, word) = terms.charge_sharing(clear_at, now, cost);
                ((adjusted, None), Some(word))
            }
            Adjustment::Refund(_) => ((Adjusted::Capped, None), None),
        }
    }

    fn ask(&self) -> Option<Ask> {
        Some(Ask::ONE)
    }
}

/// A change that gives one take back.
#[derive(Debug)]
pub(super) enum GiveBack {
    /// The part of the take that is certainly still there.
    Rest(Receipt),
    /// The whole take, as if it had never been made: it is one of several takes, of which another was denied.
    Undo(Receipt),
}

impl<W: OneWord> Change<W> for GiveBack {
    type Answer = Adjusted;

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Adjusted {
        match self {
            GiveBack::Rest(receipt) => terms.give_back(state, now, receipt.copy()),
            GiveBack::Undo(receipt) => terms.undo(state, now, receipt.copy()),
        }
    }

    /// Restores the shared cell if no other key has charged it since. Only a take from the shared cell is given back,
    /// because an equal time alone may be the debt of another key.
    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Adjusted, Option<u64>) {
        let (GiveBack::Rest(receipt) | GiveBack::Undo(receipt)) = self;
        if !receipt.shared {
            return (Adjusted::Capped, None);
        }
        let mut state = terms.state_of_word(clear_at.ticks());
        let adjusted = terms.give_back(&mut state, now, receipt.copy());
        let word = terms.word_of(&state);
        (adjusted, (word != clear_at.ticks()).then_some(word))
    }
}

/// A change that removes units of one take from a debt.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeOff {
    /// The location of the take in the queue of debts.
    pub(super) claim: Claim,
    /// The units to remove, at most those of the take.
    pub(super) units: Cost,
}

impl<W: OneWord + DebtQueue> Change<W> for TakeOff {
    type Answer = Option<TakenOff>;

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        terms.take_off(state, now, &self.claim, self.units)
    }

    /// Removes nothing: which part of a shared debt belongs to which key is not known.
    fn share(&self, _: &W, _: Timestamp, _: Timestamp) -> (Self::Answer, Option<u64>) {
        (Some(TakenOff::NOTHING), None)
    }
}
