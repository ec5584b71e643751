//! Plays a trace on an arm: step by step, or with the takes of one instant in one call.

use std::collections::HashMap;

use tidegate::{Adjusted, PermitId, Ticks, Timestamp};

use super::{Action, Expected, Step, Trace};
use crate::arm::{Answer, Arm, Take};

/// The number of keys for which a trace is played in batches, so that every take of it is one of several.
const COPIES: usize = 3;

/// The operations of a trace in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    /// Steps that were played.
    pub steps: usize,
    /// Calls that decided about several takes.
    pub calls: usize,
    /// Takes in the largest of them.
    pub largest: usize,
}

/// Plays a trace, as far as the arm can meet its needs, and returns the number of steps, or at which line
/// the arm did something else.
pub fn play(trace: &Trace, arm: &mut dyn Arm) -> Result<usize, String> {
    let mut player = Player { arm, permits: HashMap::new() };
    for (played, step) in trace.steps.iter().enumerate() {
        if player.misses(&step.action) {
            return Ok(played);
        }
        player.step(step)?;
    }
    Ok(trace.steps.len())
}

/// Plays a trace like [`play`], with a few keys for each of its keys, which all get the written answers. Takes that
/// follow each other at one time are asked in one call, for all of these keys. While such a call is decided, the
/// clock advances by `tick` at every reading.
pub fn play_in_batches(trace: &Trace, arm: &mut dyn Arm, tick: Ticks) -> Result<Batches, String> {
    let mut player = Player { arm, permits: HashMap::new() };
    let mut batches = Batches::default();
    for steps in trace.steps.chunk_by(are_together) {
        if player.misses(&steps[0].action) {
            return Ok(batches);
        }
        let copies: Vec<_> = steps.iter().flat_map(copies).collect();
        match &steps[0].action {
            Action::Take { .. } => {
                player.batch(&copies, tick)?;
                batches.calls += 1;
                batches.largest = batches.largest.max(copies.len());
            }
            Action::Needs(_) | Action::Begin(_) | Action::Change(_) => player.step(&steps[0])?,
            _ => copies.iter().try_for_each(|step| player.step(step))?,
        }
        batches.steps += steps.len();
    }
    Ok(batches)
}

fn are_together(one: &Step, next: &Step) -> bool {
    let is_take = |step: &Step| matches!(step.action, Action::Take { .. });
    is_take(one) && is_take(next) && one.at == next.at
}

/// The same step for each of the keys that stand for its key.
fn copies(step: &Step) -> impl Iterator<Item = Step> + '_ {
    (0..COPIES).map(move |copy| {
        let named = |name: &String| format!("{name}-{copy}");
        let action = match &step.action {
            Action::Take { ask, name } => Action::Take { ask: *ask, name: name.as_ref().map(named) },
            Action::GiveBack(name) => Action::GiveBack(named(name)),
            Action::Release(name) => Action::Release(named(name)),
            Action::Renew(name) => Action::Renew(named(name)),
            other => other.clone(),
        };
        Step { key: named(&step.key), action, ..step.clone() }
    })
}

struct Player<'a> {
    arm: &'a mut dyn Arm,
    /// The permit of each named take.
    permits: HashMap<String, PermitId>,
}

impl Player<'_> {
    fn misses(&self, action: &Action) -> bool {
        matches!(action, Action::Needs(need) if !self.arm.can(need))
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if matches!(step.action, Action::Needs(_)) {
            return Ok(());
        }
        self.arm.set_time(Timestamp::from_ticks(step.at));
        let got = self.act(step).map_err(|what| format!("line {}: {what}", step.line))?;
        self.compare(step, got.as_ref())
    }

    /// Asks several takes of one instant in one call.
    fn batch(&mut self, steps: &[Step], tick: Ticks) -> Result<(), String> {
        let take = |step: &'_ Step| match &step.action {
            Action::Take { ask, name } => Some((step.key.clone(), *ask, name.clone())),
            _ => None,
        };
        let takes: Vec<_> = steps.iter().filter_map(take).collect();
        let takes: Vec<_> =
            takes.iter().map(|(key, ask, name)| Take { key, ask: *ask, name: name.as_deref() }).collect();
        self.arm.set_time(Timestamp::from_ticks(steps[0].at));
        if !self.arm.tick(tick) {
            return Err(format!("the clock of {} cannot advance at every reading", self.arm.name()));
        }
        let answers = self.arm.take_each(&takes);
        self.arm.tick(Ticks::ZERO);
        if answers.len() != takes.len() {
            return Err(format!("{} answered {} of {} takes", self.arm.name(), answers.len(), takes.len()));
        }
        for ((step, take), answer) in steps.iter().zip(&takes).zip(answers) {
            self.note_permit(take.name, &answer);
            self.compare(step, Some(&Expected::of(&answer)))?;
        }
        Ok(())
    }

    fn compare(&self, step: &Step, got: Option<&Expected>) -> Result<(), String> {
        let Some(expected) = &step.expected else { return Ok(()) };
        let (resolution, slack) = (self.arm.resolution(), self.arm.slack());
        if got.is_some_and(|got| expected.is_met_by(got, resolution, slack)) {
            return Ok(());
        }
        let got = got.map_or("nothing".to_owned(), ToString::to_string);
        Err(format!("line {}: {step}\n  {} answered {got}", step.line, self.arm.name()))
    }

    fn act(&mut self, step: &Step) -> Result<Option<Expected>, String> {
        let key = step.key.as_str();
        Ok(match &step.action {
            Action::Needs(_) => None,
            Action::Begin(limit) => {
                self.arm.begin(*limit);
                None
            }
            Action::Change(limit) => {
                self.arm.change(*limit);
                None
            }
            Action::Take { ask, name } => {
                let answer = self.arm.take(key, *ask, name.as_deref());
                self.note_permit(name.as_deref(), &answer);
                Some(Expected::of(&answer))
            }
            Action::Peek { ask } => Some(Expected::of(&self.arm.peek(key, *ask))),
            Action::Adjust(adjustment) => Some(adjusted(self.arm.adjust(key, *adjustment))),
            Action::GiveBack(name) => Some(adjusted(self.arm.give_back(key, name))),
            Action::Release(name) => Some(Expected::yes_or_no(self.arm.release(key, self.permit(name)?))),
            Action::Renew(name) => Some(Expected::yes_or_no(self.arm.renew(key, self.permit(name)?))),
            Action::Reset => {
                self.arm.reset(key);
                None
            }
        })
    }

    fn note_permit(&mut self, name: Option<&str>, answer: &Answer) {
        if let (Some(name), Some(permit)) = (name, answer.permit) {
            self.permits.insert(name.to_owned(), permit);
        }
    }

    fn permit(&self, name: &str) -> Result<PermitId, String> {
        self.permits.get(name).copied().ok_or(format!("no take named {name} got a permit"))
    }
}

fn adjusted(adjusted: Adjusted) -> Expected {
    Expected::word(match adjusted {
        Adjusted::Whole => "whole",
        Adjusted::Capped => "capped",
        Adjusted::NeedsPermit => "needs-permit",
    })
}
