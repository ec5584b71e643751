//! The pure functions, with a table of states around them that forgets nobody.

use std::collections::HashMap;

use tidegate::{
    Adjusted, Adjustment, Algorithm, Ask, Decision, Key, PermitId, Receipt, State, Subject, Timestamp,
};

use super::Keeper;

/// The state of every subject ever seen, each by itself.
#[derive(Clone, Debug, Default)]
pub struct States {
    now: Timestamp,
    states: HashMap<Key, Vec<Kept>>,
}

#[derive(Clone, Debug)]
struct Kept {
    namespace: String,
    algorithm: Algorithm,
    state: State,
}

impl States {
    /// Forgets the state of a subject under the algorithm of its limit.
    pub fn forget(&mut self, subject: Subject<'_>) {
        *self.state_mut(subject) = State::default();
    }

    fn kept(&self, subject: Subject<'_>) -> Option<&State> {
        let kept = self.states.get(subject.key)?.iter().find(|kept| kept.is_of(subject))?;
        Some(&kept.state)
    }

    fn state_mut(&mut self, subject: Subject<'_>) -> &mut State {
        if !self.states.contains_key(subject.key) {
            self.states.insert(subject.key.clone(), Vec::new());
        }
        let known = self.states.get_mut(subject.key).expect("it was just put there");
        let index = known.iter().position(|kept| kept.is_of(subject)).unwrap_or_else(|| {
            let namespace = subject.namespace.to_owned();
            known.push(Kept { namespace, algorithm: subject.limit.algorithm(), state: State::default() });
            known.len() - 1
        });
        &mut known[index].state
    }
}

impl Kept {
    fn is_of(&self, subject: Subject<'_>) -> bool {
        self.algorithm == subject.limit.algorithm() && self.namespace == subject.namespace
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
        let (limit, now) = (subject.limit, self.now);
        let state = self.state_mut(subject);
        let decision = limit.decide(state, now, ask);
        (decision, limit.receipt(state, now, ask, &decision))
    }

    fn peek(&self, subject: Subject<'_>, ask: Ask) -> Decision {
        subject.limit.peek(self.kept(subject).unwrap_or(&State::default()), self.now, ask)
    }

    fn adjust(&mut self, subject: Subject<'_>, adjustment: Adjustment) -> Adjusted {
        let now = self.now;
        subject.limit.adjust(self.state_mut(subject), now, adjustment)
    }

    fn give_back(&mut self, subject: Subject<'_>, receipt: Receipt) -> Adjusted {
        let now = self.now;
        subject.limit.give_back(self.state_mut(subject), now, receipt)
    }

    fn release(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let now = self.now;
        subject.limit.release(self.state_mut(subject), now, permit)
    }

    fn renew(&mut self, subject: Subject<'_>, permit: PermitId) -> bool {
        let now = self.now;
        subject.limit.renew(self.state_mut(subject), now, permit)
    }

    fn reset(&mut self, subject: Subject<'_>) {
        if let Some(known) = self.states.get_mut(subject.key) {
            known.retain(|kept| kept.namespace != subject.namespace);
        }
    }

    fn state(&self, subject: Subject<'_>) -> State {
        self.kept(subject).cloned().unwrap_or_default()
    }
}
