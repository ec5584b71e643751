//! What can be done to one subject: to a state of its own, or to what it shares with others.

use crate::algorithm::{Claim, OneWord, Queue, TakenOff};
use crate::ask::{Adjusted, Adjustment, Ask, Cost};
use crate::decision::Decision;
use crate::receipt::Receipt;
use crate::store::Reported;
use crate::time::Timestamp;

/// Something that is done to one subject.
pub(super) trait Change<W: OneWord> {
    type Answer: Reported;

    /// Does it to a state of the subject's own.
    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer;

    /// Does it to a subject of which only is known that it owes nothing after `clear_at`. With the word that
    /// this leaves, if it leaves another one.
    fn share(&self, terms: &W, clear_at: Timestamp, now: Timestamp) -> (Self::Answer, Option<u64>);

    /// The ask that it is about, by which a subject with several states to begin with gets the strictest. None if it is
    /// about a take under this limit only, so that nothing has to begin.
    fn ask(&self) -> Option<Ask> {
        None
    }
}

/// Decides, and spends if allowed.
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

/// Decides and spends like [`Spend`]; with the time as of which it did.
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

/// Decides and spends like [`Spend`], with proof of it.
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

/// Lets a limit see a refusal that it is already known to give: a debt that is too large is cut by it.
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

/// Charges what turned out to be more, with proof of it, or gives back what was not used. What is shared is nobody's to
/// give back, and what is charged there cannot be found again.
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

/// Gives one take back.
#[derive(Debug)]
pub(super) enum GiveBack {
    /// As far as it is surely still there.
    Rest(Receipt),
    /// As if it had never been: it is one of several, of which another was denied.
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

    /// What is shared goes back to what it was if nobody has charged it since; only what was taken there, for a time alone
    /// may be that of somebody else's debt.
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

/// Takes units of one take off a debt.
#[derive(Clone, Copy, Debug)]
pub(super) struct TakeOff {
    pub(super) claim: Claim,
    pub(super) units: Cost,
}

impl<W: OneWord + Queue> Change<W> for TakeOff {
    type Answer = Option<TakenOff>;

    fn change(&self, terms: &W, state: &mut W::State, now: Timestamp) -> Self::Answer {
        terms.take_off(state, now, &self.claim, self.units)
    }

    /// Which debt is whose in a shared cell is not known.
    fn share(&self, _: &W, _: Timestamp, _: Timestamp) -> (Self::Answer, Option<u64>) {
        (Some(TakenOff::NOTHING), None)
    }
}
