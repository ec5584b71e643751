//! The pure functions, with a table of states around them that forgets no key.

use std::collections::HashMap;

use tidegate::{
    Adjusted, Adjustment, Ask, Begun, Decision, History, Key, Limit, PermitId, Predecessor, Receipt, Scope,
    State, Subject, Timestamp,
};

use super::Keeper;

/// The state of every subject ever seen, each by itself.
#[derive(Clone, Debug, Default)]
pub struct States {
    now: Timestamp,
    states: HashMap<Key, Vec<Kept>>,
    /// The limits that rules have had, newest first.
    limits: Vec<Announced>,
}

#[derive(Clone, Debug)]
struct Kept {
    namespace: String,
    /// The digest of the limit.
    limit: u64,
    state: State,
}

/// A limit that a rule has had.
#[derive(Clone, Debug)]
struct Announced {
    rule: String,
    limit: Limit,
    digest: u64,
    since: Timestamp,
}

impl States {
    fn kept(&self, subject: Subject<'_>, limit: u64) -> Option<&State> {
        let is_of = |kept: &&Kept| kept.limit == limit && kept.namespace == subject.namespace();
        Some(&self.states.get(subject.key())?.iter().find(is_of)?.state)
    }

    fn state_mut(&mut self, subject: Subject<'_>) -> &mut State {
        let (namespace, limit) = (subject.namespace(), subject.prepared_limit().digest());
        let known = self.states.entry(subject.key().clone()).or_default();
        let is_of = |kept: &Kept| kept.limit == limit && kept.namespace == namespace;
        let index = known.iter().position(is_of).unwrap_or_else(|| {
            known.push(Kept { namespace: namespace.to_owned(), limit, state: State::default() });
            known.len() - 1
        });
        &mut known[index].state
    }

    /// Puts the limit of a rule in force; its first use does so as well.
    pub fn announce(&mut self, subject: Subject<'_>) {
        let prepared = subject.prepared_limit();
        let Scope::Rule = prepared.scope() else { return };
        let (rule, digest) = (subject.namespace(), prepared.digest());
        let newest = self.limits.iter().find(|known| known.rule == rule);
        if newest.is_none_or(|newest| newest.digest != digest) {
            self.limits.retain(|known| known.rule != rule || known.digest != digest);
            let (rule, limit) = (rule.to_owned(), *prepared.limit());
            self.limits.insert(0, Announced { rule, limit, digest, since: self.now });
        }
    }

    /// Returns the limits of a subject's rule, newest first, each with the state of its key, for a message.
    pub fn describe(&self, subject: Subject<'_>) -> String {
        let of_rule = self.limits.iter().filter(|known| known.rule == subject.namespace());
        let lines = of_rule.map(|Announced { limit, since, digest, .. }| {
            let state = self.kept(subject, *digest).cloned().unwrap_or_default();
            format!("\n  {limit} since {since:?}, clear at {:?}: {state:?}", limit.clear_at(&state))
        });
        lines.collect()
    }

    /// Returns the states with which a subject without a live state begins.
    fn begun(&self, subject: Subject<'_>) -> Begun {
        let own = self.kept(subject, subject.prepared_limit().digest());
        let is_live = own.is_some_and(|own| subject.limit().clear_at(own) > self.now);
        if is_live {
            return Begun::FULL;
        }
        let (history, before) = self.history(subject);
        history.begin(subject.limit(), self.now, |place, _| {
            self.kept(subject, before[place]).cloned().unwrap_or_default()
        })
    }

    /// The decision about a live state, which is followed by counts of the limits before once it is clear.
    fn report(&self, subject: Subject<'_>, ask: Ask, decision: Decision) -> Decision {
        let Some(own) = self.kept(subject, subject.prepared_limit().digest()) else { return decision };
        let (history, before) = self.history(subject);
        let own = tidegate::OwnDecision::new(own, decision, self.now, ask);
        history.report(subject.limit(), own, |place, _| {
            self.kept(subject, before[place]).cloned().unwrap_or_default()
        })
    }

