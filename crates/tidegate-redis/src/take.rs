//! Takes all or none: in one script where one server has all the keys, else by taking and giving back.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::{Answer, Ask, Decision, Decisions, State, StoreError, Subject, Timestamp, Verdict};

use crate::exchange::Question;
use crate::fault::Fault;
use crate::refusals::Era;
use crate::script::{self, Taken};
use crate::store::Inner;
use crate::topology::Seat;

/// How many limits may be asked for together: a script stops everybody else while it runs.
const MOST_TOGETHER: usize = 128;

/// The asks of one slot, by their places among all.
type Group = Vec<usize>;

/// What became of a group, and what each of its takes has to be given back with.
struct Outcome {
    group: Group,
    decisions: Vec<Decision>,
    taken: Vec<Option<Taken>>,
    /// By which connection it was asked.
    seat: Option<Seat>,
}

impl Inner {
    pub(crate) fn take<'a>(&'a self, asks: &'a [(Subject<'a>, Ask)]) -> Answer<'a, Decisions> {
        if asks.is_empty() {
            return Answer::ready(Vec::new().into());
        }
        if asks.len() > MOST_TOGETHER {
            let count = asks.len();
            return Answer::later(async move {
                Err(StoreError::unfit(format!(
                    "{count} limits are too many for one request; ask for at most {MOST_TOGETHER} together"
                )))
            });
        }
        let (refused, eras) = self.certain(asks);
        if let Some(refused) = refused {
            self.counts.cached.add();
            return Answer::ready(refused.remembered());
        }
        Answer::later(async move {
            let decisions = self.take_there(asks).await?;
            self.remember(asks, &decisions, &eras);
            Ok(decisions.into())
        })
    }

    /// A refusal that needs nobody to be asked. Of those who would not refuse, nothing is known.
    fn certain(&self, asks: &[(Subject<'_>, Ask)]) -> (Option<Decisions>, Vec<(Vec<u8>, Era)>) {
        let Some(refusals) = &self.refusals else { return (None, Vec::new()) };
        let mut is_refused = false;
        let mut eras = Vec::with_capacity(asks.len());
        let known: Vec<_> = asks
            .iter()
            .map(|(subject, ask)| {
                let name = script::state_key(self.prefix(), subject);
                let (refused, era) = refusals.certain(&name, subject.limit, *ask);
                is_refused |= refused.is_some();
                eras.push((name, era));
                refused
            })
            .collect();
        let untouched = |(subject, ask): &(Subject<'_>, Ask)| {
            subject.limit.peek(&State::default(), Timestamp::EPOCH, *ask)
        };
        let decisions = || known.iter().zip(asks).map(|(known, ask)| known.unwrap_or_else(|| untouched(ask)));
        (is_refused.then(|| decisions().collect::<Vec<_>>().into()), eras)
    }

    fn remember(&self, asks: &[(Subject<'_>, Ask)], decisions: &[Decision], eras: &[(Vec<u8>, Era)]) {
        let Some(refusals) = &self.refusals else { return };
        for (((subject, ask), decision), (name, era)) in asks.iter().zip(decisions).zip(eras) {
            refusals.note(name, (subject.limit, *ask), (decision, *era));
        }
    }

    async fn take_there(&self, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Decision>, StoreError> {
        match &*self.groups(asks)? {
            [] | [_] => Ok(self.take_group((0..asks.len()).collect(), asks).await?.decisions),
            groups => self.take_groups(groups, asks).await,
        }
    }

    /// The asks of each slot; one group if slots do not matter.
    fn groups(&self, asks: &[(Subject<'_>, Ask)]) -> Result<Vec<Group>, Fault> {
        if asks.len() < 2 || !self.running()?.exchange.topology.has_slots() {
            return Ok(vec![(0..asks.len()).collect()]);
        }
        let mut groups: BTreeMap<u16, Group> = BTreeMap::new();
        for (place, (subject, _)) in asks.iter().enumerate() {
            let slot = script::slot(&script::state_key(self.prefix(), subject));
            groups.entry(slot).or_default().push(place);
        }
        Ok(groups.into_values().collect())
    }

    async fn take_group(&self, group: Group, asks: &[(Subject<'_>, Ask)]) -> Result<Outcome, StoreError> {
        let own: Vec<_> = group.iter().map(|place| asks[*place]).collect();
        let call = script::take(&own, self.prefix(), self.time());
        let call = call.map_err(|unsupported| StoreError::unfit(unsupported.to_string()))?;
        let has_others = group.len() < asks.len();
        let seat = has_others.then(|| self.seat(&own)).flatten();
        let answer = self.ask(Question::Run(Arc::new(call))).await?;
        let (decisions, taken) =
            script::read_take(answer, &own).map_err(|error| Fault::Unreadable(error.to_string()))?;
        Ok(Outcome { group, decisions, taken, seat })
    }

    /// Takes each group by itself, all at once. Unless all of them let pass, those who did get back what they gave.
    async fn take_groups(
        &self,
        groups: &[Group],
        asks: &[(Subject<'_>, Ask)],
    ) -> Result<Vec<Decision>, StoreError> {
        let taking = groups.iter().map(|group| self.take_group(group.clone(), asks));
        let mut outcomes = Vec::with_capacity(groups.len());
        let mut failed: Option<StoreError> = None;
        for outcome in crate::join::join_all(taking).await {
            match outcome {
                Ok(outcome) => outcomes.push(outcome),
                // That something may have been spent weighs more than that something was not.
                Err(error) if failed.as_ref().is_none_or(StoreError::is_retryable) => failed = Some(error),
                Err(_) => {}
            }
        }
        let is_allowed = |outcome: &Outcome| outcome.decisions.iter().all(Decision::is_allowed);
        let is_given_back = failed.is_some() || !outcomes.iter().all(is_allowed);
        if is_given_back {
            // Another server, or the same one after a restart, may not remember the take, and would forgive somebody else's.
            let is_there = |outcome: &Outcome| {
                let own: Vec<_> = outcome.group.iter().map(|place| asks[*place]).collect();
                outcome.seat.is_some() && self.seat(&own) == outcome.seat
            };
            let spent = outcomes.iter().filter(|outcome| is_allowed(outcome) && is_there(outcome));
            let back = spent.flat_map(|outcome| {
                let takes = outcome.group.iter().zip(&outcome.taken);
                takes.filter_map(|(place, taken)| Some(self.give_back(asks[*place].0, taken.as_ref()?)))
            });
            // What cannot be given back stays spent: that is too little for somebody, never too much.
            crate::join::join_all(back.collect::<Vec<_>>().into_iter()).await;
        }
        match failed {
            Some(error) => Err(error),
            None => {
                let mut placed: Vec<_> = outcomes
                    .into_iter()
                    .flat_map(|outcome| outcome.group.into_iter().zip(outcome.decisions))
                    .collect();
                placed.sort_by_key(|(place, _)| *place);
                let told = |(place, decision): (usize, Decision)| match decision.verdict_in_ticks() {
                    Verdict::Allowed { .. } if is_given_back => given_back(&decision, asks[place].1),
                    _ => decision,
                };
                Ok(placed.into_iter().map(told).collect())
            }
        }
    }

    /// The connection by which these asks, which share a slot, would be asked now.
    fn seat(&self, asks: &[(Subject<'_>, Ask)]) -> Option<Seat> {
        let (subject, _) = asks.first()?;
        let slot = script::slot(&script::state_key(self.prefix(), subject));
        self.running().ok()?.exchange.topology.seat(slot)
    }

    async fn give_back(&self, subject: Subject<'_>, taken: &Taken) {
        self.counts.given_back.add();
        if let Ok(call) = script::give_back(subject, taken, self.prefix(), self.time()) {
            // There is nobody to tell, and nothing else to be done.
            let _ = self.ask(Question::Run(Arc::new(call))).await;
            // Whoever was refused meanwhile was so because of this.
            self.forget(&subject);
        }
    }
}

/// A decision to let pass, without what it took.
fn given_back(decision: &Decision, ask: Ask) -> Decision {
    let remaining = decision.remaining().saturating_add(ask.cost.get()).min(decision.limit());
    let (verdict, reset_after) = (decision.verdict_in_ticks(), decision.reset_after_in_ticks());
    Decision::elsewhere(verdict, decision.limit(), remaining, reset_after)
}
