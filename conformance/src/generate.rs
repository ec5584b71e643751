//! Random traces aimed at the instants where a verdict changes, each step judged by the oracle.
//!
//! Half of all faults of a limiter show only within a tick or two of a boundary, where random times hardly
//! ever fall. So the generator asks the limit under test when the next change would be and steps right
//! before, onto or right behind it.

use tidegate::{Ask, Cost, Decision, Key, Limit, PermitId, Timestamp, Verdict};

use crate::keeper::{Keeper, States, judged, representable};
use crate::oracle::{self, Admitted, Oracle};
use crate::promise::{Promise, interval};
use crate::random::Random;
use crate::ticks;
use crate::trace::{Action, Expected, Step, Trace};

/// Beyond this, time moves on by ticks only: a trace must not reach the end of time.
const LATE: u64 = 20 * 365 * 86_400 * 16_000_000_000;

/// The operations of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shares {
    /// Asks that were judged.
    pub operations: u64,
    /// Those within two ticks of a change of verdict.
    pub near_change: u64,
    /// Those that were denied.
    pub refusals: u64,
}

impl Shares {
    /// Adds another run's.
    pub fn add(&mut self, other: Shares) {
        self.operations += other.operations;
        self.near_change += other.near_change;
        self.refusals += other.refusals;
    }

    /// Percent of all operations within two ticks of a change.
    pub fn percent_near_change(&self) -> u64 {
        100 * self.near_change / self.operations.max(1)
    }

    /// Returns the percentage of operations that were denied.
    pub fn percent_refused(&self) -> u64 {
        100 * self.refusals / self.operations.max(1)
    }
}

/// Runs one random trace of a kind of promise on a keeper that has seen no key, against its oracle.
///
/// The error of a mismatch includes the trace up to it, as text that can be put into a file.
pub fn judge(keeper: impl Keeper, kind: &str, seed: u64, operations: u64) -> Result<Shares, String> {
    let mut run = Run::new(keeper, kind, seed);
    for _ in 0..operations {
        if let Err(what) = run.step() {
            return Err(format!("{what}\nseed {seed}, {:?}\n{}", run.promise, run.trace()));
        }
    }
    Ok(run.shares)
}

/// The trace of a seed, with all that the pure functions answered, to be played on another arm.
pub fn trace(kind: &str, seed: u64, operations: u64) -> Trace {
    let mut run = Run::new(States::default(), kind, seed);
    for _ in 0..operations {
        run.step().expect("this seed was judged before");
    }
    run.trace()
}

struct Run<K> {
    keeper: K,
    random: Random,
    promise: Promise,
    oracle: Box<dyn Oracle>,
    limit: Limit,
    key: Key,
    now: u64,
    admitted: Vec<Admitted>,
    permits: Vec<(PermitId, usize)>,
    shares: Shares,
    steps: Vec<(u64, Action, Expected)>,
}