    /// The limits before that of a subject, with their digests.
    fn history(&self, subject: Subject<'_>) -> (History, Vec<u64>) {
        let prepared = subject.prepared_limit();
        let Scope::Rule = prepared.scope() else { return Default::default() };
        if prepared.is_one_set() {
            return Default::default();
        }
        let of_rule = || self.limits.iter().filter(|known| known.rule == subject.namespace());
        // One that is only looked at is not in force yet.
        let since = of_rule().next().filter(|newest| newest.digest == prepared.digest());
        let since = since.map_or(self.now, |newest| newest.since);
        let before: Vec<_> = of_rule().filter(|known| known.digest != prepared.digest()).collect();
        let predecessors = before.iter().map(|known| Predecessor::new(&known.limit, known.since));
        let history = History::new(since, predecessors.collect());
        (history, before.iter().map(|known| known.digest).collect())
    }

    /// Changes the state of a subject, which may begin with counts of the limits before.
    /// With those counts, if nothing was written.
    fn change<R>(
        &mut self,
        subject: Subject<'_>,
        ask: Ask,
        change: impl FnOnce(&mut State) -> R,
    ) -> (R, Begun) {
        self.announce(subject);
        let (begun, now) = (self.begun(subject), self.now);
        if begun.is_full() {
            return (change(self.state_mut(subject)), begun);
        }
        let first = begun.state_for(subject.limit(), now, ask);
        let mut state = first.clone();
        let answer = change(&mut state);
        if state == first {
            return (answer, begun);
        }
        *self.state_mut(subject) = state;
        (answer, Begun::FULL)
    }
}

impl Keeper for States {
    fn name(&self) -> &'static str {
        "pure"
    }

    fn forgets(&self) -> bool {
        false
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn take(&mut self, subject: Subject<'_>, ask: Ask) -> (Decision, Option<Receipt>) {
        let (limit, now) = (*subject.limit(), self.now);
        let ((decision, receipt), begun) = self.change(subject, ask, |state| {
            let decision = limit.decide(state, now, ask);
            (decision, limit.receipt(state, now, ask, &decision))
        });
        let is_carried = !begun.is_full() && !decision.is_allowed();
        let decision =
            if is_carried { begun.peek(&limit, now, ask) } else { self.report(subject, ask, decision) };
        (decision, receipt)
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        let begun = self.begun(subject);
        if !begun.is_full() {
            return begun.peek(subject.limit(), self.now, ask);
        }
        let own = self.kept(subject, subject.prepared_limit().digest());
        let decision = subject.limit().peek(own.unwrap_or(&State::default()), self.now, ask);
        self.report(subject, ask, decision)
    }

    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        let (limit, now) = (*subject.limit(), self.now);
        self.announce(subject);
        let begun = self.begun(subject);
        if !begun.is_full() {
            // A refund that leaves no debt is not made: a clear state is not kept, so the same counts would be carried
            // again.
            let first = begun.state_for(&limit, now, Ask::ONE);
            let mut state = first.clone();
            limit.adjust(&mut state, now, adjustment);
            if state != first && limit.clear_at(&state) <= now {
                return Adjusted::Capped;
            }
        }
        self.change(subject, Ask::ONE, |state| limit.adjust(state, now, adjustment)).0
    }

    fn give_back(&mut self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        let now = self.now;
        subject.limit().give_back(self.state_mut(subject), now, receipt)
    }

    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let now = self.now;
        subject.limit().release(self.state_mut(subject), now, permit)
    }

    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let now = self.now;
        subject.limit().renew(self.state_mut(subject), now, permit)
    }

    fn reset(&mut self, subject: Subject<'_>) {
        if let Some(known) = self.states.get_mut(subject.key()) {
            known.retain(|kept| kept.namespace != subject.namespace());
        }
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.kept(subject, subject.prepared_limit().digest()).cloned().unwrap_or_default()
    }
}