impl<K: Keeper> Run<K> {
    fn new(mut keeper: K, kind: &str, seed: u64) -> Run<K> {
        let mut random = Random::new(seed);
        let promise = Promise::random(kind, &mut random);
        let now = random.sized(0, LATE / 4);
        keeper.set_time(Timestamp::from_ticks(now));
        Run {
            keeper,
            oracle: oracle::of(&promise),
            limit: promise.limit(),
            key: Key::new("k"),
            now,
            admitted: Vec::new(),
            permits: Vec::new(),
            shares: Shares::default(),
            steps: Vec::new(),
            random,
            promise,
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if matches!(self.promise, Promise::Concurrency { .. }) && self.random.percent(30) {
            self.end_or_renew()?;
        }
        let (cost, max_wait) = self.aim();
        let ask = Ask::new(cost).max_wait_in_ticks(ticks(max_wait));
        self.shares.operations += 1;
        self.shares.near_change += u64::from(self.is_near_change(ask));
        let peeked = self.look(ask);
        let (decision, _) = self.keeper.take(judged(&self.key, &self.limit), ask);
        let name = decision.permit().map(|_| format!("p{}", self.permits.len()));
        self.steps.push((self.now, Action::Take { ask, name }, Expected::of(&decision.into())));
        self.shares.refusals += u64::from(!decision.is_allowed());
        if peeked.is_allowed() != decision.is_allowed() {
            return Err(format!("peek returned {:?}", peeked.verdict_in_ticks()));
        }
        self.judge(decision, cost.get().into(), max_wait.into())
    }

    fn look(&self, ask: Ask) -> Decision {
        self.keeper.peek(judged(&self.key, &self.limit), ask)
    }

    /// Chooses a cost and a max wait, and moves time, if it can, close to where their verdict changes.
    fn aim(&mut self) -> (Cost, u64) {
        let most = self.promise.most_at_once();
        let mut units = match self.random.between(0, 99) {
            0..60 => 1,
            60..90 => self.random.sized(1, most),
            90..95 => most,
            _ => most + 1,
        };
        let max_wait = self.random_max_wait();
        if self.random.percent(70) {
            let look = |units: u64| self.look(Ask::new(Cost::of(units)).max_wait_in_ticks(ticks(max_wait)));
            let mut seen = look(units);
            if seen.is_allowed() {
                units = seen.remaining().saturating_add(1).min(most);
                seen = look(units);
            }
            if let Verdict::Denied { retry_after } = seen.verdict_in_ticks() {
                let edge = self.now.saturating_add(retry_after.get()) as i128;
                let around = i128::from(self.random.between(0, 4)) - 2;
                self.move_to(edge + around);
                return (Cost::of(units), max_wait);
            }
        }
        let passed = match self.random.between(0, 9) {
            0..4 => 0,
            4..7 => self.random.between(1, 3),
            _ => self.random.sized(1, 1 << 45),
        };
        self.move_to(i128::from(self.now) + i128::from(passed));
        (Cost::of(units), max_wait)
    }

    fn random_max_wait(&mut self) -> u64 {
        let (none, unit) = match self.promise {
            Promise::Steady { amount, period, own, .. } | Promise::WarmUp { amount, period, own, .. } => {
                (if own { 10 } else { 60 }, interval(amount, period))
            }
            _ => (65, 1 << 40),
        };
        match self.random.between(0, 99) {
            chance if chance < none => 0,
            95.. => u64::MAX,
            _ => representable(&self.keeper, self.random.sized(1, unit.saturating_mul(30))),
        }
    }

    fn move_to(&mut self, instant: i128) {
        let instant = u64::try_from(instant).unwrap_or(0);
        self.now = if instant > LATE { self.now + self.random.between(0, 2) } else { instant.max(self.now) };
        self.keeper.set_time(Timestamp::from_ticks(self.now));
    }

    fn is_near_change(&self, ask: Ask) -> bool {
        let state = self.keeper.state(judged(&self.key, &self.limit));
        let verdict = |at: u64| self.limit.peek(&state, Timestamp::from_ticks(at), ask).is_allowed();
        verdict(self.now.saturating_sub(2)) != verdict(self.now) || verdict(self.now) != verdict(self.now + 2)
    }

    /// Releases or renews a random permit, old ones too.
    fn end_or_renew(&mut self) -> Result<(), String> {
        let Promise::Concurrency { lease, .. } = self.promise else { return Ok(()) };
        let Some(last) = self.permits.len().checked_sub(1) else { return Ok(()) };
        let chosen = self.random.between(0, last as u64) as usize;
        let (permit, index) = self.permits[chosen];
        let now = i128::from(self.now);
        let held = now < self.admitted[index].departs;
        let renews = self.random.percent(40);
        let subject = judged(&self.key, &self.limit);
        let holds =
            if renews { self.keeper.renew(subject, permit) } else { self.keeper.release(subject, permit) };
        if holds != held {
            return Err(format!("permit {permit:?} held: {held}, the limit returned {holds}"));
        }
        let name = format!("p{chosen}");
        let action = if renews { Action::Renew(name) } else { Action::Release(name) };
        self.steps.push((self.now, action, Expected::yes_or_no(holds)));
        match (held, renews) {
            (true, true) => self.admitted[index].departs = now + i128::from(lease),
            (true, false) => self.admitted[index].departs = now,
            (false, _) => {}
        }
        Ok(())
    }

    fn judge(&mut self, decision: Decision, units: i128, max_wait: i128) -> Result<(), String> {
        let now = i128::from(self.now);
        let allows = self.oracle.allows(&self.admitted, now, units, max_wait);
        if allows != decision.is_allowed() && !self.is_within_tolerance(now, units, max_wait) {
            return Err(format!("the oracle says allowed: {allows}"));
        }
        match decision.verdict_in_ticks() {
            Verdict::Allowed { delay } => {
                self.judge_delay(delay.get().into(), units)?;
                self.note(decision, units, delay.get().into());
            }
            Verdict::Denied { retry_after } => {
                if self.oracle.counts_refusals() {
                    self.note(decision, units, 0);
                }
                self.judge_retry(retry_after.get().into(), units, max_wait)?;
            }
            Verdict::Impossible => {
                if self.oracle.tolerance() == 0
                    && self.oracle.is_possible(&self.admitted, now, units, max_wait)
                {
                    return Err("the oracle says that it is possible".into());
                }
            }
        }
        self.judge_remaining(decision.remaining().into())?;
        self.judge_reset(decision.reset_after_in_ticks().get().into())
    }

    fn is_within_tolerance(&self, now: i128, units: i128, max_wait: i128) -> bool {
        let tolerance = self.oracle.tolerance();
        let sure = |max_wait: i128| self.oracle.allows(&self.admitted, now, units, max_wait);
        tolerance > 0 && sure(max_wait - tolerance) != sure(max_wait.saturating_add(tolerance))
    }

    fn judge_delay(&self, delay: i128, units: i128) -> Result<(), String> {
        let expected = self.oracle.delay(&self.admitted, self.now.into(), units);
        let tolerance = self.oracle.tolerance();
        match expected {
            Some(expected) if (expected - delay).abs() <= tolerance => Ok(()),
            _ => Err(format!("the oracle says delay {expected:?}, not {delay}")),
        }
    }

    fn judge_retry(&self, wait: i128, units: i128, max_wait: i128) -> Result<(), String> {
        let now = i128::from(self.now);
        let tolerance = self.oracle.tolerance();
        let allows = |at: i128, max_wait: i128| self.oracle.allows(&self.admitted, at, units, max_wait);
        if wait <= 0 || !allows(now + wait, max_wait.saturating_add(tolerance)) {
            return Err(format!("the oracle still refuses after {wait} ticks"));
        }
        if allows(now + wait - 1, max_wait - tolerance) {
            return Err(format!("the oracle allows before {wait} ticks have passed"));
        }
        Ok(())
    }

    fn judge_remaining(&self, remaining: i128) -> Result<(), String> {
        let max_wait = match self.promise {
            Promise::LeakyBucket { .. } => i128::MAX,
            Promise::Steady { own: false, .. } | Promise::WarmUp { .. } => return Ok(()),
            _ => 0,
        };
        let allows = |units: i128| self.oracle.allows(&self.admitted, self.now.into(), units, max_wait);
        if (remaining > 0 && !allows(remaining)) || allows(remaining + 1) {
            return Err(format!("the oracle disagrees about remaining {remaining}"));
        }
        Ok(())
    }

    /// Checks `reset_after`: from then on, and not a tick earlier, all that passes at one instant from rest would pass.
    fn judge_reset(&self, reset_after: i128) -> Result<(), String> {
        let (units, max_wait) = match self.promise {
            Promise::LeakyBucket { .. } => (self.promise.most_at_once(), i128::MAX),
            Promise::Steady { own: false, .. } => (1, 0),
            Promise::Steady { .. } | Promise::WarmUp { .. } => return Ok(()),
            _ => (self.promise.most_at_once(), 0),
        };
        let is_full = |after: i128| {
            self.oracle.allows(&self.admitted, i128::from(self.now) + after, units.into(), max_wait)
        };
        if !is_full(reset_after) || (reset_after > 0 && is_full(reset_after - 1)) {
            return Err(format!("the oracle disagrees about reset_after {reset_after}"));
        }
        Ok(())
    }

    fn note(&mut self, decision: Decision, units: i128, delay: i128) {
        let asked = i128::from(self.now);
        let departs = match self.promise {
            Promise::Concurrency { lease, .. } => asked + i128::from(lease),
            _ => asked + delay,
        };
        if let Some(permit) = decision.permit() {
            self.permits.push((permit, self.admitted.len()));
        }
        self.admitted.push(Admitted { asked, departs, units });
    }

    fn trace(&self) -> Trace {
        let steps = self.steps.iter().zip(2..).map(|((at, action, expected), line)| Step {
            line,
            at: *at,
            key: "k".into(),
            action: action.clone(),
            expected: Some(expected.clone()),
        });
        let permits =
            matches!(self.promise, Promise::Concurrency { .. }).then(|| Action::Needs("permits".into()));
        let head =
            [Action::Needs("ticks".into())].into_iter().chain(permits).chain([Action::Begin(self.limit)]);
        Trace { steps: head.map(|action| Step::plain(1, action)).chain(steps).collect() }
    }
}
